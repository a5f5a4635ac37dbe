"""Connections: whoever is slow to say what they want loses theirs, so that others get in.

uvicorn limits how long a connection may idle between requests, but not how long a request may take to begin; and its
`limit_concurrency` counts connections, so that slow ones would keep everybody else out.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from interlock.errors import ConfigError

MAX_CONNECTIONS = 400
"""Beyond so many, those that wait make room."""
_MOST_CONNECTIONS = 800
"""Where none waits, as all are being answered, so many are let in: below the 1,024 files of a usual process."""
MAX_HEADER_S = 10.0
"""How long a connection may take until the headers of its next request are complete."""
_BACKLOG = 512


class ImpatientProtocol(H11Protocol):
    """A connection that ends if no request begins in time, or if room is needed and it has waited longest."""

    max_connections = MAX_CONNECTIONS
    max_header_s = MAX_HEADER_S
    waiting_since = 0.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_request()
        if len(self.connections) > self.max_connections:
            self._make_room()

    def on_response_complete(self) -> None:
        # Before uvicorn's own part, which may go on with a request that has come in meanwhile.
        self._wait_for_request()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being worked on: its headers have not come, or its answer has gone."""
        return self.cycle is None or self.cycle.response_complete

    def _wait_for_request(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self.waiting_since = self.loop.time()
        self._deadline = self.loop.call_later(self.max_header_s, self._give_up)

    def _give_up(self) -> None:
        if self.is_waiting and self.transport is not None:
            self.transport.abort()  # not `close`, which would first wait until the other side takes what is left

    def _make_room(self) -> None:
        """End the connection that has waited longest; those with a request under way stay, and so does who just came.

        Whoever just came has not had the time to ask: others that are being refused must not keep it out.
        """
        others = [other for other in self.connections if isinstance(other, ImpatientProtocol) and other is not self]
        waiting = [other for other in others if other.is_waiting]
        if waiting:
            min(waiting, key=lambda other: other.waiting_since)._give_up()
        elif len(self.connections) > _MOST_CONNECTIONS:
            self._give_up()


def open_listener(host: str, port: int) -> socket.socket:
    """The socket that a server listens on; ConfigError if there is somebody already, or no such address."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"cannot listen at {host}:{port}: {error}; choose another --port or --host") from None


def build_config(app: Any, **options: Any) -> uvicorn.Config:
    """The settings of uvicorn that every server of the catalog shares."""
    # WebSockets are none of ours, and would take a connection out of the hands of the protocol above.
    return uvicorn.Config(app, http=ImpatientProtocol, ws="none", log_level="warning", **options)
