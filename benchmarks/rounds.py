"""Medians over interleaved rounds: what is compared is measured in turn, in one process, on the same noise."""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable
from statistics import median

Work = Callable[[int], Awaitable[None]]


async def interleaved(works: dict[str, Work], calls: int, rounds: int) -> dict[str, float]:
    """Median CPU microseconds per call of each piece of work."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        await work(max(50, calls // 10))
    gc.collect()
    gc.freeze()  # the modules of six libraries are not for the collector to walk while one of them is measured
    for _ in range(rounds):
        for name, work in works.items():
            gc.collect()
            started = time.process_time()
            await work(calls)
            found[name].append((time.process_time() - started) / calls * 1e6)
    return {name: median(values) for name, values in found.items()}
