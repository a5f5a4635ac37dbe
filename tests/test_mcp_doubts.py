"""What is known of a call whose server, connection or proxy went away, and what is done about that."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.server import Server
from mcp.server.mcpserver import MCPServer

from interlock import Runtime, Status, tool
from interlock.adapters.mcp import mcp_server, mcp_tools
from interlock.adapters.mcp.secrets import read_secret
from interlock.adapters.mcp.terms import ToolTerms
from interlock.errors import ConfigError
from tests.mcp_address import served_at

SERVER = str(Path(__file__).with_name("mcp_server.py"))
ODD = str(Path(__file__).with_name("mcp_odd_server.py"))
POLICY = {"version": 1, "mode": "apply", "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}]}
REVIEWED = {"version": 1, "mode": "apply", "rule": [{"id": "ask", "tools": ["*"], "decision": "review"}]}


async def _until_there(file: Path) -> None:
    while not file.exists():  # noqa: ASYNC110
        await asyncio.sleep(0.02)


async def test_what_is_closed_in_the_middle_of_a_call_leaves_it_in_doubt(tmp_path: Path) -> None:
    done = tmp_path / "done"
    tools = await mcp_tools("shop", command=[sys.executable, SERVER, str(done)])
    async with Runtime.open("memory://", policy=POLICY, tools=tools) as runtime:
        call = asyncio.create_task(runtime.call("shop_hang", {"to": "ann"}, actor="a", call_id="1"))
        await _until_there(done)
        await tools.close()
        assert (await call).status is Status.UNKNOWN
        assert (await runtime.call("shop_hang", {"to": "ann"}, actor="a", call_id="1")).status is not Status.OK
        assert done.read_text().splitlines() == ["paid ann"]


def _shop(made: list[str]) -> MCPServer:
    shop = MCPServer("shop")

    @shop.tool()
    def pay(to: str) -> str:
        """Pay somebody."""
        made.append(to)
        return "paid"

    return shop


@pytest.mark.parametrize("code", [500, 502, 504])
async def test_an_error_of_a_proxy_is_no_answer_of_the_server(code: int) -> None:
    made: list[str] = []
    inner: Any = _shop(made).streamable_http_app()

    async def proxy(scope: Any, receive: Any, send: Any) -> None:
        before = len(made)

        async def pass_on(message: Any) -> None:
            if len(made) > before:  # it was done, and what it answered gets lost
                if message["type"] == "http.response.start":
                    message = {**message, "status": code, "headers": [(b"content-type", b"text/html")]}
                else:
                    message = {**message, "body": b"<html>gateway</html>" if message.get("body") else b""}
            await send(message)

        await inner(scope, receive, pass_on)

    async with (
        served_at(proxy) as url,
        await mcp_tools("shop", url=url) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
    ):
        for _delivery in range(2):
            found = await runtime.call("shop_pay", {"to": "ann"}, actor="a", call_id="1")
            assert found.status is Status.UNKNOWN
        assert made == ["ann"]


async def test_a_server_at_an_address_that_was_started_again_is_connected_to_again() -> None:
    made: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with contextlib.AsyncExitStack() as stack:
        first = contextlib.AsyncExitStack()
        url = await first.enter_async_context(served_at(_shop(made).streamable_http_app(), port=port))
        tools = await stack.enter_async_context(await mcp_tools("shop", url=url))
        runtime = await stack.enter_async_context(Runtime.open("memory://", policy=POLICY, tools=tools))
        assert (await runtime.call("shop_pay", {"to": "ann"}, actor="a", call_id="1")).status is Status.OK
        await first.aclose()
        await stack.enter_async_context(served_at(_shop(made).streamable_http_app(), port=port))
        assert (await runtime.call("shop_pay", {"to": "bob"}, actor="a", call_id="2")).status is Status.OK
        assert made == ["ann", "bob"]


async def test_a_server_that_could_not_be_started_at_first_is_started_later(tmp_path: Path) -> None:
    script, done = tmp_path / "later.py", tmp_path / "done"
    script.write_text(Path(ODD).read_text(encoding="utf-8"), encoding="utf-8")
    async with await mcp_tools("odd", command=[sys.executable, str(script), str(done)]) as tools:
        link = tools._upstream.connect_again(tools._upstream._callbacks)
        script.rename(tmp_path / "away.py")
        with pytest.raises(Exception, match="is not there"):
            await link.call_tool("go", {"x": "1"}, changes=True, timeout_s=5.0)
        (tmp_path / "away.py").rename(script)
        assert not (await link.call_tool("go", {"x": "2"}, changes=True, timeout_s=5.0)).is_error
        await link.close()


async def test_a_server_that_ends_while_a_child_holds_its_pipes_is_noticed_and_nothing_of_it_is_left(
    tmp_path: Path,
) -> None:
    done = tmp_path / "done"
    async with (
        await mcp_tools("odd", command=[sys.executable, ODD, str(done)]) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
    ):
        found = await runtime.call("odd_go", {"x": "child-and-end"}, actor="a", call_id="1")
        assert found.status is Status.UNKNOWN
        assert (await runtime.call("odd_go", {"x": "next"}, actor="a", call_id="2")).status is Status.OK
    child = int((tmp_path / "child").read_text())
    while _runs(child):  # noqa: ASYNC110  until it is, or the test has taken too long
        await asyncio.sleep(0.02)


def _runs(process: int) -> bool:
    """Whether it is there and not only waited for."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    found = Path(f"/proc/{process}/stat")
    return not found.exists() or ") Z " not in found.read_text()


