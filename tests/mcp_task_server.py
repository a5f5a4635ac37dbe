"""A server whose tools are run as tasks (2025-11-25), for tests: raw JSON-RPC over standard streams."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

DONE = Path(sys.argv[1])
PENDING: dict[str, tuple[str, threading.Event]] = {}
WRITING = threading.Lock()
WHEN = "2026-11-18T00:00:00Z"


def _send(message: dict[str, Any]) -> None:
    with WRITING:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def _note(what: str) -> None:
    with DONE.open("a", encoding="utf-8") as file:
        file.write(f"{what}\n")


def _task(number: str, status: str) -> dict[str, Any]:
    return {"taskId": number, "status": status, "createdAt": WHEN, "lastUpdatedAt": WHEN, "ttl": None}


def _tool(name: str, support: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
    return {"name": name, "description": "Pay.", "inputSchema": schema, "execution": {"taskSupport": support}}


def _say_begun(number: Any, task: str) -> None:
    to, may = PENDING[task]
    if to == "late":
        may.wait(1.5)  # longer than the call may last
    _send({"id": number, "result": {"task": _task(task, "working")}})


def _result(number: Any, task: str) -> None:
    to, may = PENDING[task]
    if to in ("lost", "refused"):
        _note(f"paid {to}")
        return _send({"id": number, "error": {"code": -32602, "message": "Failed to retrieve task: Task not found"}})
    if to not in ("never", "late"):
        may.wait(0.1)
        _note(f"paid {to}")
        answer = {"content": [{"type": "text", "text": f"paid {to}"}], "isError": to == "broke"}
        _send({"id": number, "result": answer})
    return None


def _handle(message: dict[str, Any]) -> None:
    number, method, params = message.get("id"), message.get("method"), message.get("params", {})
    if method == "initialize":
        can: dict[str, Any] = {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
        said = {"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": {"name": "t", "version": "1"}}
        _send({"id": number, "result": said})
    elif method == "tools/list":
        _send({"id": number, "result": {"tools": [_tool("pay", "required"), _tool("tip", "optional")]}})
    elif method == "tools/call" and params["name"] == "pay" and "task" not in params:
        _send({"id": number, "error": {"code": -32601, "message": "pay is run as a task alone"}})
    elif method == "tools/call" and params["arguments"]["to"] == "nobody":
        _send({"id": number, "error": {"code": -32602, "message": "there is no such account"}})
    elif method == "tools/call" and "task" in params:
        task = f"t{len(PENDING)}"
        PENDING[task] = (params["arguments"]["to"], threading.Event())
        _note("begun")
        threading.Thread(target=_say_begun, args=(number, task), daemon=True).start()
    elif method == "tools/call":
        _send({"id": number, "result": {"content": [{"type": "text", "text": "at once"}]}})
    else:
        _handle_task(number, method, params)


def _handle_task(number: Any, method: Any, params: dict[str, Any]) -> None:
    if method == "tasks/result":
        threading.Thread(target=_result, args=(number, params["taskId"]), daemon=True).start()
    elif method == "tasks/get" and PENDING[params["taskId"]][0] == "refused":
        _send({"id": number, "result": _task(params["taskId"], "failed")})
    elif method == "tasks/cancel":
        _note(f"cancelled {params['taskId']}")
        _send({"id": number, "result": _task(params["taskId"], "cancelled")})
    elif number is not None:
        _send({"id": number, "error": {"code": -32601, "message": "no such method"}})


for line in sys.stdin:
    _handle(json.loads(line))
