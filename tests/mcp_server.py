"""A server that speaks MCP over its standard streams, for tests: it writes down what it did in a file."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from mcp import MCPError
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import INVALID_PARAMS, ToolAnnotations

DONE = Path(sys.argv[1])
server = MCPServer("counted")


def _note(what: str) -> None:
    with DONE.open("a", encoding="utf-8") as file:
        file.write(f"{what}\n")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(key: str) -> dict[str, str]:
    """Look something up."""
    return {"key": key, "seen": "yes"}


@server.tool()
def pay(to: str, amount: float) -> str:
    """Pay somebody."""
    _note(f"paid {to} {amount}")
    return "paid"


@server.tool()
def pay_and_die(to: str) -> str:
    """Pay somebody, and end before that is said."""
    _note(f"paid {to}")
    os._exit(1)


@server.tool()
async def hang(to: str) -> str:
    """Pay somebody, and never say so."""
    _note(f"paid {to}")
    await asyncio.Event().wait()
    return "never"


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ToolError(why)


@server.tool()
def refuse(why: str) -> str:
    """Refuse."""
    raise MCPError(INVALID_PARAMS, why)


if __name__ == "__main__":
    server.run("stdio")