@pytest.mark.parametrize(
    ("said", "status"),
    [("aaa", Status.OK), ("none", Status.UNKNOWN), ("b", Status.UNKNOWN), ("a" * 40 + "!", Status.UNKNOWN)],
)
async def test_an_answer_that_is_not_of_its_form_leaves_a_change_in_doubt_however_its_pattern_is_written(
    said: str, status: Status, tmp_path: Path
) -> None:
    """A pattern that Python's `re` would try for hours stops nobody: it is looked for by another engine."""
    command = [sys.executable, ODD, str(tmp_path / "done"), "form"]
    async with (
        await mcp_tools("odd", command=command) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
    ):
        outcome = await runtime.call("odd_go", {"x": said}, actor="a", call_id="1")
    assert outcome.status is status, outcome.problem
    assert (tmp_path / "done").read_text().splitlines() == [said]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_same_call_is_made_once_somebody_has_approved_it(mode: str) -> None:
    made: list[str] = []

    @tool(effect="send")
    async def pay(to: str) -> str:
        """Pay."""
        made.append(to)
        return "paid"

    policy = {**REVIEWED, "review": {"vouched": ["user"]}}
    async with (
        Runtime.open("memory://", policy=policy, tools=[pay]) as runtime,
        Client(mcp_server(runtime), mode=mode, cache=None) as client,
    ):
        texts = [str((await client.call_tool("pay", {"to": "ann"})).content) for _time in range(2)]
        (ticket,) = await runtime.store.tickets()
        assert all(ticket.id in text for text in texts), "asked again, it is the same question"
        await runtime.operations.decide(ticket.id, approve=True, by="user:boss")
        assert (await client.call_tool("pay", {"to": "bob"})).is_error, "another call"
        at_once = await asyncio.gather(*(client.call_tool("pay", {"to": "ann"}) for _time in range(3)))
        assert not any(found.is_error for found in at_once)
        assert not (await client.call_tool("pay", {"to": "ann"})).is_error
        assert made == ["ann"]
        assert len(await runtime.store.tickets()) == 2, "ann's and bob's"


async def test_what_goes_to_a_server_beside_the_arguments_is_part_of_what_was_approved() -> None:
    made: list[str] = []

    @tool(effect="send")
    async def pay(to: str) -> str:
        """Pay."""
        made.append(to)
        return "paid"

    async with (
        Runtime.open("memory://", policy={**REVIEWED, "review": {"vouched": ["user"]}}, tools=[pay]) as runtime,
        Client(mcp_server(runtime), cache=None) as client,
    ):
        shown: Any = {"example/to": "ann"}
        await client.call_tool("pay", {"to": "ann"}, meta=shown)
        (ticket,) = await runtime.store.tickets()
        await runtime.operations.decide(ticket.id, approve=True, by="user:boss")
        other: Any = {"example/to": "mallory"}
        assert (await client.call_tool("pay", {"to": "ann"}, meta=other)).is_error
        assert made == []
        assert not (await client.call_tool("pay", {"to": "ann"}, meta=shown)).is_error
        assert made == ["ann"]


