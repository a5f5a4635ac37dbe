"""A call of which something may have landed has not failed, whatever its last step says: it is in doubt, and is not
repeated; and a call that is halted is not tried again."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

httpx = pytest.importorskip("httpx")

from interlock import Context, Runtime, Status, Tool, tool  # noqa: E402
from interlock.errors import (  # noqa: E402
    Conflict,
    ContractError,
    Forbidden,
    InDoubt,
    InvalidInput,
    NotFound,
    NothingLanded,
    StoreError,
    Unavailable,
)
from interlock.policy import parse_policy  # noqa: E402
from interlock.resources import Documents, HttpClient, HttpDocuments  # noqa: E402
from interlock.state import Halted  # noqa: E402
from interlock.stores import MemoryStore  # noqa: E402
from interlock.tools import RetryRule  # noqa: E402
from interlock.tools.egress import Egress, raise_for_status  # noqa: E402
from interlock.tools.wire import Sending  # noqa: E402
from interlock.values import Effect, Outcome, Versioned  # noqa: E402
from tests.conftest import expect, on_stores  # noqa: E402
from tests.test_changes import OPEN, Shelf, running  # noqa: E402

QUICK = RetryRule(max_attempts=4, base_s=0.001, cap_s=0.002)
ONCE = RetryRule(max_attempts=1)
LOCAL = Egress(schemes=("http",), networks=("127.0.0.0/8",))


class Site:
    """Documents at their paths, with ETags; it does nothing for an idempotency key that it knows, and /answers/N and
    /to/WHERE answer with a status, and lead elsewhere."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.items: dict[str, tuple[Any, int]] = {}
        self.keys: dict[str, bytes] = {}

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        method, path, _ = first.split(" ")
        writer.write(self._answer(method, path, headers, body))
        await writer.drain()
        writer.close()

    def _answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> bytes:
        if path.startswith("/answers/"):
            return _said(int(path[9:]))
        if method == "GET":
            value, version = self.items.get(path, (None, 0))
            return _said(200, value, etag=f'"{version}"') if version else _said(404)
        expected, key = headers.get("if-match"), headers.get("idempotency-key")
        if expected is not None and expected != f'"{self.items[path][1]}"':
            return _said(412)
        if key is not None and key in self.keys:
            return self.keys[key]
        self.made.append(path)
        self.items[path] = (json.loads(body), self.items.get(path, (None, 0))[1] + 1)
        said = _said(303, location=path[3:]) if path.startswith("/to") else _said(200, "done")
        if key is not None:
            self.keys[key] = said
        return said


def _said(status: int, value: Any = None, **headers: str) -> bytes:
    body = b"" if value is None else json.dumps(value).encode()
    named = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
    return f"HTTP/1.1 {status} So\r\n{named}connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


async def twice(*tools: Tool, name: str, arguments: dict[str, Any], url: str = "memory://") -> tuple[Outcome, Outcome]:
    """The outcomes of one call that is asked for again."""
    async with running(*tools, url=url) as runtime:
        first = await runtime.call(name, arguments, actor="ann", call_id="order-1")
        return first, await runtime.call(name, arguments, actor="ann", call_id="order-1")


# On the wire

Ask = Callable[[str, str, str], Awaitable[Any]]


async def over_egress(url: str, path: str, method: str) -> Any:
    async with LOCAL.client() as client:
        raise_for_status(await client.request(method, url + path, json={}))


async def over_client(url: str, path: str, method: str) -> Any:
    async with httpx.AsyncClient() as bare:
        await HttpClient(bare).request(method, url + path, json={})


async def over_client_of_egress(url: str, path: str, method: str) -> Any:
    async with LOCAL.client() as bare:
        await HttpClient(bare).request(method, url + path, json={})


WAYS = [over_egress, over_client, over_client_of_egress]


