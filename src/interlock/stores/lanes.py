"""The end of the ledger: records are chained to a lane, and what was seen of its end is held against what is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from interlock.errors import StoreError
from interlock.ports import rolled_back_message
from interlock.records import LaneHead
from interlock.stores import statements as sql
from interlock.stores.dialect import Connection, Dialect
from interlock.stores.opening import missing_heads
from interlock.stores.state import Chain, Row
from interlock.stores.witness import Witness
from interlock.transitions import Append


class Lanes:
    """The lanes of one ledger, as this process has seen them end."""

    def __init__(
        self,
        dialect: Dialect,
        ledger: str,
        witness: Witness,
        missing: tuple[LaneHead, ...],
        lock_payload: Callable[[Connection, int, bytes], bytes],
    ) -> None:
        self.missing = missing
        """Records that were seen of it and are not in it: it was put back to an earlier state."""
        self._dialect = dialect
        self._ledger = ledger
        self._witness = witness
        self._lock_payload = lock_payload
        self._seen: dict[int, LaneHead] = {}
        self._head: LaneHead | None = None
        """Where the transaction that runs lets its lane end."""
        self._alone = False
        """Whether the only lane ended where this process had left it, when it was last looked at."""

    def begin(self) -> None:
        """A transaction begins."""
        self._head = None

    def on_commit(self) -> None:
        """The transaction has landed. Of a history that nobody has accepted nothing is noted: the next open must still
        see what is missing."""
        if self._head is not None and not self.missing:
            self._seen[self._head.lane] = self._head
            self._witness.note(self._ledger, self._head)

    def on_reconnect(self, connection: Connection) -> None:
        """Who had to connect anew may have come to an older copy of the database."""
        self.missing = self.missing or missing_heads(connection, tuple(self._seen.values()))

    def append(self, connection: Connection, appends: Sequence[Append]) -> list[int]:
        """Put records at the end of a lane; their ids."""
        rows = self._move_on(connection, appends) if self._alone else None
        if rows is None:
            lane = self._lock(connection)
            rows = self._extend(connection, lane, appends)
            connection.run(sql.MOVE_LANE, (lane.id, lane.count, lane.hash, lane.lane))
        if len(rows) == 1:
            row, payload = rows[0], appends[0].payload
            if payload is None:
                connection.run(sql.APPEND, row)
            else:
                connection.run(sql.APPEND_WHOLE, (*row, self._lock_payload(connection, row[0], payload)))
            return [row[0]]
        if all(append.payload is None for append in appends):
            connection.run_many(sql.APPEND, rows)
        else:
            connection.run_many(sql.APPEND_WHOLE, self._with_payloads(connection, rows, appends))
        return [row[0] for row in rows]

    def _with_payloads(
        self, connection: Connection, rows: Sequence[Row], appends: Sequence[Append]
    ) -> list[tuple[Any, ...]]:
        """Rows with a last column, of those records that have a payload."""
        lock = self._lock_payload
        return [
            (*row, None if append.payload is None else lock(connection, row[0], append.payload))
            for row, append in zip(rows, appends, strict=True)
        ]

    def _move_on(self, connection: Connection, appends: Sequence[Append]) -> list[Row] | None:
        """The rows of records after the end that this process has left, if that is still the end: where nobody else
        writes, it need not be read. None if it is not."""
        seen = self._seen[0]
        lane = Chain(seen.lane, seen.id, seen.count, seen.hash)
        rows = self._extend(connection, lane, appends)
        moved = connection.run(sql.MOVE_LANE_FROM, (lane.id, lane.count, lane.hash, lane.lane, seen.id, seen.hash))
        self._alone = moved == 1
        return rows if self._alone else None

    def _extend(self, connection: Connection, lane: Chain, appends: Sequence[Append]) -> list[Row]:
        ids = self._dialect.next_ids(connection, lane.id, len(appends))
        rows = lane.extend_by([append.record for append in appends], ids)
        self._head = LaneHead(lane.lane, lane.id, lane.count, lane.hash)
        return rows

    def _lock(self, connection: Connection) -> Chain:
        row = connection.one(sql.PICK_LANE)
        if row is None:  # every lane is being written: wait for one
            row = connection.one(sql.LOCK_LANE, (os.getpid() % self._dialect.lanes,))
        if row is None:
            raise StoreError("the ledger has no lanes; the store is damaged")
        lane = Chain(lane=row[0], id=row[1], count=row[2], hash=row[3])
        seen = self._seen.get(lane.lane)
        same = seen is not None and (lane.id, lane.hash) == (seen.id, seen.hash)
        if seen is not None and not same and lane.id <= seen.id:
            self.missing = (seen,)
            raise StoreError(rolled_back_message(self.missing))
        self._alone = same and self._dialect.lanes == 1
        return lane
