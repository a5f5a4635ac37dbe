"""What a server may ask back of whoever is connected to it; what is not given, it is told that we cannot."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
import msgspec
from mcp import Client
from mcp.client import Transport
from mcp.client.session import (
    ClientSession,
    ElicitationFnT,
    ListRootsFnT,
    LoggingFnT,
    MessageHandlerFnT,
    SamplingFnT,
)


class ClientCallbacks(msgspec.Struct, frozen=True):
    """Sampling, elicitation, roots and log of one connection; `legacy`: by the handshake of the older revisions.

    `can`: what the server is told of them, where that is less than all that the SDK can.
    """

    sampling: SamplingFnT | None = None
    elicitation: ElicitationFnT | None = None
    roots: ListRootsFnT | None = None
    logging: LoggingFnT | None = None
    hear: Callable[[Any], Awaitable[None]] | None = None
    """Notifications: that something has changed."""
    legacy: bool = False
    can: types.ClientCapabilities | None = None

    def without_roots(self) -> ClientCallbacks:
        """The same for a server that is not told the folders of the client."""
        can = None if self.can is None else self.can.model_copy(update={"roots": None})
        return msgspec.structs.replace(self, roots=None, can=can)

    def open(self, target: Transport, hear: MessageHandlerFnT) -> Client:
        """A client of the SDK that answers with these."""
        made = _Client(
            target,
            cache=None,
            mode="legacy" if self.legacy else "auto",
            sampling_callback=self.sampling,
            elicitation_callback=self.elicitation,
            list_roots_callback=self.roots,
            logging_callback=self.logging,
            message_handler=hear,
        )
        made.can = self.can
        return made


class _Session(ClientSession):
    """As the SDK's, which says of elicitation and roots that it can all of it: this says what its client can."""

    can: types.ClientCapabilities | None = None

    def _build_capabilities(self, version: str) -> types.ClientCapabilities:
        said = super()._build_capabilities(version)
        return said if self.can is None else said.model_copy(update=asked_back(self.can))


class _Client(Client):
    can: types.ClientCapabilities | None = None

    async def _build_session(self, exit_stack: contextlib.AsyncExitStack) -> ClientSession:
        session = await super()._build_session(exit_stack)
        session.__class__ = _Session  # the SDK makes it itself
        assert isinstance(session, _Session)
        session.can = self.can
        return session


def asked_back(can: types.ClientCapabilities) -> dict[str, Any]:
    """What a client can be asked for by a server, in the words of the protocol alone."""
    sampling, elicitation, roots = can.sampling, can.elicitation, can.roots
    return {
        "sampling": None
        if sampling is None
        else types.SamplingCapability(
            context=None if sampling.context is None else types.SamplingContextCapability(),
            tools=None if sampling.tools is None else types.SamplingToolsCapability(),
        ),
        "elicitation": None
        if elicitation is None
        else types.ElicitationCapability(
            form=None if elicitation.form is None else types.FormElicitationCapability(),
            url=None if elicitation.url is None else types.UrlElicitationCapability(),
        ),
        "roots": None if roots is None else types.RootsCapability(list_changed=roots.list_changed),
    }