@pytest.mark.parametrize("ask", WAYS)
@pytest.mark.parametrize("then", ["POST", "GET"])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 412, 413, 422, 429])
async def test_a_refusal_after_a_request_that_landed_leaves_the_call_in_doubt(ask: Ask, then: str, status: int) -> None:
    site = Site()

    @tool(effect="send", retry=QUICK)
    async def pay(url: str) -> str:
        await ask(url, "/pay", "POST")
        await ask(url, f"/answers/{status}", then)
        return "paid"

    async with site.open() as url:
        first, again = await twice(pay, name="pay", arguments={"url": url})
    assert (first.status, again.status, site.made) == (Status.UNKNOWN, Status.UNKNOWN, ["/pay"])
    assert "a request or write of this call may have landed" in expect(first.problem).message


@pytest.mark.parametrize("ask", WAYS)
@pytest.mark.parametrize(("status", "ends"), [(403, Status.FAILED), (404, Status.NO_DATA), (412, Status.FAILED)])
async def test_a_refusal_of_everything_that_was_sent_has_changed_nothing(ask: Ask, status: int, ends: Status) -> None:
    site, asked = Site(), list[str]()

    @tool(effect="send", retry=QUICK)
    async def pay(url: str) -> str:
        asked.append(url)
        for method in ("GET", "POST", "POST"):
            try:
                await ask(url, f"/answers/{status}", method)
            except (Conflict, InvalidInput, NotFound):
                continue
        await ask(url, f"/answers/{status}", "POST")
        return "paid"

    async with site.open() as url:
        first, again = await twice(pay, name="pay", arguments={"url": url})
    assert (first.status, again.status, len(asked)) == (ends, ends, 2)


@pytest.mark.parametrize(
    ("store_url", "where"),
    on_stores(["http://10.1.2.3/receipt", "/answers/404", "ftp://x/y"], "/answers/404"),
    indirect=["store_url"],
)
async def test_a_request_that_was_answered_with_a_redirect_may_have_landed(where: str, store_url: str) -> None:
    site = Site()

    @tool(effect="send", egress=LOCAL, retry=QUICK)
    async def pay(path: str) -> str:
        async with LOCAL.client() as client:
            raise_for_status(await client.post(url + path, json={}))
        return "paid"

    async with site.open() as url:
        first, again = await twice(pay, name="pay", arguments={"path": f"/to{where}"}, url=store_url)
    assert (first.status, again.status, len(site.made)) == (Status.UNKNOWN, Status.UNKNOWN, 1)


@pytest.mark.parametrize("ask", [httpx.AsyncClient, LOCAL.client])
async def test_a_post_that_is_said_to_read_leaves_no_doubt(ask: Callable[[], Any]) -> None:
    site = Site()

    @tool(effect="send", retry=QUICK)
    async def pay(url: str) -> str:
        async with ask() as bare:
            client = HttpClient(bare)
            await client.request("POST", f"{url}/search", Effect.READ, json={})
            await client.request("POST", f"{url}/answers/422", json={})
        return "paid"

    async with site.open() as url:
        first, _ = await twice(pay, name="pay", arguments={"url": url})
    assert (first.status, expect(first.problem).reason, len(site.made)) == (Status.FAILED, "invalid_input", 2)


async def conflict() -> Any:
    raise Conflict("it moved")


async def not_found() -> Any:
    raise NotFound("there is none")


async def reported() -> Any:
    return {"success": False}


@pytest.mark.parametrize(
    ("store_url", "end"), on_stores([conflict, not_found, reported], not_found), indirect=["store_url"]
)
async def test_whatever_a_call_ends_with_what_a_call_of_it_has_sent_may_have_landed(
    end: Callable[[], Awaitable[Any]], store_url: str
) -> None:
    sent: list[str] = []
    runtimes: list[Runtime] = []

    @tool(effect="send", repeatable=True)
    async def post() -> str:
        sent.append("x")
        return "sent"

    @tool(effect="send", retry=QUICK)
    async def charge() -> Any:
        assert (await runtimes[0].call("post", {}, actor="ann")).ok
        return await end()

    async with running(post, charge, url=store_url) as runtime:
        runtimes.append(runtime)
        first = await runtime.call("charge", {}, actor="ann", call_id="order-1")
        again = await runtime.call("charge", {}, actor="ann", call_id="order-1")
    assert (first.status, again.status, len(sent)) == (Status.UNKNOWN, Status.UNKNOWN, 1)


