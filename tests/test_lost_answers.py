"""A payment over real HTTP whose answer is lost at every byte of the exchange: it is made at most once, and never called
failed where it may have landed."""

from __future__ import annotations

import asyncio
import gzip
import os
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

httpx = pytest.importorskip("httpx")

from interlock import Runtime, Status, tool  # noqa: E402
from interlock.errors import NothingLanded, Permanent  # noqa: E402
from interlock.resources import HttpClient  # noqa: E402
from interlock.tools import RetryRule  # noqa: E402
from interlock.tools.egress import Egress, raise_for_status  # noqa: E402
from interlock.values import Effect, Outcome  # noqa: E402
from tests.conftest import expect, on_stores  # noqa: E402
from tests.test_changes import running  # noqa: E402

QUICK = RetryRule(max_attempts=3, base_s=0.001, cap_s=0.002)
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 14\r\n\r\n" + b'{"paid": true}'
EVERY = 1 if os.environ.get("TORTURE") else 17
"""At every byte in `make torture`, at every seventeenth in between."""


class Bank:
    """A server that counts payments: it pays once the whole request is there, and hangs up where it is told to."""

    def __init__(self, *, read: int | None = None, write: int | None = None, answers: tuple[bytes, ...] = ()) -> None:
        self.paid = 0
        self.seen = 0
        self._read, self._write, self._answers = read, write, list(answers)
        self._server: asyncio.Server | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        finally:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.seen += 1
        try:
            if self._read is not None:
                await reader.readexactly(self._read)
                return
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-le")), 0
            )
            await reader.readexactly(length)
            self.paid += head.startswith(b"POST /pay")
            answer = self._answers.pop(0) if self._answers else ANSWER
            writer.write(answer if self._write is None else answer[: self._write])
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


Pay = Callable[[str], Awaitable[Any]]
BODY = {"amount": 5}
LOCAL = Egress(schemes=("http",), networks=("127.0.0.0/8",))


async def over_egress(url: str) -> Any:
    async with LOCAL.client() as client:
        return raise_for_status(await client.post(f"{url}/pay", json=BODY)).json()


async def over_client(url: str) -> Any:
    async with httpx.AsyncClient() as bare:
        return (await HttpClient(bare).request("POST", f"{url}/pay", Effect.SEND, json=BODY)).json()


async def over_client_of_egress(url: str) -> Any:
    async with LOCAL.client() as bare:
        return (await HttpClient(bare).request("POST", f"{url}/pay", Effect.SEND, json=BODY)).json()


async def over_bare_httpx(url: str) -> Any:
    async with httpx.AsyncClient() as client:
        return (await client.post(f"{url}/pay", json=BODY)).raise_for_status().json()


WAYS = [over_egress, over_client, over_client_of_egress, over_bare_httpx]
SHOWN = WAYS[:3]
"""Those that say what they sent."""


async def pay_at(url: str, pay: Pay, store_url: str = "memory://", order: str = "1") -> Outcome:
    @tool(effect="send", retry=QUICK, timeout_s=5)
    async def charge(order: str) -> Any:
        return await pay(url)

    async with running(charge, url=store_url) as runtime:
        outcome = await runtime.call("charge", {"order": order}, actor="ann", call_id=f"order-{order}")
        if outcome.status is Status.UNKNOWN:  # asked for again it is not made again, whatever keeps the ledger
            again = await runtime.call("charge", {"order": order}, actor="ann", call_id=f"order-{order}")
            assert again.status is Status.UNKNOWN, again
        return outcome


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(("store_url", "pay"), on_stores(SHOWN, over_client), indirect=["store_url"])
async def test_before_the_first_byte_nothing_landed_and_it_is_tried_again(pay: Pay, store_url: str) -> None:
    outcome = await pay_at(f"http://127.0.0.1:{free_port()}", pay, store_url)
    assert (outcome.status, len(outcome.attempts)) == (Status.FAILED, 3)
    assert {attempt.error for attempt in outcome.attempts} == {"nothing_landed"}


async def test_a_name_that_is_not_there_is_before_the_first_byte() -> None:
    async def nowhere(_host: str, _port: int) -> list[str]:
        raise socket.gaierror("no such name")

    async def pay(_url: str) -> Any:
        async with Egress(resolve=nowhere).client() as client:
            return await client.post("https://bank.example/pay", json=BODY)

    outcome = await pay_at("", pay)
    assert (outcome.status, len(outcome.attempts)) == (Status.FAILED, 3)


