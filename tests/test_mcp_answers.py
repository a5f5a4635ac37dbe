"""What counts as an answer of a server at an address: its own words alone, and never what the SDK makes of a broken one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock import Runtime, Status
from interlock.adapters.mcp import ToolTerms, mcp_tools
from tests.mcp_address import served_at

POLICY = {"version": 1, "mode": "apply", "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}]}
PAY = {"name": "pay", "inputSchema": {"type": "object", "properties": {}}}
EVENTS, JSON = "text/event-stream", "application/json"


def _error(number: Any, message: str, code: int = -32603) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}).encode()


def _odd_answer(how: str, number: Any) -> tuple[int, str, bytes]:
    """How a payment that was made is answered."""
    paid = json.dumps({"jsonrpc": "2.0", "id": number, "result": {"content": []}}).encode()
    if how.isdigit():
        return int(how), "text/html", b"<html>a proxy</html>"
    answers = {
        "an event that is cut": (200, EVENTS, b'data: {"jsonrpc": "2.0", "id": 1, "resu\n\n'),
        "an event that is no message": (200, EVENTS, b'data: {"ok": true}\n\n'),
        "an event of several messages": (200, EVENTS, b"data: [" + paid + b"]\n\n"),
        "a message that is cut": (200, JSON, b'{"jsonrpc"'),
        "an error of the server": (200, JSON, _error(number, "no money")),
        "an error in an event": (200, EVENTS, b"event: message\r\ndata: " + _error(number, "no money") + b"\r\n\r\n"),
        "an error in the words of the SDK": (200, JSON, _error(number, "Connection closed", -32000)),
        "an error with its status": (500, JSON, _error(number, "no money")),
        "an error about a session": (200, JSON, _error(number, "Session not found", -32000)),
    }
    return answers[how]


def _server(made: list[str], how: str) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def answer(status: int, kind: str, body: bytes) -> None:
            headers = [(b"content-type", kind.encode()), (b"mcp-session-id", b"one")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})

        if scope["type"] != "http":
            return None
        body = b""
        while True:
            part = await receive()
            body += part.get("body", b"")
            if not part.get("more_body"):
                break
        asked = json.loads(body) if scope["method"] == "POST" else {}
        number, method = asked.get("id"), asked.get("method")
        if number is None:
            return await answer(202 if asked else 405, JSON, b"")
        results = {
            "initialize": {
                "protocolVersion": asked.get("params", {}).get("protocolVersion"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "shop", "version": "1"},
            },
            "tools/list": {"tools": [PAY]},
        }
        if method == "tools/call":
            made.append("paid")
            return await answer(*_odd_answer(how, number))
        if method not in results:
            return await answer(200, JSON, _error(number, "there is no such method", -32601))
        return await answer(200, JSON, json.dumps({"jsonrpc": "2.0", "id": number, "result": results[method]}).encode())

    return app


@pytest.mark.parametrize(
    "how",
    [
        "an event that is cut",
        "an event that is no message",
        "an event of several messages",
        "a message that is cut",
        "408",
        "409",
        "499",
        "504",
    ],
)
async def test_what_is_no_answer_of_the_server_leaves_a_change_in_doubt_and_is_not_made_again(how: str) -> None:
    made: list[str] = []
    async with served_at(_server(made, how)) as url:
        tools = await mcp_tools("shop", url=url, terms={"pay": ToolTerms(timeout_s=10)})
        async with tools, Runtime.open("memory://", policy=POLICY, tools=tools) as runtime:
            for _delivery in range(2):
                outcome = await runtime.call("shop_pay", {}, actor="a", call_id="1")
                assert outcome.status is not Status.FAILED, outcome.problem
    assert made == ["paid"]
    assert not outcome.ok


@pytest.mark.parametrize(
    "how",
    [
        "an error of the server",
        "an error in an event",
        "an error in the words of the SDK",
        "an error with its status",
        "an error about a session",
        "403",
        "413",
    ],
)
async def test_what_the_server_has_refused_has_failed(how: str) -> None:
    made: list[str] = []
    async with served_at(_server(made, how)) as url:
        tools = await mcp_tools("shop", url=url, terms={"pay": ToolTerms(timeout_s=10)})
        async with tools, Runtime.open("memory://", policy=POLICY, tools=tools) as runtime:
            outcome = await runtime.call("shop_pay", {}, actor="a", call_id="1")
    assert outcome.status is Status.FAILED, outcome.problem
    assert made == ["paid"]  # as this server has counted them: it was asked once


async def test_an_error_that_came_too_late_for_one_request_is_no_answer_to_another(tmp_path: Path) -> None:
    server, done = str(Path(__file__).with_name("mcp_late_server.py")), tmp_path / "done"
    terms = {name: ToolTerms(effect="read", timeout_s=0.3 if name == "look" else 30.0) for name in ("look", "ready")}
    tools = await mcp_tools("shop", command=[sys.executable, server, str(done)], terms=terms)
    async with tools, Runtime.open("memory://", policy=POLICY, tools=tools) as runtime:
        assert not (await runtime.call("shop_look", {}, actor="a")).ok
        # Whoever is answered now has been told the late error before.
        assert (await runtime.call("shop_ready", {}, actor="a")).ok
        for _delivery in range(2):
            outcome = await runtime.call("shop_pay", {}, actor="a", call_id="1")
            assert outcome.status is Status.UNKNOWN, outcome.summary
    assert done.read_text().splitlines() == ["paid"]
