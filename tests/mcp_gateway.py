"""A gateway in front of servers of the tests, for as long as a test needs it."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from interlock import Runtime
from interlock.adapters.mcp import mcp_server
from interlock.adapters.mcp.pins import PinsFile
from interlock.adapters.mcp.servers import PINS, McpServers, make_upstream
from interlock.adapters.mcp.terms import ServerTerms

HERE = Path(__file__).parent
ALLOW = {"id": "all", "tools": ["*"], "decision": "allow"}
POLICY: dict[str, Any] = {"version": 1, "mode": "apply", "rule": [ALLOW]}


@asynccontextmanager
async def gateway_to(said: Mapping[str, ServerTerms], folder: Path, policy: Any = POLICY) -> AsyncIterator[Any]:
    """A server of the SDK in front of servers, with what they offer pinned as it is."""
    pins = PinsFile()
    for name, one in said.items():
        async with make_upstream(name, one, folder) as upstream:
            pins = pins.pin(name, await upstream.list_tools())
    pins.write(folder / PINS)
    servers = McpServers(said, folder)
    try:
        async with Runtime.open(f"sqlite:///{folder / 'ledger.db'}", policy=policy, tools=servers.tools) as runtime:
            yield mcp_server(runtime, servers=servers)
    finally:
        await servers.close()


def raw_gateway(folder: Path, *names: str, policy: Any = POLICY, **terms: Any) -> Any:
    """A gateway in front of raw servers of these names; `terms`: what else is said of each."""
    raw = str(HERE / "mcp_raw_server.py")
    said = {name: ServerTerms(command=(sys.executable, raw, str(folder), name), **terms) for name in names}
    return gateway_to(said, folder, policy)


def heard_by(folder: Path, name: str) -> list[dict[str, Any]]:
    """All that a raw server was told."""
    return [json.loads(line) for line in (folder / f"{name}.heard").read_text().splitlines()]
