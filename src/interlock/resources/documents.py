"""Keyed JSON documents in one table of SQLite or PostgreSQL, with versions and fencing checked at the write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec

from interlock.canonical import WHATEVER, Refusal, canonical
from interlock.errors import ConfigError, Conflict, InDoubt, InvalidInput, NotFound, NothingLanded, StoreError
from interlock.resources.written import note_failure, note_written
from interlock.stores import dialect_of
from interlock.stores import statements as sql
from interlock.stores.dialect import Connection
from interlock.tools.wire import Sending
from interlock.values import NOT_THERE, Context, Json, Versioned

T = TypeVar("T")
Found = dict[str, Versioned]
"""Documents by key, in the order of their keys."""
_MOST_MARKS = 500  # SQLite took no more than 999 parameters in a statement for a long time
ABSENT = "0"
"""The version that is expected of a document that is not to be there."""
_FENCES = "_fences"
_FIELD_OF = {"sqlite": "json_extract(body, '$.{field}')", "postgresql": "((body::jsonb) ->> '{field}')"}


class Documents:
    """Documents by key. Every write is one transaction; a write with an older fencing token is refused.

    Fields that are `indexed` are texts at the top of a document, by which it can be found.
    """

    notes_writes = True
    """Every write is noted for the call that makes it: what is not, that call has not written."""

    def __init__(self, url: str, name: str = "documents", *, busy_s: float = 10.0, indexed: Sequence[str] = ()) -> None:
        for word in (name, *indexed):
            # It becomes part of SQL statements, where a parameter cannot stand.
            if not isinstance(word, str) or not word.isidentifier() or not word.isascii() or not word.islower():
                raise ConfigError(f"{word!r} cannot be the name of a table or field: small letters, digits and '_'")
        if name.endswith(_FENCES):
            raise ConfigError(f"{name!r} cannot be the name of a table: what ends in {_FENCES!r} is for fencing tokens")
        self.name = name
        self._indexed = tuple(indexed)
        self._dialect = dialect_of(url, busy_s)
        self._connection: Connection | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"interlock-{name}")

    async def read_state(self, key: str) -> Versioned | None:
        """A document with its version, None if there is none."""
        row = await self._read(lambda c: c.one(self._sql(sql.READ_DOCUMENT), (key,)))
        return None if row is None else Versioned(msgspec.json.decode(row[0]), str(row[1]))

    async def read_states(self, keys: Sequence[str]) -> Found:
        """Several documents in one go, for plans."""
        return await self.read_many(keys)

    async def read_many(self, keys: Iterable[str]) -> Found:
        """Those of the documents that there are."""
        wanted = sorted(set(keys))

        def work(connection: Connection) -> list[tuple[Any, ...]]:
            rows = []
            for start in range(0, len(wanted), _MOST_MARKS):
                some = wanted[start : start + _MOST_MARKS]
                rows += connection.rows(self._sql(sql.SOME_DOCUMENTS, marks=some), some)
            return rows

        return _read_found(await self._read(work))

    async def page(self, prefix: str = "", *, after: str = "", limit: int = 100) -> Found:
        """The next documents whose keys begin so, in the order of their keys; `after` is the last key of a page."""
        bounds = (after, prefix, _beyond(prefix), limit)
        return _read_found(await self._read(lambda c: c.rows(self._sql(sql.PAGE_OF_DOCUMENTS), bounds)))

    async def find(self, field: str, values: Iterable[str], *, prefix: str = "") -> Found:
        """Documents whose indexed field has one of the values."""
        if field not in self._indexed:
            raise ConfigError(f"{self.name!r} has no index on {field!r}; it has {', '.join(self._indexed) or 'none'}")
        wanted = sorted(set(values))

        def work(connection: Connection) -> list[tuple[Any, ...]]:
            rows = []
            for start in range(0, len(wanted), _MOST_MARKS):
                some = wanted[start : start + _MOST_MARKS]
                statement = self._sql(sql.FIND_DOCUMENTS, field=field, marks=some)
                rows += connection.rows(statement, (*some, prefix, _beyond(prefix)))
            return sorted(rows)

        return _read_found(await self._read(work))

    async def count(self, prefix: str = "") -> int:
        """How many documents there are whose keys begin so."""
        row = await self._read(lambda c: c.one(self._sql(sql.COUNT_DOCUMENTS), (prefix, _beyond(prefix))))
        return 0 if row is None else int(row[0])

    async def restore(self, key: str, state: Json, context: Context | None = None) -> None:
        """Put a document back, or remove it (None)."""
        await self.write(key, state, context)

    async def restore_all(self, states: Mapping[str, Json], context: Context | None = None) -> None:
        """Put documents back together, or none of them."""
        await self.write_all(states, context)

    async def snapshot(self) -> dict[str, Json]:
        """Every document."""
        return {key: found.value for key, found in (await self.versioned_snapshot()).items()}

    async def versioned_snapshot(self) -> Found:
        """Every document with its version, for plans of whatever may change any of them."""
        return _read_found(await self._read(lambda c: c.rows(self._sql(sql.ALL_DOCUMENTS))))

    async def get(self, key: str) -> Json:
        """A document; `NotFound` if there is none."""
        found = await self.read_state(key)
        if found is None:
            raise NotFound(f"there is no document {key!r}")
        return found.value

    async def write(self, key: str, state: Json, context: Context | None = None, *, version: str | None = None) -> None:
        """Write a document whole (None removes it), if nobody with a newer token wrote it, and it is at `version`, or
        else at the version on which the call was planned."""
        await self.write_all({key: state}, context, versions={} if version is None else {key: version})

    async def fence(self, tokens: Mapping[str, int], ledger: str) -> None:
        """Refuse every write under an older token from now on, so that what has not landed by now never will."""
        await self.write_all(
            {}, Context(call_id="fence", actor="interlock", attempt=1, tokens=dict(tokens), ledger=ledger)
        )

    async def write_all(
        self,
        states: Mapping[str, Json],
        context: Context | None = None,
        *,
        versions: Mapping[str, str] | None = None,
        finding: Mapping[tuple[str, str], Iterable[str]] | None = None,
    ) -> dict[str, str]:
        """Write documents in one transaction, all or none; the versions that they have now.

        Every fencing token of the context is checked, and every version that is expected ("0": there is none), also of
        keys that are not written; of those that are, also the versions on which the call was planned. With `finding`,
        an indexed field and value must still find these very keys: that holds against writers who expect a version of
        a document that is expected here, too.
        """
        bodies = {key: _body(key, state) for key, state in states.items()}
        tokens, ledger = ({}, "") if context is None else (context.tokens, context.ledger)
        planned = {} if context is None else context.versions
        expected = {**_planned_on(planned, bodies), **(versions or {})}

        def work(connection: Connection) -> dict[str, str]:
            committing = False
            try:
                self._dialect.begin(connection)
                locked: dict[str, int] = {}
                # In one order for all writers: two that lock the same documents must not wait for each other.
                for key in sorted({*bodies, *expected, *(held for held in tokens if held != "*")}):
                    locked[key] = self._lock(connection, key, expected.get(key))
                    self._check_fence(connection, key, ledger, tokens.get(key, tokens.get("*", 0)))
                for (field, value), keys in (finding or {}).items():
                    self._finds(connection, field, value, frozenset(keys))
                for key, body in bodies.items():
                    connection.run(self._sql(sql.WRITE_DOCUMENT), (body, key))
                self._check_place()
                # From here on a lost answer leaves it open whether the documents are written; before, nothing is.
                committing = True
                connection.run("COMMIT")
                return {key: str(locked[key] + 1) for key in sorted(bodies)}
            except BaseException as error:
                self._undone(connection)
                if not isinstance(error, self._dialect.errors):
                    raise
                why = str(self._dialect.explain(error))
                raise (InDoubt if committing else NothingLanded)(why) from None

        return await self._run_noted(work, bodies, context)

    async def _run_noted(
        self, work: Callable[[Connection], dict[str, str]], bodies: Mapping[str, str | None], context: Context | None
    ) -> dict[str, str]:
        """A transaction, noted like a request that is sent: in doubt before it is begun, as the thread goes on whoever
        gives up waiting for it. What it left is noted as well."""
        writing = Sending("write", changes=bool(bodies), resource=self.name)
        try:
            written = await self._on_thread(work)
        except BaseException as error:
            if isinstance(error, Conflict | NothingLanded | StoreError):  # refused, rolled back, or not even opened
                writing.did_nothing()
            note_failure(self.name, bodies, context, error)
            raise
        left = {key: _note_left(body, written[key]) for key, body in bodies.items()}
        note_written(self.name, left, context)
        planned = {} if context is None else context.versions
        planned.update({key: left[key].version for key in _planned_on(planned, left)})
        return written

    def _check_place(self) -> None:
        """A file that was removed or replaced would take the write to nowhere: it is rolled back instead."""
        try:
            self._dialect.check_place()
        except StoreError as error:
            raise NothingLanded(str(error)) from None

    def _undone(self, connection: Connection) -> None:
        try:
            connection.run("ROLLBACK")
            return
        except self._dialect.errors:
            self._connection = None  # it is gone, and takes the transaction with it; the next one opens another
        try:
            connection.close()
        except self._dialect.errors:
            pass  # it was gone already

    def _lock(self, connection: Connection, key: str, expected: str | None) -> int:
        """The version of a key, locked, if it is the one that is expected."""
        connection.run(self._sql(sql.OPEN_DOCUMENT), (key,))
        row = connection.one(self._sql(sql.LOCK_DOCUMENT), (key,))
        assert row is not None
        version, absent = row
        if expected is not None and (not absent if expected == ABSENT else absent or str(version) != expected):
            is_there = "absent" if absent else f"at version {version}"
            raise Conflict(f"{key!r} is {is_there}, not {'absent' if expected == ABSENT else expected}")
        return int(version)

    def _finds(self, connection: Connection, field: str, value: str, keys: frozenset[str]) -> None:
        """Refuse if a field and value find other documents than they did."""
        rows = connection.rows(self._sql(sql.FIND_DOCUMENTS, field=field, marks=[value]), (value, "", _beyond("")))
        moved = {row[0] for row in rows} ^ keys
        if moved:
            raise Conflict(f"{field} {value!r} does not find what it did: {', '.join(sorted(moved))}")

    def _check_fence(self, connection: Connection, key: str, ledger: str, token: int) -> None:
        """Refuse a token that is older than the newest of its ledger; tokens of other ledgers say nothing about it."""
        if not token:
            return
        row = connection.one(self._sql(sql.READ_FENCE), (key, ledger))
        newest = 0 if row is None else int(row[0])
        if newest > token:
            raise Conflict(
                f"{key!r} was written under token {newest}; {token} is too old: whoever holds it was taken for dead,"
                " and another call has gone on; call again. If that does not help, the ledger is a copy that was put"
                " back, and the clock of its store is behind: set it right"
            )
        if newest < token:
            connection.run(self._sql(sql.WRITE_FENCE), (key, ledger, token))

    async def close(self) -> None:
        """Let go."""
        await self._on_thread(lambda connection: connection.close())
        self._thread.shutdown()

    def _open(self) -> Connection:
        """A connection, and the table, made by one at a time."""
        connection = self._dialect.connect()
        makes = {
            self._sql("{table}"): sql.DOCUMENTS_TABLE,
            self._sql("{table}_fences"): sql.FENCES_TABLE,
            **{self._sql("{table}_{field}", field=f): self._sql(sql.DOCUMENTS_INDEX, field=f) for f in self._indexed},
        }
        # To make what there is already takes locks all the same, and waits for everybody who writes.
        if len(connection.rows(self._sql(sql.DOCUMENTS_RELATIONS, marks=list(makes)), list(makes))) < len(makes):
            self._dialect.begin(connection, migrating=True)
            for statement in makes.values():
                connection.run(self._sql(statement))
            connection.run("COMMIT")
        return connection

    def _sql(self, statement: str, *, field: str = "", marks: Sequence[str] = ()) -> str:
        field_of = _FIELD_OF[self._dialect.name].replace("{field}", field)
        filled = statement.replace("{field_of}", field_of).replace("{field}", field)
        filled = filled.replace("{marks}", ", ".join("?" for _ in marks))
        return filled.replace("{table}", f"documents_{self.name}")

    async def _read(self, ask: Callable[[Connection], T]) -> T:
        """What is read from where the documents are: a file that was removed or replaced is still open here, and what
        stands in it is not what anybody else reads."""

        def work(connection: Connection) -> T:
            found = ask(connection)
            self._dialect.check_place()
            return found

        return await self._on_thread(work)

    async def _on_thread(self, ask: Callable[[Connection], T]) -> T:
        def work() -> T:
            try:
                if self._connection is None:
                    self._connection = self._open()
                return ask(self._connection)
            except self._dialect.errors as error:
                if self._connection is not None and getattr(self._connection.raw, "closed", False):
                    self._connection = None
                raise self._dialect.explain(error) from None

        loop: Any = asyncio.get_running_loop()
        found: T = await loop.run_in_executor(self._thread, work)
        return found


def _beyond(prefix: str) -> str:
    """The first key, in the order of code points, that is after everything that begins so."""
    while prefix and prefix[-1] == "\U0010ffff":
        prefix = prefix[:-1]
    if not prefix:
        return "\U0010ffff" * 8
    after = ord(prefix[-1]) + 1
    # Surrogates are no characters, and no database takes them.
    return prefix[:-1] + chr(0xE000 if 0xD800 <= after <= 0xDFFF else after)


def _planned_on(planned: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    """The versions to which keys are held by the plan of the call; `*` there stands for all that it does not name."""
    held = {key: planned.get(key, planned.get("*")) for key in keys}
    return {key: ABSENT if version == NOT_THERE else version for key, version in held.items() if version is not None}


def _note_left(body: str | None, version: str) -> Versioned:
    """What a write has left of a document: as it was written, whatever its writer does with its own since."""
    return Versioned(None, NOT_THERE) if body is None else Versioned(msgspec.json.decode(body), version)


def _body(key: str, state: Json) -> str | None:
    try:
        return None if state is None else canonical(state, WHATEVER).decode()
    except Refusal as refusal:
        raise InvalidInput(f"{key!r}: {refusal}") from None


def _read_found(rows: Iterable[tuple[Any, ...]]) -> Found:
    return {key: Versioned(msgspec.json.decode(body), str(version)) for key, body, version in rows}
