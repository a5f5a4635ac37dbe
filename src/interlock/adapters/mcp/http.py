"""The gateway over HTTP: who calls is who the token says, and a page in a browser cannot reach it by another name."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from pathlib import Path

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from interlock.adapters.mcp.events import RecentEvents
from interlock.adapters.mcp.gateway import mcp_server
from interlock.adapters.mcp.servers import McpServers
from interlock.errors import ConfigError
from interlock.runtime import Runtime

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LEAST_TOKEN = 16
_RETRY_MS = 500
"""After so long a client whose stream broke off comes back."""


async def serve_http(
    runtime: Runtime,
    address: str,
    *,
    servers: McpServers | None = None,
    actor: str = "mcp",
    bearer: str | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the tools of a runtime at `POST http://HOST:PORT/mcp` until the process ends.

    Beyond this machine only with a token: `bearer` is the file that holds it.
    """
    host, port = read_address(address)
    token = None if bearer is None else read_token(Path(bearer))
    if host not in _LOOPBACK and token is None:
        raise ConfigError(f"{host} is reached from other machines: name the file of a token that they bring (--bearer)")
    server = uvicorn.Server(
        uvicorn.Config(
            http_app(runtime, servers=servers, actor=actor, host=host, token=token),
            host=host,
            port=port,
            log_level="warning",
        )
    )
    say(f"http://{host}:{port}/mcp")
    await server.serve()


def http_app(
    runtime: Runtime,
    *,
    servers: McpServers | None = None,
    actor: str = "mcp",
    host: str = "127.0.0.1",
    token: str | None = None,
) -> ASGIApp:
    """The gateway as an ASGI application, for whatever serves those."""
    hosts = [f"{name}:*" for name in dict.fromkeys((host, "127.0.0.1", "localhost", "[::1]"))]
    security = TransportSecuritySettings(
        allowed_hosts=[*hosts, host], allowed_origins=[f"http://{name}" for name in hosts]
    )
    app: ASGIApp = mcp_server(runtime, servers=servers, actor=actor).streamable_http_app(
        host=host, transport_security=security, event_store=RecentEvents(), retry_interval=_RETRY_MS
    )
    return app if token is None else _BearerGuard(app, token)


def read_address(text: str) -> tuple[str, int]:
    """`HOST:PORT`."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 <= int(port) < 65_536:
        raise ConfigError(f"{text!r} is no address to listen at; write 127.0.0.1:8300")
    return host.strip("[]"), int(port)


def read_token(file: Path) -> str:
    """The token in a file; one that can be guessed is none."""
    token = file.read_text(encoding="utf-8").strip()
    if len(token) < _LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{file}: a token is one line of at least {_LEAST_TOKEN} letters, digits and signs")
    return token


class _BearerGuard:
    """Lets nobody through who does not bring the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._token):
                refused = JSONResponse(
                    {"error": "invalid_token"},
                    status_code=401,
                    headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
                )
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)
