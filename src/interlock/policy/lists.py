"""Named lists behind `listed(name, value)`: from the policy, a file, a query, or the application."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from pathlib import Path
from threading import Thread

from interlock.errors import PolicyError
from interlock.policy.model import ListSpec
from interlock.values import shorten

ListSource = Callable[[], Collection[str]]
_LONGEST_READ_S = 1.0
"""So long the event loop may stand still for a list; it is read once for each `ttl_s`, not for each call."""


class Lists:
    """Lists by name; those that can change are read again after their `ttl_s`. A failing read denies."""

    def __init__(self, specs: Mapping[str, ListSpec], given: Mapping[str, ListSource], folder: Path) -> None:
        self._ttl_s = {name: spec.ttl_s for name, spec in specs.items()}
        self._sources: dict[str, ListSource] = {name: _open_source(spec, folder) for name, spec in specs.items()}
        self._sources.update(given)
        self._held: dict[str, tuple[float, frozenset[str]]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The lists there are."""
        return tuple(self._sources)

    def holds(self, name: str, value: str) -> bool:
        """Whether the list holds the value; an unknown list is an error, and so denies."""
        held = self._held.get(name)
        now = time.monotonic()
        if held is None or now >= held[0]:
            # A read that fails raises before anything is kept: the rule denies, and the next call tries again.
            held = (now + self._ttl_s.get(name, 30.0), frozenset(self._sources[name]()))
            self._held[name] = held
        return value in held[1]


def find_unreadable_lists(specs: Mapping[str, ListSpec], folder: Path) -> tuple[str, ...]:
    """Why lists cannot be read as things are now: every rule that asks one of them would deny."""
    found = []
    for name, spec in specs.items():
        try:
            _open_source(spec, folder)()
        except Exception as error:  # noqa: BLE001 - a file, a database and its query may fail in any way
            what = f"the file {spec.file!r}" if spec.file is not None else "what its query asks for"
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            found.append(
                f"{spec.place}: [lists.{name}]: {what} cannot be read, so that every rule that asks it denies:"
                f" {shorten(why.strip(), 200)}"
            )
    return tuple(found)


def _open_source(spec: ListSpec, folder: Path) -> ListSource:
    if spec.values is not None:
        values = spec.values
        return lambda: values
    if spec.file is not None:
        file = folder / spec.file
        # A byte order mark is no part of the first name: with it, that name would be on no list.
        return _BoundedRead(
            lambda: [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
        )
    return _BoundedRead(_open_query(spec, spec.database or "", spec.query or "", folder))


class _BoundedRead:
    """A read in a thread of its own, for which nobody waits longer than `_LONGEST_READ_S`.

    Conditions are evaluated on the event loop: a database that says nothing must not hold up everything else. While
    one read hangs there is no second one, and whoever asks is refused at once.
    """

    def __init__(self, read: ListSource) -> None:
        self._read = read
        self._last: Future[Collection[str]] | None = None

    def __call__(self) -> Collection[str]:
        if self._last is not None and not self._last.done():
            raise TimeoutError("an earlier read of it has not come back yet")
        answer = self._last = Future[Collection[str]]()
        # Of the kind that nobody waits for at the end: one that hangs must not keep the process alive.
        Thread(target=self._run, args=(answer,), name="interlock-list", daemon=True).start()
        if not wait([answer], _LONGEST_READ_S).done:
            raise TimeoutError(f"no answer in {_LONGEST_READ_S:g} s")
        return answer.result()

    def _run(self, answer: Future[Collection[str]]) -> None:
        try:
            answer.set_result(self._read())
        except BaseException as error:  # noqa: BLE001 - whoever waits for it hears it
            answer.set_exception(error)


def _open_query(spec: ListSpec, database: str, query: str, folder: Path) -> ListSource:
    if database.startswith("sqlite:///"):
        path = folder / database.removeprefix("sqlite:///")

        def read_sqlite() -> list[str]:
            import sqlite3

            # Only to read: a query must change nothing, and a file that is not there is an error, not an empty list.
            connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            try:
                return [str(row[0]) for row in connection.execute(query)]
            finally:
                connection.close()

        return read_sqlite
    if database.startswith(("postgresql://", "postgres://")):

        def read_postgres() -> list[str]:
            import psycopg

            # So that a read for which nobody waits any more ends some day, and the list can be read again.
            with psycopg.connect(database, autocommit=True, connect_timeout=2, keepalives_idle=5) as connection:
                return [str(row[0]) for row in connection.execute(query.encode()).fetchall()]

        return read_postgres
    raise PolicyError([f"{spec.place}: [lists.{spec.name}]: database is sqlite:///FILE or postgresql://..."])
