"""Keyed JSON documents in one table of SQLite or PostgreSQL, with versions and fencing checked at the write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec

from interlock.errors import ConfigError, Conflict, InvalidInput, NotFound
from interlock.schema import WHATEVER, Refusal, canonical
from interlock.stores import dialect_of
from interlock.stores import statements as sql
from interlock.stores.dialect import Connection
from interlock.values import Context, Json, Versioned

T = TypeVar("T")


class Documents:
    """Documents by key. Every write is one transaction; a write with an older fencing token is refused."""

    def __init__(self, url: str, name: str = "documents", *, busy_s: float = 10.0) -> None:
        if not name.isidentifier() or not name.isascii() or not name.islower():
            raise ConfigError(f"{name!r} cannot be the name of a table: small letters, digits and '_'")
        self.name = name
        self._dialect = dialect_of(url, busy_s)
        self._connection: Connection | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"interlock-{name}")

    async def read_state(self, key: str) -> Versioned | None:
        """A document with its version, None if there is none."""
        row = await self._on_thread(lambda c: c.one(self._sql(sql.READ_DOCUMENT), (key,)))
        return None if row is None else Versioned(msgspec.json.decode(row[0]), str(row[1]))

    async def restore(self, key: str, state: Json, context: Context | None = None) -> None:
        """Put a document back, or remove it (None)."""
        await self.write(key, state, context)

    async def snapshot(self) -> dict[str, Json]:
        """Every document."""
        rows = await self._on_thread(lambda c: c.rows(self._sql(sql.ALL_DOCUMENTS)))
        return {key: msgspec.json.decode(body) for key, body in rows}

    async def get(self, key: str) -> Json:
        """A document; `NotFound` if there is none."""
        found = await self.read_state(key)
        if found is None:
            raise NotFound(f"there is no document {key!r}")
        return found.value

    async def write(self, key: str, state: Json, context: Context | None = None, *, version: str | None = None) -> None:
        """Write a document whole (None removes it), if nobody with a newer token wrote it, and it is at `version`."""
        token = 0 if context is None else context.tokens.get(key, context.tokens.get("*", 0))
        ledger = "" if context is None else context.ledger
        try:
            body = None if state is None else canonical(state, WHATEVER).decode()
        except Refusal as refusal:
            raise InvalidInput(f"{key!r}: {refusal}") from None

        def work(connection: Connection) -> None:
            self._dialect.begin(connection)
            try:
                connection.run(self._sql(sql.OPEN_DOCUMENT), (key,))
                row = connection.one(self._sql(sql.LOCK_DOCUMENT), (key,))
                assert row is not None
                same = row[2] == ledger  # tokens of another ledger say nothing
                if token and same and row[1] > token:
                    raise Conflict(f"{key!r} was written under token {row[1]}; {token} is too old")
                if version is not None and str(row[0]) != version:
                    raise Conflict(f"{key!r} is at version {row[0]}, not {version}")
                newest, whose = (max(token, row[1]), row[2]) if same or not token else (token, ledger)
                connection.run(self._sql(sql.WRITE_DOCUMENT), (body, newest, whose if row[2] else ledger, key))
                connection.run("COMMIT")
            except BaseException:
                connection.run("ROLLBACK")
                raise

        await self._on_thread(work)

    async def close(self) -> None:
        """Let go."""
        await self._on_thread(lambda connection: connection.close())
        self._thread.shutdown()

    def _opened(self) -> Connection:
        """A connection, and the table: of several who make it at once, PostgreSQL lets one win and the others fail."""
        connection = self._dialect.connect()
        for last in (False, True):
            try:
                connection.run(self._sql(sql.DOCUMENTS_TABLE))
                break
            except self._dialect.errors as error:
                if last or not self._dialect.is_conflict(error):
                    raise
        return connection

    def _sql(self, statement: str) -> str:
        return statement.replace("{table}", f"documents_{self.name}")

    async def _on_thread(self, ask: Callable[[Connection], T]) -> T:
        def work() -> T:
            try:
                if self._connection is None:
                    self._connection = self._opened()
                return ask(self._connection)
            except self._dialect.errors as error:
                raise self._dialect.explain(error) from None

        loop: Any = asyncio.get_running_loop()
        found: T = await loop.run_in_executor(self._thread, work)
        return found