async def test_what_is_refused_for_good_is_not_tried_again_where_a_lost_answer_would_be() -> None:
    site = Site()

    @tool(effect="send", idempotent=True, retry=QUICK)
    async def pay(url: str, context: Context) -> str:
        assert context.idempotency_key
        await over_egress(url, "/pay", "POST")
        raise InvalidInput("no")

    async with site.open() as url:
        first, _ = await twice(pay, name="pay", arguments={"url": url})
    assert (first.status, len(first.attempts), site.made) == (Status.UNKNOWN, 1, ["/pay"])


async def test_a_probe_says_that_nothing_landed_after_all(store_url: str) -> None:
    site = Site()

    async def absent(_arguments: Any, _context: Context) -> bool:
        return False

    @tool(effect="send", retry=QUICK, probe=absent)
    async def pay(url: str) -> str:
        await over_egress(url, "/draft", "POST")
        raise InvalidInput("no")

    async with site.open() as url:
        first, _ = await twice(pay, name="pay", arguments={"url": url}, url=store_url)
    assert (first.status, expect(first.problem).reason) == (Status.FAILED, "invalid_input")


# What an attempt leaves running


class Left:
    """A task that the first attempt starts and does not wait for; it goes on when it is let go."""

    def __init__(self, work: Callable[[], Awaitable[Any]]) -> None:
        self.work, self._go, self.tasks = work, asyncio.Event(), list[asyncio.Task[Any]]()

    def start(self) -> None:
        async def later() -> Any:
            await self._go.wait()
            return await self.work()

        self.tasks.append(asyncio.create_task(later()))

    async def end(self) -> Any:
        """Let it go, and wait for what it comes to."""
        self._go.set()
        (found,) = await asyncio.gather(*self.tasks, return_exceptions=True)
        return found


def paying(left: Left) -> Tool:
    """A tool whose first attempt leaves a task behind that pays; the second one pays when that has come to its end."""

    @tool(effect="send", name="pay", retry=QUICK)
    async def paid() -> str:
        if not left.tasks:
            left.start()
            raise NothingLanded("the bell is not answered")
        await left.end()
        await left.work()
        return "paid"

    return paid


@pytest.mark.parametrize(("store_url", "ask"), on_stores(WAYS, over_client), indirect=["store_url"])
async def test_a_task_of_an_attempt_that_changed_nothing_does_not_pay_beside_the_next_one(
    ask: Ask, store_url: str
) -> None:
    site = Site()
    async with site.open() as url:
        left = Left(lambda: ask(url, "/pay", "POST"))
        async with running(paying(left), url=store_url) as runtime:
            outcome = await runtime.call("pay", {}, actor="ann", call_id="order-1")
    assert (outcome.status, len(outcome.attempts), site.made) == (Status.OK, 2, ["/pay"])
    assert "the attempt that started the task" in str(left.tasks[0].exception())


async def test_a_task_of_an_attempt_that_changed_nothing_writes_no_document_beside_the_next_one(tmp_path: Path) -> None:
    docs, entries = Documents(f"sqlite:///{tmp_path / 'docs.db'}", "docs"), iter("ab")
    left = Left(lambda: docs.write(next(entries), {"paid": True}))
    async with running(paying(left)) as runtime:
        outcome = await runtime.call("pay", {}, actor="ann", call_id="order-1")
    assert (outcome.status, len(await docs.snapshot())) == (Status.OK, 1)
    await docs.close()


