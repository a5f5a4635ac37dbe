"""A server that has ended and is there again: what its clients have set holds, and they hear what may be another now."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged

from interlock.adapters.mcp.callbacks import ClientCallbacks
from interlock.adapters.mcp.client_settings import ClientSettings
from interlock.adapters.mcp.terms import ServerTerms
from interlock.adapters.mcp.upstream import Upstream
from tests.mcp_gateway import HERE, gateway_to, heard_by, raw_gateway


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20.0):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


class _Hearing:
    """A client of the older revision that notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def client(self, server: Any) -> Client:
        return Client(server, mode="legacy", cache=None, message_handler=self._hear, list_roots_callback=self._roots)

    async def _hear(self, message: Any) -> None:
        params = getattr(message, "params", None)
        self.heard.append(f"{message.method} {getattr(params, 'uri', '')}".strip())

    async def _roots(self, context: Any) -> types.ListRootsResult:
        del context
        return types.ListRootsResult(roots=[])


def _methods(folder: Path, name: str) -> list[str]:
    return [one["method"] for one in heard_by(folder, name) if "method" in one]


async def test_servers_hear_that_the_folders_of_a_client_are_others(tmp_path: Path) -> None:
    one, two = _Hearing(), _Hearing()
    async with raw_gateway(tmp_path, "aaa", "bbb") as server, one.client(server) as client, two.client(server) as other:
        for who in (client, other):
            await who.list_resources()  # of both servers
        await client.session.send_notification(types.RootsListChangedNotification())
        changed = "notifications/roots/list_changed"
        await _until(lambda: all(changed in _methods(tmp_path, name) for name in ("aaa", "bbb")))
        await client.list_resources()
        await other.list_resources()
        told = [_methods(tmp_path, name).count(changed) for name in ("aaa", "bbb")]
        assert told == [1, 1], "of the client that said so, and of no other"


async def _set(client: Client, *requests: Any) -> None:
    for request in requests:
        await client.session.send_request(request, types.EmptyResult)


def _subscribe(uri: str) -> types.SubscribeRequest:
    return types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))


async def test_what_a_client_has_set_holds_once_a_server_is_started_again(tmp_path: Path) -> None:
    hearing = _Hearing()
    async with raw_gateway(tmp_path, "aaa", "bbb") as server, hearing.client(server) as client:
        level = types.SetLevelRequest(params=types.SetLevelRequestParams(level="debug"))
        off = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri="aaa://two"))
        await _set(client, level, *map(_subscribe, ("aaa://one", "aaa://two", "bbb://other")), off)
        await client.list_tools()
        assert hearing.heard == []
        before = {name: len(heard_by(tmp_path, name)) for name in ("aaa", "bbb")}
        await client.call_tool("aaa_go", {"x": "die"})
        await client.list_resources()  # it waits for the server
        again = heard_by(tmp_path, "aaa")[before["aaa"] :]
        wanted = ("logging/setLevel", "resources/subscribe")
        asked = [(one["method"], one["params"]) for one in again if one.get("method") in wanted]
        assert [(method, params.get("uri", params.get("level"))) for method, params in asked] == [
            ("logging/setLevel", "debug"),
            ("resources/subscribe", "aaa://one"),
        ]
        lists = [f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")]
        await _until(lambda: len(hearing.heard) >= 4)
        assert hearing.heard == [*lists, "notifications/resources/updated aaa://one"]
        methods = {one.get("method") for one in heard_by(tmp_path, "bbb")[before["bbb"] :]}
        assert methods <= {"resources/list"}, "the other server has not ended"


async def test_a_client_of_2026_that_listens_hears_of_a_server_that_is_started_again(tmp_path: Path) -> None:
    started = tmp_path / "started"
    script = (
        f"import os, runpy, sys; open({str(started)!r}, 'a').write(f'{{os.getpid()}} ');"
        " sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    files = ServerTerms(command=(sys.executable, "-c", script, str(HERE / "mcp_files_server.py"), str(tmp_path)))
    async with (
        gateway_to({"files": files}, tmp_path) as server,
        Client(server, cache=None) as client,
        client.listen(tools_list_changed=True, resource_subscriptions=["file:///notes"]) as told,
    ):
        os.kill(int(started.read_text().split()[-1]), signal.SIGKILL)
        async with asyncio.timeout(20.0):
            heard = {await anext(told), await anext(told)}
        assert heard == {ToolsListChanged(), ResourceUpdated("file:///notes")}


async def test_a_server_that_cannot_take_what_was_set_is_used_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.adapters.mcp.client_settings._RENEW_S", 0.01)

    class _Silent:
        server_capabilities = types.ServerCapabilities(resources=types.ResourcesCapability())
        session: Any

        async def send_request(self, *_given: Any) -> None:
            await asyncio.sleep(600)

    silent: Any = _Silent()
    silent.session = silent
    settings = ClientSettings()
    assert await settings.renew(silent) == [], "the first time nothing has changed"
    settings.note(_subscribe("a://b"))
    changes = [one.method for one in await settings.renew(silent)]
    assert changes == ["notifications/resources/list_changed", "notifications/resources/updated"]


class _Swallowing(ClientCallbacks, frozen=True):
    """Of a connection that breaks just as its task is cancelled: of both, a task group tells only the first."""

    @asynccontextmanager
    async def open(self, target: Any, hear: Any) -> AsyncIterator[Any]:  # type: ignore[override]
        try:
            async with super().open(target, hear) as client:
                yield client
        except asyncio.CancelledError:
            raise RuntimeError("it broke") from None


async def test_a_connection_that_breaks_as_it_is_closed_is_not_made_again(tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "mcp_raw_server.py"), str(tmp_path), "raw"]
    async with asyncio.timeout(20.0):
        upstream = Upstream("raw", command=command, callbacks=_Swallowing())
        await upstream.start()
        await upstream.close()
    assert not upstream.is_connected
