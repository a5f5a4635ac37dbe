"""The database behind a memory: one thread that writes and one that reads, each with a connection of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from interlock.errors import StoreBusy, StoreError
from interlock.memory import statements as sql
from interlock.memory.meta import SCHEMA, WIPE_OWED, WORDS_OWED, bring_up_to_date, read_meta
from interlock.memory.twins import twin_of
from interlock.ports import NOWHERE, Faults
from interlock.stores import dialect_of
from interlock.stores.dialect import Connection

T = TypeVar("T")
_TRIES = 5
_KEY_BYTES = 32


class Database:
    """Opened at once; asked and changed from threads of its own, so that no event loop waits for a disk."""

    def __init__(self, url: str, busy_s: float, faults: Faults | None) -> None:
        self.dialect = dialect_of(url, busy_s)
        self.twin = twin_of(self.dialect)
        self.at = NOWHERE if faults is None else faults.at
        self._write: Connection | None = self._connect()
        self._read: Connection | None = None
        self._lingers = False
        self._writing = threading.Lock()
        self.digest_key = b""
        try:
            self._make_tables(self._write)
        except BaseException:
            self._write.close()
            raise
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="interlock-memory-writer")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="interlock-memory-reader")

    def _connect(self) -> Connection:
        try:
            return self.dialect.connect()
        except self.dialect.errors as error:
            raise self.dialect.explain(error) from None

    def _make_tables(self, connection: Connection) -> None:
        def work(connection: Connection) -> None:
            for statement in self.twin.schema:
                connection.run(self.twin.spell(statement))
            notes = {"schema": str(SCHEMA), "digest_key": os.urandom(_KEY_BYTES).hex(), "revision": "0"}
            for name, value in {**notes, WIPE_OWED: "", WORDS_OWED: ""}.items():
                connection.run(sql.NOTE_META, (name, value))
            bring_up_to_date(connection)

        self._transact(connection, work)
        if self._lingers and not self.dialect.locks_rows:
            self._wipe(patient=False)
        self.digest_key = bytes.fromhex(read_meta(connection, "digest_key"))

    def at_once(self, work: Callable[[Connection], T]) -> T:
        """One transaction while the memory is being opened, before anybody waits."""
        assert self._write is not None
        return self._transact(self._write, work)

    def outside(self, work: Callable[[Connection], T]) -> T:
        """Statements that are no transaction, while the memory is being opened."""
        assert self._write is not None
        try:
            return work(self._write)
        except self.dialect.errors as error:
            raise self.dialect.explain(error) from None

    async def write(self, work: Callable[[Connection], T]) -> T:
        """One transaction; whole or not at all, whoever stops waiting for it."""
        return await self._on(self._writer, lambda: self._write_now(work))

    async def read(self, ask: Callable[[Connection], T]) -> T:
        """What is asked of the database as it is now."""
        return await self._on(self._reader, lambda: self._read_now(ask))

    async def aside(self, work: Callable[[], T]) -> T:
        """Work that takes a while and asks nothing of the database."""
        return await self._on(self._reader, work)

    async def wipe(self) -> bool:
        """Let go of what was deleted and still lies in files of ours; False where others read there now."""

        def work() -> bool:
            with self._writing:
                return self._wipe()

        return await self._on(self._writer, work)

    async def close(self) -> None:
        """Finish what was begun, then let go."""
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        """The same, of a memory that could not be opened."""
        self._writer.shutdown()
        self._reader.shutdown()
        if self._lingers and self._write is not None:
            with suppress(StoreError):  # it stays noted that it is owed
                self._wipe()
        for connection in (self._write, self._read):
            if connection is not None:
                connection.close()
        self._write = self._read = None
        self.dialect.close()

    async def _on(self, thread: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        try:
            future = thread.submit(work)
        except RuntimeError:
            raise StoreError("the memory is closed") from None
        return await asyncio.wrap_future(future)

    def _write_now(self, work: Callable[[Connection], T]) -> T:
        with self._writing:
            self._write = self._write or self._connect()
            done = self._transact(self._write, work)
            if self._lingers and not self.dialect.locks_rows:  # whoever gives up waiting has it wiped all the same
                self._wipe(patient=False)
            return done

    def _wipe(self, *, patient: bool = True) -> bool:
        connection = self._write = self._write or self._connect()
        try:
            owed = read_meta(connection, WIPE_OWED)
            if self.dialect.locks_rows:
                has_embeddings = read_meta(connection, "vectors") == "pgvector"
                for statement in (*sql.VACUUM, *((sql.VACUUM_EMBEDDINGS,) if has_embeddings else ())):
                    connection.run(statement)
        except self.dialect.errors as error:
            raise self.dialect.explain(error) from None
        wiped = self.dialect.wipe(connection, patient=patient)
        if wiped and owed:
            with suppress(StoreError):  # somebody writes for long: it is wiped once more with the next commit
                # What others have removed since is theirs to wipe: they have noted another number.
                self._transact(connection, lambda connection: connection.run(sql.CLEAR_META, (WIPE_OWED, owed)))
        return wiped

    def _read_now(self, ask: Callable[[Connection], T]) -> T:
        for attempt in range(2):
            try:
                self._read = self._read or self._connect()
                found = ask(self._read)
                self.dialect.check_place()
                return found
            except self.dialect.errors as error:
                broken, self._read = self._read, None
                _close_quietly(broken)
                if attempt or not self.dialect.locks_rows:
                    raise self.dialect.explain(error) from None
        raise AssertionError("the second attempt returns or raises")

    def _transact(self, connection: Connection, work: Callable[[Connection], T]) -> T:
        """Begin, work, commit; tried again where others came first, and undone whatever goes wrong."""
        for _attempt in range(_TRIES):
            try:
                self.twin.begin(connection, self.dialect)
                done = work(connection)
                owed = read_meta(connection, WIPE_OWED)
                self.dialect.check_place()
                self.at("memory.commit")
                connection.run("COMMIT")
                self._lingers = bool(owed)
                return done
            except self.dialect.errors as error:
                self._roll_back(connection)
                if not self.dialect.is_conflict(error):
                    raise self.dialect.explain(error) from None
            except BaseException:
                self._roll_back(connection)
                raise
        raise StoreBusy("other writers of this memory kept winning; try again")

    def _roll_back(self, connection: Connection) -> None:
        try:
            connection.run("ROLLBACK")
        except self.dialect.errors:
            # There was none, or the connection is gone; the next transaction opens another.
            if getattr(connection.raw, "closed", False) and self._write is connection:
                self._write = None


def _close_quietly(connection: Connection | None) -> None:
    try:
        if connection is not None:
            connection.close()
    except Exception:  # noqa: BLE001 - it is broken already, in whatever way its driver says so
        pass
