"""Deleting payloads: what is old (purge), and what somebody wants forgotten (forget). Records and digests stay.

Each deletion lands together with a record that says who deleted the payloads of which records, when and why, and
nothing of what stood in them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from interlock.errors import ConfigError, NotAllowed
from interlock.operations.ledger_writer import LedgerEntry, LedgerWriter, payload_of, store_digest
from interlock.ports import Query, Store
from interlock.records import Content, Stored
from interlock.state import ChangeFilter, Claimed, ClaimState, Ticket, TicketKind, TicketState, overlap, state_of
from interlock.tools import MARK
from interlock.transitions import DropPayload
from interlock.values import Json, Value

_AT_ONCE = 500
"""Payloads that are deleted in one commit, with one record of it: others wait for it."""


class Kept(Value, frozen=True):
    """A payload that was asked for and is not deleted, and why."""

    record: int
    tool: str
    why: str


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """What is deleted, or would be, and what stays."""

    records: tuple[int, ...] = ()
    """The records whose payloads go."""
    tools: dict[str, int] = {}
    """How many of each tool."""
    oldest_us: int | None = None
    newest_us: int | None = None
    changes: int = 0
    """Changes among them that stand, and cannot be taken back any more without."""
    kept: tuple[Kept, ...] = ()
    in_clear: int = 0
    """Of a forget: matching records that hold arguments or a result in the chain itself, where they stay."""
    tombstones: tuple[int, ...] = ()
    """The records that say so; none while it is only planned."""
    lingers: bool = False
    """Whether the log of a SQLite file still holds what was deleted, as somebody reads there: delete again then."""


class Expiry(Value, frozen=True, kw_only=True):
    """What a purge goes by: one age for all, or the retention of each tool."""

    retention: Mapping[str, timedelta]
    """Of the tools that have one."""
    older_than: timedelta | None = None
    tool: str | None = None

    def age_of(self, tool: str) -> timedelta | None:
        """How old payloads of a tool must be; None: they are not meant."""
        return self.older_than if self.older_than is not None else self.retention.get(tool)

    def check(self) -> None:
        """Raise ConfigError if it could never delete anything, or would delete what has just been written."""
        if self.older_than is not None:
            if self.older_than <= timedelta(0):
                raise ConfigError("older_than must be a stretch of time, such as 90 days")
        elif self.tool is not None and self.tool not in self.retention:
            raise ConfigError(
                f"the tool {self.tool!r} does not say how long its payloads are kept; say how old they must be"
                ' (--older-than 90d), or declare it with @tool(retention="90d")'
            )
        elif not self.retention:
            raise ConfigError(
                "no tool says how long its payloads are kept; say how old they must be (--older-than 90d), or declare"
                ' tools with @tool(retention="90d")'
            )


class Target(Value, frozen=True, kw_only=True):
    """What is to be forgotten: everything about a key, by an actor, or of the call of a record."""

    key: str | None = None
    actor: str | None = None
    record: int | None = None

    def check(self) -> None:
        """Raise ConfigError unless it is exactly one."""
        given = [name for name in ("key", "actor", "record") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ConfigError("forget what? name one of key= (RESOURCE/KEY), actor= and record=")
        if given == ["key"] and "/" not in (self.key or ""):
            raise ConfigError(f"{self.key!r} is not a key; write RESOURCE/KEY, as the journal shows it")


class _Holds(msgspec.Struct):
    """Whose payloads somebody still needs, and why."""

    records: dict[int, str] = {}
    turns: dict[str, str] = {}
    """Turns that wait for a person go on from what was found in them."""

    def why(self, record: Stored) -> str:
        return self.records.get(record.id) or self.turns.get(record.turn or "", "")


class _Findings:
    """Gathers an erasure record by record."""

    def __init__(self, holds: _Holds, standing: Mapping[int, Claimed]) -> None:
        self._holds = holds
        self._standing = standing
        self._found: list[Stored] = []
        self._kept: list[Kept] = []
        self._told_by: dict[int, set[int]] = {}
        """By record: those that tell by it what was there before."""

    def note(self, record: Stored) -> None:
        """A record whose payload is there, deleted or not."""
        change = record.content().change if type(record.body) is str and '"told_by":' in record.body else None
        if change is not None and change.told_by is not None:
            self._told_by.setdefault(change.told_by, set()).add(record.id)

    def add(self, record: Stored, why_kept: str = "") -> None:
        """A record whose payload is there."""
        why = self._holds.why(record) or why_kept
        if why:
            self._kept.append(Kept(record.id, record.tool, why))
        else:
            self._found.append(record)

    def keep_told_by(self) -> None:
        """Keep those by which others tell what was there before, as long as one of these is kept."""
        going = {record.id for record in self._found}
        needed = {record.id: self._told_by.get(record.id, set()) - going for record in self._found}
        for record in [record for record in self._found if needed[record.id]]:
            why = f"record {min(needed[record.id])} tells by it what was there before"
            self._kept.append(Kept(record.id, record.tool, why))
        self._found = [record for record in self._found if not needed[record.id]]

    def result(self, in_clear: int = 0) -> Erasure:
        tools: dict[str, int] = {}
        for record in self._found:
            tools[record.tool] = tools.get(record.tool, 0) + 1
        times = [record.at_us for record in self._found]
        return Erasure(
            records=tuple(record.id for record in self._found),
            tools=dict(sorted(tools.items())),
            oldest_us=min(times, default=None),
            newest_us=max(times, default=None),
            changes=len({self._standing[record.id].name for record in self._found if record.id in self._standing}),
            kept=tuple(self._kept),
            in_clear=in_clear,
        )


async def plan_purge(store: Store, expiry: Expiry, now_us: int) -> Erasure:
    """What a purge would delete: payloads that are old enough, and that nothing waits for."""
    expiry.check()
    there = {number async for number in store.payload_ids()}
    claims = await store.claims(ChangeFilter())
    standing = dict(_standing(claims))
    findings = _Findings(await _holds(store, claims, now_us), standing)
    async for record in store.records(Query()):
        if record.id in there:
            findings.note(record)
        age = expiry.age_of(record.tool)
        if record.id not in there or age is None or not _is_of(expiry, record):
            continue
        claim = standing.get(record.id)
        # Both records of a change are as old as its claim: one without the other would undo nothing.
        began_us = record.at_us if claim is None else claim.at_us
        if began_us < now_us - _us(age):
            findings.add(record, "" if claim is None else _still_undoable(expiry, claim, now_us))
    findings.keep_told_by()
    return findings.result()


def _is_of(expiry: Expiry, record: Stored) -> bool:
    return expiry.tool is None or record.tool == expiry.tool


async def purge(writer: LedgerWriter, expiry: Expiry) -> Erasure:
    """Delete payloads that are old enough; what went, what was kept, and the records of that."""
    plan = await plan_purge(writer.store, expiry, writer.clock.now_us())
    older = None if expiry.older_than is None else expiry.older_than.total_seconds()
    return await _erase(writer, plan, "purged", {"older_than_s": older, "tool": expiry.tool})


async def plan_forget(store: Store, target: Target, now_us: int) -> Erasure:
    """What a forget would delete; raises `NotAllowed` if nothing matches."""
    target.check()
    there = {number async for number in store.payload_ids()}
    claims = await store.claims(ChangeFilter())
    findings = _Findings(await _holds(store, claims, now_us), dict(_standing(claims)))
    matches = in_clear = 0
    async for record, content in _matching(store, target):
        matches += 1
        in_clear += _stands_in_clear(content)
        if record.id in there:
            findings.add(record)
    if not matches:
        raise NotAllowed("no record matches; there is nothing to forget")
    return findings.result(in_clear)


async def forget(writer: LedgerWriter, target: Target, reason: str) -> Erasure:
    """Delete the payloads of whatever matches; what went, what was kept, and the records of that."""
    if not reason.strip():
        raise ConfigError("forget why? the reason stands in the ledger in place of what is deleted")
    plan = await plan_forget(writer.store, target, writer.clock.now_us())
    # Not in clear: the name of what is to be forgotten may be the very thing.
    named = target.key or target.actor
    what: dict[str, Json] = {
        "by": "key" if target.key is not None else "actor" if target.actor is not None else "record",
        "digest": None if named is None else store_digest(writer.store, named.encode()),
        "record": target.record,
        "reason": reason,
    }
    return await _erase(writer, plan, "forgotten", what)


async def _erase(writer: LedgerWriter, plan: Erasure, status: str, what: dict[str, Json]) -> Erasure:
    tombstones: list[int] = []
    said = {key: value for key, value in what.items() if value is not None}
    for start in range(0, len(plan.records), _AT_ONCE):
        some = plan.records[start : start + _AT_ONCE]
        entry = LedgerEntry("erasure", status, {**said, "count": len(some), "records": list(some)})
        tombstones.append(await writer.commit(entry, *map(DropPayload, some)))
    # Also where nothing was left to delete: an earlier deletion may have left its traces.
    return msgspec.structs.replace(plan, tombstones=tuple(tombstones), lingers=not await writer.store.wipe())


async def _holds(store: Store, claims: tuple[Claimed, ...], now_us: int) -> _Holds:
    holds = _Holds()
    for claim in claims:
        if claim.state in (ClaimState.OPEN, ClaimState.UNKNOWN, ClaimState.RETURNING):
            why = "its change is being made, or in doubt; settle it first (interlock recover)"
            holds.records |= {number: why for number in (claim.intent, claim.record) if number is not None}
    for ticket in await store.tickets():
        state = state_of(ticket, now_us)
        if _is_waited_for(ticket, state):
            why = f"ticket {ticket.id} is {state.value}, and its call is made with it; decide or use it first"
            several = (ticket.record, ticket.intent, *(said.record for said in ticket.approvals))
            holds.records |= {number: why for number in several if number is not None}
            if ticket.turn is not None:
                holds.turns[ticket.turn] = f"its turn waits for ticket {ticket.id}; decide or use it first"
    return holds


def _is_waited_for(ticket: Ticket, state: TicketState) -> bool:
    """Whether something goes on from a ticket: a person still decides it, or a call is made with their approval.

    "Did it land?" is used by its answer, which settles the effect in the same commit.
    """
    approved = state is TicketState.APPROVED and ticket.kind is not TicketKind.SETTLE
    return state is TicketState.OPEN or approved


def _standing(claims: tuple[Claimed, ...]) -> Iterator[tuple[int, Claimed]]:
    """The records of changes that were made and not taken back."""
    for claim in claims:
        if claim.state is ClaimState.DONE and not claim.is_lock:
            yield from ((number, claim) for number in (claim.intent, claim.record) if number is not None)


def _still_undoable(expiry: Expiry, claim: Claimed, now_us: int) -> str:
    """Why the payload of a change stays although it is old enough: its tool promises to keep it longer."""
    retention = expiry.retention.get(claim.tool)
    if retention is None or claim.at_us + _us(retention) <= now_us:
        return ""
    began, days = datetime.fromtimestamp(claim.at_us / 1e6, UTC), retention / timedelta(days=1)
    return f"its change, of {began:%Y-%m-%d}, can be taken back for {days:g} days, as its tool says"


async def _matching(store: Store, target: Target) -> AsyncIterator[tuple[Stored, Content]]:
    """Records that are meant, and those that hold the same again: the other records of a change, its undo, its
    repetition, and answers that were given from it."""
    origin = None if target.record is None else await _record(store, target.record)
    named = await store.claims(ChangeFilter(key=target.key, record=target.record)) if target.actor is None else ()
    claims = {claim.first_name for claim in named if not claim.is_lock}
    numbers = {number for claim in named for number in (claim.intent, claim.record) if number is not None}
    async for record in store.records(Query()):
        try:
            content = record.content()
        except msgspec.DecodeError:
            continue  # it was tampered with: audit verify says so
        if record.kind == "erasure":
            continue
        change = content.change
        again = content.repeats in numbers or (
            change is not None and (change.claim in claims or (change.undoes or "").rpartition(".")[0] in claims)
        )
        keys = () if target.key is None else await _keys_of(store, record, content)
        if again or record.id in numbers or _is_meant(record, keys, target, origin):
            numbers.add(record.id)
            if change is not None and change.claim:
                claims.add(change.claim)
            yield record, content


async def _keys_of(store: Store, record: Stored, content: Content) -> Sequence[str]:
    """The keys that a record is about; those that are redacted there, and those of a plan set, lie beside it."""
    if record.kind != "plan_set" and not any(MARK in key for key in content.keys):
        return content.keys
    whole = await payload_of(store, record.id, content)
    held = whole.get("set") if record.kind == "plan_set" else [whole]
    return [key for item in held or () for key in item.get("keys", content.keys)]


def _is_meant(record: Stored, keys: Sequence[str], target: Target, origin: Stored | None) -> bool:
    if origin is not None:
        return (record.call, record.turn, record.tool) == (origin.call, origin.turn, origin.tool)
    if target.actor is not None:
        return record.actor == target.actor
    # What was planned or done to a whole resource holds the states of all keys in it.
    return target.key is not None and any(overlap(target.key, key) for key in keys)


async def _record(store: Store, number: int) -> Stored:
    found = [record async for record in store.records(Query(after=number - 1, until=number))]
    if not found:
        raise ConfigError(f"there is no record {number}")
    return found[0]


def _stands_in_clear(content: Content) -> bool:
    """Whether arguments or a result can be read in the record itself."""
    value = content.value
    omitted = isinstance(value, dict) and set(value) == {"omitted_bytes"}
    return _says_something(content.arguments) or (not omitted and _says_something(value))


def _says_something(value: Json) -> bool:
    if isinstance(value, dict):
        return any(map(_says_something, value.values()))
    if isinstance(value, list):
        return any(map(_says_something, value))
    return value is not None and value != MARK


def _us(stretch: timedelta) -> int:
    return round(stretch.total_seconds() * 1e6)
