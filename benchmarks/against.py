"""`make bench-against REV=…`: this tree beside an earlier one of its own, in alternating processes on one machine.

Ratios to peers move with the machine: a tree is slower than the one before it only if it is so on the same machine.
Each tree is measured by its own benchmarks, in processes of its own.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

ROUNDS = 9
READS = 3000
WRITES = 300
HERE = Path(__file__).parent.parent
ROWS = {
    "read": "governed read, CPU µs",
    "read_vs_peer": "the same vs Pydantic AI `ToolManager.handle_call`",
    "write": "governed write (SQLite), wall µs",
    "write_cpu": "the same, CPU µs",
    "append": "ledger append (SQLite, 64 callers), µs",
}


async def measure() -> dict[str, float]:
    """The rows of the tree whose modules are on the path."""
    import calls
    import durable
    import effects
    from rounds import interleaved

    found = await interleaved({"ours": calls.interlock_work(), "peer": await calls.pydantic_ai_work()}, READS, 5)
    rows = {"read": found["ours"], "read_vs_peer": found["ours"] / found["peer"]}
    with tempfile.TemporaryDirectory() as folder:
        runtime = effects.governed(folder)
        put: Any = effects._write
        for n in range(50):
            await put(runtime, n)
        took: list[float] = []
        cpu = time.process_time()
        for n in range(50, 50 + WRITES):
            started = time.perf_counter()
            await put(runtime, n)
            took.append(time.perf_counter() - started)
        rows |= {"write": median(took) * 1e6, "write_cpu": (time.process_time() - cpu) / WRITES * 1e6}
        await runtime.close()
        appends: Any = durable._our_appends
        rows["append"] = await appends(Path(folder)) / (durable.CALLERS * durable.APPENDS_EACH) * 1e6
    return rows


def _run(tree: Path) -> dict[str, float]:
    path = os.pathsep.join(map(str, (tree / "src", tree / "benchmarks")))
    command = [sys.executable, "-P", __file__, "--measure"]  # not the modules that lie beside this file
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    rows: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return rows


def compare(revision: str) -> None:
    """Print both trees beside each other."""
    packed = subprocess.run(
        ["git", "archive", revision, "src", "benchmarks"], cwd=HERE, capture_output=True, check=True
    )
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        found: dict[Path, list[dict[str, float]]] = {Path(folder): [], HERE: []}
        for done in range(ROUNDS):
            for tree, rows in found.items():
                rows.append(_run(tree))
            print(f"round {done + 1} of {ROUNDS}", file=sys.stderr)
        before, now = found.values()
    print(f"| measured | {revision} | this tree | ratio |\n|---|---|---|---|")
    for name, meaning in ROWS.items():
        old, new = (median(row[name] for row in rows) for rows in (before, now))
        print(f"| {meaning} | {old:,.2f} | {new:,.2f} | {new / old:.2f} |")


if __name__ == "__main__":
    if sys.argv[1:] == ["--measure"]:
        print(json.dumps(asyncio.run(measure())))
    else:
        compare(sys.argv[1])
