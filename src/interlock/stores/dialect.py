"""What differs between the databases: connecting, beginning, locking, and what their errors mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Protocol

from interlock.errors import StoreError

_VALUES = " VALUES ("
_TOGETHER = (64, 16, 4, 2, 1)
"""How many rows one statement inserts: few different numbers, as each is another statement to prepare."""


class Connection:
    """A DB-API connection behind the one spelling of statements."""

    def __init__(self, raw: Any, dialect: Dialect) -> None:
        self.raw = raw
        self._cursor = raw.cursor()
        """One for all statements, as each is read to its end: to make one takes as long as to find a row."""
        self._dialect = dialect
        self.locks_rows = dialect.locks_rows
        self._spelled = _Spelled(dialect)

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Execute one statement; how many rows it changed."""
        self._cursor.execute(self._spelled[statement], parameters)
        return int(self._cursor.rowcount)

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute one statement for many rows."""
        # Not `executemany`: the driver of PostgreSQL makes a pipeline of it, in the middle of which the server's limits
        # do not run, so that a worker that stood still there would keep its rows for ever.
        for some in _split(rows, _TOGETHER if _VALUES in statement else (1,)):
            given = some[0] if len(some) == 1 else list(chain.from_iterable(some))
            self._cursor.execute(self._spelled[_repeat_values(statement, len(some))], given)

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        self._cursor.execute(self._spelled[statement], parameters)
        rows: list[tuple[Any, ...]] = self._cursor.fetchall()
        return rows

    def one(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The row of a statement that finds one at most."""
        rows = self.rows(statement, parameters)
        return rows[0] if rows else None

    def close(self) -> None:
        """Let go."""
        try:
            self._cursor.close()  # SQLite keeps the file open for as long as a cursor knows a statement
        except self._dialect.errors:
            pass  # a thread hangs in it, or the connection is gone
        self.raw.close()


class _Spelled(dict[str, str]):
    """Statements as one database spells them; each is spelled when it is first used."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def __missing__(self, statement: str) -> str:
        spelled = self[statement] = self._dialect.spell(statement)
        return spelled


class Dialect(Protocol):
    """One kind of database."""

    lanes: int
    name: str
    errors: tuple[type[Exception], ...]
    busy_s: float
    """How long a statement may wait for others."""
    locks_rows: bool
    """Whether writers lock rows, so that there must be one to lock; otherwise one writer has it all."""
    reads_at_once: bool
    """Whether a look at a few rows is so quick, and never waits, that no thread is needed for it."""

    def connect(self) -> Connection:
        """A new connection, ready for work."""
        ...

    def spell(self, statement: str) -> str:
        """A statement in this database's spelling."""
        ...

    def begin(self, connection: Connection, *, migrating: bool = False) -> None:
        """Start a transaction that may write."""
        ...

    def next_ids(self, connection: Connection, last: int, count: int) -> list[int]:
        """Ids for new records, each larger than any in its lane."""
        ...

    def check_place(self) -> None:
        """Raise `StoreError` if what would be committed to is not what was opened."""
        ...

    def version(self, connection: Connection) -> int | None:
        """In a transaction that may write: a number that is another one as soon as somebody else than this connection
        has written; None where nobody counts."""
        ...

    def now_us(self, connection: Connection) -> int | None:
        """The database's own clock; None where it goes by the time of whoever asks."""
        ...

    def explain(self, error: Exception) -> StoreError:
        """What an error of the database means to the operator."""
        ...

    def is_conflict(self, error: Exception) -> bool:
        """Whether the whole transaction may simply be tried again."""
        ...

    def wipe(self, connection: Connection, *, patient: bool) -> bool:
        """After a deletion was committed: let go of copies that lie in files of ours; False where others hold them.

        Patient: wait a little for those others.
        """
        ...

    def cut(self, connection: Connection) -> None:
        """End whatever hangs on a connection, from another thread."""
        ...

    def close(self) -> None:
        """Let go of what the dialect itself holds."""
        ...


def fill(statement: str, tokens: dict[str, str]) -> str:
    """Replace the tokens in braces."""
    for token, text in tokens.items():
        statement = statement.replace("{" + token + "}", text)
    return statement


def _split(rows: Sequence[Sequence[Any]], sizes: Sequence[int]) -> Iterator[Sequence[Sequence[Any]]]:
    start = 0
    for size in sizes:
        while len(rows) - start >= size:
            yield rows[start : start + size]
            start += size


@lru_cache
def _repeat_values(statement: str, count: int) -> str:
    """An INSERT of one row as one of several."""
    if count == 1:
        return statement
    start = statement.index(_VALUES) + len(_VALUES) - 1
    end = statement.index(")", start) + 1
    return statement[:end] + f", {statement[start:end]}" * (count - 1) + statement[end:]
