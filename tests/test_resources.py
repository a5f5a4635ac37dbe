"""Resources that come with the library: documents in a database, documents behind HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from interlock import Context, Effect, Status, tool
from interlock.errors import (
    ConfigError,
    Conflict,
    InDoubt,
    InvalidInput,
    NotFound,
    NothingLanded,
    RateLimited,
    StoreError,
    TimedOut,
    Unavailable,
)
from interlock.resources import Documents, HttpClient, HttpDocuments
from interlock.tools import RetryRule
from tests.conftest import expect
from tests.test_changes import running


def context(**tokens: int) -> Context:
    return Context(call_id="c", actor="ann", attempt=1, idempotency_key="key.1", tokens=tokens)


async def test_documents_are_written_read_versioned_and_removed(durable_url: str) -> None:
    shelf = Documents(durable_url, "shelf")
    assert await shelf.read_state("a") is None
    await shelf.write("a", {"title": "é", "n": [1, None]})
    first = await shelf.read_state("a")
    assert first is not None
    assert (first.value, first.version) == ({"title": "é", "n": [1, None]}, "1")
    await shelf.write("a", {"title": "b"}, version="1")
    with pytest.raises(Conflict, match="is at version 2, not 1"):
        await shelf.write("a", {"title": "c"}, version="1")
    assert await shelf.snapshot() == {"a": {"title": "b"}}
    await shelf.restore("a", None)
    with pytest.raises(NotFound):
        await shelf.get("a")
    await shelf.close()


@pytest.mark.parametrize("by", ["removed", "replaced", "moved"])
async def test_a_write_to_a_file_that_is_gone_is_not_acknowledged(tmp_path: Path, by: str) -> None:
    file, other = tmp_path / "shelf.db", tmp_path / "other.db"
    shelf = Documents(f"sqlite:///{file}", "shelf")
    await shelf.write("a", {"n": 1})
    if by == "removed":
        file.unlink()
    elif by == "moved":
        file.rename(other)
    else:
        backup = Documents(f"sqlite:///{other}", "shelf")
        await backup.write("a", {"n": 0})
        await backup.close()
        other.replace(file)

    @tool(effect="write", key="{key}", resource=shelf)
    async def put(key: str, context: Context) -> str:
        await shelf.write(key, {"n": 2}, context)
        return "put"

    for _ in range(2):
        with pytest.raises(NothingLanded, match="was removed or replaced while it was open"):
            await shelf.write("a", {"n": 2})
    async with running(put) as runtime:
        outcome = await runtime.call("put", {"key": "a"}, actor="ann", call_id="1")
        assert outcome.status is Status.FAILED
        assert "was removed or replaced while it was open" in expect(outcome.problem).message
    if by == "moved":
        other.rename(file)
        await shelf.write("a", {"n": 2})
        assert await shelf.get("a") == {"n": 2}
    await shelf.close()


Reads = Callable[[Documents], Awaitable[Any]]
READS: list[Reads] = [
    lambda shelf: shelf.read_state("a"),
    lambda shelf: shelf.read_many(["a"]),
    lambda shelf: shelf.page(),
    lambda shelf: shelf.find("kind", ["x"]),
    lambda shelf: shelf.count(),
    lambda shelf: shelf.snapshot(),
]


@pytest.mark.parametrize("by", ["moved", "replaced"])
async def test_nothing_is_read_from_a_file_that_is_not_there_any_more(tmp_path: Path, by: str) -> None:
    file, other = tmp_path / "shelf.db", tmp_path / "other.db"
    shelf = Documents(f"sqlite:///{file}", "shelf", indexed=["kind"])
    await shelf.write("a", {"kind": "x"})
    if by == "moved":
        file.rename(other)
    else:
        newer = Documents(f"sqlite:///{other}", "shelf")
        await newer.write("a", {"kind": "y"})
        await newer.close()
        other.replace(file)
    for read in READS:
        with pytest.raises(StoreError, match="was removed or replaced while it was open"):
            await read(shelf)
    if by == "moved":
        other.rename(file)
        assert await shelf.get("a") == {"kind": "x"}
    await shelf.close()


async def test_a_write_under_an_old_token_is_refused(durable_url: str) -> None:
    shelf = Documents(durable_url, "shelf")
    await shelf.write("a", {"by": 5}, context(a=5))
    with pytest.raises(Conflict, match="written under token 5; 4 is too old"):
        await shelf.write("a", {"by": 4}, context(a=4))
    await shelf.write("a", {"by": 5.5}, context(a=5))
    assert await shelf.get("a") == {"by": 5.5}
    await shelf.close()


async def test_each_ledger_has_tokens_of_its_own(durable_url: str) -> None:
    """Another ledger's writes neither bind us nor make our own stale writers welcome again."""
    shelf = Documents(durable_url, "shelf")

    def under(ledger: str, token: int) -> Context:
        return Context(call_id="c", actor="ann", attempt=1, idempotency_key=None, tokens={"a": token}, ledger=ledger)

    await shelf.write("a", {"by": "ours"}, under("ours", 5))
    await shelf.write("a", {"by": "theirs"}, under("theirs", 2))
    with pytest.raises(Conflict, match="written under token 5; 4 is too old"):
        await shelf.write("a", {"by": "stale"}, under("ours", 4))
    with pytest.raises(Conflict, match="written under token 2; 1 is too old"):
        await shelf.write("a", {"by": "stale"}, under("theirs", 1))
    assert await shelf.get("a") == {"by": "theirs"}
    await shelf.close()


