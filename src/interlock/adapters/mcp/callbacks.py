"""What a server may ask back of whoever is connected to it; what is not given, it is told that we cannot."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from mcp import Client
from mcp.client import Transport
from mcp.client.session import ElicitationFnT, ListRootsFnT, LoggingFnT, MessageHandlerFnT, SamplingFnT


class ClientCallbacks(msgspec.Struct, frozen=True):
    """Sampling, elicitation, roots and log of one connection; `legacy`: by the handshake of the older revisions."""

    sampling: SamplingFnT | None = None
    elicitation: ElicitationFnT | None = None
    roots: ListRootsFnT | None = None
    logging: LoggingFnT | None = None
    hear: Callable[[Any], Awaitable[None]] | None = None
    """Notifications: that something has changed."""
    legacy: bool = False

    def open(self, target: Transport, hear: MessageHandlerFnT) -> Client:
        """A client of the SDK that answers with these."""
        return Client(
            target,
            cache=None,
            mode="legacy" if self.legacy else "auto",
            sampling_callback=self.sampling,
            elicitation_callback=self.elicitation,
            list_roots_callback=self.roots,
            logging_callback=self.logging,
            message_handler=hear,
        )
