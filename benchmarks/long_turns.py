"""The 10,000th call of a turn against the 100th: what a turn has recorded is folded once and carried on."""

from __future__ import annotations

import asyncio
import gc
import itertools
import tempfile
import time
from statistics import median

from interlock import Runtime, tool
from interlock.policy import parse_policy

LONG = 10_000
SHORT = 100
CALLS = 50
ROUNDS = 15
# Every call has to know its turn: a rule asks for it, and the same call again would be answered from the record.
POLICY = """version = 1
[[rule]]
id = "open"
tools = ["*"]
decision = "allow"
[[rule]]
id = "enough"
tools = ["damage"]
decision = "deny"
when = "turn.calls > 100000 || turn.tainted"
"""


@tool(effect="read")
async def damage(trail_id: str) -> dict[str, str]:
    """Damage of a trail."""
    return {"trail_id": trail_id, "damage_class": "3"}


class LongTurns:
    """Calls in turns, no two of them the same."""

    def __init__(self, store: str) -> None:
        self.runtime = Runtime.open(store, policy=parse_policy(POLICY), tools=[damage])
        self._number = itertools.count().__next__

    async def call(self, turn: str, count: int) -> float:
        """So many calls; CPU microseconds of one."""
        started = time.process_time()
        for _ in range(count):
            outcome = await self.runtime.call("damage", {"trail_id": f"trail-{self._number()}"}, actor="a", turn=turn)
            assert outcome.ok, outcome
        return (time.process_time() - started) / count * 1e6


async def _compare(store: str) -> dict[str, float]:
    turns = LongTurns(store)
    await turns.call("long", LONG - ROUNDS * CALLS // 2)
    found: dict[str, list[float]] = {"long": [], "short": []}
    for number in range(ROUNDS):
        await turns.call(f"short {number}", SHORT - CALLS // 2)
        gc.collect()
        found["short"].append(await turns.call(f"short {number}", CALLS))
        gc.collect()
        found["long"].append(await turns.call("long", CALLS))
    await turns.runtime.close()
    return {name: median(values) for name, values in found.items()}


def measure() -> dict[str, dict[str, float]]:
    """CPU microseconds of the two, on the memory store and on SQLite, in one run each."""
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as folder:
        stores = {"memory": "memory://", "SQLite": f"sqlite:///{folder}/turns.db"}
        return {name: asyncio.run(_compare(store)) for name, store in stores.items()}


if __name__ == "__main__":
    for name, took in measure().items():
        print(f"{name}: {took['long']:.1f} µs, {took['short']:.1f} µs, {took['long'] / took['short']:.2f}")