async def test_many_writers_lose_no_update(durable_url: str) -> None:
    shelf, other = Documents(durable_url, "shelf"), Documents(durable_url, "shelf")
    await shelf.write("a", {"n": 0})

    async def bump(documents: Documents) -> None:
        while True:
            found = await documents.read_state("a")
            assert found is not None
            try:
                return await documents.write("a", {"n": found.value["n"] + 1}, version=found.version)
            except Conflict:
                continue

    await asyncio.gather(*(bump(documents) for documents in (shelf, other) for _ in range(10)))
    assert await shelf.get("a") == {"n": 20}
    await shelf.close()
    await other.close()


async def test_documents_are_paged_found_and_counted(durable_url: str) -> None:
    shelf = Documents(durable_url, "shelf", indexed=("board",))
    await shelf.write_all({f"book:{n:02}": {"n": n, "board": "top" if n % 3 else "low"} for n in range(12)})
    await shelf.write("card:1", {"board": "low"})
    first = await shelf.page("book:", limit=5)
    assert list(first) == [f"book:{n:02}" for n in range(5)]
    second = await shelf.page("book:", after="book:04", limit=100)
    assert list(second) == [f"book:{n:02}" for n in range(5, 12)]
    assert await shelf.page("book:", after="book:11") == {}
    low = await shelf.find("board", ["low", "nowhere"], prefix="book:")
    assert [item.value["n"] for item in low.values()] == [0, 3, 6, 9]
    assert list(await shelf.find("board", ["low"])) == ["book:00", "book:03", "book:06", "book:09", "card:1"]
    assert (await shelf.count("book:"), await shelf.count(), await shelf.count("x")) == (12, 13, 0)
    await shelf.write_all({"é": {"board": "low"}, "é\U0010ffff!": {}, "ê": {}})
    assert list(await shelf.page("é")) == ["é", "é\U0010ffff!"]
    assert await shelf.count("é") == 2
    assert list(await shelf.find("board", ["low"], prefix="é")) == ["é"]
    some = await shelf.read_many(["book:01", "card:1", "none"])
    assert {key: item.version for key, item in some.items()} == {"book:01": "1", "card:1": "1"}
    many = {f"many:{n:04}": {"n": n} for n in range(1100)}
    await shelf.write_all(many)
    assert len(await shelf.read_many(many)) == 1100
    with pytest.raises(ConfigError, match="no index on 'n'"):
        await shelf.find("n", ["1"])
    await shelf.close()


