"""A real exchange with a server that counts, cut at every byte of either side: one effect for a call id, whatever is
tried afterwards, and a status that says no more than is known."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

httpx = pytest.importorskip("httpx")

from interlock import Context, Outcome, Runtime, Status, Tool, tool  # noqa: E402
from interlock.policy import parse_policy  # noqa: E402
from interlock.ports import SystemClock  # noqa: E402
from interlock.resources import HttpClient, HttpDocuments  # noqa: E402
from interlock.tools import RetryRule  # noqa: E402
from interlock.tools.egress import Egress, raise_for_status  # noqa: E402
from interlock.values import Effect  # noqa: E402
from tests.exchange import CountingServer, CuttingProxy, Side  # noqa: E402
from tests.killing import Later  # noqa: E402
from tests.test_changes import OPEN  # noqa: E402

pytestmark = pytest.mark.slow

EVERY = 1 if os.environ.get("TORTURE") else 29
"""Every byte with `make torture`, every 29th and those at the edges in between."""
CELLS = 20
"""So many share a database."""
ON_SERVER = 7 if os.environ.get("TORTURE") else 100_000
"""On a server, where every delivery costs several times as much: only those at the edges in between."""
QUICK = RetryRule(max_attempts=3, base_s=0.001, cap_s=0.002)
LOCAL = Egress(schemes=("http",), networks=("127.0.0.0/8",))
WAYS = ["egress", "client", "client of egress"]
SIDES: tuple[Side, ...] = ("request", "answer")
on_either_database = pytest.mark.parametrize(
    ("durable_url", "way"),
    [
        *(("sqlite", way) for way in WAYS),
        *(("postgres", way) for way in (WAYS if os.environ.get("TORTURE") else ["client"])),
    ],
    indirect=["durable_url"],
)


class Ledgers:
    """A file for each cell, or a database for a few of them: recovery looks at all that is left in doubt there."""

    def __init__(self, folder: Path, databases: Iterator[str] | None) -> None:
        self._databases, self._folder = databases, folder
        self.every = EVERY if databases is None else ON_SERVER
        self.mark = "f" if databases is None else "s"  # in the names of its cells: one server counts for all

    def url_of(self, name: str) -> str:
        return f"sqlite:///{self._folder}/{name}.db" if self._databases is None else next(self._databases)


@pytest.fixture
def ledgers(durable_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Ledgers]:
    with ExitStack() as opened:
        if not durable_url.startswith("postgres"):
            yield Ledgers(tmp_path, None)
        else:
            yield Ledgers(tmp_path, _databases(opened, request.getfixturevalue("new_database")))


def _databases(opened: ExitStack, new: Callable[[], AbstractContextManager[str]]) -> Iterator[str]:
    while True:
        yield from repeat(opened.enter_context(new()), CELLS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CountingServer]:
    started = CountingServer(tmp_path_factory.mktemp("exchange"))
    yield started
    started.close()


async def post(way: str, url: str, order: str, key: str | None) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    if way == "egress":
        async with LOCAL.client() as client:
            return raise_for_status(await client.post(f"{url}/pay", json={"order": order}, headers=headers)).json()
    async with LOCAL.client() if way == "client of egress" else httpx.AsyncClient() as bare:
        trying = HttpClient(bare, keyed=key is not None)
        return (await trying.request("POST", f"{url}/pay", Effect.SEND, json={"order": order}, key=key)).json()


def pay_once(way: str, url: str) -> Tool:
    @tool(effect="send", retry=QUICK, timeout_s=10)
    async def change(name: str) -> Any:
        return await post(way, url, name, None)

    return change


def pay_under_its_key(way: str, url: str) -> Tool:
    @tool(effect="send", retry=QUICK, timeout_s=10, idempotent=True)
    async def change(name: str, context: Context) -> Any:
        return await post(way, url, name, context.idempotency_key)

    return change


@asynccontextmanager
async def write_document(way: str, url: str) -> AsyncIterator[Tool]:
    async with LOCAL.client() if "egress" in way else httpx.AsyncClient() as bare:
        documents = HttpDocuments(bare if way == "egress" else HttpClient(bare), f"{url}/docs", "docs")

        @tool(
            effect="write",
            key="{name}",
            resource=documents,
            retry=QUICK,
            timeout_s=10,
            simulate=lambda _state, arguments: {"paid": arguments["name"]},
        )
        async def change(name: str, context: Context) -> Any:
            return await documents.write(name, {"paid": name}, context)

        yield change


@asynccontextmanager
async def tool_of(kind: str, way: str, url: str) -> AsyncIterator[Tool]:
    if kind == "document":
        async with write_document(way, url) as made:
            yield made
    else:
        yield (pay_once if kind == "once" else pay_under_its_key)(way, url)


class Cell:
    """One call, delivered as often as somebody likes."""

    def __init__(self, made: Tool, ledgers: Ledgers, name: str) -> None:
        self._made, self._store, self._name = made, ledgers.url_of(name), name

    async def deliver(self, clock: SystemClock | None = None, *, recover: bool = False) -> Outcome:
        policy = parse_policy(OPEN)
        async with Runtime.open(
            self._store, policy=policy, tools=[self._made], clock=clock or SystemClock()
        ) as runtime:
            if recover:
                await runtime.operations.recover()
            return await runtime.call(
                "change", {"name": self._name}, actor="ann", turn=self._name, call_id=f"order-{self._name}"
            )


def is_honest(outcome: Outcome, counted: int, *, whole: bool) -> bool:
    """`ok` only with a whole answer, `failed` only if nothing was counted, else `unknown`."""
    if outcome.status is Status.OK:
        return whole and counted == 1
    return outcome.status is Status.UNKNOWN or (outcome.status is Status.FAILED and counted == 0)


def boundaries(length: int, every: int) -> list[int]:
    return sorted({*range(0, length, every), 1, length - 1, length})


async def attack(cell: Cell, server: CountingServer, proxy: CuttingProxy, name: str, *, whole: bool) -> str:
    """The call over a connection that is cut, recovery by another process, and the caller's retry."""
    first = await cell.deliver()
    assert server.count(name) <= 1, (name, first)
    assert is_honest(first, server.count(name), whole=whole), (name, first, server.count(name))
    proxy.heal()
    again = await cell.deliver(Later(), recover=True)
    assert server.count(name) <= 1, (name, first, again)
    assert is_honest(again, server.count(name), whole=True), (name, first, again)
    if first.status is not Status.UNKNOWN:  # a failure may be tried again, and what is done is told again
        assert (again.status, server.count(name)) == (Status.OK, 1), (name, first, again)
    return f"{first.status.value} {again.status.value}"


