"""What goes through the gateway beside calls of tools: questions back to the client that called, progress, log, HTTP."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import mcp_types as types
import pytest
from mcp import Client, MCPError

from interlock import Runtime, tool
from interlock.adapters.mcp import mcp_server
from interlock.adapters.mcp.http import HttpTerms, http_app, read_address, read_token, serve_http
from interlock.adapters.mcp.pins import PinsFile
from interlock.adapters.mcp.servers import PINS, McpServers, make_upstream
from interlock.adapters.mcp.terms import ServerTerms, ToolTerms
from interlock.errors import ConfigError

HERE = Path(__file__).parent
ALLOW = {"id": "all", "tools": ["*"], "decision": "allow"}
POLICY: dict[str, Any] = {"version": 1, "mode": "apply", "rule": [ALLOW]}


@asynccontextmanager
async def gateway(folder: Path, *names: str, policy: Any = POLICY, **terms: Any) -> AsyncIterator[Any]:
    """A server of the SDK in front of servers of the tests, with what they offer pinned as it is."""
    said = {
        name: ServerTerms(command=(sys.executable, str(HERE / f"mcp_{name}_server.py"), str(folder)), **terms)
        for name in names
    }
    pins = PinsFile()
    for name, one in said.items():
        async with make_upstream(name, one, folder) as upstream:
            pins = pins.pin(name, await upstream.list_tools())
    pins.write(folder / PINS)
    async with (
        _servers(said, folder) as servers,
        Runtime.open(f"sqlite:///{folder / 'ledger.db'}", policy=policy, tools=servers.tools) as runtime,
    ):
        yield mcp_server(runtime, servers=servers)


@asynccontextmanager
async def _servers(said: dict[str, ServerTerms], folder: Path) -> AsyncIterator[McpServers]:
    servers = McpServers(said, folder)
    try:
        yield servers
    finally:
        await servers.close()


def _client(server: Any, answer: str, heard: list[str] | None = None, mode: str = "legacy") -> Client:
    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        del context, params
        await asyncio.sleep(0)
        return types.ElicitResult(action="accept", content={"colour": answer, "approve": answer == "yes"})

    async def sample(context: Any, params: Any) -> types.CreateMessageResult:
        del context, params
        text = types.TextContent(text=f"the model of {answer}")
        return types.CreateMessageResult(role="assistant", content=text, model="m")

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        if heard is not None:
            heard.append(str(params.data))

    return Client(
        server, mode=mode, cache=None, elicitation_callback=elicit, sampling_callback=sample, logging_callback=log
    )


def _text(found: types.CallToolResult) -> str:
    return "".join(part.text for part in found.content if isinstance(part, types.TextContent))


async def test_a_server_asks_the_client_that_called_and_no_other(tmp_path: Path) -> None:
    async with gateway(tmp_path, "asking") as server, _client(server, "red") as one, _client(server, "blue") as two:
        asked = await asyncio.gather(
            *(client.call_tool("asking_ask_person", {}) for client in (one, two, one, two)),
            *(client.call_tool("asking_ask_model", {"prompt": str(n)}) for n, client in enumerate((one, two))),
        )
        # The same call again in a session says at its end that it was answered from the record.
        said = [_text(found).partition("(Interlock: ")[0] for found in asked]
        assert said == ["red", "blue", "red", "blue", "the model of red", "the model of blue"]


async def test_progress_and_log_reach_the_client_that_called(tmp_path: Path) -> None:
    heard: list[str] = []
    others: list[str] = []
    steps: list[float] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        del total, message
        steps.append(progress)

    async with (
        gateway(tmp_path, "asking") as server,
        _client(server, "x", heard) as one,
        _client(server, "y", others) as two,
    ):
        await two.list_tools()
        assert _text(await one.call_tool("asking_take_long", {}, progress_callback=report)) == "done"
        assert (steps, heard, others) == ([0, 1, 2], ["at 0", "at 1", "at 2"], [])


async def test_a_client_that_cannot_be_asked_is_said_so_to_the_server(tmp_path: Path) -> None:
    async with gateway(tmp_path, "asking") as server, Client(server, mode="legacy", cache=None) as client:
        with pytest.raises(MCPError, match="not supported"):
            await client.call_tool("asking_ask_person", {})


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_resources_and_prompts_are_read_by_the_policy(tmp_path: Path, mode: str) -> None:
    rules = [ALLOW, {"id": "no", "tools": ["files.resources.read"], "decision": "deny", "reason": "not that"}]
    async with (
        gateway(tmp_path, "files", policy={**POLICY, "rule": rules}) as server,
        Client(server, mode=mode, cache=None) as client,
    ):
        assert [one.uri for one in (await client.list_resources()).resources] == ["file:///notes"]
        with pytest.raises(MCPError, match="not that"):
            await client.read_resource("file:///notes")
        assert [one.name for one in (await client.list_prompts()).prompts] == ["files_summary"]
        got = await client.get_prompt("files_summary", {"of": "it"})
        assert "summary of it" in str(got.messages)
        with pytest.raises(MCPError):
            await client.get_prompt("nobodys_summary", {})


async def test_two_servers_have_names_of_their_own(tmp_path: Path) -> None:
    async with gateway(tmp_path, "files", "asking") as server, Client(server, cache=None) as client:
        names = [one.name for one in (await client.list_tools()).tools]
        assert len(names) == len(set(names)) == 8
        assert {name.partition("_")[0] for name in names} == {"files", "asking"}


async def test_two_servers_whose_tools_would_be_called_the_same_are_refused(tmp_path: Path) -> None:
    async with gateway(tmp_path, "files"):
        pinned = PinsFile.read(tmp_path / PINS).servers["files"]
    PinsFile({"files": pinned, "other": pinned}).write(tmp_path / PINS)
    twice = {name: ServerTerms(command=("x",), prefix="") for name in ("files", "other")}
    servers = McpServers(twice, tmp_path)
    assert list(servers.upstreams) == ["files"]
    assert "already" in servers.left_out["other"]


REVIEWED = {"version": 1, "mode": "apply", "rule": [{"id": "ask", "tools": ["*"], "decision": "review"}]}


@pytest.mark.parametrize(
    ("review", "answer", "paid"),
    [({"self_approval": True}, "yes", 1), ({"self_approval": True}, "no", 0), ({}, "yes", 0)],
)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_what_waits_for_a_person_is_asked_through_the_client_where_the_policy_lets_them(
    review: dict[str, Any], answer: str, paid: int, mode: str
) -> None:
    made: list[str] = []

    @tool(effect="send")
    async def pay(to: str) -> str:
        """Pay."""
        made.append(to)
        return "paid"

    policy = {**REVIEWED, "review": review}
    async with (
        Runtime.open("memory://", policy=policy, tools=[pay]) as runtime,
        _client(mcp_server(runtime), answer, mode=mode) as client,
    ):
        found = await client.call_tool("pay", {"to": "ann"})
        assert (len(made), found.is_error) == (paid, not paid)
        again = await client.call_tool("pay", {"to": "ann"})
        assert len(made) == paid
        assert again.is_error == (not paid)


@tool(effect="read")
async def look(key: str) -> str:
    """Look."""
    return key


@asynccontextmanager
async def _http(**options: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with Runtime.open("memory://", policy=POLICY, tools=[look]) as runtime:
        app = http_app(runtime, HttpTerms(**options))
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8300"
        ) as client:
            yield client


TOKEN = "a-token-of-some-length"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": TOKEN}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
    ],
)
async def test_nobody_comes_in_without_the_token(tmp_path: Path, headers: dict[str, str], code: int) -> None:
    (tmp_path / "token").write_text(TOKEN)
    async with _http(bearer=str(tmp_path / "token")) as client:
        found = await client.post("/mcp", json={}, headers=headers)
        assert found.status_code == code
        assert "Bearer" in found.headers["WWW-Authenticate"]


def test_addresses_and_tokens_that_cannot_be_are_refused(tmp_path: Path) -> None:
    assert read_address("127.0.0.1:8300") == ("127.0.0.1", 8300)
    assert read_address("[::1]:8300") == ("::1", 8300)
    for text in ("8300", "host:", "host:x", "host:70000"):
        with pytest.raises(ConfigError, match="no address"):
            read_address(text)
    for number, text in enumerate(("short", "with a space in it and long", "")):
        file = tmp_path / str(number)
        file.write_text(text)
        with pytest.raises(ConfigError, match="a token is one line"):
            read_token(file)


async def test_other_machines_need_a_token() -> None:
    async with Runtime.open("memory://", policy=POLICY, tools=[look]) as runtime:
        with pytest.raises(ConfigError, match="reached from other machines"):
            await serve_http(runtime, HttpTerms(address="0.0.0.0:8300"))


def test_terms_are_read_as_they_are_written() -> None:
    assert ServerTerms(command=("x",), tools={"a": ToolTerms(effect="read")}).terms_of("a").effect == "read"
    assert ServerTerms(command=("x",)).name_of("files", "write") == "files_write"
    assert ServerTerms(command=("x",), prefix="").name_of("files", "write") == "write"
