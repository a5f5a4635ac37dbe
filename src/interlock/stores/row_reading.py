"""Reading rows of a database that others may have written to: which statement, and what is damage."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from interlock.errors import StoreCorrupt
from interlock.ports import Query, Spent
from interlock.records import Checkpoint, LaneHead
from interlock.stores import statements as sql
from interlock.stores.dialect import Connection

_WHATEVER = (None,) * 7
PAGE = 2000
_FEW = 16
_LAST = 2**62
Head = TypeVar("Head", LaneHead, Checkpoint)
UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, msgspec.MsgspecError)
"""What comes of a row that we have not written."""
_Row = tuple[int, int, str, int, str, str, str | None, str, str, str, Any]
"""A record's columns: what `Stored` holds. What its text is instead, if it is none, is for `audit verify` to say."""


class _Rows(msgspec.Struct, array_like=True):
    """Held in a struct, whose types are taken apart once and not by each `convert`."""

    rows: list[_Row]


class Page(msgspec.Struct, frozen=True):
    """A part of the records that answer a query: those between two ids, at most so many."""

    query: Query
    last: int
    until: int
    size: int
    left: int | None
    """How many are wanted at all; None for as many as there are."""
    few: bool = False
    """Whether an index finds them, and they are so few that they are read at once."""

    def read(self, connection: Connection) -> list[_Row]:
        return msgspec.convert((connection.rows(*_scan(self.query, self.last, self.until, self.size)),), _Rows).rows

    def after(self, found: list[_Row]) -> Page | None:
        """The part that comes after this one; None if this was the last."""
        if len(found) < self.size:
            return None
        if self.left is None:
            return Page(self.query, found[-1][0], self.until, PAGE, None)
        left = self.left - len(found)
        return Page(self.query, self.last, found[-1][0] - 1, min(PAGE, left), left) if left > 0 else None


def first_page(query: Query, *, reads_at_once: bool) -> Page:
    """One record, or those of a turn, are found by an index. A turn may be long: only its first few come at once."""
    until = _LAST if query.until is None else query.until
    few = reads_at_once and (until - query.after <= 1 or query.turn is not None)
    most = _FEW if few else PAGE
    size = most if query.newest is None else min(most, query.newest)
    return Page(query, query.after, until, size, query.newest, few)


def _scan(query: Query, last: int, until: int, size: int) -> tuple[str, tuple[Any, ...]]:
    """Which statement answers a query, and its parameters."""
    wanted = (query.lane, query.call, query.actor, query.tool, query.status, query.since_us, query.before_us)
    newest, turn = query.newest is not None, query.turn
    if not newest and wanted == _WHATEVER:  # a parameter that filters nothing is not free: most ask for no filter
        every = (last, until, size)
        return (sql.SCAN_ALL, every) if turn is None else (sql.SCAN_ALL_OF_TURN, (turn, *every))
    filters = [item for value in wanted for item in (value, value)]
    if turn is not None:
        return sql.NEWEST_TURN if newest else sql.SCAN_TURN, (turn, last, until, *filters, size)
    return sql.NEWEST if newest else sql.SCAN, (last, until, *filters, size)


class _Accounts(msgspec.Struct, array_like=True):
    rows: list[tuple[str, int, int, int]]


def accounts(connection: Connection) -> dict[str, Spent]:
    """What every budget scope has spent."""
    found = msgspec.convert((connection.rows(sql.ACCOUNTS),), _Accounts).rows
    return {scope: Spent(calls, cost, ms) for scope, calls, cost, ms in found}


def read_typed(kind: type[Head], row: tuple[Any, ...]) -> Head:
    """A row as the value that was written; a column that holds something else was put there by somebody else."""
    names = (field.name for field in msgspec.structs.fields(kind))
    return msgspec.convert(dict(zip(names, row, strict=True)), kind)


def explain_damage(error: Exception) -> StoreCorrupt:
    return StoreCorrupt(
        f"the store is damaged: a row of it cannot be read ({type(error).__name__}); run audit verify on a copy, and"
        " restore one that is whole"
    )