_LOST = {"request": {"unknown unknown"}, "answer": {"unknown unknown", "ok ok"}}
SEEN: dict[str, dict[str, set[str]]] = {
    "once": _LOST,
    "keyed": _LOST,
    "document": {"request": {"unknown unknown", "ok ok"}, "answer": {"ok ok"}},
}
"""How the first delivery and the caller's retry end."""


@pytest.mark.timeout(2400)
@on_either_database
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", ["once", "keyed", "document"])
async def test_cut_at_every_byte(server: CountingServer, ledgers: Ledgers, kind: str, side: Side, way: str) -> None:
    ends: set[str] = set()
    async with CuttingProxy(server.port).open() as proxy, tool_of(kind, way, proxy.url) as made:
        prefix = f"{ledgers.mark}{kind[0]}{WAYS.index(way)}{side[0]}"
        # As long as the names below: the bytes of an exchange are counted by it.
        assert (await Cell(made, ledgers, f"{prefix}full").deliver()).ok
        lengths = dict(proxy.seen)
        for after in boundaries(lengths[side], ledgers.every):
            name = f"{prefix}{after:04d}"
            proxy.cut(side, after, reset=after % 2 == 1)
            # A document that reads back as it was wanted is there, whatever its answer was.
            whole = kind == "document" or (side == "answer" and after == lengths["answer"])
            ends.add(await attack(Cell(made, ledgers, name), server, proxy, name, whole=whole))
    assert ends == SEEN[kind][side]


@on_either_database
@pytest.mark.parametrize("side", SIDES)
async def test_under_its_key_what_was_lost_once_is_tried_again_and_done_once(
    server: CountingServer, ledgers: Ledgers, side: Side, way: str
) -> None:
    async with CuttingProxy(server.port).open() as proxy:
        made, prefix = pay_under_its_key(way, proxy.url), f"{ledgers.mark}x{WAYS.index(way)}{side[0]}"
        assert (await Cell(made, ledgers, f"{prefix}full").deliver()).ok
        for after in boundaries(dict(proxy.seen)[side], ledgers.every):
            name = f"{prefix}{after:05d}"
            proxy.cut(side, after, times=1)
            outcome = await Cell(made, ledgers, name).deliver()
            assert (outcome.value, server.count(name)) == ({"paid": name}, 1), (name, outcome)


@on_either_database
@pytest.mark.parametrize("kind", ["once", "keyed", "document"])
async def test_before_the_connection_nothing_has_landed_and_the_retry_makes_it(
    server: CountingServer, ledgers: Ledgers, kind: str, way: str
) -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{taken.getsockname()[1]}"
        name = f"{ledgers.mark}n{kind[0]}{WAYS.index(way)}"
        async with tool_of(kind, way, nowhere) as made:
            first = await Cell(made, ledgers, name).deliver()
        assert (first.status, server.count(name)) == (Status.FAILED, 0)
    async with CuttingProxy(server.port).open() as proxy, tool_of(kind, way, proxy.url) as made:
        again = await Cell(made, ledgers, name).deliver(Later(), recover=True)
    assert (again.status, server.count(name)) == (Status.OK, 1)
