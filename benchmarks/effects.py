"""Governed writes on SQLite with synchronous=FULL: against bare commits, in a crowd, delivered twice, and undone."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from interlock import Runtime, tool
from interlock.policy import parse_policy

ROUNDS = 5
WRITES = 200
CROWD = 64
EACH = 10
UNDONE = 1000
POLICY = 'version = 1\nmode = "apply"\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n'


class Shelf:
    """Documents in memory: what is measured is the journal, not the resource."""

    name = "shelf"

    def __init__(self) -> None:
        self.items: dict[str, Any] = {}

    async def read_state(self, key: str) -> Any:
        """A document."""
        return self.items.get(key)

    async def restore(self, key: str, state: Any) -> None:
        """Put it back."""
        if state is None:
            self.items.pop(key, None)
        else:
            self.items[key] = state


def governed(folder: str) -> Runtime:
    """A runtime with one write tool."""
    shelf = Shelf()

    @tool(effect="write", key="{key}", resource=shelf, simulate=lambda _state, arguments: {"n": arguments["n"]})
    async def put(key: str, n: int) -> int:
        shelf.items[key] = {"n": n}
        return n

    return Runtime.open(f"sqlite:///{folder}/ledger.db", policy=parse_policy(POLICY), tools=[put])


async def _write(runtime: Runtime, n: int, **details: Any) -> None:
    outcome = await runtime.call("put", {"key": f"k{n}", "n": n}, actor="bench", **{"call_id": f"c{n}", **details})
    assert outcome.ok, outcome


def bare(folder: str) -> float:
    """Two commits a write, each with one row of the size of ours, and nothing else."""
    connection = sqlite3.connect(f"{folder}/bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)")
    started = time.perf_counter()
    for _ in range(2 * WRITES):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows (body) VALUES (?)", ("x" * 600,))
        connection.execute("COMMIT")
    took = time.perf_counter() - started
    connection.close()
    return took / WRITES


async def sequential(folder: str) -> tuple[float, float]:
    """Seconds for a first delivery, and for the same one delivered again."""
    runtime = governed(folder)
    await _write(runtime, -1)
    took = []
    for _delivery in range(2):
        started = time.perf_counter()
        for n in range(WRITES):
            await _write(runtime, n, turn=f"t{n}", call_id=f"c{n}")
        took.append((time.perf_counter() - started) / WRITES)
    await runtime.close()
    return took[0], took[1]


async def _crowd(folder: str, callers: int) -> tuple[float, float]:
    """Writes a second by so many at once on distinct keys, and commits for each."""
    runtime = governed(folder)
    await _write(runtime, -1)
    store: Any = runtime.store
    land, commits = store._transact, []

    def counting(batches: Any) -> Any:
        commits.append(len(batches))
        return land(batches)

    store._transact = counting
    total = callers * EACH

    async def caller(k: int) -> None:
        for n in range(EACH):
            await _write(runtime, k * EACH + n)

    started = time.perf_counter()
    await asyncio.gather(*(caller(k) for k in range(callers)))
    took = time.perf_counter() - started
    await runtime.close()
    return total / took, len(commits) / total


async def _undone(folder: str) -> tuple[float, float]:
    """Seconds to make a run of changes one after the other, and to undo it."""
    runtime = governed(folder)
    started = time.perf_counter()
    for n in range(UNDONE):
        await _write(runtime, n, run="r")
    made = time.perf_counter() - started
    started = time.perf_counter()
    done = await runtime.operations.undo(run="r")
    took = time.perf_counter() - started
    assert len(done) == UNDONE
    assert all(outcome is not None and outcome.ok for _step, outcome in done)
    await runtime.close()
    return made, took


def measure() -> dict[str, float]:
    """Medians over interleaved rounds of everything."""
    logging.getLogger("interlock").setLevel(logging.ERROR)
    found: dict[str, list[float]] = {}

    def note(**values: float) -> None:
        for name, value in values.items():
            found.setdefault(name, []).append(value)

    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="interlock-bench-") as folder:
            theirs = bare(folder)
            first, again = asyncio.run(sequential(folder))
            note(bare=theirs, first=first, again=again, write_ratio=first / theirs, again_ratio=again / first)
        for callers, name in ((CROWD, "crowd"), (1, "alone")):
            with tempfile.TemporaryDirectory(prefix="interlock-bench-") as folder:
                rate, commits = asyncio.run(_crowd(folder, callers))
                note(**{f"{name}_rate": rate, f"{name}_commits": commits})
        with tempfile.TemporaryDirectory(prefix="interlock-bench-") as folder:
            made, undone = asyncio.run(_undone(folder))
            note(made=made, undone=undone, undo_ratio=undone / made)
    return {name: median(values) for name, values in found.items()}


if __name__ == "__main__":
    print({name: round(value, 6) for name, value in measure().items()}, Path(__file__).name)
