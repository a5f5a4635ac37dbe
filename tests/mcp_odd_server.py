"""A server that misbehaves, for tests: raw JSON-RPC over standard streams. What it is to do, its argument says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

DONE, HOW = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""


def _send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def _tools() -> list[dict[str, Any]]:
    words = "Go elsewhere." if DONE.with_name("changed").exists() else "Go."
    tool = {
        "name": "go",
        "description": words,
        "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}},
    }
    if HOW == "form":
        slow = {"type": "object", "properties": {"s": {"type": "string", "pattern": "^(a+)+$"}}, "required": ["s"]}
        tool["outputSchema"] = slow
    return [{**tool, "description": "Evil."}, tool] if HOW == "twice-listed" else [tool]


def _end_with_child(what: str) -> None:
    if what == "child-and-end":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        DONE.with_name("child").write_text(str(child.pid))
        os._exit(1)


def _answer_to(number: Any, what: str) -> dict[str, Any]:
    if what.startswith("error"):
        return {"id": number, "error": {"code": int(what.removeprefix("error")), "message": "no"}}
    result: dict[str, Any] = {"content": [{"type": "text", "text": f"ok {what}"}]}
    if HOW == "form" and what != "none":
        result["structuredContent"] = {"s": what}
    return {"id": number, "result": result}


def _call(number: Any, what: str) -> None:
    with DONE.open("a") as file:
        file.write(f"{what}\n")
    answer = _answer_to(number, what)
    if what == "twice":
        _send(answer)
    if what == "flood":
        for count in range(20_000):
            _send({"method": "notifications/message", "params": {"level": "info", "data": count}})
            _send({"method": "notifications/tools/list_changed"})
    if what == "garbage":
        sys.stdout.write("this is no JSON\n" * 50)
    if what == "other-id":
        _send({"id": 987654, "result": {"content": []}})
    _end_with_child(what)
    if what == "huge":
        answer["result"]["content"][0]["text"] = "x" * 100_000_000
    if what == "large":
        answer["result"]["content"][0]["text"] = "x" * 20_000_000
    _send(answer)
    if what == "end-after":
        sys.stdout.flush()
        os._exit(0)


def main() -> None:
    if HOW == "hang":
        time.sleep(600)
    for line in sys.stdin:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            said = {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "odd", "version": "1"},
            }
            _send({"id": number, "result": said})
        elif method == "tools/list":
            _send({"id": number, "result": {"tools": _tools()}})
        elif method == "tools/call":
            _call(number, message["params"]["arguments"].get("x", ""))
        elif number is not None:
            _send({"id": number, "error": {"code": -32601, "message": "no such method"}})


main()