async def test_a_connection_that_does_not_come_about_in_time_is_before_the_first_byte() -> None:
    with socket.socket() as full:  # a queue that is full: nobody accepts
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        crowd = [socket.socket() for _ in range(4)]
        for one in crowd:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        async with httpx.AsyncClient() as bare:
            with pytest.raises(NothingLanded):
                await HttpClient(bare, timeout_s=0.2).request("POST", f"{url}/pay", json=BODY)
        for one in crowd:
            one.close()


@pytest.mark.parametrize(("store_url", "pay"), on_stores(WAYS, over_client), indirect=["store_url"])
async def test_an_answer_that_is_lost_while_the_request_is_read_is_in_doubt(pay: Pay, store_url: str) -> None:
    for read in range(0, 120, EVERY):
        bank = Bank(read=read)
        async with bank.open() as url:
            outcome = await pay_at(url, pay, store_url, str(read))
        assert (outcome.status, bank.seen) == (Status.UNKNOWN, 1), (read, outcome)


@pytest.mark.parametrize(("store_url", "pay"), on_stores(WAYS, over_client), indirect=["store_url"])
async def test_an_answer_that_is_cut_at_any_byte_is_in_doubt_and_paid_once(pay: Pay, store_url: str) -> None:
    for write in sorted({*range(0, len(ANSWER), EVERY), len(ANSWER) - 1}):  # an id that comes twice pays once
        bank = Bank(write=write)
        async with bank.open() as url:
            outcome = await pay_at(url, pay, store_url, str(write))
        assert (outcome.status, bank.paid) == (Status.UNKNOWN, 1), (write, outcome)
    bank = Bank()
    async with bank.open() as url:
        assert ((await pay_at(url, pay, store_url, "whole")).value, bank.paid) == ({"paid": True}, 1)


def answer(status: bytes) -> bytes:
    return b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\n\r\n"


@pytest.mark.parametrize("pay", WAYS)
@pytest.mark.parametrize(
    "status", [b"500 Oops", b"502 Bad Gateway", b"503 Busy", b"504 Gateway Timeout", b"408 Timeout"]
)
async def test_a_server_that_fails_after_it_paid_is_in_doubt_and_asked_once(pay: Pay, status: bytes) -> None:
    bank = Bank(answers=(answer(status),) * 3)
    async with bank.open() as url:
        outcome = await pay_at(url, pay)
    assert (outcome.status, bank.paid) == (Status.UNKNOWN, 1)


@pytest.mark.parametrize("pay", SHOWN)
@pytest.mark.parametrize(("status", "tries", "ends"), [(b"429 Later", 2, "ok"), (b"422 No", 1, "failed")])
async def test_what_the_server_refuses_has_not_landed(pay: Pay, status: bytes, tries: int, ends: str) -> None:
    bank = Bank(answers=(answer(status),))
    async with bank.open() as url:
        outcome = await pay_at(url, pay)
    assert (outcome.status.value, bank.seen) == (ends, tries)


@pytest.mark.parametrize("second", ["refused", "limited"])
async def test_nothing_landed_is_not_believed_of_a_tool_that_has_sent_something_before(second: str) -> None:
    bank, limit = Bank(), Bank(answers=(answer(b"429 Later"),) * 3)

    async def pay_and_tell(url: str) -> Any:
        await over_egress(url)
        async with limit.open() as other:
            await over_egress(other if second == "limited" else f"http://127.0.0.1:{free_port()}")

    async with bank.open() as url:
        outcome = await pay_at(url, pay_and_tell)
    assert (outcome.status, bank.paid, len(outcome.attempts)) == (Status.UNKNOWN, 1, 1)
    assert "a request or write of this call may have landed" in expect(outcome.problem).message


async def test_what_was_only_read_before_stands_in_nobodys_way() -> None:
    bank = Bank()

    async def look_and_pay(url: str) -> Any:
        async with LOCAL.client() as client:
            await client.get(f"{url}/price")
            await client.post(f"http://127.0.0.1:{free_port()}/pay", json=BODY)

    async with bank.open() as url:
        outcome = await pay_at(url, look_and_pay)
    assert (outcome.status, len(outcome.attempts)) == (Status.FAILED, 3)