async def test_documents_are_written_together_or_not_at_all(durable_url: str) -> None:
    shelf = Documents(durable_url, "shelf")
    assert await shelf.write_all({"a": {"n": 1}, "b": {"n": 1}}) == {"a": "1", "b": "1"}
    with pytest.raises(Conflict, match="'b' is at version 1, not 7"):
        await shelf.write_all({"a": {"n": 2}, "b": {"n": 2}}, versions={"b": "7"})
    assert await shelf.snapshot() == {"a": {"n": 1}, "b": {"n": 1}}
    with pytest.raises(Conflict, match="'b' is at version 1, not absent"):
        await shelf.write_all({"a": {"n": 2}}, versions={"b": "0"})
    await shelf.write_all({"c": {"n": 1}}, versions={"b": "1", "c": "0"})
    await shelf.write("c", None)
    await shelf.write_all({"c": {"n": 2}}, versions={"c": "0"})
    await shelf.write("c", None)
    with pytest.raises(Conflict, match="'c' is absent, not 2"):
        await shelf.write("c", {}, version="2")
    await shelf.write_all({"a": {"n": 3}}, context(a=2, board=9))
    with pytest.raises(Conflict, match="'board' was written under token 9; 8 is too old"):
        await shelf.write_all({"b": {"n": 4}}, context(b=3, board=8))
    assert await shelf.get("b") == {"n": 1}
    await shelf.close()


async def test_a_write_may_rest_on_what_a_search_found(durable_url: str) -> None:
    """Whoever points at `a` meanwhile is not overlooked: neither before the write, nor beside it."""
    shelf, other = Documents(durable_url, "shelf", indexed=["of"]), Documents(durable_url, "shelf", indexed=["of"])
    await shelf.write_all({"a": {}, "x": {"of": "a"}})
    found = await shelf.find("of", ["a"])
    await shelf.write_all({"x": {"of": "b"}}, versions={"a": "1"}, finding={("of", "a"): found})
    await other.write_all({"y": {"of": "a"}}, versions={"a": "1"})
    with pytest.raises(Conflict, match="of 'a' does not find what it did: y"):
        await shelf.write_all({"a": None}, versions={"a": "1"}, finding={("of", "a"): ()})
    for number in range(20):
        await shelf.write_all({"a": {"n": number}, "y": None})
        version = expect(await shelf.read_state("a")).version
        gone = shelf.write_all({"a": None}, versions={"a": version}, finding={("of", "a"): ()})
        pointing = other.write_all({"y": {"of": "a"}}, versions={"a": version})
        results = await asyncio.gather(gone, pointing, return_exceptions=True)
        assert [isinstance(result, Conflict) for result in results].count(True) == 1, results
    await shelf.close()
    await other.close()


async def test_an_undo_of_several_documents_is_one_write(durable_url: str) -> None:
    shelf = Documents(durable_url, "shelf")
    await shelf.write_all({"a": {"n": 1}, "b": {"n": 1}})

    @tool(
        effect="write",
        key=lambda _arguments: ("a", "b"),
        resource=shelf,
        simulate=lambda state, arguments: {"n": state["n"] + arguments["by"]},
    )
    async def add(by: int, context: Context) -> int:
        found = await shelf.snapshot()
        await shelf.write_all({key: {"n": item["n"] + by} for key, item in found.items()}, context)
        return by

    async with running(add, url="memory://") as runtime:
        assert (await runtime.call("add", {"by": 4}, actor="ann", run="r")).ok
        one_by_one, shelf.restore = shelf.restore, None  # type: ignore[assignment, method-assign]
        ((_step, outcome),) = await runtime.operations.undo(run="r")
        shelf.restore = one_by_one  # type: ignore[method-assign]
        assert outcome is not None
        assert outcome.ok
    assert await shelf.snapshot() == {"a": {"n": 1}, "b": {"n": 1}}
    await shelf.close()


