"""A server process and real sockets: whoever is slow does not keep others out."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from catalog_testing import PATIENCE_S, clean_families, fill_catalog, prepare_home
from chaos import free_port, run_server
from interlock.errors import ConfigError
from interlock_catalog.runner.endpoint import serve_endpoint
from interlock_catalog.runner.records import open_run_store
from interlock_catalog.server.connections import MAX_CONNECTIONS, ImpatientProtocol, build_config, open_listener
from interlock_catalog.server.request_limits import RequestLimits
from interlock_catalog.server.tokens import create_token

SLOW = 500
HALF_A_HEADER = b"GET /getExercises HTTP/1.1\r\nHost: catalog\r\nX-Slow: "


@contextmanager
def slow_connections(port: int, sent: bytes, count: int = SLOW) -> Iterator[list[socket.socket]]:
    opened = list[socket.socket]()
    try:
        for _ in range(count):
            opened.append(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S))
            opened[-1].sendall(sent)
        yield opened
    finally:
        for item in opened:
            item.close()


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[int, str, str]]:
    """A server process: its port, and the tokens of two readers."""
    loaded = prepare_home(folder)
    await fill_catalog(loaded, clean_families("bench-press"))
    tokens = [create_token(loaded.folder / "tokens.toml", name, "editor") for name in ("one", "other")]
    port = free_port()
    async with run_server(loaded.folder, port):
        yield port, tokens[0], tokens[1]


async def ask(port: int, token: str) -> int:
    async with httpx.AsyncClient(timeout=300.0, trust_env=False) as client:
        answer = await client.get(f"http://127.0.0.1:{port}/listFamilies", headers={"Authorization": f"Bearer {token}"})
    return answer.status_code


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(4096) == b""
    except ConnectionError:
        return True


async def test_connections_that_never_finish_a_header_do_not_keep_others_out(tmp_path: Path) -> None:
    async with serving(tmp_path / "home") as (port, token, _other):
        with slow_connections(port, HALF_A_HEADER) as opened:
            assert [await ask(port, token) for _ in range(5)] == [200] * 5
            # The first have made room for the last; and in the end none is left, though nobody else comes.
            for connection in (*opened[: SLOW - MAX_CONNECTIONS], opened[-1]):
                assert await asyncio.to_thread(is_closed, connection)


async def test_bodies_that_never_end_do_not_keep_other_tokens_out(tmp_path: Path) -> None:
    async with serving(tmp_path / "home") as (port, token, other):
        head = f"POST /fence HTTP/1.1\r\nHost: catalog\r\nAuthorization: Bearer {token}\r\nContent-Length: 90\r\n\r\n{{"
        with slow_connections(port, head.encode(), 150) as opened:

            async def is_turned_away(connection: socket.socket) -> bool:
                return b" 503 " in await asyncio.to_thread(connection.recv, 4096)

            assert await is_turned_away(opened[-1])
            assert await ask(port, token) == 503  # its own requests are what it waits for
            assert await ask(port, other) == 200


async def test_whoever_has_no_token_is_refused_and_may_not_stay(tmp_path: Path) -> None:
    async with serving(tmp_path / "home") as (port, token, _other):
        head = b"POST /upsertExercise HTTP/1.1\r\nHost: catalog\r\nContent-Length: 90\r\n\r\n{"
        with slow_connections(port, head) as opened:
            assert await ask(port, token) == 200
            last = opened[-1]
            assert b" 401 " in await asyncio.to_thread(last.recv, 4096)
            assert await asyncio.to_thread(is_closed, last)


async def test_whoever_comes_while_all_others_are_being_answered_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImpatientProtocol, "max_connections", 3)
    asked, go_on = asyncio.Semaphore(0), asyncio.Event()

    async def app(scope: dict[str, Any], _receive: object, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        asked.release()
        if scope["path"] == "/slow":
            await go_on.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    with open_listener("127.0.0.1", 0) as listener:
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = uvicorn.Server(build_config(app, lifespan="off"))
        async with asyncio.TaskGroup() as group, httpx.AsyncClient(base_url=base, timeout=300.0) as client:
            serving = group.create_task(server.serve(sockets=[listener]))
            slow = list[asyncio.Task[httpx.Response]]()
            for _ in range(5):
                slow.append(group.create_task(client.get("/slow")))
                await asked.acquire()
            assert (await client.get("/")).status_code == 204
            go_on.set()
            assert [(await task).status_code for task in slow] == [204] * 5
            server.should_exit = True
            await serving


async def test_the_workers_endpoint_looks_at_the_token_first_and_leaves_signals_alone(tmp_path: Path) -> None:
    import signal

    loaded = prepare_home(tmp_path / "home", token="secret")
    await fill_catalog(loaded, clean_families("bench-press"))
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    listener = open_listener("127.0.0.1", 0)
    port = int(listener.getsockname()[1])
    with pytest.raises(ConfigError, match="--port"):
        open_listener("127.0.0.1", port)
    async with open_run_store(loaded.settings) as runs:
        server = asyncio.create_task(serve_endpoint(loaded, runs, listener))
        base = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=base, timeout=300.0, trust_env=False) as client:
            assert (await client.get("/health")).status_code == 503
            assert {number: signal.getsignal(number) for number in before} == before
            for body in (b"nonsense", b"{}", b'{"mode": "wild"}', b"x" * 2_000_000):
                assert (await client.post("/runs", content=body)).status_code == 401
                wrong = {"Authorization": "Bearer secres"}
                assert (await client.post("/runs", content=body, headers=wrong)).status_code == 401
            key = {"Authorization": "Bearer secret", "Content-Type": "application/json"}
            assert (await client.post("/runs", content=b"nonsense", headers=key)).status_code == 422
            typo = await client.post("/runs", json={"families": ["bench-pres"]}, headers=key)
            assert (typo.status_code, typo.json()["detail"]) == (422, "there is no family bench-pres")
            assert (await client.post("/runs", json={"families": ["bench-press"]}, headers=key)).status_code == 202
            assert (await client.get("/openapi.json")).status_code == 404
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)
    assert {number: signal.getsignal(number) for number in before} == before


async def test_without_a_token_in_the_settings_nobody_starts_a_run(tmp_path: Path) -> None:
    from interlock_catalog.runner.endpoint import build_app

    loaded = prepare_home(tmp_path / "home")
    async with (
        open_run_store(loaded.settings) as runs,
        httpx.AsyncClient(transport=httpx.ASGITransport(build_app(loaded, runs)), base_url="http://worker") as client,
    ):
        for header in ("Bearer ", "Bearer", "Bearer x"):
            assert (await client.post("/runs", json={}, headers={"Authorization": header})).status_code == 401


async def test_tokens_of_strangers_are_not_remembered() -> None:
    async def answer(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(_message: Any) -> None: ...

    limits = RequestLimits(answer, {})
    scope = {"type": "http", "path": "/health", "method": "GET"}
    for number in range(50):
        await limits({**scope, "headers": [(b"authorization", b"Bearer t%d" % number)]}, receive, send)
    assert not limits._under_way
