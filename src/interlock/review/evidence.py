"""What the ledger says about a ticket: a row in a table that anybody may have edited is worth nothing by itself."""

from __future__ import annotations

from functools import partial

import msgspec

from interlock.errors import NotAllowed
from interlock.openings import Digest, ticket_digest
from interlock.ports import Ledger, Query, Store, digest_of, genesis, keyed_digest, link
from interlock.principals import is_same
from interlock.records import Stored
from interlock.review.identity import authenticate
from interlock.state import Approval, Ticket, TicketState
from interlock.values import Json

VOUCHES = "vouches"
"""In an approval: the records of results that whoever gave it has looked at, and says that they are meant."""
_LOOKS = 5
_APPROVED = TicketState.APPROVED.value
_UNDECIDED = (TicketState.OPEN, TicketState.APPROVED)
_REFUSALS = {"denied": "denied", "expired": "expired", "reviewed": "rejected"}
"""The statuses of records that may refuse a ticket, and what they say then."""


async def opening_fault(ledger: Ledger, ticket: Ticket, digest: Digest) -> str | None:
    """Why a ticket is not the one that the ledger opened; None if it is."""
    record = await chained_record(ledger, ticket.record)
    if record is None:
        return "the ledger does not hold the record that opened it"
    said = _read_opening(record)
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


async def vouched_records(store: Store, record: Stored) -> tuple[int, ...]:
    """What an approval vouches for, if it is one that the ledger holds."""
    what = decision_of(record)
    numbers: list[int] = what.get(VOUCHES) or []
    ticket = await store.ticket(str(what.get("ticket"))) if numbers and record.status == _APPROVED else None
    if ticket is None or record.id not in [said.record for said in ticket.approvals]:
        return ()
    digest = partial(digest_of, keyed_digest(store.identity.digest_key))
    return () if await approval_fault(store, ticket, digest) is not None else tuple(numbers)


async def decisions_fault(ledger: Ledger, ticket: Ticket) -> str | None:
    """Why the ledger does not hold what a ticket says was decided so far, or holds that it was refused; None if it
    does, and does not."""
    for said in ticket.approvals:
        fault = await _decision_fault(ledger, ticket, said)
        if fault is not None:
            return fault
    return await _refusal_of(ledger, ticket) if ticket.state in _UNDECIDED else None


async def _refusal_of(ledger: Ledger, ticket: Ticket) -> str | None:
    """That a ticket which could still be used was denied or had expired, as a record says."""
    for status, refused in _REFUSALS.items():
        async for record in ledger.records(Query(after=ticket.record or 0, turn=ticket.turn, status=status)):
            what = decision_of(record)
            if what.get("ticket") == ticket.id and refused in (status, what.get("status")):
                return f"record {record.id} says that it was {refused}"
    return None


async def _decision_fault(ledger: Ledger, ticket: Ticket, said: Approval) -> str | None:
    record = await chained_record(ledger, said.record)
    if record is None:
        return f"the ledger holds no decision of {said.by}"
    what, content = decision_of(record), record.content()
    wanted = {"ticket": ticket.id, "state": TicketState.APPROVED.value, "binding": ticket.binding}
    if {key: what.get(key) for key in wanted} != wanted or content.principal != said.by:
        return f"record {record.id} is not an approval of it by {said.by}"
    if (what.get("in_place_of") or said.by) != said.voice:
        return f"record {record.id} does not speak for {said.voice}"
    return await _token_fault(ledger, ticket, said, record) if said.by.startswith("token:") else None


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


def _read_opening(record: Stored) -> dict[str, Json]:
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
