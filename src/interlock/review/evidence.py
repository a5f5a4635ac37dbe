"""What the ledger says about a ticket: a row in a table that anybody may have edited is worth nothing by itself."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from interlock.canonical import WHATEVER, canonical
from interlock.errors import NotAllowed
from interlock.ports import Ledger, Query, digest_of, genesis, keyed_digest, link
from interlock.principals import is_same
from interlock.records import Stored
from interlock.review.identity import authenticate
from interlock.state import Approval, Ticket, TicketState
from interlock.values import Json

Digest = Callable[[bytes], str]
_LOOKS = 5
_FRESH = {
    "state": TicketState.OPEN,
    "escalated": False,
    "decided_by": "",
    "decided_us": 0,
    "reason": "",
    "record": None,
    "approvals": (),
    "reminded_us": 0,
}


def ticket_digest(ticket: Ticket, digest: Digest) -> str:
    """The digest of a ticket as it was opened, whatever became of it: it stands in the record that opened it."""
    opened = msgspec.structs.replace(ticket, **_FRESH)
    return digest(canonical(msgspec.to_builtins(opened), WHATEVER))


async def opening_fault(ledger: Ledger, ticket: Ticket, digest: Digest) -> str | None:
    """Why a ticket is not the one that the ledger opened; None if it is."""
    record = await chained_record(ledger, ticket.record)
    if record is None:
        return "the ledger does not hold the record that opened it"
    said = _opened(record)
    if said.get("ticket") != ticket.id or said.get("ticket_digest") != ticket_digest(ticket, digest):
        return f"it is not what record {record.id} opened"
    return None


async def approval_fault(ledger: Ledger, ticket: Ticket, digest: Digest) -> str | None:
    """Why the ledger does not approve a ticket, whatever its row says; None if it does."""
    fault = await opening_fault(ledger, ticket, digest) or await decisions_fault(ledger, ticket)
    if fault is not None:
        return fault
    voices: list[str] = []
    for said in ticket.approvals:
        if not any(is_same(said.voice, other) for other in voices):
            voices.append(said.voice)
    if len(voices) < ticket.terms.quorum:
        return f"the ledger knows of {len(voices)} of the {ticket.terms.quorum} approvals that it needs"
    return None


async def decisions_fault(ledger: Ledger, ticket: Ticket) -> str | None:
    """Why an approval that a ticket has so far is not one that the ledger holds; None if all are."""
    for said in ticket.approvals:
        fault = await _decision_fault(ledger, ticket, said)
        if fault is not None:
            return fault
    return None


async def _decision_fault(ledger: Ledger, ticket: Ticket, said: Approval) -> str | None:
    record = await _decision(ledger, ticket, said)
    if record is None:
        return f"the ledger holds no decision of {said.by}"
    what, content = decision_of(record), record.content()
    wanted = {"ticket": ticket.id, "state": TicketState.APPROVED.value, "binding": ticket.binding}
    if {key: what.get(key) for key in wanted} != wanted or content.principal != said.by:
        return f"record {record.id} is not an approval of it by {said.by}"
    if (what.get("in_place_of") or said.by) != said.voice:
        return f"record {record.id} does not speak for {said.voice}"
    return await _token_fault(ledger, ticket, said, record) if said.by.startswith("token:") else None


async def _decision(ledger: Ledger, ticket: Ticket, said: Approval) -> Stored | None:
    """The record of an approval. Of several that a store took in one group only the last has a number: the others are
    looked for."""
    if said.record is not None:
        return await chained_record(ledger, said.record)
    since = Query(after=ticket.record or 0, actor=said.by, status=TicketState.APPROVED.value)
    async for record in ledger.records(since):
        if decision_of(record).get("ticket") == ticket.id:
            return await chained_record(ledger, record.id)
    return None


async def _token_fault(ledger: Ledger, ticket: Ticket, said: Approval, record: Stored) -> str | None:
    """A service's approval carries the token that it was given with."""
    payload, recorded = await ledger.payload(record.id), record.content().payload_digest
    if payload is None:
        return f"the token of {said.by}, which lay beside record {record.id}, has been deleted"
    if recorded not in (None, digest_of(keyed_digest(ledger.identity.digest_key), payload)):
        return f"what lies beside record {record.id} is not the token of {said.by} that was recorded: it was changed"
    try:
        token = str(msgspec.json.decode(payload)["token"])
        name = authenticate(token, trusted=ticket.terms.keys, ledger=ledger.identity.ledger, now_us=record.at_us)
    except (msgspec.DecodeError, KeyError, TypeError, RecursionError):
        return f"what lies beside record {record.id} is no token of {said.by}"
    except NotAllowed as refused:
        return f"the token of {said.by} does not hold: {refused}"
    return None if name == said.by else f"the token is {name}'s, not {said.by}'s"


def decision_of(record: Stored) -> dict[str, Json]:
    """What a record of a decision says; nothing, for a record of something else."""
    what = record.content().arguments
    return what if record.kind in ("ticket", "settle", "turn") and isinstance(what, dict) else {}


def _opened(record: Stored) -> dict[str, Json]:
    content = record.content()
    if record.kind == "call":
        return {"ticket": content.ticket, "ticket_digest": content.ticket_digest}
    return decision_of(record)


async def chained_record(ledger: Ledger, number: int | None) -> Stored | None:
    """A record that is part of its lane's chain, with the one before and the one after it; None if it is not."""
    if number is None:
        return None
    found = [record async for record in ledger.records(Query(after=number - 1, until=number))]
    if not found:
        return None
    record = found[0]
    before = [r async for r in ledger.records(Query(lane=record.lane, until=number - 1, newest=1))]
    start = before[0].hash if before else genesis(ledger.identity.ledger, record.lane)
    return record if _links(start, record) and await _is_followed(ledger, record) else None


async def _is_followed(ledger: Ledger, record: Stored) -> bool:
    """Whether the next record of the lane, or its head, builds on this one."""
    for _ in range(_LOOKS):
        async for after in ledger.records(Query(lane=record.lane, after=record.id)):
            return _links(record.hash, after)
        if any(head.lane == record.lane and head.hash == record.hash for head in await ledger.heads()):
            return True  # else somebody has written since the first look: then there is one that follows
    return False


def _links(previous: str, record: Stored) -> bool:
    columns = (
        record.id, record.lane, record.at_us, record.kind, record.call,
        record.turn, record.actor, record.tool, record.status,
    )  # fmt: skip
    return link(previous, columns, record.body.encode()) == record.hash
