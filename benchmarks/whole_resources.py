"""What a change of a whole resource costs in the ledger: 10,000 rows without a key, of which each call changes one."""

from __future__ import annotations

import asyncio
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from interlock import Runtime, Tool, tool
from interlock.values import Json

ROWS, WRITES = 10_000, 6
POLICY: dict[str, Any] = {
    "version": 1,
    "mode": "apply",
    "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}],
}


class Table:
    """Rows that a tool changes without saying which."""

    name = "table"

    def __init__(self) -> None:
        self._rows: dict[str, Json] = {
            f"r{n}": {"n": n, "note": "What stands here is of some length."} for n in range(ROWS)
        }

    async def snapshot(self) -> dict[str, Json]:
        return {key: dict(row) for key, row in self._rows.items()}

    async def read_state(self, key: str) -> Json:
        return self._rows.get(key)

    async def restore(self, key: str, state: Json) -> None:
        self._rows[key] = state

    def tool(self) -> Tool:
        """One that changes a row."""

        @tool(effect="write", resource=self)
        async def put(row: str, n: int) -> bool:
            """Put a figure into a row."""
            self._rows[row] = {"n": n}
            return True

        return put


async def _play() -> list[int]:
    """By how many bytes the ledger's payloads grow with each write."""
    sizes = [0]
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as folder:
        store = f"sqlite:///{Path(folder) / 'l.db'}"
        async with Runtime.open(store, policy=POLICY, tools=[Table().tool()]) as runtime:
            for number in range(WRITES):
                outcome = await runtime.call("put", {"row": f"r{number}", "n": -1}, actor="a", call_id=f"c{number}")
                assert outcome.ok, outcome
                kept = [await runtime.store.payload(one) or b"" async for one in runtime.store.payload_ids()]
                sizes.append(sum(map(len, kept)))
    return [after - before for before, after in pairwise(sizes)]


def measure() -> dict[str, float]:
    """Bytes of the first write, which keeps the whole, and of the largest of those after it."""
    first, *later = asyncio.run(_play())
    return {"first": first, "later": max(later)}


if __name__ == "__main__":
    print(measure())
