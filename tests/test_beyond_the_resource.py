"""A resource that looks untouched settles a change as not made only where the change was to that resource alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

httpx = pytest.importorskip("httpx")

from interlock import Context, Runtime, Status, tool  # noqa: E402
from interlock.errors import InDoubt  # noqa: E402
from interlock.resources import Documents, HttpClient  # noqa: E402
from tests.conftest import expect, on_server, on_stores  # noqa: E402
from tests.test_changes import running  # noqa: E402
from tests.test_what_landed import LOCAL, QUICK, Site  # noqa: E402

Does = Callable[[Runtime, str, Documents], Awaitable[Any]]


@pytest.fixture
async def shelf(store_url: str, tmp_path: Path) -> AsyncIterator[Documents]:
    on_server = store_url.startswith("postgres")
    documents = Documents(store_url if on_server else f"sqlite:///{tmp_path / 'shelf.db'}", "shelf")
    yield documents
    await documents.close()


async def nothing(_runtime: Runtime, _url: str, _shelf: Documents) -> None:
    pass


async def sends(_runtime: Runtime, url: str, _shelf: Documents) -> None:
    async with LOCAL.client() as client:
        await HttpClient(client).request("POST", f"{url}/pay", json={})


async def sends_by_egress_alone(_runtime: Runtime, url: str, _shelf: Documents) -> None:
    async with LOCAL.client() as client:
        await client.post(f"{url}/pay", json={})


async def sends_to_another_resource(_runtime: Runtime, url: str, _shelf: Documents) -> None:
    async with LOCAL.client() as client:
        await HttpClient(client).request("POST", f"{url}/pay", json={}, resource="books")


async def sends_to_its_resource(_runtime: Runtime, url: str, _shelf: Documents) -> None:
    async with LOCAL.client() as client:
        await HttpClient(client).request("POST", f"{url}/shelf", json={}, resource="shelf")


async def is_refused(_runtime: Runtime, url: str, _shelf: Documents) -> None:
    async with LOCAL.client() as client:
        await client.post(f"{url}/answers/422", json={})


async def calls(runtime: Runtime, _url: str, _shelf: Documents) -> None:
    assert (await runtime.call("note", {}, actor="ann")).ok


async def writes_and_takes_back(_runtime: Runtime, _url: str, shelf: Documents) -> None:
    await shelf.write("other", {"v": 1})
    await shelf.write("other", None)


async def _recovered(store_url: str, shelf: Documents, does: Does) -> tuple[str, str]:
    """What becomes of a call that does this before its end is lost, and how that is known."""
    site, here = Site(), list[tuple[Runtime, str]]()

    @tool(effect="send", repeatable=True)
    async def note() -> str:
        return "noted"

    @tool(effect="write", key="{id}", resource=shelf, simulate=lambda _s, _a: {"v": 1}, retry=QUICK)
    async def put(id: str, context: Context) -> str:
        await does(*here[0], shelf)
        raise InDoubt("lost")

    async with site.open() as url, running(put, note, url=store_url) as runtime:
        here.append((runtime, url))
        lost = await runtime.call("put", {"id": "a"}, actor="ann", call_id="c1")
        assert lost.status is Status.UNKNOWN
        (found,) = await runtime.operations.recover()
        if found.state == "asked":
            ticket = expect(found.ticket)
            assert found.how in {ticket.id: ticket.why for ticket in await runtime.store.tickets()}[ticket]
            assert (await runtime.call("put", {"id": "a"}, actor="ann", call_id="c1")).status is Status.UNKNOWN
    return found.state, found.how


@pytest.mark.parametrize(
    ("store_url", "does"),
    [*on_stores([sends, sends_by_egress_alone, sends_to_another_resource, calls], sends), on_server(calls)],
    indirect=["store_url"],
)
async def test_what_was_sent_elsewhere_is_not_settled_by_a_look_at_the_resource(
    store_url: str, shelf: Documents, does: Does
) -> None:
    state, how = await _recovered(store_url, shelf, does)
    assert (state, how) == (
        "asked",
        "the resource looks untouched, but the call may have changed something besides it",
    )


@pytest.mark.parametrize(
    ("store_url", "does"),
    [
        *on_stores([nothing, sends_to_its_resource, is_refused, writes_and_takes_back], nothing),
        on_server(writes_and_takes_back),
    ],
    indirect=["store_url"],
)
async def test_what_was_the_resource_s_alone_is_settled_by_a_look_at_it(
    store_url: str, shelf: Documents, does: Does
) -> None:
    assert await _recovered(store_url, shelf, does) == ("failed", "the resource shows it")
