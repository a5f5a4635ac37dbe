"""What comes from servers at an address has a bound, however it is cut into pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import httpx2
import pytest
from mcp.server.mcpserver import MCPServer

from interlock import Runtime, Status
from interlock.adapters.mcp import ToolTerms, http_client, mcp_tools
from interlock.adapters.mcp.http_client import McpHttpClient
from tests.mcp_address import served_at

POLICY = {"version": 1, "mode": "apply", "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}]}
BOUND = 1_000
PART = b"data: " + b"x" * 394


async def _get(parts: Sequence[bytes], monkeypatch: pytest.MonkeyPatch, content_type: str, status: int = 200) -> bytes:
    """What a client reads of a stream of these parts, with a bound of 1,000 bytes a message."""
    monkeypatch.setattr(http_client, "MOST_BYTES", BOUND)

    class Parts(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for part in parts:
                yield part

    class Server(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            return httpx2.Response(status, headers={"content-type": content_type}, stream=Parts(), request=request)

    async with McpHttpClient() as client:
        client._transport, client._mounts = Server(), {}
        async with client.stream("GET", "http://127.0.0.1/") as answer:
            return await answer.aread()


EVENTS = [
    [PART + b"\n\n"] * 10,
    [PART + b"\r\r"] * 10,
    [PART + b"\r\n\r\n"] * 10,
    [PART, b"\n", b"\n"] * 10,
    [PART + b"\r\n", b"\r\n"] * 10,
    [PART, b"\r", b"\n", b"\r", b"\n"] * 10,
    [PART + b"\n", b"\r\n"] * 10,
]


@pytest.mark.parametrize("parts", EVENTS)
async def test_many_events_are_read_wherever_they_are_cut(
    monkeypatch: pytest.MonkeyPatch, parts: Sequence[bytes]
) -> None:
    assert await _get(parts, monkeypatch, "text/event-stream") == b"".join(parts)


@pytest.mark.parametrize(
    ("parts", "content_type"),
    [
        ([PART + b"\n"] * 10, "text/event-stream"),
        ([PART] * 10, "text/event-stream"),
        ([PART, b"\r", b"\n"] * 10, "text/event-stream"),
        ([PART + b"\n\n"] * 10, "application/json"),
        ([PART + b"\r\r"] * 10, "text/plain"),
        ([b"x" * (BOUND + 1)], "application/json"),
    ],
)
async def test_one_message_without_end_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, parts: Sequence[bytes], content_type: str
) -> None:
    with pytest.raises(httpx2.ReadError, match="a message of more than"):
        await _get(parts, monkeypatch, content_type)


async def test_an_error_is_one_message_however_many_events_it_is_written_as(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(httpx2.ReadError, match="a message of more than"):
        await _get([PART + b"\n\n"] * 10, monkeypatch, "text/event-stream", status=503)


@pytest.mark.parametrize(("sse", "much"), [(False, Status.OK), (True, Status.UNKNOWN)])
async def test_what_the_older_transport_cannot_carry_is_in_doubt(sse: bool, much: Status) -> None:
    """The SDK takes events of 1 MiB over it, and 64 MiB over streamable HTTP."""
    shop, made = MCPServer("shop"), list[int]()

    @shop.tool()
    def get(size: int) -> str:
        """Something of that size."""
        made.append(size)
        return "x" * size

    app = shop.sse_app() if sse else shop.streamable_http_app()
    async with (
        served_at(app, "/sse" if sse else "/mcp") as url,
        await mcp_tools("shop", url=url, sse=sse, terms={"*": ToolTerms(timeout_s=60)}) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
    ):
        for _delivery in range(2):
            found = await runtime.call("shop_get", {"size": 3_000_000}, actor="a", call_id="1")
            assert found.status is much
        assert (await runtime.call("shop_get", {"size": 10}, actor="a", call_id="2")).status is Status.OK
        assert made == [3_000_000, 10]
