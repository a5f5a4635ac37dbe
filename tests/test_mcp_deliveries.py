"""A session of two hundred calls, each delivered twice, with the gateway killed in between: as by single delivery.

With a server of the well-known one's tools, and with the real ones, where `make conformance` has installed them.
"""

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
from mcp_types import CallToolResult

from interlock.cli.main import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
SERVER = str(Path(__file__).with_name("mcp_files_server.py"))
LEASE_S = 4.0
CALLS, KILLS = 200, (37, 90, 141, 178)
NPM = ROOT / "build" / "conformance"
GATEWAY = """
import os, sys
from pathlib import Path
from interlock.cli.main import main
Path("gateway.pid").write_text(str(os.getpid()))
sys.exit(main(["mcp", "serve"]))
"""


def _npm(name: str) -> list[str]:
    """The command of a real server; else the test is skipped."""
    node, server = NPM / "node/node_modules/.bin/node", NPM / name / f"node_modules/@modelcontextprotocol/{name}"
    if not (node.exists() and server.exists()):
        pytest.skip(f"{name} is not here: make conformance installs it")
    return [str(node), str(server / "dist" / "index.js")]


def _plan(root: Path, real: bool) -> list[tuple[str, dict[str, Any]]]:
    """Calls that can each be made at that point, on files that are there and on new ones."""
    random, names = Random(7), [f"f{number}.txt" for number in range(8)]
    there, made = set(names[:4]), 0
    calls: list[tuple[str, dict[str, Any]]] = []
    for number in range(CALLS):
        kind = random.choice(("write", "write", "edit", "move")) if there else "write"
        if kind == "write":
            name = random.choice([*names, *sorted(there)])
            calls.append(("files_write_file", {"path": str(root / name), "content": f"written {number}\n"}))
            there.add(name)
        elif kind == "edit":
            name = random.choice(sorted(there))
            edit = {"oldText": "written", "newText": f"edited {number}, written"}
            given = {"edits": [edit]} if real else {"old": edit["oldText"], "new": edit["newText"]}
            calls.append(("files_edit_file", {"path": str(root / name), **given}))
        else:
            name, made = random.choice(sorted(there)), made + 1
            given = {"source": str(root / name), "destination": str(root / f"moved-{made}.txt")}
            calls.append(("files_move_file", given))
            there = {*there - {name}, f"moved-{made}.txt"}
    return calls


def _expected(calls: list[tuple[str, dict[str, Any]]], state: dict[str, str]) -> dict[str, str]:
    for tool, given in calls:
        if tool == "files_write_file":
            state[given["path"]] = given["content"]
        elif tool == "files_edit_file":
            edit = given["edits"][0] if "edits" in given else {"oldText": given["old"], "newText": given["new"]}
            state[given["path"]] = state[given["path"]].replace(edit["oldText"], edit["newText"], 1)
        else:
            state[given["destination"]] = state.pop(given["source"])
    return state


def _state(root: Path) -> dict[str, str]:
    return {str(file): file.read_bytes().decode() for file in root.iterdir()}


@asynccontextmanager
async def _gateway(folder: Path, *, dies: bool = False) -> AsyncIterator[Client]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    started = StdioServerParameters(command=sys.executable, args=["-c", GATEWAY], cwd=str(folder), env=env)
    went_well = False
    try:
        async with Client(started, cache=None) as client:
            yield client
            went_well = True
    except (MCPError, OSError, BaseExceptionGroup):
        if not (dies and went_well):
            raise


@pytest.mark.parametrize("real", [False, True], ids=["python", "npm"])
async def test_two_hundred_calls_that_come_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real: bool) -> None:
    command = _npm("server-filesystem") if real else [sys.executable, SERVER]
    root = tmp_path / "docs"
    root.mkdir()
    for number in range(4):
        (root / f"f{number}.txt").write_text(f"written before {number}\n")
    before, calls = _state(root), _plan(root, real)
    monkeypatch.chdir(tmp_path)
    add = ["mcp", "add", "files", "--profile", "filesystem", "--", *command, "docs"]
    assert await asyncio.to_thread(main, add) == 0
    at = 0
    with (tmp_path / "interlock.toml").open() as file:
        settings = file.read()
    (tmp_path / "interlock.toml").write_text(f"lease_s = {LEASE_S}\n{settings}")
    kills = [next(n for n in range(kill, CALLS) if calls[n][0] == "files_write_file") for kill in KILLS]
    for until in [*kills, CALLS]:
        async with _gateway(tmp_path, dies=until < CALLS) as client:
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
            for _again in range(300):
                if _was_done(found) or number != first:
                    break
                await asyncio.sleep(0.1)
                found = await client.call_tool(tool, given, meta=_meta(number))
            if not _was_done(found):
                pytest.fail(json.dumps([number, tool, str(found.content)]))


