"""The transport: pins the address it checked, re-checks every redirect, maps what goes wrong."""

from __future__ import annotations

import asyncio
import gzip
import re
import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from interlock import ConfigError, Status, tool
from interlock.errors import (
    Conflict,
    Forbidden,
    InDoubt,
    InvalidInput,
    NotFound,
    NothingLanded,
    RateLimited,
    TimedOut,
    TooLarge,
    Unavailable,
)
from interlock.resources import HttpClient
from interlock.tools.egress import Egress, from_transport, raise_for_status
from tests.conftest import expect, running
from tests.test_changes import OPEN


class Site:
    """A real HTTP server on loopback that remembers what it was asked."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.port = 0
        self.go_on = asyncio.Event()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.readexactly(1)
        if first == b"\x16":  # of a TLS handshake, which this site does not speak
            writer.close()
            return
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ")[1]
        host = next(line[6:] for line in head.splitlines() if line.lower().startswith("host: "))
        self.seen.append((host, path))
        if path in ("/endless", "/halves"):
            await self._pour(writer, path)
            return
        if path.startswith(("/packed/", "/coded/")) or path in ("/half", "/announced"):
            writer.write(_encoded(path, head.startswith("HEAD")))
            await writer.drain()
            writer.close()
            return
        if path.startswith("/to-packed/"):  # a redirect whose body cannot be unpacked
            packed = "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello"
            text = f"HTTP/1.1 302 Found\r\nLocation: {path[11:]}\r\n{packed}"
        elif path.startswith("/to/"):
            text = f"HTTP/1.1 302 Found\r\nLocation: {path[4:]}\r\nContent-Length: 0\r\n\r\n"
        elif path.startswith("/status/"):
            text = f"HTTP/1.1 {path[8:]} Oops\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"
        else:
            text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        writer.write(text.encode())
        await writer.drain()
        writer.close()

    async def _pour(self, writer: asyncio.StreamWriter, path: str) -> None:
        """A body whose length nobody says: without an end, or of two halves with a pause between them."""
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        try:
            if path == "/halves":
                writer.write(b"one half, ")
                await writer.drain()
                await self.go_on.wait()
                writer.write(b"and the other")
            while path == "/endless":
                writer.write(b"x" * 10_000)
                await writer.drain()
        except ConnectionError:
            return
        finally:
            writer.close()


BOMB = b"0" * 1_000_000


def _pack(body: bytes, coding: str) -> bytes:
    match coding:
        case "gzip":
            return gzip.compress(body)
        case "two-members":
            return gzip.compress(body[:400_000]) + gzip.compress(body[400_000:])
        case "raw":  # deflate as some servers do it, without the header of zlib
            packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
            return packer.compress(body) + packer.flush()
        case _:
            return zlib.compress(body)


def _encoded(path: str, bodiless: bool) -> bytes:
    """An answer in the codings that its path names, or one that only says so, or one that is far too long."""
    name = path.rpartition("/")[2]
    body, header = b"hello", f"Content-Encoding: {name}"
    if path.startswith("/packed/"):
        body = BOMB
        for coding in name.split(","):
            body = _pack(body, coding)
        header = f"Content-Encoding: {name.replace('raw', 'deflate').replace('two-members', 'gzip')}"
    elif path == "/half":
        body, header = gzip.compress(BOMB[:9999])[:-9], "Content-Encoding: gzip"
    length = 999_999_999 if path == "/announced" else len(body)
    if path == "/announced":
        header = "X: y"
    head = f"HTTP/1.1 200 OK\r\n{header}\r\nContent-Length: {length}\r\n\r\n"
    return head.encode() + (b"" if bodiless else body)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    server = await asyncio.start_server(made.answer, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()
    await server.wait_closed()


def names(**table: list[str]) -> Egress:
    """Loopback is allowed for the test's own server; names resolve as the table says."""

    async def resolve(host: str, port: int) -> list[str]:
        return table[host.replace(".", "_")]

    return Egress(schemes=("http",), networks=("127.0.0.1/32",), resolve=resolve)