async def test_a_write_that_was_rolled_back_is_not_in_doubt(tmp_path: Any) -> None:
    shelf = Documents(f"sqlite:///{tmp_path}/shelf.db", "shelf", busy_s=0.05)
    await shelf.write("a", {"n": 1})
    blocking = sqlite3.connect(tmp_path / "shelf.db", isolation_level=None)
    blocking.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="held"):
        await shelf.write("a", {"n": 2})
    blocking.execute("ROLLBACK")
    blocking.close()
    await shelf.write("a", {"n": 3})
    assert await shelf.get("a") == {"n": 3}
    await shelf.close()


async def test_documents_are_opened_by_many_at_once_and_reconnect(postgres: str) -> None:
    shelves = [Documents(postgres, "shelf", indexed=("board", "name")) for _ in range(6)]
    await asyncio.gather(*(shelf.write(f"k{n}", {"board": "b"}) for n, shelf in enumerate(shelves)))
    assert await shelves[0].count() == 6
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
    with pytest.raises((Unavailable, StoreError)):
        await shelves[1].write("k1", {"board": "c"})
    await shelves[1].write("k1", {"board": "c"})
    assert await shelves[1].get("k1") == {"board": "c"}
    for shelf in shelves:
        with contextlib.suppress(StoreError):
            await shelf.close()


def test_a_table_needs_a_plain_name(tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match="cannot be the name of a table"):
        Documents(f"sqlite:///{tmp_path}/x.db", "x; DROP TABLE records")


class Server:
    """A JSON API with ETags and idempotency keys; `answers` are given first: a status, or 'drop'."""

    def __init__(self) -> None:
        self.items: dict[str, Any] = {}
        self.versions: dict[str, int] = {}
        self.seen: list[tuple[str, str, str | None]] = []
        self.answers: list[Any] = []
        self.etag = '"{version}"'
        handler = type("Handler", (_Handler,), {"world": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.base = f"http://127.0.0.1:{self._server.server_address[1]}/items"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    world: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer("GET")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def log_message(self, *_arguments: Any) -> None: ...

    def _answer(self, method: str) -> None:
        world, key = self.world, self.path.rpartition("/")[2]
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        world.seen.append((method, key, self.headers.get("Idempotency-Key")))
        given = world.answers.pop(0) if world.answers and method != "GET" else None
        if isinstance(given, int):
            return self._send(given, {"error": "as asked"}, {"Retry-After": "0.01"} if given == 429 else {})
        match = self.headers.get("if-match")
        if match is not None and match != f'"{world.versions.get(key, 0)}"':
            return self._send(412, {"error": "moved"})
        if method == "GET" and key not in world.items:
            return self._send(404, {"error": "none"})
        if method == "PUT":
            world.items[key] = json.loads(body)
            world.versions[key] = world.versions.get(key, 0) + 1
        elif method == "DELETE":
            world.items.pop(key, None)
        if given == "drop":
            self.close_connection = True
            self.connection.close()
            return None
        return self._send(200, world.items.get(key), {"ETag": world.etag.format(version=world.versions.get(key, 0))})

    def _send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


async def test_http_documents_use_etags_and_idempotency_keys(server: Server) -> None:
    async with httpx.AsyncClient() as client:
        shelf = HttpDocuments(client, server.base, "shelf")
        assert await shelf.read_state("a b/c") is None
        await shelf.write("a b/c", {"n": 1}, context())
        found = await shelf.read_state("a b/c")
        assert (found.value, found.version) == ({"n": 1}, '"1"')
        with pytest.raises(Conflict):
            await shelf.write("a b/c", {"n": 2}, version='"7"')
        await shelf.restore("a b/c", None)
        assert await shelf.read_state("a b/c") is None
        await shelf.restore("never", None)
    method, path, key = server.seen[1]
    assert (method, path) == ("PUT", "a%20b%2Fc")
    assert expect(key).startswith("key.1:")


async def test_a_document_that_is_null_is_not_taken_for_one_that_is_not_there(server: Server) -> None:
    """Undo would remove what it cannot tell from nothing."""
    server.items["a"] = None
    async with httpx.AsyncClient() as client:
        shelf = HttpDocuments(client, server.base, "shelf")

        @tool(effect="write", key="{id}", resource=shelf, simulate=lambda _state, a: {"n": a["n"]})
        async def put(id: str, n: int, context: Context) -> int:
            """Put."""
            await shelf.write(id, {"n": n}, context)
            return n

        async with running(put) as runtime:
            refused = await runtime.call("put", {"id": "a", "n": 1}, actor="ann", call_id="1")
            assert await runtime.operations.undo(key="shelf/a") == ()
    assert (refused.status, "'a' is JSON null" in refused.summary) == (Status.FAILED, True)
    assert ({method for method, _key, _given in server.seen}, server.items) == ({"GET"}, {"a": None})


async def test_a_weak_etag_is_no_version(server: Server) -> None:
    server.etag = 'W/"{version}"'
    async with httpx.AsyncClient() as client:
        shelf = HttpDocuments(client, server.base, "shelf")
        await shelf.write("a", {"n": 1})
        assert await shelf.read_state("a") == {"n": 1}
        planned = Context(call_id="c", actor="ann", attempt=1, versions={"a": 'W/"1"'})
        for more in ({"version": 'W/"1"'}, {"context": planned}):
            with pytest.raises(InvalidInput, match="is a weak ETag, which If-Match never matches"):
                await shelf.write("a", {"n": 2}, **more)
    assert [method for method, _key, _given in server.seen] == ["PUT", "GET"]
    assert server.items == {"a": {"n": 1}}


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (429, RateLimited),
        (503, InDoubt),
        (500, InDoubt),
        ("drop", InDoubt),
        (400, InvalidInput),
        (404, NotFound),
        (409, Conflict),
    ],
)
async def test_status_codes_are_typed_errors(server: Server, answer: Any, kind: type[Exception]) -> None:
    server.answers.append(answer)
    async with httpx.AsyncClient() as client:
        shelf = HttpDocuments(client, server.base, "shelf")
        with pytest.raises(kind):
            await shelf.write("a", {"n": 1}, context())


