"""What people decide: tickets and halts. Each decision is a transition and a record in one commit."""

from __future__ import annotations

from typing import Any

import msgspec

from interlock.changes import undone
from interlock.errors import ConfigError, NotAllowed
from interlock.ports import Clock, Faults, Ids, Query, Store, digest_of, keyed_digest
from interlock.review import Terms
from interlock.standing import Claimed, ClaimState, Ticket, TicketState
from interlock.transitions import (
    Append,
    Batch,
    Committed,
    Decide,
    Escalate,
    Halt,
    Lift,
    Refused,
    Resolve,
    Settle,
    Transition,
)
from interlock.values import Content, Json, Record, Stored

PEOPLE = "interlock"


class Desk:
    """Where one person or service decides: who, on which store, and at what time."""

    def __init__(self, by: str, store: Store, clock: Clock, ids: Ids, faults: Faults | None = None) -> None:
        self.by = by
        self.actor = by
        self.about = PEOPLE
        self.store = store
        self.clock = clock
        self.ids = ids
        self.faults = faults

    async def commit(self, kind: str, what: Json, *transitions: Transition, turn: str | None = None) -> int:
        """One decision with its record; raises `NotAllowed` with the reason if the store refuses it."""
        return await self.commit_with(kind, what, None, turn, *transitions)

    async def commit_with(self, kind: str, what: Json, beside: Json, turn: str | None, *transitions: Transition) -> int:
        """The same, with something that lies beside the record."""
        now_us = self.clock.now_us()
        status, payload = str(what.get("state", kind)), None if beside is None else msgspec.json.encode(beside)
        content = Content(
            principal=self.by,
            started_us=now_us,
            duration_us=0,
            arguments=what,
            payload=payload is not None,
            payload_digest=None if payload is None else store_digest(self.store, payload),
        )
        record = Record(now_us, kind, self.ids.new(), turn, self.actor, self.about, status, content)
        if self.faults is not None:
            self.faults.at(f"decide.{kind}")
        receipt = await self.store.commit(Batch(now_us, (Append(record, payload), *transitions)))
        if self.faults is not None:
            self.faults.at(f"decided.{kind}")
        if isinstance(receipt, Refused):
            raise NotAllowed(receipt.message, instead=receipt.limit if receipt.kind == "asked" else "")
        assert isinstance(receipt, Committed)
        return receipt.ids[0]


async def decide_ticket(desk: Desk, terms: Terms, name: str, state: TicketState, reason: str) -> int:
    """Approve or deny a ticket; the id of the decision's record."""
    if desk.faults is not None:
        desk.faults.at("decide.read")
    ticket = await desk.store.ticket(name)
    if ticket is None:
        raise NotAllowed(f"there is no ticket {name!r}; see interlock review list")
    by = desk.by
    if state is not TicketState.DENIED or ticket.kind != "change":  # one's own question may be withdrawn
        refuse_own(desk, terms, ticket)
    what: dict[str, Json] = {
        "ticket": name,
        "state": state.value,
        "tool": ticket.tool,
        "binding": ticket.binding,
        "reason": reason,
    }
    if by == ticket.asked_by:
        what["by_proposer"] = True  # who may approve by a setting, or withdraw
    decision = Decide(name, state, by, reason)
    if ticket.kind != "settle":
        return await desk.commit("ticket", what, decision, turn=ticket.turn)
    claim = await desk.store.claim(ticket.claim)  # "did it land?": approved means yes, denied means no
    record = None if ticket.record is None else (await beside_of(desk.store, ticket.record))[0]
    if claim is None or not ticket.binding.endswith(f"|{claim.holder}"):
        raise NotAllowed(f"ticket {name!r} asks about an attempt that was settled meanwhile")
    landed = state is TicketState.APPROVED
    return await settle(desk, claim, record, landed=landed, what=what, decision=decision)


def refuse_own(desk: Desk, terms: Terms, ticket: Ticket) -> None:
    """Whoever asked does not decide."""
    if desk.by == ticket.asked_by and not terms.self_approval:
        raise NotAllowed(
            f"{desk.by} asked for this, so somebody else decides (on a machine with one user: self_approval = true)"
        )


