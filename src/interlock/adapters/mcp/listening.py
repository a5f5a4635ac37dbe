"""What has changed behind the gateway, for clients of 2026-07-28 that listen: from each server that can say so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.subscriptions import (
    ListenNotSupportedError,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    SubscriptionLost,
    ToolsListChanged,
)
from mcp.server import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

from interlock.adapters.mcp.upstream import Upstream
from interlock.errors import ToolError

_FIRST_S = 10.0
"""So long a client waits for a server until it is told that it listens."""
_PAUSES_S = (0.1, 0.5, 2.0, 10.0, 30.0)
"""Before a server whose stream has broken off is listened to again."""
_STEADY_S = 10.0
"""A stream that has lasted for so long is opened again at once, nearly."""
_CANNOT = (types.METHOD_NOT_FOUND, types.INVALID_REQUEST, types.INVALID_PARAMS)


async def listen(
    ctx: ServerRequestContext[Any, Any],
    params: types.SubscriptionsListenRequestParams,
    links: Sequence[tuple[Upstream, Sequence[str]]],
) -> types.SubscriptionsListenResult:
    """One stream of a client, fed by one of each server, with the addresses that are asked of that one: those are there
    before the client is told that it listens."""
    bus = InMemorySubscriptionBus()
    feeds = [_Feed(link, params.notifications, uris, bus) for link, uris in links]
    tasks = [asyncio.create_task(feed.run(), name="mcp events") for feed in feeds]
    tries = [asyncio.create_task(feed.tried.wait()) for feed in feeds]
    try:
        if tries:
            await asyncio.wait(tries, timeout=_FIRST_S)
        for feed in feeds:
            feed.may_tell.set()
        return await ListenHandler(bus)(ctx, params)
    finally:
        for task in (*tries, *tasks):
            task.cancel()
        await asyncio.gather(*tries, *tasks, return_exceptions=True)


class _Feed:
    """What one server says has changed, over all the connections that there are to it while a client listens."""

    def __init__(
        self, link: Upstream, wanted: types.SubscriptionFilter, uris: Sequence[str], bus: InMemorySubscriptionBus
    ) -> None:
        self._link, self._bus, self._uris = link, bus, uris
        self._kinds = {
            "tools_list_changed": bool(wanted.tools_list_changed),
            "prompts_list_changed": bool(wanted.prompts_list_changed),
            "resources_list_changed": bool(wanted.resources_list_changed),
        }
        self._tries = 0
        self._has_missed = False
        self.tried, self.may_tell = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """For as long as it can say something; a stream that has broken off is opened again."""
        now = asyncio.get_running_loop().time
        while any((*self._kinds.values(), self._uris)):
            since = now()
            try:
                if not await self._follow():
                    break
            except ListenNotSupportedError:
                break
            except MCPError as error:
                if error.code in _CANNOT:
                    break
            except (ToolError, SubscriptionLost, TimeoutError, RuntimeError):
                pass
            self._has_missed = True
            self.tried.set()
            self._tries = self._tries if now() - since < _STEADY_S else 0
            await asyncio.sleep(_PAUSES_S[min(self._tries, len(_PAUSES_S) - 1)])
            self._tries += 1
        self.tried.set()

    async def _follow(self) -> bool:
        """One stream, until it ends; whether the server has anything to say on such a one."""
        opened = await self._link.ask("subscriptions/listen", self._open)
        async with opened as told:
            if not any(told.honored.model_dump(exclude_none=True).values()):
                return False
            self.tried.set()
            await self.may_tell.wait()
            if self._has_missed:  # while nobody listened, anything may have become another
                await self._tell_all()
            async for event in told:
                await self._tell(event)
        return True

    async def _open(self, client: Client) -> Any:
        return client.listen(**self._kinds, resource_subscriptions=self._uris)

    async def _tell_all(self) -> None:
        changes: list[ServerEvent] = [ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()]
        changes += [ResourceUpdated(uri) for uri in self._uris]
        for event in changes:
            await self._bus.publish(event)

    async def _tell(self, event: ServerEvent) -> None:
        if isinstance(event, ToolsListChanged):
            self._link.watch.told = True
        if not isinstance(event, ResourceUpdated) or event.uri in self._uris:  # of its own, and not of another server
            await self._bus.publish(event)