async def test_a_server_that_is_not_there_was_never_reached(server: Server) -> None:
    server.stop()
    async with httpx.AsyncClient() as client:
        shelf = HttpDocuments(client, server.base, "shelf")
        with pytest.raises(NothingLanded):
            await shelf.write("a", {"n": 1})
        with pytest.raises(NothingLanded):
            await shelf.read_state("a")


QUICK = RetryRule(max_attempts=5, base_s=0.001, cap_s=0.01)


@pytest.mark.parametrize(
    ("answers", "keyed", "tries"),
    [
        ([429, 429, 200], False, 3),  # nothing can have landed
        ([500, 503, "drop", 200], True, 4),  # it may have landed, but the server knows it by its key
    ],
)
async def test_a_change_is_tried_again_where_that_is_safe(
    server: Server, answers: list[Any], keyed: bool, tries: int
) -> None:
    server.answers += [item for item in answers if item != 200]
    async with httpx.AsyncClient() as bare:
        client = HttpClient(bare, retry=QUICK, keyed=keyed)
        await client.request("PUT", f"{server.base}/a", Effect.WRITE, json={"n": 1}, key="k.1")
    assert server.seen == [("PUT", "a", "k.1")] * tries


async def test_the_body_of_a_request_is_its_json_and_what_nothing_reads_is_refused_before_it_is_sent(
    server: Server,
) -> None:
    async with httpx.AsyncClient() as bare:
        client, options = HttpClient(bare), dict[str, Any]()
        for name, hint in (("jsn", "did you mean 'json'"), ("data", "it takes accept"), ("timeout", "it takes accept")):
            options = {name: {"n": 1}}
            with pytest.raises(ConfigError, match=f"HttpClient.request takes no '{name}'; {hint}"):
                await client.request("POST", f"{server.base}/a", **options)
        assert server.seen == []
        options = {"timeout": 5}
        with pytest.raises(ConfigError, match="HttpClient takes no 'timeout'; did you mean 'timeout_s'"):
            HttpClient(bare, **options)
        await client.request("PUT", f"{server.base}/a", json={"n": 1})
        assert (await client.request("GET", f"{server.base}/a")).json() == {"n": 1}