@pytest.mark.parametrize("ask", WAYS)
async def test_a_task_of_a_call_that_changed_nothing_sends_nothing_when_the_call_has_failed(ask: Ask) -> None:
    site = Site()
    async with site.open() as url:
        left = Left(lambda: ask(url, "/pay", "POST"))

        @tool(effect="send")
        async def pay() -> str:
            if left.tasks:
                await ask(url, "/pay", "POST")
                return "paid"
            left.start()
            raise InvalidInput("no such account")

        async with running(pay) as runtime:
            first = await runtime.call("pay", {}, actor="ann", call_id="order-1")
            await left.end()
            again = await runtime.call("pay", {}, actor="ann", call_id="order-1")
    assert (first.status, again.status, site.made) == (Status.FAILED, Status.OK, ["/pay"])


async def test_a_task_of_a_call_that_worked_goes_on_sending() -> None:
    site = Site()
    async with site.open() as url:
        left = Left(lambda: over_egress(url, "/receipt", "POST"))

        @tool(effect="send")
        async def pay() -> str:
            left.start()
            return "paid"

        async with running(pay) as runtime:
            assert (await runtime.call("pay", {}, actor="ann", call_id="order-1")).ok
            await left.end()
    assert site.made == ["/receipt"]


async def test_a_call_that_such_a_task_makes_is_not_made_and_says_why() -> None:
    sent: list[str] = []

    @tool(effect="send", repeatable=True)
    async def post() -> str:
        sent.append("x")
        return "sent"

    left = Left(lambda: runtime.call("post", {}, actor="ann"))
    async with running(paying(left), post) as runtime:
        outcome = await runtime.call("pay", {}, actor="ann", call_id="order-1")
        refused = left.tasks[0].result()
    assert (outcome.status, refused.status, len(sent)) == (Status.OK, Status.FAILED, 1)
    assert "has changed nothing, so this one is not made" in refused.problem.message


async def test_a_call_that_is_on_its_way_when_the_attempt_ends_leaves_it_in_doubt(store_url: str) -> None:
    begun, go, calls = asyncio.Event(), asyncio.Event(), list[asyncio.Task[Outcome]]()

    @tool(effect="send", repeatable=True)
    async def post() -> str:
        begun.set()
        await go.wait()
        return "sent"

    @tool(effect="send", retry=QUICK)
    async def pay() -> str:
        calls.append(asyncio.create_task(runtime.call("post", {}, actor="ann")))
        await begun.wait()
        raise NothingLanded("the bell is not answered")

    async with running(pay, post, url=store_url) as runtime:
        outcome = await runtime.call("pay", {}, actor="ann", call_id="order-1")
        go.set()
        assert (await calls[0]).ok
    assert (outcome.status, len(calls)) == (Status.UNKNOWN, 1)


async def test_a_call_that_was_on_its_way_and_changed_nothing_leaves_no_doubt() -> None:
    @tool(effect="send", repeatable=True)
    async def post() -> str:
        raise InvalidInput("no such address")

    @tool(effect="send", retry=QUICK)
    async def pay() -> str:
        assert not (await runtime.call("post", {}, actor="ann")).ok
        raise InvalidInput("no such account")

    async with running(pay, post) as runtime:
        assert (await runtime.call("pay", {}, actor="ann", call_id="order-1")).status is Status.FAILED


@pytest.mark.parametrize(
    ("store_url", "point"),
    on_stores(["perform.halts", "write.look_after"], "perform.halts"),
    indirect=["store_url"],
)
async def test_what_a_thread_sends_before_the_next_attempt_leaves_the_call_in_doubt(point: str, store_url: str) -> None:
    tries: list[str] = []

    class Sends:
        """A thread that a tool has started by itself, and that is at its request when the engine is at this point."""

        def at(self, name: str) -> None:
            if name == point and tries:
                sender = threading.Thread(target=Sending, args=("POST",))
                sender.start()
                sender.join()

    shelf = Looked(Sends())

    @tool(effect="write", key="{id}", resource=shelf, retry=QUICK if point == "perform.halts" else ONCE)
    async def pay(id: str) -> str:
        tries.append("x")
        raise NothingLanded("the bell is not answered")

    async with running(pay, url=store_url, faults=Sends()) as runtime:
        outcome = await runtime.call("pay", {"id": "a"}, actor="ann", call_id="order-1")
    assert (outcome.status, len(tries)) == (Status.UNKNOWN, 1)


