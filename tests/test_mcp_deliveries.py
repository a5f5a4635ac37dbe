"""A session of two hundred calls, each delivered twice, with the gateway killed in between: as by single delivery."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters

from interlock.cli.main import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
SERVER = str(Path(__file__).with_name("mcp_files_server.py"))
CALLS, KILLS = 200, (37, 90, 141, 178)
GATEWAY = """
import os, sys
from pathlib import Path
from interlock.cli.main import main
Path("gateway.pid").write_text(str(os.getpid()))
sys.exit(main(["mcp", "serve"]))
"""


def _plan(root: Path) -> list[tuple[str, dict[str, str]]]:
    """Calls that can each be made at that point, on files that are there and on new ones."""
    random, names = Random(7), [f"f{number}.txt" for number in range(8)]
    there, calls, made = set(names[:4]), [], 0
    for number in range(CALLS):
        kind = random.choice(("write", "write", "edit", "move")) if there else "write"
        if kind == "write":
            name = random.choice([*names, *sorted(there)])
            calls.append(("files_write_file", {"path": str(root / name), "content": f"written {number}\n"}))
            there.add(name)
        elif kind == "edit":
            name = random.choice(sorted(there))
            given = {"path": str(root / name), "old": "written", "new": f"edited {number}, written"}
            calls.append(("files_edit_file", given))
        else:
            name, made = random.choice(sorted(there)), made + 1
            given = {"source": str(root / name), "destination": str(root / f"moved-{made}.txt")}
            calls.append(("files_move_file", given))
            there = {*there - {name}, f"moved-{made}.txt"}
    return calls


def _expected(calls: list[tuple[str, dict[str, str]]], state: dict[str, str]) -> dict[str, str]:
    for tool, given in calls:
        if tool == "files_write_file":
            state[given["path"]] = given["content"]
        elif tool == "files_edit_file":
            state[given["path"]] = state[given["path"]].replace(given["old"], given["new"])
        else:
            state[given["destination"]] = state.pop(given["source"])
    return state


def _state(root: Path) -> dict[str, str]:
    return {str(file): file.read_bytes().decode() for file in root.iterdir()}


@asynccontextmanager
async def _gateway(folder: Path) -> AsyncIterator[Client]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    started = StdioServerParameters(command=sys.executable, args=["-c", GATEWAY], cwd=str(folder), env=env)
    async with Client(started, cache=None) as client:
        yield client


async def test_two_hundred_calls_that_come_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    for number in range(4):
        (root / f"f{number}.txt").write_text(f"written before {number}\n")
    before, calls = _state(root), _plan(root)
    monkeypatch.chdir(tmp_path)
    add = ["mcp", "add", "files", "--profile", "filesystem", "--", sys.executable, SERVER, "docs"]
    assert await asyncio.to_thread(main, add) == 0
    at = 0
    with (tmp_path / "interlock.toml").open() as file:
        settings = file.read()
    (tmp_path / "interlock.toml").write_text(f"lease_s = 1.0\n{settings}")
    kills = [next(n for n in range(kill, CALLS) if calls[n][0] == "files_write_file") for kill in KILLS]
    for until in [*kills, CALLS]:
        with suppress(MCPError, OSError, BaseExceptionGroup):
            async with _gateway(tmp_path) as client:
                await _deliver(client, calls[at:until], at)
                if until < CALLS:
                    await _kill_meanwhile(client, calls[until], until, tmp_path)
        at = until
    assert _state(root) == _expected(calls, dict(before))
    assert await asyncio.to_thread(main, ["undo", "--run", "session", "--yes"]) == 0
    assert _state(root) == before
    assert await asyncio.to_thread(main, ["audit", "verify"]) == 4  # intact, and no key was pinned


async def _deliver(client: Client, calls: list[Any], first: int) -> None:
    """Deliver calls twice each; of what a dead gateway left, as often as it takes until it is settled."""
    for number, (tool, given) in enumerate(calls, first):
        for _delivery in range(2):
            found = await client.call_tool(tool, given, meta=_meta(number))
            for _again in range(100):
                if not found.is_error or number != first:
                    break
                await asyncio.sleep(0.1)
                found = await client.call_tool(tool, given, meta=_meta(number))
            if found.is_error:
                pytest.fail(json.dumps([number, tool, str(found.content)]))


async def _kill_meanwhile(client: Client, call: Any, number: int, folder: Path) -> None:
    """Kill the gateway when a call has landed, and before anybody is told; the next one is brought that call again."""
    tool, given = call
    file = Path(given["path"])
    under_way = asyncio.create_task(client.call_tool(tool, given, meta=_meta(number)))
    while not under_way.done() and (not file.exists() or file.read_text() != given["content"]):  # noqa: ASYNC110
        await asyncio.sleep(0)
    os.kill(int((folder / "gateway.pid").read_text()), signal.SIGKILL)
    await under_way


def _meta(number: int) -> Any:
    return {"interlock/idempotency-key": f"call-{number}", "interlock/run": "session"}
