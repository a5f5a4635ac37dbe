"""A server in raw JSON-RPC, for tests of what goes through: `mcp_raw_server.py FOLDER NAME` notes all that it is told.

It answers what it is asked for, whatever it is: nothing but its lists says what is its own.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

FOLDER, NAME = Path(sys.argv[1]), sys.argv[2]
HEARD = FOLDER / f"{NAME}.heard"
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
TOOL = {
    "name": "go",
    "title": "Go",
    "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}, "again": {"type": "string"}}},
    "icons": [{"src": "https://example.invalid/go.png"}],
    "_meta": {"example/ui": {"resourceUri": "ui://go"}},
}
ASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "form": ("elicitation/create", {"message": "m", "requestedSchema": EMPTY}),
    "url": ("elicitation/create", {"mode": "url", "message": "m", "url": "https://a.invalid", "elicitationId": "e"}),
    "tools": (
        "sampling/createMessage",
        {"messages": [], "maxTokens": 5, "tools": [{"name": "t", "inputSchema": EMPTY}]},
    ),
}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}


def _send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def _read() -> dict[str, Any] | None:
    line = sys.stdin.readline()
    if not line:
        return None
    with HEARD.open("a") as file:
        file.write(line)
    found: dict[str, Any] = json.loads(line)
    return found


def _prompts() -> list[dict[str, Any]]:
    said = FOLDER / "described"
    words = json.loads(said.read_text()) if said.exists() else {}
    return [{"name": "p", "title": "P", "_meta": {"m": 1}, **words}]


def _resources() -> list[dict[str, Any]]:
    said = FOLDER / "described"
    words = json.loads(said.read_text()) if said.exists() else {}
    return [{"uri": f"{NAME}://listed", "name": "listed", "title": "L", **words}]


def _call(what: str) -> dict[str, Any]:
    if what == "die":
        os._exit(1)
    if what in ASKS:
        method, params = ASKS[what]
        _send({"id": f"asks-{what}", "method": method, "params": params})
        while (message := _read()) is not None:
            if message.get("id") == f"asks-{what}":
                return {"content": [{"type": "text", "text": json.dumps(message.get("result", message.get("error")))}]}
    return {"content": [{"type": "text", "text": f"{NAME} {what}"}]}


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        info = {"name": NAME, "version": "1"}
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": CAPABILITIES,
            "serverInfo": info,
            "instructions": "Use me well.",
        }
    if method == "tools/call":
        return _call(params.get("arguments", {}).get("x", ""))
    text = {"type": "text", "text": "Go."}
    answers: dict[str, dict[str, Any]] = {
        "tools/list": {"tools": [TOOL]},
        "resources/list": {"resources": _resources()},
        "resources/templates/list": {"resourceTemplates": [{"uriTemplate": f"{NAME}://{{item}}", "name": "t"}]},
        "resources/read": {"contents": [{"uri": params.get("uri"), "text": f"from {NAME}"}], "_meta": {"r": 1}},
        "prompts/list": {"prompts": _prompts()},
        "prompts/get": {"messages": [{"role": "user", "content": text}], "_meta": {"r": 1}},
        "completion/complete": {"completion": {"values": [NAME]}},
    }
    return answers.get(method, {})


def main() -> None:
    while (message := _read()) is not None:
        number, method = message.get("id"), message.get("method")
        if method == "server/discover":
            _send({"id": number, "error": {"code": -32601, "message": "no such method"}})
        elif number is not None and method is not None:
            _send({"id": number, "result": _answer(method, message.get("params") or {})})


main()