class Looked(Shelf):
    """A resource that says when it is looked at."""

    def __init__(self, faults: Any) -> None:
        super().__init__(a={"title": "x"})
        self._faults = faults

    async def read_state(self, key: str) -> Any:
        self._faults.at("write.look_after")
        return await super().read_state(key)


async def test_what_was_refused_because_its_attempt_was_over_shows_nothing_about_the_next_one() -> None:
    shelf, left = Shelf(a={"title": "x"}, b={"title": "x"}), list[asyncio.Task[Any]]()

    async def send() -> Sending:
        return Sending("POST")

    @tool(effect="write", key=lambda _arguments: ("a", "b"), resource=shelf, retry=QUICK)
    async def book() -> str:
        if not left:
            left.append(asyncio.create_task(send()))  # takes its first step in the pause before the next attempt
            raise NothingLanded("the bell is not answered")
        shelf.items = {"a": {"title": "y"}, "b": {"title": "y"}}
        raise Conflict("somebody else was faster")

    first, _ = await twice(book, name="book", arguments={})
    assert isinstance(left[0].exception(), Forbidden)
    assert (first.status, len(first.attempts)) == (Status.UNKNOWN, 2)


async def test_a_resource_that_is_looked_at_by_a_post_leaves_no_doubt() -> None:
    site, tries = Site(), list[str]()

    class Asked(Shelf):
        async def read_state(self, key: str) -> Any:
            await over_egress(url, "/search", "POST")
            return await super().read_state(key)

    @tool(effect="write", key="{id}", resource=Asked(a={"title": "x"}), retry=QUICK)
    async def book(id: str) -> str:
        tries.append(id)
        raise NothingLanded("the bell is not answered")

    async with site.open() as url:
        first, _ = await twice(book, name="book", arguments={"id": "a"})
    assert (first.status, len(first.attempts)) == (Status.FAILED, 4)


# In documents and other resources


@asynccontextmanager
async def two_writes(tmp_path: Path) -> AsyncIterator[tuple[Tool, Documents, list[Callable[[], object]]]]:
    """A tool that appends to a log and then writes a document, and what happens in between."""
    docs = Documents(f"sqlite:///{tmp_path / 'docs.db'}", "docs", busy_s=0.05)
    between: list[Callable[[], object]] = []

    @tool(effect="write", key=lambda arguments: ("log", arguments["id"]), resource=docs, retry=QUICK)
    async def book(id: str, context: Context) -> bool:
        found = await docs.read_state("log")
        entries = [] if found is None else found.value["entries"]
        await docs.write("log", {"entries": [*entries, id]}, context)
        while between:
            between.pop()()
        await docs.write(id, {"done": True}, context)
        return True

    yield book, docs, between
    await docs.close()


async def test_a_document_that_was_written_is_not_taken_for_nothing_when_the_next_one_conflicts(
    tmp_path: Path, store_url: str
) -> None:
    async with two_writes(tmp_path) as (book, docs, between):
        await docs.write("a", {"done": False})
        with sqlite3.connect(tmp_path / "docs.db", isolation_level=None) as others:
            between.append(lambda: others.execute("UPDATE documents_docs SET version = 7 WHERE key = 'a'"))
            first, again = await twice(book, name="book", arguments={"id": "a"}, url=store_url)
        others.close()
        assert (first.status, again.status) == (Status.UNKNOWN, Status.UNKNOWN)
        assert await docs.get("log") == {"entries": ["a"]}


