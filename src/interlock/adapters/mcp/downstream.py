"""Who calls through the gateway, for the time of one call: what goes along with it, and what comes back as it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any

import mcp_types as types
import msgspec
from mcp import MCPError
from mcp.shared.dispatcher import ProgressFnT

from interlock.values import Json

_OWN, _PROTOCOL, _PROGRESS = "interlock/", "io.modelcontextprotocol/", "progressToken"


class DownstreamCall(msgspec.Struct):
    """A request of a client of the gateway, while it is on the path."""

    link: Callable[[Any], Awaitable[Any]] | None = None
    """The connection to a server that this client uses; None: the one that all share."""
    seen: Any = None
    """The connection on which the tools were compared for this call; None: the one that all share."""
    meta: dict[str, Json] = {}
    """What the client said in `_meta` that is for the server."""
    progress: ProgressFnT | None = None
    input_responses: Any = None
    request_state: str | None = None
    result: Any = None
    """What the server has answered, as it was; None where it was not asked."""
    error: MCPError | None = None
    """The error that it has answered with."""
    asks: types.InputRequiredResult | None = None
    """What it has to be told first."""


CALLER: ContextVar[DownstreamCall | None] = ContextVar("interlock.mcp.caller", default=None)


def meta_for_server(said: Mapping[str, Any] | None) -> dict[str, Json]:
    """What of `_meta` is for the server: not what was said to the gateway, nor what the SDK says for itself."""
    return {
        key: item
        for key, item in (said or {}).items()
        if key == types.LOG_LEVEL_META_KEY
        or not (key.startswith((_OWN, _PROTOCOL)) or key in (_PROGRESS, "progress_token"))
    }