async def test_a_sync_tool_in_a_thread_is_seen_too() -> None:
    bank = Bank()

    @tool(effect="send", retry=QUICK)
    def charge(url: str) -> Any:
        asyncio.run(over_egress(url))
        return asyncio.run(over_egress(f"http://127.0.0.1:{free_port()}"))

    async with bank.open() as url, running(charge) as runtime:
        outcome = await runtime.call("charge", {"url": url}, actor="ann", call_id="order-1")
    assert (outcome.status, bank.paid) == (Status.UNKNOWN, 1)


SHORT = Egress(schemes=("http",), networks=("127.0.0.0/8",), wire_bytes=1000, body_bytes=5000)
LONG = b"HTTP/1.1 %s\r\ncontent-length: 9999\r\n\r\n" + b"x" * 9999
PACKED = gzip.compress(b"x" * 99_999)


async def over_short_egress(url: str) -> Any:
    async with SHORT.client() as client:
        return raise_for_status(await client.post(f"{url}/pay", json=BODY)).json()


async def over_client_of_short_egress(url: str) -> Any:
    async with SHORT.client() as bare:
        return (await HttpClient(bare).request("POST", f"{url}/pay", Effect.SEND, json=BODY)).json()


@pytest.mark.parametrize("pay", [over_short_egress, over_client_of_short_egress])
@pytest.mark.parametrize(
    "answer",
    [
        LONG % b"200 OK",
        LONG % b"503 Oops",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(PACKED) + PACKED,
        b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 1\r\n\r\nx",
    ],
)
async def test_an_answer_that_is_too_large_leaves_a_payment_in_doubt(pay: Pay, answer: bytes) -> None:
    bank = Bank(answers=(answer,))
    async with bank.open() as url:
        outcome = await pay_at(url, pay)
    assert (outcome.status, expect(outcome.problem).reason, bank.paid) == (Status.UNKNOWN, "in_doubt", 1)
    assert "bytes allowed" in expect(outcome.problem).message or "not unpacked" in expect(outcome.problem).message


async def test_a_refusal_that_is_too_long_is_still_a_refusal() -> None:
    bank = Bank(answers=(LONG % b"400 Bad Request",))
    async with bank.open() as url:
        outcome = await pay_at(url, over_short_egress)
    assert (outcome.status, expect(outcome.problem).reason) == (Status.FAILED, "too_large")


# That nothing landed is believed only of a call that is known to have sent nothing


async def second_step() -> Any:
    """What a tool does last: it says, of this step rightly, that nothing landed."""
    raise NothingLanded("the second step could not connect")


async def in_a_thread_of_its_own(url: str) -> Any:
    def send() -> None:
        asyncio.run(over_client(url))

    await asyncio.get_running_loop().run_in_executor(None, send)  # without the context of the call
    return await second_step()


async def in_a_thread_of_its_own_over_egress(url: str) -> Any:
    def send() -> None:
        asyncio.run(over_egress(url))

    thread = threading.Thread(target=send)
    thread.start()
    await asyncio.to_thread(thread.join)
    return await second_step()


async def by_a_get_that_changes_something(url: str) -> Any:
    async with httpx.AsyncClient() as bare:
        await HttpClient(bare).request("GET", f"{url}/pay", Effect.SEND)
    return await second_step()