async def test_a_document_that_was_written_is_not_written_again_when_the_next_one_is_locked(tmp_path: Path) -> None:
    async with two_writes(tmp_path) as (book, docs, between):
        await docs.write("b", {"done": False})
        others = sqlite3.connect(tmp_path / "docs.db", isolation_level=None)
        between.append(lambda: others.execute("BEGIN IMMEDIATE"))
        first, _ = await twice(book, name="book", arguments={"id": "a"})
        others.close()
        assert (first.status, [attempt.error for attempt in first.attempts]) == (Status.UNKNOWN, ["in_doubt"])
        assert await docs.get("log") == {"entries": ["a"]}


@pytest.mark.parametrize("body", ['{"done":true}', '{"done":"elsewhere"}'])
async def test_a_first_write_that_conflicts_has_changed_nothing_whatever_others_did(tmp_path: Path, body: str) -> None:
    docs, asked = Documents(f"sqlite:///{tmp_path / 'docs.db'}", "docs"), list[str]()

    @tool(
        effect="write",
        key=lambda _arguments: ("a", "b"),
        resource=docs,
        simulate=lambda _state, _arguments: {"done": True},
    )
    async def both(context: Context) -> bool:
        asked.append(context.call_id)
        with sqlite3.connect(tmp_path / "docs.db") as others:
            others.execute("UPDATE documents_docs SET version = version + 1, body = ?", (body,))
        others.close()
        await docs.write_all({"a": {"done": True}, "b": {"done": True}}, context)
        return True

    await docs.write_all({"a": {"done": False}, "b": {"done": False}})
    first, again = await twice(both, name="both", arguments={})
    assert (first.status, expect(first.problem).reason, again.status) == (Status.FAILED, "conflict", Status.FAILED)
    assert len(asked) == 2
    await docs.close()


async def test_a_first_request_that_meets_another_version_has_changed_nothing(store_url: str) -> None:
    site = Site()
    async with site.open() as url, httpx.AsyncClient() as bare:
        books = HttpDocuments(bare, url, "books")

        @tool(effect="write", key="{id}", resource=books)
        async def retitle(id: str, context: Context) -> bool:
            site.items["/a"] = ("by somebody else", site.items["/a"][1] + 1)
            await books.write(id, "mine", context)
            return True

        await books.write("a", "old")
        first, again = await twice(retitle, name="retitle", arguments={"id": "a"}, url=store_url)
    assert (first.status, expect(first.problem).reason, again.status) == (Status.FAILED, "conflict", Status.FAILED)
    assert site.items["/a"] == ("by somebody else", 3)


class Versions(Shelf):
    """One that counts the versions of its items."""

    async def read_state(self, key: str) -> Any:
        found = await super().read_state(key)
        return None if found is None else Versioned(found, str(found["n"]))


SAID: list[Exception | None] = [NothingLanded("down"), InvalidInput("no"), NotFound("none"), None]


@pytest.mark.parametrize(("store_url", "shelf"), on_stores([Shelf, Versions], Versions), indirect=["store_url"])
@pytest.mark.parametrize("said", SAID)
async def test_a_resource_that_shows_a_change_is_believed_before_the_tool(
    shelf: type[Shelf], said: Exception | None, store_url: str
) -> None:
    shown = shelf(a={"n": 1})

    @tool(effect="write", key="{id}", resource=shown)
    async def change(id: str) -> Any:
        shown.items[id] = {"n": shown.items[id]["n"] + 1}
        if said is not None:
            raise said
        return {"success": False}

    first, again = await twice(change, name="change", arguments={"id": "a"}, url=store_url)
    assert (first.status, again.status, shown.items["a"]["n"]) == (Status.UNKNOWN, Status.UNKNOWN, 2)
    assert "what it was to change has changed meanwhile" in expect(first.problem).message