async def test_the_connection_goes_to_the_address_that_was_checked_and_keeps_the_name(site: Site) -> None:
    async with names(example_org=["127.0.0.1"]).client() as client:
        answer = await client.get(f"http://example.org:{site.port}/a")
    assert answer.text == "hello"
    assert site.seen == [(f"example.org:{site.port}", "/a")]


async def test_a_name_that_resolves_inside_is_refused_and_nothing_is_sent(site: Site) -> None:
    async with names(example_org=["127.0.0.2"]).client() as client:
        with pytest.raises(Forbidden, match=r"127\.0\.0\.2 is not a public address"):
            await client.get(f"http://example.org:{site.port}/a")
    assert site.seen == []


async def test_one_bad_answer_among_good_ones_is_refused(site: Site) -> None:
    async with names(example_org=["127.0.0.1", "10.0.0.1"]).client() as client:
        with pytest.raises(Forbidden):
            await client.get(f"http://example.org:{site.port}/a")


async def test_a_second_look_up_cannot_change_what_was_checked(site: Site) -> None:
    """DNS rebinding: the name points elsewhere the second time, but there is no second time."""
    answers = [["127.0.0.1"], ["10.0.0.1"]]

    async def resolve(host: str, port: int) -> list[str]:
        return answers.pop(0)

    egress = Egress(schemes=("http",), networks=("127.0.0.1/32",), resolve=resolve)
    async with egress.client() as client:
        assert (await client.get(f"http://example.org:{site.port}/a")).text == "hello"
    assert len(answers) == 1


@pytest.mark.parametrize(
    "target", ["http://169.254.169.254/latest", "http://inside.org/", "https://example.org/", "http://[::1]/"]
)
async def test_every_redirect_is_checked_anew(site: Site, target: str) -> None:
    egress = names(example_org=["127.0.0.1"], inside_org=["192.168.0.1"])
    async with egress.client() as client:
        with pytest.raises(Forbidden):
            await client.get(f"http://example.org:{site.port}/to/{target}")
    assert len(site.seen) == 1


async def test_hosts_are_an_allow_list_and_odd_urls_are_refused() -> None:
    egress = Egress(hosts=("*.usda.gov",), schemes=("https",))
    for url in ("https://evil.org/", "http://www.usda.gov/", "https://a@www.usda.gov/"):
        with pytest.raises(Forbidden):
            await egress.check(url, 443)


async def test_a_name_that_does_not_resolve_is_unavailable() -> None:
    async def nowhere(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    async def empty(host: str, port: int) -> list[str]:
        return []

    for resolve in (nowhere, empty):
        with pytest.raises(Unavailable, match="cannot be resolved"):
            await Egress(resolve=resolve).check("https://example.org/", 443)


async def test_the_system_resolver_is_asked_where_no_other_is_given() -> None:
    with pytest.raises(Forbidden, match="is not a public address"):
        await Egress(hosts=("localhost.",), schemes=("http",)).check("http://localhost/", 80)


async def test_a_refused_connection_is_unavailable() -> None:
    async with names(example_org=["127.0.0.1"]).client() as client:
        with pytest.raises(Unavailable):
            await client.get("http://example.org:1/a")


@pytest.mark.parametrize("cause", ["no connection is free", "no such protocol", "no handshake"])
async def test_a_request_that_cannot_have_left_is_known_not_to_have_landed(site: Site, cause: str) -> None:
    egress = Egress(schemes=("http", "https", "ftp"), networks=("127.0.0.1/32",))
    one = httpx.Limits(max_connections=1)
    url = {
        "no connection is free": f"http://127.0.0.1:{site.port}/pay",
        "no such protocol": f"ftp://127.0.0.1:{site.port}/pay",
        "no handshake": f"https://127.0.0.1:{site.port}/pay",  # the site does not speak TLS
    }[cause]
    async with egress.client(limits=one, timeout=httpx.Timeout(20, pool=0.05)) as client:

        @tool(effect="send", egress=egress)
        async def pay() -> str:
            return raise_for_status(await client.post(url)).text

        async with running(pay, policy=OPEN) as runtime, AsyncExitStack() as others:
            if cause == "no connection is free":
                await others.enter_async_context(client.stream("GET", f"http://127.0.0.1:{site.port}/halves"))
            with pytest.raises(NothingLanded):
                await client.post(url)
            outcome = await runtime.call("pay", {}, actor="a", call_id="1")
            site.go_on.set()
    assert (outcome.status, expect(outcome.problem).reason) == (Status.FAILED, "nothing_landed")
    assert "/pay" not in [path for _host, path in site.seen]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(429, RateLimited), (503, Unavailable), (500, Unavailable), (504, TimedOut), (408, TimedOut), (404, NotFound), (410, NotFound),
     (401, Forbidden), (403, Forbidden), (409, Conflict), (412, Conflict), (413, TooLarge), (400, InvalidInput), (422, InvalidInput)],
)  # fmt: skip
async def test_a_status_becomes_an_error_class(site: Site, status: int, kind: type[Exception]) -> None:
    async with names(example_org=["127.0.0.1"]).client() as client:
        answer = await client.get(f"http://example.org:{site.port}/status/{status}")
        with pytest.raises(kind, match=f"answered {status}") as error:
            raise_for_status(answer)
    if hasattr(error.value, "retry_after_s"):
        assert error.value.retry_after_s == 7
    assert raise_for_status(httpx.Response(200)).status_code == 200


