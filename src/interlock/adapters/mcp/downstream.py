"""Who calls through the gateway, for the time of one call: what goes along with it, and what comes back as it is."""

from __future__ import annotations

from contextvars import ContextVar

import mcp_types as types
import msgspec

from interlock.values import Json


class DownstreamCall(msgspec.Struct):
    """A call of a client of the gateway, while it is on the path."""

    meta: dict[str, Json] = {}
    """What the client said in `_meta` that is for the server."""
    result: types.CallToolResult | None = None
    """What the server has answered, as it was; None where it was not asked."""


CALLER: ContextVar[DownstreamCall | None] = ContextVar("interlock.mcp.caller", default=None)
