"""Who is alive: a lock that the system takes back when a process dies, and a beat that stops when one hangs."""

from __future__ import annotations

import fcntl
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Protocol

from interlock.errors import ConfigError
from interlock_catalog.settings import Loaded

_SPACE = 0x43415441


class Locks(Protocol):
    """One lock for each executor, free when its process is gone."""

    def take(self, executor: str) -> bool:
        """Take a lock and keep it; False if somebody has it."""
        ...

    def give(self, executor: str) -> None:
        """Give it back."""
        ...

    def close(self) -> None:
        """Give all of them back."""
        ...


class FileLocks:
    """Files beside the engine's own: for workers on one machine."""

    def __init__(self, engine: str) -> None:
        self._folder = Path(engine.removeprefix("sqlite:///")).parent
        self._held: dict[str, IO[str]] = {}

    def take(self, executor: str) -> bool:
        """Take a lock and keep it; False if somebody has it."""
        file = (self._folder / f".worker-{executor}.lock").open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        self._held[executor] = file
        return True

    def give(self, executor: str) -> None:
        """Give it back."""
        held = self._held.pop(executor, None)
        if held is not None:
            held.close()

    def close(self) -> None:
        """Give all of them back."""
        for executor in list(self._held):
            self.give(executor)


class ServerLocks:
    """Advisory locks of a session with PostgreSQL: for workers on several machines."""

    def __init__(self, url: str) -> None:
        import psycopg

        self._connection: Any = psycopg.connect(url, autocommit=True)

    def take(self, executor: str) -> bool:
        """Take a lock and keep it; False if somebody has it."""
        asked = self._connection.execute("SELECT pg_try_advisory_lock(%s, %s)", (_SPACE, _number(executor)))
        return bool(asked.fetchone()[0])

    def give(self, executor: str) -> None:
        """Give it back."""
        self._connection.execute("SELECT pg_advisory_unlock(%s, %s)", (_SPACE, _number(executor)))

    def close(self) -> None:
        """Give all of them back."""
        self._connection.close()


def _number(executor: str) -> int:
    return zlib.crc32(executor.encode()) - 2**31


def locks_of(loaded: Loaded) -> Locks:
    """The locks that go with the engine's database."""
    url = loaded.url("engine")
    return FileLocks(url) if url.startswith("sqlite:///") else ServerLocks(url)


def only_one(locks: Locks, executor: str) -> None:
    """Refuse to be the second process of one name: it would take the first one's runs away."""
    if not locks.take(executor):
        raise ConfigError(f"a worker called {executor!r} is running already; give this one another name (--name)")


class Watch:
    """Whose beat has stopped, by our own clock: a beat that has not changed for too long is none."""

    def __init__(self, stale_s: float) -> None:
        self._stale_s = stale_s
        self._seen: dict[str, tuple[float, float]] = {}

    def silent(self, beats: Mapping[str, float]) -> set[str]:
        """The executors that have not given a sign of life for too long."""
        now = time.monotonic()
        for executor, beat in beats.items():
            if self._seen.get(executor, (None, 0.0))[0] != beat:
                self._seen[executor] = (beat, now)
        return {name for name, (_beat, since) in self._seen.items() if now - since > self._stale_s}
