"""A server that answers a look too late, with an error in the words of the SDK, and dies when it has paid: for tests."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

DONE = Path(sys.argv[1])


def _send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def _tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": name, "inputSchema": {"type": "object", "properties": {}}}


def _handle(message: dict[str, Any]) -> None:
    number, method = message.get("id"), message.get("method")
    if method == "initialize":
        said = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        _send({"id": number, "result": {**said, "serverInfo": {"name": "t", "version": "1"}}})
    elif method == "tools/list":
        _send({"id": number, "result": {"tools": [_tool("look"), _tool("pay"), _tool("ready")]}})
    elif method == "tools/call" and message["params"]["name"] == "look":
        time.sleep(1.5)
        _send({"id": number, "error": {"code": -32000, "message": "Connection closed"}})
    elif method == "tools/call" and message["params"]["name"] == "pay":
        with DONE.open("a", encoding="utf-8") as file:
            file.write("paid\n")
        os._exit(1)
    elif method == "tools/call":
        _send({"id": number, "result": {"content": [{"type": "text", "text": "yes"}]}})
    elif number is not None:
        _send({"id": number, "error": {"code": -32601, "message": "no such method"}})


for line in sys.stdin:
    _handle(json.loads(line))