async def test_a_change_is_not_followed_elsewhere_and_a_post_is_no_read(server: Server) -> None:
    async with httpx.AsyncClient(follow_redirects=True) as bare:
        client = HttpClient(bare, retry=QUICK)
        server.answers += [303]
        with pytest.raises(InDoubt):
            await client.request("PUT", f"{server.base}/a", json={})
        server.answers += [500]
        with pytest.raises(InDoubt):
            await client.request("PUT", f"{server.base}/a", json={})
        assert len(server.seen) == 2
        with pytest.raises(Unavailable):
            await client.request("GET", "http://127.0.0.1:9/", within_s=30)


@pytest.mark.parametrize(
    ("answer", "key", "keyed"), [(500, "k.1", False), (503, "k.1", False), ("drop", None, True), (400, "k.1", True)]
)
async def test_a_change_that_may_have_landed_or_cannot_is_not_tried_again(
    server: Server, answer: Any, key: str | None, keyed: bool
) -> None:
    server.answers += [answer]
    async with httpx.AsyncClient() as bare:
        client = HttpClient(bare, retry=QUICK, keyed=keyed)
        with pytest.raises((InDoubt, InvalidInput)):
            await client.request("PUT", f"{server.base}/a", Effect.WRITE, json={"n": 1}, key=key)
    assert len(server.seen) == 1


@pytest.mark.slow
async def test_retry_after_is_waited_for_and_a_silent_server_is_given_up(server: Server) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    server.answers += [429]
    async with httpx.AsyncClient() as bare:
        client = HttpClient(bare, retry=QUICK, sleep=sleep)
        await client.request("PUT", f"{server.base}/a", Effect.WRITE, json={})
        assert len(waited) == 1
        silent = socket.create_server(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        slow = HttpClient(bare, timeout_s=0.05, retry=QUICK, keyed=True)
        with pytest.raises(TimedOut):
            await slow.request("GET", f"http://127.0.0.1:{port}/")
        with pytest.raises(InDoubt):
            await slow.request("PUT", f"http://127.0.0.1:{port}/", Effect.WRITE, json={}, key="k")
        silent.close()


@pytest.mark.slow
async def test_a_governed_write_over_http_is_retried_lost_and_undone(server: Server) -> None:
    async with httpx.AsyncClient() as client:
        shelf = HttpDocuments(client, server.base, "shelf")

        @tool(
            effect="write",
            key="{id}",
            resource=shelf,
            simulate=lambda _state, arguments: {"title": arguments["title"]},
            retry=RetryRule(max_attempts=3, base_s=0.001),
        )
        async def title(id: str, title: str, context: Context) -> str:
            await shelf.write(id, {"title": title}, context)
            return title

        async with running(title) as runtime:
            server.answers += [429, 429]
            retried = await runtime.call("title", {"id": "a", "title": "x"}, actor="ann", run="r")
            server.answers.append("drop")
            lost = await runtime.call("title", {"id": "b", "title": "y"}, actor="ann", run="r")
            done = await runtime.operations.undo(run="r")
    assert (retried.ok, len(retried.attempts)) == (True, 3)
    assert lost.status is Status.OK  # the resource shows that it landed
    assert "its answer is lost" in lost.summary
    puts = [key for method, name, key in server.seen if method == "PUT" and name == "a"]
    assert len(set(puts)) == 1
    assert all(outcome is not None and outcome.ok for _step, outcome in done)
    assert server.items == {}