def _was_done(found: CallToolResult) -> bool:
    """The answer of a call that a dead gateway had made is lost: where the tool promises one, that is said instead."""
    return not found.is_error or "ok: this was done, and what the server answered to it is lost" in str(found.content)


async def _kill_meanwhile(client: Client, call: Any, number: int, folder: Path) -> None:
    """Kill the gateway when a call has landed, and before anybody is told; the next one is brought that call again."""
    tool, given = call
    file = Path(given["path"])
    under_way = asyncio.create_task(client.call_tool(tool, given, meta=_meta(number)))
    while not under_way.done() and (not file.exists() or file.read_text() != given["content"]):  # noqa: ASYNC110
        await asyncio.sleep(0)
    _kill(folder)
    with suppress(MCPError):
        await under_way


def _kill(folder: Path) -> None:
    os.kill(int((folder / "gateway.pid").read_text()), signal.SIGKILL)


def _meta(number: int) -> Any:
    return {"interlock/idempotency-key": f"call-{number}", "interlock/run": "session"}


def _entity(number: int) -> dict[str, Any]:
    return {"name": f"E{number}", "entityType": "thing", "observations": [f"seen {number}"]}


def _graph_calls() -> list[tuple[str, dict[str, Any]]]:
    calls: list[tuple[str, dict[str, Any]]] = []
    for number in range(20):
        calls.append(("graph_create_entities", {"entities": [_entity(number)]}))
        told = {"entityName": f"E{number}", "contents": [f"again {number}"]}
        calls.append(("graph_add_observations", {"observations": [told]}))
        if number:
            link = {"from": f"E{number}", "to": f"E{number - 1}", "relationType": "follows"}
            calls.append(("graph_create_relations", {"relations": [link]}))
        if number % 5 == 4:
            calls.append(("graph_delete_entities", {"entityNames": [f"E{number - 2}"]}))
    return calls


async def _graph(folder: Path) -> Any:
    async with _gateway(folder) as client:
        found = await client.call_tool("graph_read_graph", {})
        assert isinstance(found.structured_content, dict)
        return {what: sorted(found.structured_content[what], key=json.dumps) for what in ("entities", "relations")}


async def test_a_graph_of_the_memory_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORY_FILE_PATH", str(tmp_path / "graph.jsonl"))
    first = {"type": "entity", **_entity(100)}
    (tmp_path / "graph.jsonl").write_text(json.dumps(first) + "\n")
    add = ["mcp", "add", "graph", "--profile", "memory", "--env", "MEMORY_FILE_PATH", "--", *_npm("server-memory")]
    assert await asyncio.to_thread(main, add) == 0
    before, calls = await _graph(tmp_path), _graph_calls()
    for at in range(0, len(calls), 25):
        async with _gateway(tmp_path, dies=True) as client:
            await _deliver(client, calls[at : at + 25], at)
            _kill(tmp_path)
    there = [number for number in range(20) if number % 5 != 2]
    after = await _graph(tmp_path)
    assert {one["name"] for one in after["entities"]} == {"E100", *(f"E{number}" for number in there)}
    assert len(after["entities"]) == 1 + len(there)
    seen = {one["name"]: one["observations"] for one in after["entities"]}
    assert all(seen[f"E{number}"] == [f"seen {number}", f"again {number}"] for number in there)
    assert await asyncio.to_thread(main, ["undo", "--run", "session", "--yes"]) == 0
    assert await _graph(tmp_path) == before


async def test_calls_of_the_everything_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    add = ["mcp", "add", "every", "--", *_npm("server-everything")]
    assert await asyncio.to_thread(main, add) == 0
    (tmp_path / "policy.toml").write_text(
        'version = 1\nmode = "apply"\n[[rule]]\nid = "all"\ntools = ["*"]\ndecision = "allow"\n'
    )
    made: list[str] = []
    for at in (0, 25):
        async with _gateway(tmp_path, dies=True) as client:
            for number in range(at, at + 25):
                given = {"a": number, "b": 1}
                found = [await client.call_tool("every_get-sum", given, meta=_meta(number)) for _ in range(2)]
                assert [str(number + 1) in str(one.content) for one in found] == [True, True]
                made.append(str(found[0].content))
            picture = await client.call_tool("every_get-tiny-image", {}, meta=_meta(1_000 + at))
            assert "image" in {part.type for part in picture.content}
            _kill(tmp_path)
    assert len(made) == 50
