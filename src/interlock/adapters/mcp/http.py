"""The gateway over HTTP: who calls is who the token says, and a page in a browser cannot reach it by another name."""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from interlock.adapters.mcp.events import HttpSessions
from interlock.adapters.mcp.gateway import APPROVE, mcp_server
from interlock.adapters.mcp.oauth import JwksVerifier, OAuthTerms
from interlock.adapters.mcp.servers import McpServers
from interlock.errors import ConfigError
from interlock.runtime import Runtime

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LEAST_TOKEN = 16
_RETRY_MS = 500
"""After so long a client whose stream broke off comes back."""


class HttpTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Where the gateway listens, and who is let in: whoever brings a token, or everybody on this machine."""

    address: str = "127.0.0.1:8300"
    bearer: str = ""
    """The file of one token, for one's own machine: whoever brings it is the user of this process."""
    oauth: OAuthTerms | None = None
    hosts: tuple[str, ...] = ()
    """Other names that it is reached by."""


async def serve_http(
    runtime: Runtime,
    terms: HttpTerms,
    *,
    servers: McpServers | None = None,
    actor: str = "mcp",
    approve: str = APPROVE,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the tools of a runtime at `POST http://HOST:PORT/mcp` until the process ends."""
    host, port = read_address(terms.address)
    app = http_app(runtime, terms, servers=servers, actor=actor, approve=approve)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(f"nobody can listen at {terms.address}: {error.strerror}; choose another --http") from None
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    shown = f"[{host}]" if family is socket.AF_INET6 else host
    say(f"http://{shown}:{listening.getsockname()[1]}/mcp")
    serving = asyncio.create_task(server.serve(sockets=[listening]), name="mcp http")
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:  # whoever ends it has its sockets closed
        server.should_exit = True
        await serving
        raise


def http_app(
    runtime: Runtime,
    terms: HttpTerms,
    *,
    servers: McpServers | None = None,
    actor: str = "mcp",
    approve: str = APPROVE,
) -> ASGIApp:
    """The gateway as an ASGI application, for whatever serves those."""
    host, _port = read_address(terms.address)
    if host not in _LOOPBACK and not terms.bearer and terms.oauth is None:
        raise ConfigError(
            f"{host} is reached from other machines: say by which token they come in (--bearer, --issuer)"
        )
    if terms.bearer and terms.oauth is not None:
        raise ConfigError("tokens come from one place: a file (--bearer), or an authorization server (--issuer)")
    known = [host, "127.0.0.1", "localhost", "[::1]", *terms.hosts]
    known += [] if terms.oauth is None else [urlsplit(terms.oauth.audience).netloc]
    names = list(dict.fromkeys(known))
    security = TransportSecuritySettings(
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[
            f"{scheme}://{name}{end}" for scheme in ("http", "https") for name in names for end in ("", ":*")
        ],
    )
    server = mcp_server(runtime, servers=servers, actor=actor, approve=approve)
    app: ASGIApp = server.streamable_http_app(
        host=host,
        transport_security=security,
        retry_interval=_RETRY_MS,
        auth=None if terms.oauth is None else terms.oauth.settings(),
        token_verifier=None if terms.oauth is None else JwksVerifier(terms.oauth),
    )
    server.session_manager.__class__ = HttpSessions  # the SDK makes it itself, with one store for all sessions
    return _BearerGuard(app, read_token(Path(terms.bearer))) if terms.bearer else app


def read_address(text: str) -> tuple[str, int]:
    """`HOST:PORT`."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 <= int(port) < 65_536:
        raise ConfigError(f"{text!r} is no address to listen at; write 127.0.0.1:8300")
    return host.strip("[]"), int(port)


def read_token(file: Path) -> str:
    """The token in a file; one that can be guessed is none."""
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "it is no text"
        raise ConfigError(f"--bearer {file}: the token cannot be read: {said}") from None
    if len(token) < _LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{file}: a token is one line of at least {_LEAST_TOKEN} letters, digits and signs")
    return token


class _BearerGuard:
    """Lets nobody through who does not bring the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            scheme, _, value = given.partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(value, self._token):
                refused = JSONResponse(
                    {"error": "invalid_token"},
                    status_code=401,
                    headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
                )
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)
