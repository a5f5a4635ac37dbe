"""A server that ends is started again, ever more slowly; one that nobody waits for any more leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from interlock.adapters.mcp import Upstream, mcp_tools

ODD = str(Path(__file__).with_name("mcp_odd_server.py"))
PAUSES = (0.0101, 0.0102, 0.0103)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Those that were made before a server was started again."""
    made: list[float] = []
    sleep = asyncio.sleep

    async def note(delay: float, *rest: object) -> None:
        if delay in PAUSES:
            made.append(delay)
        await sleep(delay)

    monkeypatch.setattr("interlock.adapters.mcp.upstream._PAUSES_S", PAUSES)
    monkeypatch.setattr(asyncio, "sleep", note)
    return made


async def _until(made: list[float], count: int) -> None:
    while len(made) < count:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_pauses_grow_while_a_server_ends_at_once(tmp_path: Path, pauses: list[float]) -> None:
    ends = tmp_path / "ends"
    script = f"import os, runpy, sys; os.path.exists({str(ends)!r}) and sys.exit(1); runpy.run_path({ODD!r})"
    command = [sys.executable, "-c", script, str(tmp_path / "done")]
    async with Upstream("odd", command=command) as upstream:
        await upstream.list_tools()
        ends.touch()
        await upstream.call_tool("go", {"x": "end-after"}, changes=True, timeout_s=30.0)
        await _until(pauses, 5)
    assert pauses[:5] == [0.0101, 0.0102, 0.0103, 0.0103, 0.0103]


async def test_pauses_are_short_again_once_a_server_has_stayed(
    tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.adapters.mcp.upstream._STEADY_S", 0.0)
    async with Upstream("odd", command=[sys.executable, ODD, str(tmp_path / "done")]) as upstream:
        for count in (1, 2, 3):
            await upstream.list_tools()
            await upstream.call_tool("go", {"x": "end-after"}, changes=True, timeout_s=30.0)
            await _until(pauses, count)
    assert pauses == [0.0101] * 3


async def test_nothing_is_left_of_a_server_whose_start_nobody_waits_for(tmp_path: Path) -> None:
    started = tmp_path / "started"
    script = f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    task = asyncio.create_task(mcp_tools("slow", command=[sys.executable, "-c", script]))
    while not started.exists() or not started.read_text():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)
