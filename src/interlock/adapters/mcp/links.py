"""Connections to servers for clients of the gateway: what a server asks back reaches the client that called, no other.

A client of the older revisions has a connection of its own to each server, for as long as its own lasts: a server may
ask it for something in the middle of a call. One of 2026-07-28 says with every request what it can; such requests share
a connection with those of clients that can the same, and a server that has to know something answers with that.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
import msgspec
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.server import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from interlock.adapters.mcp.callbacks import ClientCallbacks, asked_back
from interlock.adapters.mcp.upstream import Upstream

Context = ServerRequestContext[Any, Any]
Link = Callable[[Upstream], Awaitable[Upstream]]


class InFlight(msgspec.Struct, frozen=True):
    """A request of a client that is being answered."""

    session: ServerSession
    request: types.RequestId | None


class ClientLinks:
    """The connections of one client of the older revisions, and its requests that are being answered."""

    def __init__(self, session: ServerSession, number: int) -> None:
        self.number = number
        """Which client it is."""
        self._last = InFlight(session, None)
        self._in_flight: list[InFlight] = []
        self._links: dict[str, Upstream] = {}

    def begin(self, ctx: Context) -> InFlight:
        """A request is being answered from now on."""
        self._last = found = InFlight(ctx.session, ctx.request_id)
        self._in_flight.append(found)
        return found

    def end(self, one: InFlight) -> None:
        """It is answered."""
        self._in_flight.remove(one)

    async def link(self, upstream: Upstream) -> Upstream:
        """This client's own connection to a server."""
        found = self._links.get(upstream.name)
        if found is None:
            found = self._links[upstream.name] = upstream.connect_again(self._callbacks())
        return found

    def get(self, server: str) -> Upstream | None:
        """The one that there is."""
        return self._links.get(server)

    async def tell_roots_changed(self) -> None:
        """Its folders are others: each server that it is connected to hears that; one that is not will ask anew."""
        links = [link for link in self._links.values() if link.is_connected and link.hears_roots]
        await asyncio.gather(
            *(link.ask(_ROOTS_CHANGED.method, _say_roots_changed) for link in links), return_exceptions=True
        )

    async def close(self) -> None:
        """End them, each once the changes that it makes have ended."""
        await asyncio.gather(*(link.finish() for link in self._links.values()), return_exceptions=True)

    @property
    def _asker(self) -> InFlight:
        """The request in the middle of which a server asks: the last one that is not answered."""
        return self._in_flight[-1] if self._in_flight else self._last

    @property
    def _can(self) -> types.ClientCapabilities:
        return self._last.session.client_capabilities or types.ClientCapabilities()

    def _callbacks(self) -> ClientCallbacks:
        can = self._can
        return ClientCallbacks(
            sampling=self._sample if can.sampling is not None else None,
            elicitation=self._elicit if can.elicitation is not None else None,
            roots=self._list_roots if can.roots is not None else None,
            logging=self._log,
            hear=self._hear,
            legacy=True,
            can=can,
        )

    async def _ask(self, request: Any, answer: Any) -> Any:
        asker = self._asker
        return await asker.session.send_request(
            request, answer, metadata=ServerMessageMetadata(related_request_id=asker.request)
        )

    async def _sample(self, context: ClientRequestContext, params: types.CreateMessageRequestParams) -> Any:
        del context
        can = self._can.sampling
        if params.tools and (can is None or can.tools is None):
            return _refuse("it cannot be asked for a word of a model that has tools")
        answer = types.CreateMessageResultWithTools if params.tools else types.CreateMessageResult
        return await self._ask(types.CreateMessageRequest(params=params), answer)

    async def _elicit(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> Any:
        del context
        can = self._can.elicitation or types.ElicitationCapability()
        by_url = isinstance(params, types.ElicitRequestURLParams)
        # Who says no more of it than that it can means forms.
        if can.url is None if by_url else can.form is None and can.url is not None:
            return _refuse(f"it cannot be asked by {'an address' if by_url else 'a form'}")
        return await self._ask(types.ElicitRequest(params=params), types.ElicitResult)

    async def _list_roots(self, context: ClientRequestContext) -> Any:
        del context
        return await self._ask(types.ListRootsRequest(), types.ListRootsResult)

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        asker = self._asker
        await asker.session.send_notification(types.LoggingMessageNotification(params=params), asker.request)

    async def _hear(self, message: object) -> None:
        if isinstance(message, _PASSED_ON):
            await self._last.session.send_notification(message)


_PASSED_ON = (
    types.ResourceUpdatedNotification,
    types.ResourceListChangedNotification,
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ElicitCompleteNotification,
)


def _refuse(why: str) -> types.ErrorData:
    """What a server asks for though it was told that the client cannot."""
    return types.ErrorData(code=types.INVALID_PARAMS, message=f"the client does not say that it can do that: {why}")


_ROOTS_CHANGED = types.RootsListChangedNotification()


async def _say_roots_changed(client: Client) -> None:
    await client.session.send_notification(_ROOTS_CHANGED)


class LinkPool:
    """The connections of all clients of a gateway."""

    def __init__(self) -> None:
        self._clients: weakref.WeakKeyDictionary[object, ClientLinks] = weakref.WeakKeyDictionary()
        self._shared: dict[tuple[str, str], Upstream] = {}
        self._count = 0

    def client(self, ctx: Context) -> ClientLinks | None:
        """The connections of the client of a request; None for one that says with each request what it can."""
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return None
        connection = ctx.session._connection  # the SDK has no public way to tell connections apart
        found = self._clients.get(connection)
        if found is None:
            self._count += 1
            found = self._clients[connection] = ClientLinks(ctx.session, self._count)
            connection.exit_stack.push_async_callback(found.close)
        return found

    def connection_of(self, ctx: Context, upstream: Upstream) -> Upstream:
        """The connection that requests of this client go by, if it is there; else the one that all share."""
        client = self.client(ctx)
        found = (
            self._shared.get((upstream.name, _key(_abilities(ctx)))) if client is None else client.get(upstream.name)
        )
        return found if found is not None and found.is_connected else upstream

    def link_for(self, ctx: Context, own: list[Upstream]) -> Link:
        """How a request of 2026-07-28 reaches a server: by a connection that says what its client can. One that wants
        the log of its request gets a connection of its own (`own`), which ends with it: else it would hear others'."""
        said = _abilities(ctx)
        given: dict[str, Any] = {**dict.fromkeys(said, _never_asked), "can": ctx.session.client_capabilities}
        wants_log = types.LOG_LEVEL_META_KEY in (ctx.meta or {})

        async def log(params: types.LoggingMessageNotificationParams) -> None:
            await ctx.session.send_notification(types.LoggingMessageNotification(params=params), ctx.request_id)

        async def link(upstream: Upstream) -> Upstream:
            if wants_log:
                own.append(upstream.connect_again(ClientCallbacks(**given, logging=log)))
                return own[-1]
            key = (upstream.name, _key(said))
            if said and key not in self._shared:
                self._shared[key] = upstream.connect_again(ClientCallbacks(**given))
            return self._shared[key] if said else upstream

        return link

    async def close(self) -> None:
        """End those that are shared; the others end with their clients."""
        await asyncio.gather(*(link.close() for link in self._shared.values()), return_exceptions=True)


def _abilities(ctx: Context) -> dict[str, Any]:
    can = asked_back(ctx.session.client_capabilities or types.ClientCapabilities())
    return {name: one for name, one in can.items() if one is not None}


def _key(abilities: dict[str, Any]) -> str:
    """The same for clients that can the same."""
    return types.ClientCapabilities(**abilities).model_dump_json(exclude_none=True)


async def _never_asked(*_given: Any) -> types.ErrorData:
    """Since 2026-07-28 a server asks with its answer; one of before that has nobody to ask here."""
    return types.ErrorData(code=types.INVALID_REQUEST, message="the client of the gateway cannot be asked in between")