@asynccontextmanager
async def noting(silent: asyncio.Event | None = None) -> AsyncIterator[tuple[str, list[str]]]:
    """A server that notes what it is asked for; with `silent` it sets that, and does not answer."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.append(head.split(" ")[1])
        if silent is not None:
            silent.set()
            await reader.read()
        else:
            writer.write(ANSWER)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


@pytest.mark.parametrize(
    ("store_url", "pay"),
    on_stores(
        [in_a_thread_of_its_own, in_a_thread_of_its_own_over_egress, by_a_get_that_changes_something],
        in_a_thread_of_its_own,
    ),
    indirect=["store_url"],
)
async def test_what_a_call_has_sent_in_whatever_way_stays_in_doubt(pay: Pay, store_url: str) -> None:
    async with noting() as (url, asked):
        outcome = await pay_at(url, pay, store_url)
    assert (outcome.status, expect(outcome.problem).reason, len(asked)) == (Status.UNKNOWN, "in_doubt", 1)


@pytest.mark.parametrize("pay", SHOWN)
async def test_a_request_that_the_tool_itself_gave_up_stays_in_doubt(pay: Pay) -> None:
    arrived = asyncio.Event()

    async def pay_no_longer(url: str) -> Any:
        paying = asyncio.ensure_future(pay(url))
        await arrived.wait()
        paying.cancel()
        await asyncio.wait({paying})
        return await second_step()

    async with noting(arrived) as (url, asked):
        outcome = await pay_at(url, pay_no_longer)
    assert (outcome.status, expect(outcome.problem).reason, len(asked)) == (Status.UNKNOWN, "in_doubt", 1)


@pytest.mark.parametrize(("store_url", "on_the_wire"), on_stores([True, False], True), indirect=["store_url"])
async def test_what_a_call_made_by_a_call_has_changed_stays_in_doubt(on_the_wire: bool, store_url: str) -> None:
    made: list[str] = []
    runtimes: list[Runtime] = []

    @tool(effect="send", repeatable=True)
    async def post(url: str) -> str:
        made.append(url)
        if on_the_wire:
            await over_client(url)
        return "sent"

    @tool(effect="send", retry=QUICK)
    async def charge(url: str) -> Any:
        assert (await runtimes[0].call("post", {"url": url}, actor="ann")).ok
        return await second_step()

    async with noting() as (url, asked), running(post, charge, url=store_url) as runtime:
        runtimes.append(runtime)
        outcome = await runtime.call("charge", {"url": url}, actor="ann", call_id="order-1")
    assert (outcome.status, len(made), len(asked)) == (Status.UNKNOWN, 1, int(on_the_wire))


@pytest.mark.parametrize("refused", [True, False])
async def test_a_call_made_by_a_call_that_changed_nothing_leaves_no_doubt(refused: bool) -> None:
    runtimes: list[Runtime] = []

    @tool(effect="send", repeatable=True)
    async def post(url: str) -> str:
        raise Permanent("no") if refused else NothingLanded("down")

    @tool(effect="send", retry=QUICK)
    async def charge(url: str) -> Any:
        await runtimes[0].call("post", {"url": url}, actor="ann")
        return await second_step()

    async with running(post, charge) as runtime:
        runtimes.append(runtime)
        outcome = await runtime.call("charge", {"url": "u"}, actor="ann", call_id="order-1")
    assert (outcome.status, len(outcome.attempts)) == (Status.FAILED, 3)


@pytest.mark.parametrize("in_a_thread", [True, False])
async def test_what_another_call_reads_meanwhile_leaves_no_doubt(in_a_thread: bool) -> None:
    begun, read = asyncio.Event(), asyncio.Event()

    @tool(effect="send", retry=QUICK)
    async def charge(order: str) -> Any:
        begun.set()
        await read.wait()
        return await second_step()

    @tool(effect="read")
    def search(url: str) -> str:
        asyncio.run(over_client(url))  # a question that is put by POST
        return "found"

    @tool(effect="read", name="search")
    async def search_here(url: str) -> str:
        await over_client(url)
        return "found"

    async with (
        noting() as (url, asked),
        running(charge, search if in_a_thread else search_here) as runtime,
    ):
        charged = asyncio.ensure_future(runtime.call("charge", {"order": "1"}, actor="ann", call_id="order-1"))
        await begun.wait()
        assert (await runtime.call("search", {"url": url}, actor="ann")).ok
        read.set()
        outcome = await charged
    assert (outcome.status, len(outcome.attempts), len(asked)) == (Status.FAILED, 3, 1)


@pytest.mark.parametrize("over", ["client", "client of egress"])
async def test_a_connection_that_was_given_up_before_it_stood_leaves_no_doubt(over: str) -> None:
    with socket.socket() as full:  # a queue that is full: nobody accepts
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        crowd = [socket.socket() for _ in range(4)]
        for one in crowd:
            one.setblocking(False)
            one.connect_ex(full.getsockname())

        async def pay(url: str) -> Any:
            async with httpx.AsyncClient() if over == "client" else LOCAL.client() as bare:
                await HttpClient(bare, timeout_s=0.2).request("POST", f"{url}/pay", Effect.SEND, json=BODY)

        outcome = await pay_at(f"http://127.0.0.1:{full.getsockname()[1]}", pay)
        for one in crowd:
            one.close()
    assert (outcome.status, len(outcome.attempts)) == (Status.FAILED, 3)
