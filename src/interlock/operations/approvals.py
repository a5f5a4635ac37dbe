"""What people decide about tickets. Each decision is a transition and a record in one commit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import msgspec

from interlock.budget import charges
from interlock.engine import links_of, taking_back
from interlock.errors import ConfigError, NotAllowed
from interlock.operations.key_states import part_landed_message
from interlock.operations.ledger_writer import LedgerEntry, LedgerWriter, record_with_payload, store_digest
from interlock.ports import Query, Store
from interlock.principals import check_vouched, default_principal, kind_of
from interlock.records import Stored
from interlock.review import VOUCHES, approval_fault, decision_of, decisions_fault, is_party, opening_fault, voice_of
from interlock.review.identity import authenticate
from interlock.state import Claimed, ClaimState, Ticket, TicketKind, TicketState
from interlock.transitions import (
    DecideTicket,
    EscalateTicket,
    RemindTicket,
    ResolveClaim,
    Settle,
    SettleTicket,
    Transition,
)
from interlock.values import Json


class Look(msgspec.Struct, frozen=True):
    """How a change that people settle is looked at in its resource; by its claim, and what lies beside its intent."""

    versions: Callable[[Claimed, Mapping[str, Json]], Awaitable[tuple[str, ...]]]
    """The versions of its keys, if they are what was planned."""
    changed: Callable[[Claimed, Mapping[str, Json]], Awaitable[tuple[str, ...] | None]]
    """The keys that are not what they were before it; None where nobody can say."""


_LATE = "nobody decided in time"


async def decide_ticket(
    writer: LedgerWriter,
    name: str,
    state: TicketState,
    reason: str,
    look: Look | None = None,
    vouch: Sequence[int] = (),
) -> int:
    """Approve or deny a ticket about a call or an effect; the id of the decision's record.

    `look` is how a change of which somebody says whether it landed is looked at, where its resource is at hand. `vouch`
    are the records of results of its turn that whoever approves has looked at, and says that they are meant.
    """
    if writer.faults is not None:
        writer.faults.at("decide.read")
    ticket = await find_ticket(writer.store, name)
    if ticket.kind is TicketKind.ANSWER:  # decided here, it would be approved and never released
        raise NotAllowed(
            f"ticket {name!r} asks whether an answer may leave: decide it with answers.decide (interlock.answers),"
            " which releases or rejects the answer, too, or with interlock review"
        )
    said: dict[str, Json] = {}
    if vouch:
        await _refuse_odd_sources(writer, ticket, state, vouch)
        said = {VOUCHES: sorted(set(vouch))}
    return await record_decision(writer, ticket, state, reason, look, said)


async def _refuse_odd_sources(writer: LedgerWriter, ticket: Ticket, state: TicketState, vouch: Sequence[int]) -> None:
    """What is vouched for counts for the rest of the turn: it has to be something that was read in it."""
    if not isinstance(vouch, list | tuple) or not all(type(number) is int for number in vouch):
        raise ConfigError(f"vouch= is a list of numbers of records, not {vouch!r:.80}")
    if ticket.kind is not TicketKind.CHANGE or state is not TicketState.APPROVED or ticket.turn is None:
        raise NotAllowed("results are vouched for by whoever approves a call of a turn")
    if ticket.terms.quorum > 1:
        raise NotAllowed("where several have to approve, results are not vouched for: nobody else saw which")
    own = {ticket.turn}
    if ticket.record is not None:
        own |= {root for record in await _calls_of(writer, ticket.record) if (root := record.content().root_turn)}
    for number in vouch:
        found = await _calls_of(writer, number)
        if found and found[0].content().repeats is not None:
            raise NotAllowed(f"record {number} only repeats record {found[0].content().repeats}; vouch for that")
        if not found or own.isdisjoint((found[0].turn, found[0].content().root_turn)):
            raise NotAllowed(
                f"record {number} is no call of the turn of ticket {ticket.id!r}; see interlock turns show"
            )


async def _calls_of(writer: LedgerWriter, number: int) -> list[Stored]:
    writer.at("decide.vouch")
    found = [record async for record in writer.store.records(Query(after=number - 1, until=number))]
    return [record for record in found if record.kind == "call"]


async def record_decision(
    writer: LedgerWriter,
    ticket: Ticket,
    state: TicketState,
    reason: str,
    look: Look | None = None,
    said: Mapping[str, Json] | None = None,
) -> int:
    """What somebody says about a ticket, whatever it asks, if they may, and `said` of it; the id of its record."""
    await refuse_forged(writer.store, ticket)
    name = ticket.id
    if ticket.state is TicketState.SETTLED:
        raise NotAllowed(f"what ticket {name!r} asks was found out: {ticket.reason}; there is nothing left to decide")
    by, withdraws = writer.by, state is TicketState.DENIED and ticket.kind is TicketKind.CHANGE
    # One's own question may be withdrawn.
    own = withdraws and is_party(ticket, writer.by)
    voice = by if own else voice_of(ticket, by, await writer.store_time_us())
    what: dict[str, Json] = {
        "ticket": name,
        "state": state.value,
        "tool": ticket.tool,
        "binding": ticket.binding,
        "reason": reason,
        **(said or {}),
    }
    if is_party(ticket, by):
        what["by_proposer"] = True  # who may approve by the policy, or withdraw
    if voice != by:
        what["in_place_of"] = voice
    if ticket.claim:
        what["claim"] = ticket.claim
    decision = DecideTicket(name, state, by, reason, voice)
    entry = LedgerEntry("ticket", state.value, what, payload=writer.proof, turn=ticket.turn)
    if ticket.kind is not TicketKind.SETTLE:
        return await writer.commit(entry, decision)
    claim = await writer.store.claim(ticket.claim)  # "did it land?": approved means yes, denied means no
    if claim is None or ticket.holder != claim.holder:
        raise NotAllowed(f"ticket {name!r} asks about an attempt that was settled meanwhile")
    if state is TicketState.APPROVED and len(ticket.approvals) + 1 < ticket.terms.quorum:  # not the last who is needed
        number = await writer.commit(entry, decision)
        await settle_approved(writer, await find_ticket(writer.store, name), look)  # unless somebody else was as quick
        return number
    landed = state is TicketState.APPROVED
    if not landed:
        await _refuse_partly_landed(writer, ticket, claim, look)
    intent, seen = await _intent(writer, ticket, claim, look if landed else None)
    return await settle(writer, claim, intent, landed=landed, what={**what, **seen}, decision=decision)


async def settle_approved(writer: LedgerWriter, ticket: Ticket, look: Look | None = None) -> bool:
    """Settle a change of which enough people have said that it landed; False if they have not, or it is settled.

    Of two who say so at once each may believe that others are still needed. Then it is settled by whoever sees it
    first: one of them, or the next recovery, should they have died.
    """
    claim = await writer.store.claim(ticket.claim) if ticket.state is TicketState.APPROVED else None
    if claim is None or not _is_in_doubt(claim, ticket):
        return False
    if await approval_fault(writer.store, ticket, partial(store_digest, writer.store)) is not None:
        return False  # by its row alone; people are asked again
    how = f"{ticket.decided_by} said so (ticket {ticket.id})"
    what: dict[str, Json] = {
        "claim": claim.name,
        "state": ClaimState.DONE.value,
        "tool": claim.tool,
        "call": claim.call,
    }
    intent, seen = await _intent(writer, ticket, claim, look)
    try:
        await settle(writer, claim, intent, landed=True, what={**what, **seen, "how": how})
    except NotAllowed:
        after = await writer.store.claim(ticket.claim)
        if after is not None and _is_in_doubt(after, ticket):
            raise
        return False
    return True


def _is_in_doubt(claim: Claimed, ticket: Ticket) -> bool:
    return claim.holder == ticket.holder and claim.state in (ClaimState.OPEN, ClaimState.UNKNOWN)


async def _intent(
    writer: LedgerWriter, ticket: Ticket, claim: Claimed, look: Look | None
) -> tuple[Stored | None, dict[str, Json]]:
    """The intent of the change in doubt, and for the record the versions of its keys where they are seen as planned."""
    if ticket.intent is None:
        return None, {}
    intent, payload = await record_with_payload(writer.store, ticket.intent)
    versions = () if look is None else await look.versions(claim, payload)
    return intent, {"versions": list(versions)} if versions else {}


async def _refuse_partly_landed(writer: LedgerWriter, ticket: Ticket, claim: Claimed, look: Look | None) -> None:
    """That a change did not land is not believed where its resource shows that a part of it did: made again on top of
    that, it would lose what there was. With no resource at hand, the word of whoever asked the question holds."""
    writer.at("decide.look")
    if look is not None and ticket.intent is not None:
        _intent, payload = await record_with_payload(writer.store, ticket.intent)
        changed = await look.changed(claim, payload)
        if changed is not None:
            if changed:
                raise NotAllowed(f"ticket {ticket.id!r}: {part_landed_message(changed)}")
            return
    asked = None if ticket.record is None else (await record_with_payload(writer.store, ticket.record))[0]
    if asked is not None and decision_of(asked).get("moved"):
        raise NotAllowed(
            f"ticket {ticket.id!r}: when the question was asked, some of its keys were not what they were before it,"
            " and its resource is not at hand to look again: name the tools (--tools), or say that it landed (approve)"
            " and undo it with --force, which puts back what there was"
        )


async def refuse_forged(store: Store, ticket: Ticket) -> None:
    """A ticket that is not the one that the ledger opened, or has approvals that it does not hold, decides nothing."""
    fault = await opening_fault(store, ticket, partial(store_digest, store)) or await decisions_fault(store, ticket)
    if fault is not None:
        raise NotAllowed(f"ticket {ticket.id!r} cannot be decided: {fault}; run interlock audit verify")


async def find_ticket(store: Store, name: str) -> Ticket:
    """A ticket that there is; `NotAllowed` if there is none."""
    ticket = await store.ticket(name)
    if ticket is None:
        raise NotAllowed(f"there is no ticket {name!r}; see interlock review list")
    return ticket


async def decider(store: Store, name: str, own: str, by: str | None, token: str | None, now_us: int) -> str:
    """Who decides a ticket: whoever runs this, somebody with a token, or a name that the application may vouch for.

    That a runtime goes by a name is not enough: its token has to be good by the terms of the ticket, and the kind of a
    name that it was given has to be one that they take an application's word for.
    """
    if token is not None:
        ticket = await find_ticket(store, name)
        if not ticket.terms.keys:
            raise NotAllowed("no key is trusted to sign tokens for this ticket: the policy names none in [review] keys")
        return authenticate(token, trusted=ticket.terms.keys, ledger=store.identity.ledger, now_us=now_us)
    by = own if by is None else by
    if by == own and by == default_principal():
        return own
    check_vouched(by, default_principal())
    ticket = await find_ticket(store, name)
    if kind_of(by) not in ticket.terms.vouched:
        raise NotAllowed(
            f"the word of an application is not enough for {by!r}: name the kind in [review] vouched, or pass a token"
        )
    return by


def decision_state(approve: bool) -> TicketState:
    """Approved or denied; a text or number that only looks like a yes decides nothing."""
    if not isinstance(approve, bool):
        raise NotAllowed(f"approve is True or False, not {approve!r}")
    return TicketState.APPROVED if approve else TicketState.DENIED


async def settle(
    writer: LedgerWriter,
    claim: Claimed,
    intent: Stored | None,
    *,
    landed: bool,
    what: dict[str, Json],
    decision: DecideTicket | SettleTicket | None = None,
) -> int:
    """Close a claim in doubt, with what it had set aside and what it had taken back, in one commit.

    With it lands the last word of a person, or that the question about it needs none. Neither is needed where people
    have said enough before.
    """
    if writer.faults is not None:
        writer.faults.at("settle.held")
    held = await writer.store.reservations(claim.holder)
    spent = held if landed else tuple(Settle(item.call, item.scope) for item in held)
    state = ClaimState.DONE if landed else ClaimState.FAILED
    change = None if intent is None else intent.content().change
    takes_back = landed and change is not None and change.undoes is not None
    # What takes a change back is no reason for its keys to rest.
    untouched = claim.keys if takes_back else ()
    closing: list[Transition] = [ResolveClaim(claim.name, claim.holder, state, untouched), *spent]
    if decision is not None:
        closing.append(decision)
    if isinstance(decision, SettleTicket):
        what = {**what, "reason": decision.reason}
    if claim.tokens:  # as its outcome would have said
        what = {
            **what,
            "tokens": list(claim.tokens),
            **({"untouched": list(range(len(untouched)))} if untouched else {}),
        }
    status = decision.state.value if isinstance(decision, DecideTicket) else state.value
    turn = None if intent is None else intent.turn
    entry = LedgerEntry("settle", status, what, payload=writer.proof, turn=turn, charged=charges(spent))
    links = await links_of(writer.store, writer.at, None if change is None else change.undoes)
    marks = taking_back(links).close(landed=landed)
    if marks:
        try:
            return await writer.commit(entry, *closing, *marks)
        except NotAllowed:
            pass  # what it took back had been taken back before: then only its own claim is to be settled
    return await writer.commit(entry, *closing)


def question_about(claim: Claimed) -> str:
    """The binding of the ticket that asks whether an attempt landed: there is one for each attempt."""
    return f"settle|{claim.name}|{claim.holder}"


async def sweep(writer: LedgerWriter) -> tuple[Ticket, ...]:
    """Expire, escalate and remind of what is due; the tickets that were touched, as they are now."""
    touched = []
    if writer.faults is not None:
        writer.faults.at("sweep.read")
    now_us = await writer.store_time_us()
    for ticket in await writer.store.tickets(TicketState.OPEN):
        change: Transition | None = None
        if ticket.expires_us <= now_us:
            change, state = DecideTicket(ticket.id, TicketState.EXPIRED, writer.by, _LATE), "expired"
        elif ticket.escalate_us <= now_us and not ticket.escalated:
            change, state = EscalateTicket(ticket.id), "escalated"
        elif ticket.reminder_is_due(now_us):
            change, state = RemindTicket(ticket.id), "reminded"
        if change is None:
            continue
        try:
            what: dict[str, Json] = {"ticket": ticket.id, "state": state, "tool": ticket.tool}
            if state == "expired":
                what["reason"] = _LATE
            await writer.commit(LedgerEntry("ticket", state, what, turn=ticket.turn), change)
        except NotAllowed:
            continue  # somebody decided meanwhile
        touched.append(await writer.store.ticket(ticket.id) or ticket)
    return tuple(touched)