@pytest.mark.parametrize(
    ("becomes", "ends"),
    [
        ({"a": {"n": 5}}, Status.FAILED),  # by whoever it conflicts with
        ({"a": {"n": 5}, "b": {"n": 5}}, Status.UNKNOWN),
        ({"a": {"n": 2}}, Status.UNKNOWN),  # as it was planned
        ({"a": {"n": 2}, "b": {"n": 2}}, Status.OK),
    ],
)
async def test_a_conflict_accounts_for_one_key_that_is_not_what_was_planned(
    becomes: dict[str, Any], ends: Status
) -> None:
    shelf = Shelf(a={"n": 1}, b={"n": 1})

    @tool(
        effect="write", key=lambda _arguments: ("a", "b"), resource=shelf, simulate=lambda _state, _arguments: {"n": 2}
    )
    async def change() -> Any:
        shelf.items |= becomes
        raise Conflict("it moved")

    first, _ = await twice(change, name="change", arguments={})
    assert first.status is ends


async def test_a_conflict_with_many_parts_of_a_whole_resource_is_in_doubt() -> None:
    docs = {"a": {"n": 1}, "b": {"n": 1}}

    class Whole(Shelf):
        async def snapshot(self) -> dict[str, Any]:
            return dict(docs)

    @tool(effect="write", resource=Whole())
    async def clear(parts: list[str]) -> Any:
        for part in parts:
            docs[part] = {"n": docs[part]["n"] + 1}
        raise Conflict("it moved")

    async with running(clear) as runtime:
        one = await runtime.call("clear", {"parts": ["a"]}, actor="ann", call_id="1")
        two = await runtime.call("clear", {"parts": ["a", "b"]}, actor="ann", call_id="2")
    assert (one.status, two.status) == (Status.FAILED, Status.UNKNOWN)


# One idempotency key for each request


async def test_every_document_of_a_call_has_an_idempotency_key_of_its_own_in_every_attempt_the_same(
    store_url: str,
) -> None:
    site, lost = Site(), [Unavailable("its answer was lost")]
    async with site.open() as url, httpx.AsyncClient() as bare:
        books = HttpDocuments(HttpClient(bare, keyed=True), url, "books")

        @tool(
            effect="write",
            key=lambda _arguments: ("a", "b"),
            resource=books,
            simulate=lambda _state, _arguments, key: {"is": key},
            idempotent=True,
            retry=QUICK,
        )
        async def move(context: Context) -> bool:
            for key in ("a", "b"):
                await books.write(key, {"is": key}, context)
                await books.write(key, {"is": "passing"}, context)
                await books.write(key, {"is": key}, context)  # on purpose, and not the first one again
            if lost:
                raise lost.pop()
            return True

        first, _ = await twice(move, name="move", arguments={}, url=store_url)
    assert (first.status, first.deviates, len(first.attempts)) == (Status.OK, (), 2)
    assert (site.made, len(site.keys)) == (["/a"] * 3 + ["/b"] * 3, 6)
    assert {path: value for path, (value, _) in site.items.items()} == {"/a": {"is": "a"}, "/b": {"is": "b"}}


async def test_what_a_tool_asks_again_because_no_answer_came_has_the_key_that_it_had() -> None:
    keys: list[str] = []

    def answer(request: Any) -> Any:
        keys.append(request.headers["idempotency-key"])
        return httpx.Response(503 if len(keys) == 1 else 200)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as bare:
        books = HttpDocuments(bare, "http://shop.example/books", "books")

        @tool(effect="send")
        async def order(context: Context) -> bool:
            for _ in range(3):
                try:
                    await books.send("POST", "http://shop.example/orders", {"é": 1}, {}, context)
                except InDoubt:
                    continue
            return True

        await twice(order, name="order", arguments={})
    assert keys == [keys[0], keys[0], f"{keys[0]}:1"]


# A halt before a further attempt


