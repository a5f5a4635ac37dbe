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
Head = TypeVar("Head", LaneHead, Checkpoint)
UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, msgspec.MsgspecError)
"""What comes of a row that we have not written."""
_Row = tuple[int, int, str, int, str, str, str | None, str, str, str, Any]
"""A record's columns: what `Stored` holds. What its text is instead, if it is none, is for `audit verify` to say."""


class _Rows(msgspec.Struct, array_like=True):
    """Held in a struct, whose types are taken apart once and not by each `convert`."""

    rows: list[_Row]


def scan(query: Query, last: int, until: int, size: int) -> tuple[str, tuple[Any, ...]]:
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


def checked_rows(connection: Connection, statement: str, parameters: tuple[Any, ...]) -> list[_Row]:
    return msgspec.convert((connection.rows(statement, parameters),), _Rows).rows


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