@pytest.mark.parametrize("value", ["Bearer abc", "a/b", ""])
def test_a_secret_in_place_of_a_name_is_not_said_again(value: str) -> None:
    with pytest.raises(ConfigError, match="no name of a variable") as raised:
        read_secret("shop", value)
    assert not value or value not in str(raised.value)


def test_a_secret_is_read_without_the_end_of_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "Bearer S3CRET\n")
    assert read_secret("shop", "SHOP_TOKEN") == "Bearer S3CRET"
    monkeypatch.setenv("SHOP_TOKEN", "Bearer\nS3CRET")
    with pytest.raises(ConfigError, match="cannot be sent") as raised:
        read_secret("shop", "SHOP_TOKEN")
    assert "S3CRET" not in str(raised.value)
    for value in ("Bearer S3CRET ", " Bearer S3CRET"):  # which the client of HTTP refuses, and quotes
        monkeypatch.setenv("SHOP_TOKEN", value)
        with pytest.raises(ConfigError, match="begins or ends with a blank") as raised:
            read_secret("shop", "SHOP_TOKEN")
        assert "S3CRET" not in str(raised.value)
    with pytest.raises(ConfigError, match="is handed a variable, which is not set"):
        read_secret("shop", "sk_live_51Habcdef")


async def test_a_write_that_could_not_be_put_back_is_refused_before_it_is_made() -> None:
    made: list[float] = []
    shop = MCPServer("shop")

    @shop.tool(structured_output=False)
    def get_price(item: str) -> str:
        """What an item costs: a text without fields."""
        return "10 EUR"

    @shop.tool()
    def set_price(item: str, price: float) -> str:
        """Set what an item costs."""
        made.append(price)
        return "set"

    terms = {
        "get_price": ToolTerms(effect="read"),
        "set_price": ToolTerms(
            effect="write",
            key="{item}",
            look={"tool": "get_price", "item": "{item}"},
            put_back={"tool": "set_price", "item": "{item}", "price": "{state.price}"},
        ),
    }
    async with (
        served_at(shop.streamable_http_app()) as url,
        await mcp_tools("shop", url=url, terms=terms) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
    ):
        found = await runtime.call("shop_set_price", {"item": "lamp", "price": 7.0}, actor="a", call_id="1")
        assert found.status is Status.FAILED
        assert found.problem is not None
        assert "could not be put back: there is no 'price' for the gap {state.price}" in found.problem.message
        assert made == []


async def test_a_call_that_is_approved_and_then_asked_about_comes_to_an_end() -> None:
    colours: list[str] = []
    asked = types.ElicitRequestFormParams(
        message="Which colour?", requested_schema={"type": "object", "properties": {}}
    )

    async def offer(_ctx: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="buy", input_schema={"type": "object"})])

    async def answer(_ctx: Any, params: types.CallToolRequestParams) -> Any:
        told = (params.input_responses or {}).get("colour")
        if not isinstance(told, types.ElicitResult) or params.request_state != "first":
            return types.InputRequiredResult(
                input_requests={"colour": types.ElicitRequest(params=asked)}, request_state="first"
            )
        colours.append(str((told.content or {})["colour"]))
        return types.CallToolResult(content=[types.TextContent(text="bought")])

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        del context
        said: dict[str, Any] = {"colour": "red"} if params.message == "Which colour?" else {"approve": True}
        return types.ElicitResult(action="accept", content=said)

    server = Server[Any]("shop", on_list_tools=offer, on_call_tool=answer)
    policy = {**REVIEWED, "review": {"self_approval": True}}
    async with (
        served_at(server.streamable_http_app()) as url,
        await mcp_tools("shop", url=url) as tools,
        Runtime.open("memory://", policy=policy, tools=tools) as runtime,
        Client(mcp_server(runtime), cache=None, elicitation_callback=elicit) as client,
    ):
        found = await client.call_tool("shop_buy", {})
        assert not found.is_error
        assert colours == ["red"]