@pytest.mark.parametrize("effect", ["read", "send"])
async def test_a_halt_that_another_process_has_just_made_stops_the_next_attempt(effect: str, durable_url: str) -> None:
    made: list[str] = []
    others: list[Runtime] = []

    @tool(effect=effect, retry=QUICK)
    async def pay() -> str:
        made.append("x")
        if len(made) == 1:
            await others[0].operations.halt("tool:pay", reason="stop")
        raise NothingLanded("refused")

    async with running(pay, url=durable_url) as runtime, running(pay, url=durable_url) as other:
        others.append(other)
        outcome = await runtime.call("pay", {}, actor="ann", call_id="order-1")
    assert (outcome.status, expect(outcome.problem).reason, len(made)) == (Status.FAILED, "halted", 1)


class Deaf(MemoryStore):
    """A store that does not say what is halted, once it is told not to."""

    deaf = False

    async def halts(self) -> tuple[Halted, ...]:
        if self.deaf:
            raise StoreError("gone")
        return await super().halts()


@pytest.mark.parametrize(("effect", "tries"), [("read", 4), ("send", 1)])
async def test_where_the_store_does_not_say_what_is_halted_a_change_is_not_tried_again(effect: str, tries: int) -> None:
    store, made = Deaf(), list[str]()

    @tool(effect=effect, retry=QUICK)
    async def pay() -> str:
        store.deaf = True
        made.append("x")
        raise NothingLanded("refused")

    async with Runtime.open(store, policy=parse_policy(OPEN), tools=[pay]) as runtime:
        outcome = await runtime.call("pay", {}, actor="ann", call_id="order-1")
    assert (outcome.status, len(made)) == (Status.FAILED, tries)
    assert expect(outcome.problem).reason == ("store_unavailable" if effect == "send" else "nothing_landed")


async def test_a_call_whose_first_attempt_works_asks_for_no_halt() -> None:
    asked: list[str] = []

    class Asked(MemoryStore):
        async def halts(self) -> tuple[Halted, ...]:
            asked.append("x")
            return await super().halts()

    @tool(effect="send", repeatable=True)
    async def pay() -> str:
        return "paid"

    async with Runtime.open(Asked(), policy=parse_policy(OPEN), tools=[pay]) as runtime:
        assert (await runtime.call("pay", {}, actor="ann")).ok
        before = len(asked)
        assert (await runtime.call("pay", {}, actor="ann")).ok
    assert len(asked) == before


@pytest.mark.parametrize(
    ("refusals", "status", "told"),
    [((ValueError,), Status.FAILED, "the order is closed"), ((), Status.UNKNOWN, "ValueError")],
)
async def test_an_exception_that_a_tool_declares_as_a_refusal_leaves_nothing_in_doubt(
    refusals: tuple[type[Exception], ...], status: Status, told: str
) -> None:
    @tool(effect="send", key="{order}", refusals=refusals)
    async def pay(order: str) -> bool:
        """Pay an order."""
        if order == "closed":
            raise ValueError("the order is closed")
        return True

    policy = 'version = 1\nmode = "apply"\n[[rule]]\nid = "all"\ntools = ["*"]\ndecision = "allow"\n'
    async with Runtime.open("memory://", policy=parse_policy(policy), tools=[pay]) as runtime:
        refused = await runtime.call("pay", {"order": "closed"}, actor="a", call_id="c1")
        assert refused.status is status
        assert refused.problem is not None
        assert told in refused.problem.message
        again = await runtime.call("pay", {"order": "closed"}, actor="a", call_id="c2")
        assert again.problem is not None
        assert ("is held by another" in again.problem.message) is not bool(refusals), "its key is free, or waits"


@pytest.mark.parametrize("given", [Exception, (Exception,), "ValueError", (KeyboardInterrupt,), (1,)])
def test_refusals_that_make_no_sense_are_refused(given: Any) -> None:
    async def pay(order: str) -> bool:
        """Pay an order."""
        return bool(order)

    with pytest.raises(ContractError):
        tool(effect="send", refusals=given)(pay)
