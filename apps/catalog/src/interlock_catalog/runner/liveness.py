"""Liveness: a lock that the system releases when a process dies, and a heartbeat that stops when one hangs.

Two signs, as each alone is not enough: a hung process keeps its lock, and a dead one may have beaten a moment ago.
"""

from __future__ import annotations

import fcntl
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Protocol

import msgspec

from interlock.errors import ConfigError
from interlock_catalog.settings import Settings

_ADVISORY_CLASS = 0x43415441
"""Sets our advisory locks apart from those of other programs in the same database: the letters CATA."""


class ExecutorLocks(Protocol):
    """One lock for each executor, free when its process is gone."""

    def try_acquire(self, executor: str) -> bool:
        """Take a lock and keep it; False if somebody has it."""
        ...

    def release(self, executor: str) -> None: ...

    def close(self) -> None:
        """Release all of them."""
        ...


class FileLocks:
    """Files beside the engine's own: for workers on one machine."""

    def __init__(self, engine: str) -> None:
        self._folder = Path(engine.removeprefix("sqlite:///")).parent
        self._files: dict[str, IO[str]] = {}

    def try_acquire(self, executor: str) -> bool:
        file = (self._folder / f".worker-{executor}.lock").open("a")
        try:
            # The kernel releases it with the process, however that ends; a file that merely exists would stay behind.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        self._files[executor] = file
        return True

    def release(self, executor: str) -> None:
        file = self._files.pop(executor, None)
        if file is not None:
            file.close()

    def close(self) -> None:
        for executor in list(self._files):
            self.release(executor)


class AdvisoryLocks:
    """Advisory locks of a PostgreSQL session, for workers on several machines: the server releases them with it."""

    def __init__(self, url: str) -> None:
        import psycopg

        # The locks are those of the session. Without autocommit it would sit idle in a transaction all its life.
        self._connection: Any = psycopg.connect(url, autocommit=True)

    def try_acquire(self, executor: str) -> bool:
        cursor = self._connection.execute(
            "SELECT pg_try_advisory_lock(%s, %s)", (_ADVISORY_CLASS, _lock_number(executor))
        )
        return bool(cursor.fetchone()[0])

    def release(self, executor: str) -> None:
        self._connection.execute("SELECT pg_advisory_unlock(%s, %s)", (_ADVISORY_CLASS, _lock_number(executor)))

    def close(self) -> None:
        self._connection.close()


def _lock_number(executor: str) -> int:
    return zlib.crc32(executor.encode()) - 2**31  # advisory locks are known by signed 32-bit numbers


def open_executor_locks(settings: Settings) -> ExecutorLocks:
    """The locks that go with the engine's database."""
    url = settings.engine
    return FileLocks(url) if url.startswith("sqlite:///") else AdvisoryLocks(url)


def require_unique_executor(locks: ExecutorLocks, executor: str) -> None:
    """Refuse to be the second process of one name: it would take the first one's runs away."""
    if not locks.try_acquire(executor):
        raise ConfigError(f"a worker called {executor!r} is running already; give this one another name (--name)")


class _Heartbeat(msgspec.Struct, frozen=True):
    """The last heartbeat of an executor, and when we first saw it, by our own clock."""

    beat: float
    first_seen: float


class HeartbeatMonitor:
    """Whose heartbeat has stopped: one that has not changed for too long by our own clock, whatever time it says."""

    def __init__(self, stale_s: float) -> None:
        self._stale_s = stale_s
        self._last: dict[str, _Heartbeat] = {}

    def find_stale(self, heartbeats: Mapping[str, float]) -> set[str]:
        """The executors that have not given a sign of life for too long."""
        now = time.monotonic()
        for executor, beat in heartbeats.items():
            if executor not in self._last or self._last[executor].beat != beat:
                self._last[executor] = _Heartbeat(beat, now)
        return {name for name, last in self._last.items() if now - last.first_seen > self._stale_s}
