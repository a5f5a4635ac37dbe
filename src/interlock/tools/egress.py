"""An HTTP transport for tools that fetch: it pins the address it checked, checks every redirect anew, and takes no more
of an answer than it was told.

A rule sees only the text of a URL. What a name resolves to, and where a redirect leads, is known when the connection
is made; so the check belongs there. Use it for the client of any tool that takes a URL, and name it in the contract:

    web = Egress(hosts=("*.example.org",))

    @tool(effect="read", egress=web)
    async def fetch(url: str) -> str:
        async with web.client() as client:
            return (await client.get(url)).text
"""

from __future__ import annotations

import asyncio
import inspect
import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from interlock.addresses import IpAddress, Network, as_address, host_matches, is_public_address, split_url
from interlock.errors import (
    ConfigError,
    Forbidden,
    NothingLanded,
    TimedOut,
    Transient,
    Unavailable,
    from_http_status,
    install_hint,
)
from interlock.tools.body_limits import ACCEPTED, BodyLimits, Meter, codings_of
from interlock.tools.wire import CHANGES, RESOURCE, Sending
from interlock.wrong_values import refuse_unknown

try:
    import httpx
except ImportError:
    raise ConfigError(f"interlock.tools.egress needs httpx: {install_hint('http')}") from None

# Each of these would make connections that nobody checks.
_AROUND = frozenset({"proxy", "proxies", "mounts", "transport", "trust_env", "app"})
_TRANSPORT = ("verify", "cert", "http1", "http2", "limits")
_CLIENT = tuple(name for name in inspect.signature(httpx.AsyncClient).parameters if name not in _AROUND)
_MOST_HOSTS = 64  # a tool that crawls must not keep a pool for every host it ever saw
_LONGEST_WAIT_S = 86_400.0
_USUAL = BodyLimits()
_BODILESS = frozenset({204, 304})
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
"""A request is written only once its connection stands, TLS and all."""

Resolve = Callable[[str, int], Awaitable[list[str]]]


class Egress:
    """Which addresses a tool may reach: public ones by default, further limited to hosts and schemes.

    An answer may have `wire_bytes` as it comes, and `body_bytes` when it is unpacked.
    """

    def __init__(
        self,
        *,
        hosts: Iterable[str] = (),
        schemes: Iterable[str] = ("https",),
        networks: Iterable[str] = (),
        resolve: Resolve | None = None,
        wire_bytes: int = _USUAL.wire_bytes,
        body_bytes: int = _USUAL.body_bytes,
    ) -> None:
        self.hosts = _texts("hosts", hosts, "example.org")
        self.schemes = _texts("schemes", schemes, "https")
        self.networks: tuple[Network, ...] = tuple(map(_network, _texts("networks", networks, "10.0.0.0/8")))
        self.limits = BodyLimits(wire_bytes=wire_bytes, body_bytes=body_bytes).check()
        self._resolve = resolve or _system_resolve

    def client(self, **options: Any) -> httpx.AsyncClient:
        """A client that reaches nothing else; options go to httpx, but for those that would go around the check."""
        around = sorted(_AROUND.intersection(options))
        if around:
            raise ConfigError(f"{', '.join(around)} would go around the check of addresses; Egress does not take it")
        refuse_unknown("Egress.client", options, (*_CLIENT, *_TRANSPORT))
        inner = {name: options.pop(name) for name in _TRANSPORT if name in options}
        options.setdefault("follow_redirects", True)  # every redirect comes through the transport, and is checked anew
        return httpx.AsyncClient(transport=self.transport(**inner), trust_env=False, **options)

    def transport(self, **options: Any) -> httpx.AsyncBaseTransport:
        """The transport alone; options (verify, cert, http1, http2, limits) go to httpx.AsyncHTTPTransport."""
        refuse_unknown("Egress.transport", options, _TRANSPORT)
        return _Pinned(self, options)

    async def check(self, url: str, port: int) -> str:
        """The one address to connect to; `Forbidden` if the URL may not be fetched."""
        try:
            scheme, host = split_url(url)
        except (ValueError, UnicodeError) as error:
            raise Forbidden(f"refused to fetch: {error}") from None
        if scheme not in self.schemes:
            raise Forbidden(f"refused to fetch over {scheme!r}; allowed are {', '.join(self.schemes)}")
        if self.hosts and not any(host_matches(host, allowed) for allowed in self.hosts):
            raise Forbidden(f"refused to fetch from {host!r}; allowed are {', '.join(self.hosts)}")
        literal = as_address(host)
        found = [str(literal)] if literal is not None else await self._addresses_of(host, port)
        # Every answer, not only the one we connect to: a name that also leads inside is refused as a whole.
        for text in found:
            if not self._is_allowed(ipaddress.ip_address(text)):
                raise Forbidden(f"refused to fetch from {host!r}: {text} is not a public address")
        return found[0]

    async def _addresses_of(self, host: str, port: int) -> list[str]:
        try:
            found = await self._resolve(host, port)
        except OSError as error:
            raise NothingLanded(f"{host!r} cannot be resolved: {error}") from None
        if not found:
            raise NothingLanded(f"{host!r} cannot be resolved")
        return found

    def _is_allowed(self, address: IpAddress) -> bool:
        return is_public_address(address) or any(address in network for network in self.networks)