async def settle(
    desk: Desk,
    claim: Claimed,
    intent: Stored | None,
    *,
    landed: bool,
    what: dict[str, Json],
    decision: Decide | None = None,
) -> int:
    """Close a claim in doubt, with what it had set aside and what it had taken back, in one commit."""
    if desk.faults is not None:
        desk.faults.at("settle.held")
    held = [item if landed else Settle(item.call, item.scope) for item in await desk.store.held(claim.holder)]
    state = ClaimState.DONE if landed else ClaimState.FAILED
    closing: list[Transition] = [Resolve(claim.name, claim.holder, state), *held]
    closing += [decision] if decision is not None else await _answered_by_the_world(desk, claim, landed)
    turn = None if intent is None else intent.turn
    change = None if intent is None else intent.content().change
    undoes = None if change is None else change.undoes
    if landed and undoes is not None:
        try:
            return await desk.commit("settle", what, *closing, undone(undoes), turn=turn)
        except NotAllowed:
            pass  # what it took back had been taken back before: then only its own claim is to be settled
    return await desk.commit("settle", what, *closing, turn=turn)


async def _answered_by_the_world(desk: Desk, claim: Claimed, landed: bool) -> list[Transition]:
    """The open question about a claim, if there is one, is decided with it."""
    state = TicketState.APPROVED if landed else TicketState.DENIED
    open_tickets = await desk.store.tickets(TicketState.OPEN)
    about = [ticket for ticket in open_tickets if ticket.binding == f"settle|{claim.name}|{claim.holder}"]
    return [Decide(ticket.id, state, desk.by, "the world has shown it") for ticket in about]


async def beside_of(store: Store, number: int) -> tuple[Stored | None, dict[str, Json]]:
    """A record, and what lies beside it; nothing if that was deleted, cannot be read, or is not what was recorded."""
    found = [record async for record in store.records(Query(after=number - 1, until=number))]
    return (found[0], await held_beside(store, number, found[0].content())) if found else (None, {})


async def held_beside(store: Store, number: int, content: Content) -> dict[str, Json]:
    """What lies beside a record whose content is known."""
    payload = await store.payload(number)
    held = {} if content.payload else {"arguments": content.arguments, "value": content.value}
    if payload is None:
        return held
    digest = content.payload_digest
    try:
        whole: Any = msgspec.json.decode(payload)
    except msgspec.DecodeError:
        whole = None
    genuine = isinstance(whole, dict) and (digest is None or digest == store_digest(store, payload))
    return {**held, **whole} if genuine else held


def store_digest(store: Store, text: bytes) -> str:
    """The keyed digest of a text in a store's ledger."""
    return digest_of(keyed_digest(store.identity.digest_key), text)


async def sweep(desk: Desk) -> tuple[Ticket, ...]:
    """Expire and escalate what is due; the tickets that were touched."""
    touched = []
    now_us = desk.clock.now_us()
    if desk.faults is not None:
        desk.faults.at("sweep.read")
    for ticket in await desk.store.tickets(TicketState.OPEN):
        change: Transition | None = None
        if ticket.expires_us <= now_us:
            change, state = Decide(ticket.id, TicketState.EXPIRED, desk.by, "nobody decided in time"), "expired"
        elif ticket.escalate_us <= now_us and not ticket.escalated:
            change, state = Escalate(ticket.id), "escalated"
        if change is None:
            continue
        try:
            what = {"ticket": ticket.id, "state": state, "tool": ticket.tool}
            await desk.commit("ticket", what, change, turn=ticket.turn)
        except NotAllowed:
            continue  # somebody decided meanwhile
        touched.append(ticket)
    return tuple(touched)


async def halt(desk: Desk, scope: str, reason: str) -> int:
    """Stop a tool, an actor, a run or everything, in every process within a second."""
    _refuse_odd_scope(scope)
    return await desk.commit(
        "halt", {"scope": scope, "state": "halted", "reason": reason}, Halt(scope, desk.by, reason)
    )


async def lift(desk: Desk, scope: str) -> int:
    """Let it run again."""
    _refuse_odd_scope(scope)
    return await desk.commit("halt", {"scope": scope, "state": "lifted"}, Lift(scope))


def _refuse_odd_scope(scope: str) -> None:
    kind, _, name = scope.partition(":")
    if scope != "all" and (kind not in ("tool", "actor", "run") or not name):
        raise ConfigError(f"{scope!r} cannot be halted: say all, tool:NAME, actor:NAME or run:NAME")
