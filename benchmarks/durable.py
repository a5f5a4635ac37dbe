"""The durable rows: appends against a bare group-commit loop, verification of a million records, import time."""

from __future__ import annotations

import asyncio
import json
import queue
import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from interlock.audit import verify
from interlock.records import Content, Record
from interlock.stores import Witness, open_store
from interlock.stores.dialect import fill
from interlock.stores.state import Chain
from interlock.stores.statements import APPEND, MIGRATIONS
from interlock.transitions import Append, Batch
from interlock.values import Attempt, Decision, Effect, Verdict

CALLERS = 64
APPENDS_EACH = 150
ROUNDS = 7
RECORDS = 1_000_000
VERDICT = Verdict(Decision.ALLOW, "allow", "0123456789abcdef", "rule 'allow' allows this")


def record(n: int) -> Record:
    """A record as a governed read leaves it."""
    content = Content(
        principal="os:assessor",
        started_us=1_700_000_000_000_000 + n,
        duration_us=180,
        effect=Effect.READ,
        arguments={"trail_id": f"trail-{n % 1000:04d}", "season": "winter", "top_k": 5},
        verdict=VERDICT,
        value={"trail_id": f"trail-{n % 1000:04d}", "damage_class": 3},
        attempts=(Attempt(0, 95),),
    )
    return Record(1_700_000_000_000_200 + n, "call", f"{n:032x}", None, "assessor", "classify", "ok", content)


async def _our_appends(folder: Path) -> float:
    """Wall seconds for all appends of 64 concurrent callers."""
    store = open_store(f"sqlite:///{folder / 'ours.db'}", witness=Witness(None))
    batches = [Batch(0, (Append(record(n)),)) for n in range(CALLERS * APPENDS_EACH)]

    async def caller(k: int) -> None:
        for n in range(APPENDS_EACH):
            await store.commit(batches[k * APPENDS_EACH + n])

    started = time.perf_counter()
    await asyncio.gather(*(caller(k) for k in range(CALLERS)))
    took = time.perf_counter() - started
    await store.close()
    return took


ONE_COLUMN = "INSERT INTO one_column (body) VALUES (?)"


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        future.set_result(None)


def _write_groups(
    connection: sqlite3.Connection, insert: str, waiting: queue.SimpleQueue[Any], loop: asyncio.AbstractEventLoop
) -> None:
    """Whatever is waiting goes into one commit; None ends it."""
    while True:
        group = [waiting.get()]
        while not waiting.empty():
            group.append(waiting.get())
        rows = [item[0] for item in group if item is not None]
        if rows:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(insert, rows)
            connection.execute("COMMIT")
            loop.call_soon_threadsafe(_resolve, [item[1] for item in group if item is not None])
        if None in group:
            return


async def _bare_appends(folder: Path, insert: str = APPEND) -> float:
    """The least that group commit can be: queue, thread, executemany, COMMIT.

    The rows are ready: no batches, no encoding, no chain, no locks, nothing loaded or checked. They are our own rows
    into our own table, or (ONE_COLUMN) only their bodies into a table of one column.
    """
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    for statement in MIGRATIONS[0]:
        connection.execute(fill(statement, {"id": "INTEGER", "blob": "BLOB", "real": "REAL"}))
    connection.execute("CREATE TABLE one_column (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
    loop = asyncio.get_running_loop()
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()

    thread = threading.Thread(target=_write_groups, args=(connection, insert, waiting, loop))
    thread.start()
    chain = Chain(0, 0, 0, "0" * 64)
    rows = [chain.extend(record(n), n + 1) for n in range(CALLERS * APPENDS_EACH)]
    ready: Iterator[tuple[Any, ...]] = iter(rows if insert is APPEND else [(row[-1],) for row in rows])

    async def caller() -> None:
        for _ in range(APPENDS_EACH):
            future: asyncio.Future[None] = loop.create_future()
            waiting.put((next(ready), future))
            await future

    started = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    took = time.perf_counter() - started
    waiting.put(None)
    thread.join()
    connection.close()
    return took


async def appends() -> dict[str, float]:
    """Rows a second, ours and bare, medians over interleaved rounds."""
    found: dict[str, list[float]] = {"ours": [], "bare": [], "one_column": []}
    total = CALLERS * APPENDS_EACH
    works: dict[str, Callable[[Path], Awaitable[float]]] = {
        "bare": _bare_appends,
        "one_column": partial(_bare_appends, insert=ONE_COLUMN),
        "ours": _our_appends,
    }
    for _ in range(ROUNDS):
        for name, work in works.items():
            with tempfile.TemporaryDirectory(prefix="interlock-bench-") as folder:
                found[name].append(total / await work(Path(folder)))
    return {name: median(values) for name, values in found.items()}


async def _fill(url: str, count: int) -> None:
    store = open_store(url, witness=Witness(None))
    for start in range(0, count, 2000):
        await store.commit(Batch(0, tuple(Append(record(n)) for n in range(start, min(count, start + 2000)))))
    await store.close()


async def _verify(url: str) -> dict[str, float]:
    store = open_store(url, witness=Witness(None))
    sizes: list[float] = []

    def note(count: int) -> None:
        sizes.append(_resident_mib())

    started = time.perf_counter()
    report = await verify(store, progress=note)
    took = time.perf_counter() - started
    await store.close()
    assert report.intact
    return {"records": report.records, "seconds": took, "early_mib": sizes[0], "late_mib": max(sizes)}


def _resident_mib() -> float:
    """Resident memory now, where the system tells; its peak where it tells only that."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def verification() -> dict[str, float]:
    """Fill a ledger with a million records here, verify it in a process of its own (for its memory)."""
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as folder:
        url = f"sqlite:///{Path(folder) / 'million.db'}"
        asyncio.run(_fill(url, RECORDS))
        done = subprocess.run([sys.executable, __file__, url], capture_output=True, text=True, check=True)
        found: dict[str, float] = json.loads(done.stdout)
        return found


def model_sdks() -> list[str]:
    """Model SDKs that `from interlock import Runtime, tool` loads; must be none."""
    code = "import sys; from interlock import Runtime, tool; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    # google is a namespace that other packages share: its SDKs are named whole.
    sdks = {"openai", "anthropic", "google.genai", "google.adk", "pydantic_ai", "langchain_core", "litellm", "mcp"}
    return sorted(sdks & set(loaded))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_verify(sys.argv[1]))))
