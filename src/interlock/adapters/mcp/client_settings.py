"""What a client has set on its connection to a server: set again on the next one, as a server forgets it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

import mcp_types as types
from mcp import Client, MCPError

_log = logging.getLogger("interlock.mcp")
_RENEW_S = 10.0
"""So long a server may take for all of it before it is used without."""
_CHANGES: dict[str, Callable[[], types.ServerNotification]] = {
    "tools": types.ToolListChangedNotification,
    "prompts": types.PromptListChangedNotification,
    "resources": types.ResourceListChangedNotification,
}
Setting = types.SetLevelRequest | types.SubscribeRequest | types.UnsubscribeRequest


class ClientSettings:
    """The log level and the subscriptions of one connection, which outlast it."""

    def __init__(self) -> None:
        self._level: types.SetLevelRequest | None = None
        self._subscribed: dict[str, types.SubscribeRequest] = {}
        self._is_renewed = False

    def note(self, asked: Setting) -> None:
        """A client has set one."""
        if isinstance(asked, types.SetLevelRequest):
            self._level = asked
        elif isinstance(asked, types.UnsubscribeRequest):
            self._subscribed.pop(asked.params.uri, None)
        else:
            self._subscribed[asked.params.uri] = asked

    def has_subscribed(self, uri: str) -> bool:
        """Whether a client hears of this resource."""
        return uri in self._subscribed

    async def renew(self, client: Client) -> list[types.ServerNotification]:
        """Set all of it on a new connection; what a client is told then: while nobody was connected, anything may have
        become another. Nothing, the first time."""
        is_first, self._is_renewed = not self._is_renewed, True
        wanted: list[Setting] = [*([] if self._level is None else [self._level]), *self._subscribed.values()]
        try:
            async with asyncio.timeout(_RENEW_S):
                for one in wanted:
                    with contextlib.suppress(MCPError):  # it could do that before, and cannot any more
                        await client.session.send_request(one, types.EmptyResult)
        except TimeoutError:
            _log.warning("what clients have set of log and subscriptions is not set again: it gives no answer in time")
        if is_first:
            return []
        can = client.server_capabilities
        changes = [made() for name, made in _CHANGES.items() if getattr(can, name) is not None]
        params = [types.ResourceUpdatedNotificationParams(uri=uri) for uri in self._subscribed]
        return [*changes, *(types.ResourceUpdatedNotification(params=one) for one in params)]