def _texts(name: str, given: Iterable[str], example: str) -> tuple[str, ...]:
    """Several texts; one alone would be taken letter by letter."""
    found = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (None,)
    if not all(isinstance(item, str) for item in found):
        raise ConfigError(f"Egress: {name}= is a tuple of texts, such as ({example!r},), not {given!r:.80}")
    return tuple(str(item) for item in found)


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise ConfigError(f"Egress: {text!r} is no network, such as '10.0.0.0/8': {error}") from None


class _Host:
    """The inner transport for one host name, and how many answers of it are being read."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.transport = httpx.AsyncHTTPTransport(trust_env=False, **options)
        self.in_use = 0


class _Pinned(httpx.AsyncBaseTransport):
    """One inner transport for each host name: connections are pooled by address, and a connection whose certificate
    was checked for one name must not carry a request for another."""

    def __init__(self, egress: Egress, options: dict[str, Any]) -> None:
        self._egress = egress
        self._options = options
        self._hosts: dict[str, _Host] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        port = url.port or {"https": 443, "http": 80}.get(url.scheme, 0)
        address = await self._egress.check(str(url), port)
        given = request.extensions
        sending = Sending(request.method, changes=given.get(CHANGES), resource=given.get(RESOURCE, ""))
        host = self._take(url.host)
        # TLS asks for the name and checks its certificate, although the connection goes to an address.
        trace = sending.trace(given.get("trace"))
        request.extensions = {**given, "sni_hostname": url.host, "trace": trace}
        request.url = url.copy_with(host=address)  # the Host header keeps the name
        ask_for_bounded(request)
        try:
            answer = await host.transport.handle_async_request(request)
        except BaseException as error:
            await self._give_back(host)
            if isinstance(error, _NEVER_SENT) or sending.still_connects:
                sending.did_nothing()
            if isinstance(error, httpx.TransportError):
                raise from_transport(error, url.host) from error
            raise
        finally:
            request.url, request.extensions = url, given
        sending.note_answer(answer.status_code)
        return await self._bound(answer, request.method, url.host, host)

    async def _bound(self, answer: httpx.Response, method: str, name: str, host: _Host) -> httpx.Response:
        """The answer, of which no more can be read than is allowed; unpacked here, as httpx unpacks without a limit."""
        assert isinstance(answer.stream, httpx.AsyncByteStream)
        inner = answer.stream
        try:
            meter = _meter(answer, method, name, self._egress.limits)
        except BaseException:
            await inner.aclose()
            await self._give_back(host)
            raise
        answer.stream = _Body(inner, meter, lambda: self._give_back(host))
        return answer

    def _take(self, name: str) -> _Host:
        """The transport for a host, in use from now on. No await: two requests must not make two of them."""
        host = self._hosts.pop(name, None) or _Host(self._options)
        self._hosts[name] = host  # the last in line is the one used last
        host.in_use += 1
        return host

    async def _give_back(self, host: _Host) -> None:
        """An answer was read, or none came. Of too many hosts, those go that nobody reads from, the oldest first."""
        host.in_use -= 1
        idle = [name for name, known in self._hosts.items() if not known.in_use]
        over = max(0, len(self._hosts) - _MOST_HOSTS)
        for gone in [self._hosts.pop(name) for name in idle[:over]]:
            await gone.transport.aclose()

    async def aclose(self) -> None:
        while self._hosts:
            await self._hosts.popitem()[1].transport.aclose()


def _meter(answer: httpx.Response, method: str, host: str, limits: BodyLimits) -> Meter:
    """What the body of an answer is read through; its headers then say what comes out of that."""
    headers = answer.headers
    # Without a body, headers speak of an answer that does not come.
    has_body = method != "HEAD" and answer.status_code not in _BODILESS
    codings = codings_of(headers.get("content-encoding", ""), host) if has_body else ()
    meter = Meter(limits, host, codings)
    meter.announce(headers.get("content-length", "") if has_body else "")
    if codings:
        for header in ("content-encoding", "content-length"):
            headers.pop(header, None)
    return meter


def ask_for_bounded(request: httpx.Request) -> None:
    """Ask for an answer that can be unpacked piece by piece."""
    if request.headers.get("accept-encoding", "") != "identity":
        request.headers["accept-encoding"] = ACCEPTED


async def read_bounded(answer: httpx.Response, limits: BodyLimits) -> httpx.Response:
    """The whole of an answer that is being streamed, over whatever client, and no more of it than is allowed."""
    if answer.is_stream_consumed:  # it never was on a wire
        return answer
    request = answer.request
    try:
        meter = _meter(answer, request.method, request.url.host, limits)
        content = b"".join([piece async for chunk in answer.aiter_raw() for piece in meter.take(chunk)])
        meter.finish()
    finally:
        await answer.aclose()
    return httpx.Response(
        answer.status_code,
        headers=answer.headers,
        content=content,
        request=request,
        extensions=answer.extensions,
        history=answer.history,
    )


class _Body(httpx.AsyncByteStream):
    """The body of an answer behind its meter; when it is closed, its transport is free."""

    def __init__(self, inner: httpx.AsyncByteStream, meter: Meter, closed: Callable[[], Awaitable[None]]) -> None:
        self._inner = inner
        self._meter = meter
        self._closed: Callable[[], Awaitable[None]] | None = closed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            for piece in self._meter.take(chunk):
                yield piece
        self._meter.finish()

    async def aclose(self) -> None:
        closed, self._closed = self._closed, None
        if closed is None:
            return
        try:
            await self._inner.aclose()
        finally:
            await closed()


def from_transport(error: httpx.TransportError, host: str) -> Transient:
    """The error class of a request that got no answer: whether it can have landed depends on whether it left."""
    message = f"{host!r}: {str(error) or type(error).__name__}"
    if isinstance(error, _NEVER_SENT):
        return NothingLanded(message)
    return TimedOut(message) if isinstance(error, httpx.TimeoutException) else Unavailable(message)


def raise_for_status(response: httpx.Response) -> httpx.Response:
    """The response, or the error class for its status, with Retry-After understood."""
    if response.status_code < 400:
        return response
    after = response.headers.get("retry-after", "")
    message = f"{response.request.url.host} answered {response.status_code} {response.reason_phrase}".strip()
    raise from_http_status(response.status_code, message, retry_after_s=retry_after_s(after))


def retry_after_s(text: str) -> float | None:
    """The seconds that a Retry-After header asks for, as a number or a date; None if it says neither."""
    if text.isdecimal() and text.isascii():
        return min(float(text[:9]), _LONGEST_WAIT_S)
    try:
        asked_s = (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
        return min(max(0.0, asked_s), _LONGEST_WAIT_S)
    except (ValueError, TypeError):  # no date, or one without a time zone
        return None


async def _system_resolve(host: str, port: int) -> list[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in found))