@pytest.mark.parametrize(
    ("after", "least", "most"),
    [
        ("3", 3, 3),
        (timedelta(hours=1), 3000, 3601),
        (timedelta(days=400), 86_400, 86_400),
        ("soon", None, None),
    ],
    ids=["seconds", "date", "far", "neither"],  # the same name in every process that collects it
)
def test_retry_after_is_seconds_or_a_date(after: str | timedelta, least: float | None, most: float | None) -> None:
    # Said when the test runs: what is written at collection is an hour old at the end of a long run.
    said = format_datetime(datetime.now(UTC) + after) if isinstance(after, timedelta) else after
    answer = httpx.Response(429, headers={"retry-after": said}, request=httpx.Request("GET", "https://example.org/"))
    with pytest.raises(RateLimited) as error:
        raise_for_status(answer)
    wait_s = error.value.retry_after_s
    assert wait_s is None if least is None or most is None else wait_s is not None and least <= wait_s <= most


async def test_a_governed_tool_that_is_led_inside_ends_as_failed_forbidden(site: Site) -> None:
    egress = names(example_org=["127.0.0.1"])

    @tool(effect="read", egress=egress, trust="untrusted")
    async def fetch(url: str) -> str:
        async with egress.client() as client:
            return raise_for_status(await client.get(url)).text

    text = 'version = 1\n[[rule]]\nid = "a"\ntools = ["fetch"]\ndecision = "allow"\n[[use]]\npack = "public-url"\ntools = ["fetch"]\nfield = "url"\nschemes = ["http"]\n'
    async with running(fetch, policy=text) as runtime:
        fine = await runtime.call("fetch", {"url": f"http://example.org:{site.port}/"}, actor="a")
        led = await runtime.call("fetch", {"url": f"http://example.org:{site.port}/to/http://10.0.0.1/"}, actor="a")
        denied = await runtime.call("fetch", {"url": "http://10.0.0.1/"}, actor="a")
    assert fine.value == "hello"
    assert (led.status, expect(led.problem).reason) == (Status.FAILED, "forbidden")
    assert (denied.status, expect(denied.verdict).rule) == (Status.DENIED, "public-url:url:private")


@pytest.mark.parametrize("option", ["proxy", "mounts", "transport", "trust_env"])
def test_options_that_would_go_around_the_check_are_refused(option: str) -> None:
    with pytest.raises(ConfigError, match="would go around the check"):
        Egress().client(**{option: None})


def test_options_that_there_are_not_are_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"Egress\.client takes no 'time_out'; did you mean 'timeout'\?"):
        Egress().client(time_out=5)
    with pytest.raises(ConfigError, match=r"Egress\.transport takes no 'verfy'; did you mean 'verify'\?"):
        Egress().transport(verfy=False)
    for around in ("uds", "proxy", "local_address"):
        with pytest.raises(ConfigError, match=rf"Egress\.transport takes no '{around}'"):
            Egress().transport(**{around: "x"})


async def test_options_of_the_transport_reach_it(site: Site) -> None:
    async with names(example_org=["127.0.0.1"]).client(verify=False, timeout=5) as client:
        assert (await client.get(f"http://example.org:{site.port}/a")).text == "hello"


