"""Many processes, the same changes: each is made once, nothing is lost, and no two hold a key at the same time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interlock.resources import Documents
from tests.crowding import crowd
from tests.forked import FORKED

pytestmark = pytest.mark.slow

PROCESSES, KEYS = 8, 100


@pytest.mark.timeout(400)
def test_eight_processes_deliver_the_same_changes_and_each_lands_once(durable_url: str, tmp_path: Path) -> None:
    documents = durable_url if durable_url.startswith("postgres") else f"sqlite:///{tmp_path / 'documents.db'}"
    processes = [FORKED.Process(target=crowd, args=(durable_url, documents, KEYS, seed)) for seed in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    states = asyncio.run(_states(documents))
    assert len(states) == KEYS
    for state in states.values():
        assert (state["n"], sorted(state["deliveries"])) == (2, [1, 2])
        assert state["tokens"] == sorted(set(state["tokens"]))  # each holder came after the one before


async def _states(url: str) -> dict[str, dict[str, Any]]:
    shelf = Documents(url, "shelf")
    found = await shelf.snapshot()
    await shelf.close()
    return found
