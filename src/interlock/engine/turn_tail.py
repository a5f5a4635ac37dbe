"""The records of a turn, each read once: what is newer than what was read before, whatever lane it is in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from interlock.ports import Faults, Query, Store, lanes_of
from interlock.records import Content, Stored

_MOST_LATE = 16


class Newer(msgspec.Struct, frozen=True):
    """Records that were read, and how far every lane of the ledger has been read with them."""

    records: Sequence[Stored]
    ends: Mapping[int, int]
    contents: Mapping[int, Content] = {}
    """Of those that were decoded before."""

    def content(self, record: Stored) -> Content:
        """What a record says."""
        return self.contents.get(record.id) or record.content()


_Kept = tuple[dict[int, int] | None, list[tuple[Stored, Content | None]], dict[int, int]]


class LateRecords:
    """What was read of a turn lately, with its contents: for whoever else reads the turn, so that it is read once."""

    def __init__(self, *, wanted: bool) -> None:
        # How far every lane had been read before the first of them (None: nobody has asked for them yet), they, and how
        # far it has been read with them: together, as calls may run on loops of several threads.
        self._kept: _Kept = ({} if wanted else None, [], {})

    def keep(self, fresh: Sequence[tuple[Stored, Content | None]], ends: Mapping[int, int]) -> None:
        """These were read now, up to here; the oldest give way."""
        since, kept, _before = self._kept
        if since is None:
            return
        kept = [*kept, *fresh]
        given_up = {record.lane: record.id for record, _content in kept[:-_MOST_LATE]}
        moved = {lane: max(number, since.get(lane, 0)) for lane, number in given_up.items()}
        self._kept = ({**since, **moved}, kept[-_MOST_LATE:], dict(ends))

    def newer_than(self, tail: TurnTail, own: Mapping[int, int]) -> Newer | None:
        """What another reader of the turn has not read yet; None where not all of it is kept. `own`: how far the turn
        has been read by now, from where on it is kept if it was not."""
        since, kept, ends = self._kept
        if since is None:
            self._kept = (dict(own), [], dict(own))
        if since is None or any(tail.ends.get(lane, 0) < end for lane, end in since.items()):
            return None
        contents = {record.id: content for record, content in kept if content is not None}
        return Newer([record for record, _content in kept], ends, contents)


class TurnTail:
    """Where the reading of one turn stands, or that of all calls of one tool.

    Ids grow within a lane, and a lane shows them in that order, as whoever writes holds it until the commit. Between
    lanes there is no order: a smaller id may be seen later. So what has been read is known for each lane by itself.
    """

    def __init__(self, store: Store, turn: str | None, faults: Faults | None, *, tool: str | None = None) -> None:
        self._store = store
        self._faults = faults
        self._all = Query(turn=turn, tool=tool)
        self._ends: dict[int, int] = {}
        # In a ledger of one lane the order of ids is the order in which they are seen: its end need not be asked for.
        self._in_order = lanes_of(store.identity.ledger) == 1

    async def newer(self) -> Newer | None:
        """What was not read before; None where the ledger ends before what was read, as an older one was put back.

        Nothing counts as read until `advance`: whoever is cancelled here, or cannot decode it, reads it again.
        """
        if self._in_order:
            records = await self._records(replace(self._all, after=max(self._ends.values(), default=0)))
            return Newer(records, {records[-1].lane: records[-1].id} if records else {})
        known = dict(self._ends)
        self._at("turn.heads")
        # The ends first: whatever lies up to them is visible to every statement that is sent after this one.
        ends = {head.lane: head.id for head in await self._store.heads()}
        if any(ends.get(lane, 0) < end for lane, end in known.items()):
            return None
        moved = [lane for lane, end in ends.items() if end > known.get(lane, 0)]
        if not moved:
            return Newer((), ends)
        query = replace(
            self._all,
            after=min(known.get(lane, 0) for lane in moved),
            until=max(ends[lane] for lane in moved),
        )
        found = await self._records(query)
        return Newer([record for record in found if record.id <= ends.get(record.lane, 0)], ends)

    async def _records(self, query: Query) -> list[Stored]:
        self._at("turn.records")
        return [record async for record in self._store.records(query)]

    def fresh(self, newer: Newer) -> list[Stored]:
        """Those of them that nobody else has read meanwhile, in order of their ids."""
        return [record for record in newer.records if record.id > self._ends.get(record.lane, 0)]

    def advance(self, newer: Newer) -> None:
        """From now on they count as read."""
        for lane, end in newer.ends.items():
            self._ends[lane] = max(end, self._ends.get(lane, 0))

    @property
    def ends(self) -> Mapping[int, int]:
        """How far every lane has been read."""
        return self._ends

    def _at(self, point: str) -> None:
        if self._faults is not None:
            self._faults.at(point)