async def test_connections_are_kept_by_host_name_not_by_address(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two names on one address must not share a connection: the certificate was checked for one of them."""
    monkeypatch.setattr("interlock.tools.egress._MOST_HOSTS", 2)
    egress = names(a_org=["127.0.0.1"], b_org=["127.0.0.1"], c_org=["127.0.0.1"])
    async with egress.client() as client:
        transport: Any = client._transport
        for host in ("a.org", "b.org", "a.org", "c.org"):
            assert (await client.get(f"http://{host}:{site.port}/")).text == "hello"
        assert list(transport._hosts) == ["a.org", "c.org"]
        assert len(set(map(id, transport._hosts.values()))) == 2


async def test_a_host_that_is_being_read_from_is_not_closed_for_others(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.tools.egress._MOST_HOSTS", 1)
    egress = names(a_org=["127.0.0.1"], b_org=["127.0.0.1"], c_org=["127.0.0.1"])
    async with egress.client() as client:
        transport: Any = client._transport
        async with client.stream("GET", f"http://a.org:{site.port}/halves") as answer:
            parts = answer.aiter_bytes()
            assert await anext(parts) == b"one half, "
            for host in ("b.org", "c.org"):
                assert (await client.get(f"http://{host}:{site.port}/")).text == "hello"
            assert list(transport._hosts) == ["a.org"]
            site.go_on.set()
            assert b"".join([part async for part in parts]) == b"and the other"
        assert (await client.get(f"http://b.org:{site.port}/")).text == "hello"
        assert list(transport._hosts) == ["b.org"]


async def test_a_request_that_fails_gives_its_host_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.tools.egress._MOST_HOSTS", 1)
    async with names(a_org=["127.0.0.1"], b_org=["127.0.0.1"]).client() as client:
        transport: Any = client._transport
        for host in ("a.org", "b.org"):
            with pytest.raises(Unavailable):
                await client.get(f"http://{host}:1/")
        assert list(transport._hosts) == ["b.org"]


SMALL = Egress(schemes=("http",), networks=("127.0.0.1/32",), wire_bytes=50_000, body_bytes=200_000)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/endless", "sends more than the 50,000 bytes allowed; ask for less, or set Egress(wire_bytes=...)"),
        ("/announced", "sends more than the 50,000 bytes allowed"),
        ("/packed/gzip", "unpacks to more than the 200,000 bytes allowed; ask for less, or set Egress(body_bytes=...)"),
        ("/packed/deflate", "unpacks to more than the 200,000 bytes allowed"),
        ("/packed/raw", "unpacks to more than the 200,000 bytes allowed"),
        ("/packed/gzip,gzip", "unpacks to more than the 200,000 bytes allowed"),
    ],
)
async def test_an_answer_that_is_too_large_is_refused_packed_or_not(site: Site, path: str, sentence: str) -> None:
    async with SMALL.client() as client:
        with pytest.raises(TooLarge, match=re.escape(sentence)):
            await client.get(f"http://127.0.0.1:{site.port}{path}")
        transport: Any = client._transport
        assert [host.in_use for host in transport._hosts.values()] == [0]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/coded/br", "answered compressed as br, though it was asked for gzip, deflate; not unpacked"),
        ("/coded/gzip,gzip,gzip,gzip", "answered compressed as gzip, gzip, gzip, gzip"),
        ("/coded/gzip", "cannot be unpacked"),
        ("/coded/odd,gzip", "answered compressed as odd, gzip"),
        ("/half", "ends in the middle of its compressed text"),
    ],
)
async def test_what_cannot_be_unpacked_within_bounds_is_not(site: Site, path: str, sentence: str) -> None:
    async with SMALL.client() as client:
        with pytest.raises(Unavailable, match=re.escape(sentence)):
            await client.get(f"http://127.0.0.1:{site.port}{path}")


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/endless", "sends more than the 50,000 bytes allowed; ask for less, or set HttpClient(wire_bytes=...)"),
        ("/announced", "sends more than the 50,000 bytes allowed"),
        ("/packed/gzip", "unpacks to more than the 200,000 bytes allowed; ask for less, or set HttpClient(body_bytes"),
        ("/packed/gzip,gzip", "unpacks to more than the 200,000 bytes allowed"),
        ("/to//packed/gzip", "unpacks to more than the 200,000 bytes allowed"),
        ("/coded/odd,gzip", "answered compressed as odd, gzip, though it was asked for gzip, deflate; not unpacked"),
        ("/half", "ends in the middle of its compressed text"),
    ],
)
async def test_an_http_client_takes_no_more_than_it_was_told_over_whatever_client(
    site: Site, path: str, sentence: str
) -> None:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{site.port}", follow_redirects=True) as bare:
        client = HttpClient(bare, wire_bytes=50_000, body_bytes=200_000)
        with pytest.raises((TooLarge, Unavailable), match=re.escape(sentence)):
            await client.request("GET", path)
        # The request had left: what became of a change is not known because its answer is too large.
        with pytest.raises(InDoubt, match="it may have landed"):
            await client.request("POST", path.removeprefix("/to/"), json={})


async def test_an_http_client_gives_what_is_within_bounds_and_follows_a_read(site: Site) -> None:
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{site.port}", follow_redirects=True, max_redirects=2
    ) as bare:
        client = HttpClient(bare)
        packed = await client.request("GET", "/packed/gzip")
        followed = await client.request("GET", "/to//to//a")
        past = await client.request("GET", "/to-packed//a")
        with pytest.raises(Unavailable, match="more than 2 redirects"):
            await client.request("GET", "/to//to//to//a")
    assert (packed.content, "content-encoding" in packed.headers) == (BOMB, False)
    assert (followed.text, followed.url.path, past.text) == ("hello", "/a", "hello")
    with pytest.raises(ConfigError, match="body_bytes of an HttpClient is a whole number of bytes above 0"):
        HttpClient(bare, body_bytes=0)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "raw", "gzip,gzip", "deflate,gzip", "two-members"])
async def test_an_answer_within_bounds_arrives_whole(site: Site, coding: str) -> None:
    async with names(example_org=["127.0.0.1"]).client() as client:
        answer = await client.get(f"http://example.org:{site.port}/packed/{coding}")
        odd = await client.get(f"http://example.org:{site.port}/coded/odd")
        empty = await client.head(f"http://example.org:{site.port}/announced")
    assert answer.content == BOMB
    assert "content-encoding" not in answer.headers
    assert (odd.text, odd.headers["content-encoding"]) == ("hello", "odd")
    assert (empty.content, empty.headers["content-length"]) == (b"", "999999999")


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "1 MB", None])
def test_a_limit_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match="wire_bytes of an Egress is a whole number of bytes above 0"):
        Egress(wire_bytes=value)


async def test_a_governed_read_of_too_much_fails_and_is_not_tried_again(site: Site) -> None:
    @tool(effect="read", egress=SMALL)
    async def fetch() -> str:
        async with SMALL.client() as client:
            return (await client.post(f"http://127.0.0.1:{site.port}/endless")).text

    async with running(fetch) as runtime:
        outcome = await runtime.call("fetch", {}, actor="a")
    assert (outcome.status, expect(outcome.problem).reason) == (Status.FAILED, "too_large")
    assert len(site.seen) == 1


@pytest.mark.parametrize(
    "url",
    [
        "https://faß.de/",
        "https://fass.de\u200d/",
        "https://[fec0::1]/",
        "https://[3fff::1]/",
        "https://[64:ff9b:1:a9fe:a9:fe00:808:808]/",
        "https://127.0.0.1。/",
        "https://localhost｡/",
    ],
)
async def test_hosts_with_two_readings_and_odd_ranges_are_refused(url: str) -> None:
    with pytest.raises((Forbidden, Unavailable)):
        await Egress().check(url, 443)
    assert not decided_public(url)


def decided_public(url: str) -> bool:
    from interlock.policy.functions import _public_url

    return _public_url(url)


@pytest.mark.parametrize("error", [httpx.ReadTimeout(""), httpx.ReadError("")])
def test_an_error_that_says_nothing_is_told_by_its_kind(error: httpx.TransportError) -> None:
    assert str(from_transport(error, "example.org")) == f"'example.org': {type(error).__name__}"
