"""A server whose one tool waits for a file, for tests: it writes down when it has begun, and how it came to an end."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

DONE = Path(sys.argv[1])
server = MCPServer("waiting")


def _note(what: str) -> None:
    with DONE.open("a", encoding="utf-8") as file:
        file.write(f"{what}\n")


@server.tool()
async def wait(file: str) -> str:
    """Wait until a file is there."""
    _note("begun")
    try:
        while not Path(file).exists():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        _note("cancelled")
        raise
    _note("ended")
    return "ended"


if __name__ == "__main__":
    server.run("stdio")
