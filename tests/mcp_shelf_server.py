"""A server whose things have two names, a shop and a number: `mcp_shelf_server.py FILE` keeps prices in a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

FILE = Path(sys.argv[1])
server = MCPServer("shelf")


def _prices() -> dict[str, int]:
    found: dict[str, int] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return found


@server.tool()
def get_price(shop: str, number: int) -> int:
    """What a thing costs."""
    return _prices()[f"{shop}#{number:d}"]


@server.tool()
def set_price(shop: str, number: int, price: int) -> int:
    """Say what a thing costs."""
    FILE.write_text(json.dumps({**_prices(), f"{shop}#{number:d}": price}))
    return price


if __name__ == "__main__":
    server.run("stdio")
