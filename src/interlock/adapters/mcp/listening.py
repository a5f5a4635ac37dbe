"""What has changed behind the gateway, for clients of 2026-07-28 that listen: from each server that can say so."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.subscriptions import ListenNotSupportedError, Subscription, SubscriptionLost
from mcp.server import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

from interlock.adapters.mcp.upstream import Upstream

_GONE = (MCPError, ListenNotSupportedError, SubscriptionLost, TimeoutError)


async def listen(
    ctx: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams, links: list[Upstream]
) -> types.SubscriptionsListenResult:
    """One stream of a client, fed by one of each server: those are there before the client is told that it listens."""
    bus, wanted = InMemorySubscriptionBus(), params.notifications
    async with contextlib.AsyncExitStack() as stack:
        for link in links:
            told = await stack.enter_async_context(_subscribe(link, wanted))
            if told is not None:
                pump = asyncio.create_task(_pump(told, bus), name=f"mcp {link.name}: events")
                stack.callback(pump.cancel)
        return await ListenHandler(bus)(ctx, params)


@contextlib.asynccontextmanager
async def _subscribe(link: Upstream, wanted: types.SubscriptionFilter) -> AsyncIterator[Subscription | None]:
    """What a server says has changed; None of one that cannot say."""

    async def open_one(client: Client) -> Any:
        return client.listen(
            tools_list_changed=bool(wanted.tools_list_changed),
            prompts_list_changed=bool(wanted.prompts_list_changed),
            resources_list_changed=bool(wanted.resources_list_changed),
            resource_subscriptions=wanted.resource_subscriptions or (),
        )

    opened = await link.ask("subscriptions/listen", open_one)
    async with contextlib.AsyncExitStack() as stack:
        try:
            found: Subscription | None = await stack.enter_async_context(opened)
        except _GONE:
            found = None
        yield found


async def _pump(told: Subscription, bus: InMemorySubscriptionBus) -> None:
    with contextlib.suppress(*_GONE):
        async for event in told:
            await bus.publish(event)
