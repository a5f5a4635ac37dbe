"""What servers offer beside tools, for clients of the gateway: resources, prompts, completion, log, subscriptions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, TypeVar

import mcp_types as types
from mcp import Client, MCPError
from mcp.server import Server, ServerRequestContext

from interlock.adapters.mcp.downstream import DownstreamCall
from interlock.adapters.mcp.listening import listen
from interlock.adapters.mcp.offers import Offers
from interlock.adapters.mcp.pins import find_harm
from interlock.adapters.mcp.readings import prompt_tool, resource_tool
from interlock.adapters.mcp.servers import McpServers
from interlock.adapters.mcp.upstream import Upstream, link_to
from interlock.errors import ToolError

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]
Read = Callable[[Context, str, dict[str, Any], Any], Awaitable[Any]]
Request = Callable[[Context, Any], AbstractAsyncContextManager[DownstreamCall]]
_MOST_PAGES = 100
_LIST_S = 10.0
"""So long the others wait for one server."""
_LOOK_S, _MISS_S = 60.0, 5.0
"""So old may be what servers have listed, where an address fits a template, and where it fits nothing."""
_log = logging.getLogger("interlock.mcp")


class Passing:
    """The requests of clients that are no calls of tools. What is read takes the path; what only lists does not."""

    def __init__(self, servers: McpServers, read: Read, request: Request) -> None:
        self._servers, self._read, self._request = servers, read, request
        self._offers = Offers(list(servers.upstreams))
        self._looking = asyncio.Lock()
        self._looked_at: float | None = None

    def handlers(self) -> dict[str, Any]:
        """For the server of the SDK."""
        return {
            "on_list_resources": self._list_resources,
            "on_list_resource_templates": self._list_templates,
            "on_read_resource": self._read_resource,
            "on_subscribe_resource": self._subscribe,
            "on_unsubscribe_resource": self._unsubscribe,
            "on_list_prompts": self._list_prompts,
            "on_get_prompt": self._get_prompt,
            "on_completion": self._complete,
            "on_subscriptions_listen": self._listen,
        }

    def add_to(self, server: Server[Any]) -> None:
        """What the SDK would warn of as it is passing away, and what clients of the older revisions still need."""
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)

    async def _list_resources(self, ctx: Context, params: Any) -> types.ListResourcesResult:
        found: dict[str, types.Resource] = {}
        for name, pages in await self._gather(ctx, params, "resources/list", _RESOURCES):
            for one in (one for page in pages for one in page.resources):
                if self._offers.list_resource(name, one.uri) and _is_fit(name, one):
                    found.setdefault(one.uri, one)
        return types.ListResourcesResult(resources=list(found.values()))

    async def _list_templates(self, ctx: Context, params: Any) -> types.ListResourceTemplatesResult:
        found: list[types.ResourceTemplate] = []
        for name, pages in await self._gather(ctx, params, "resources/templates/list", _TEMPLATES):
            listed = [one for page in pages for one in page.resource_templates]
            self._offers.list_templates(name, listed)
            found += [one for one in listed if _is_fit(name, one)]
        return types.ListResourceTemplatesResult(resource_templates=found)

    async def _list_prompts(self, ctx: Context, params: Any) -> types.ListPromptsResult:
        found: dict[str, types.Prompt] = {}
        for name, pages in await self._gather(ctx, params, "prompts/list", _PROMPTS):
            listed = [one for page in pages for one in page.prompts]
            self._offers.list_prompts(name, listed)
            for one in (one for one in listed if _is_fit(name, one)):
                called = self._servers.terms[name].name_of(name, one.name)
                if self._prompt_of(called)[0] == name:  # else it would be got from another server
                    found.setdefault(called, one.model_copy(update={"name": called}))
        return types.ListPromptsResult(prompts=list(found.values()))

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        problem: MCPError | None = None
        for name in await self._servers_of(ctx, params):
            try:
                return await self._read(ctx, resource_tool(name), {"uri": params.uri}, params)
            except MCPError as error:
                problem = error
        raise problem or MCPError(types.INVALID_PARAMS, f"there is no resource {params.uri}", {"uri": params.uri})

    async def _get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Any:
        name, prompt = self._prompt_of(params.name)
        given = {"name": prompt, **({"arguments": params.arguments} if params.arguments else {})}
        return await self._read(ctx, prompt_tool(name), given, params)

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        ref = params.ref
        if isinstance(ref, types.PromptReference):
            names, prompt = await self._offering_prompt(ctx, params, ref.name)
            ref = ref.model_copy(update={"name": prompt})
        else:
            names = await self._find_servers(ctx, params, partial(self._offers.servers_of_reference, ref.uri))
        if not names:
            raise MCPError(types.INVALID_PARAMS, "no server offers what is to be completed")
        argument = {"name": params.argument.name, "value": params.argument.value}
        context = None if params.context is None else params.context.arguments

        async def complete(link: Upstream, caller: DownstreamCall) -> types.CompleteResult:
            return await link.ask(ctx.method, lambda client: client.complete(ref, argument, context), caller)

        return await self._first(ctx, params, names, complete)

    async def _subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        names = await self._servers_of(ctx, params)
        return await self._first(ctx, params, names, partial(_set, types.SubscribeRequest(params=params)))

    async def _unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        async with self._request(ctx, params):
            names = [name for name, link in await self._links() if link.settings.has_subscribed(params.uri)]
        names = names or await self._servers_of(ctx, params)
        return await self._first(ctx, params, names, partial(_set, types.UnsubscribeRequest(params=params)))

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        uris: dict[str, list[str]] = {name: [] for name in self._servers.upstreams}
        for uri in params.notifications.resource_subscriptions or ():
            for name in await self._servers_of(ctx, types.SubscribeRequestParams(uri=uri)):
                uris[name].append(uri)
        async with self._request(ctx, params):
            return await listen(ctx, params, [(link, uris[name]) for name, link in await self._links()])

    async def _set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        asked = types.SetLevelRequest(params=params)

        async def ask(client: Client, cursor: str | None) -> Any:
            del cursor
            return await client.session.send_request(asked, types.EmptyResult)

        async with self._request(ctx, params):
            for _name, link in await self._links():
                link.settings.note(asked)  # it is meant for one that cannot be told now, too
        await self._gather(ctx, params, "logging/setLevel", ask)
        return types.EmptyResult()

    async def _gather(
        self, ctx: Context, params: Any, what: str, ask: Callable[..., Any]
    ) -> list[tuple[str, list[Any]]]:
        """What all servers list, side by side; one that is not there, or takes too long, is left out."""
        async with self._request(ctx, params):
            links = await self._links()
            work = [asyncio.wait_for(_pages(link, what, ask), _LIST_S) for _name, link in links]
            found = await asyncio.gather(*work, return_exceptions=True)
        listed = []
        for (name, _link), pages in zip(links, found, strict=True):
            if isinstance(pages, BaseException):
                _log.warning("%s: %s: %s", name, what, pages or type(pages).__name__)
            else:
                listed.append((name, pages))
        return listed

    async def _first(
        self, ctx: Context, params: Any, names: list[str], work: Callable[[Upstream, DownstreamCall], Awaitable[T]]
    ) -> T:
        """The answer of the first server that has one."""
        problem: MCPError | None = None
        async with self._request(ctx, params) as caller:
            for name in names:
                link = await link_to(self._servers.upstreams[name])
                try:
                    return await work(link, caller)
                except ToolError as error:
                    problem = caller.error or MCPError(types.INTERNAL_ERROR, str(error))
        raise problem or MCPError(types.METHOD_NOT_FOUND, "no server offers this")

    async def _links(self) -> list[tuple[str, Upstream]]:
        return [(name, await link_to(upstream)) for name, upstream in self._servers.upstreams.items()]

    async def _servers_of(self, ctx: Context, params: Any) -> list[str]:
        """The servers that a resource may be of: where nobody is known to offer it, all, one after the other."""
        if not self._offers.is_listed(params.uri):
            await self._look(ctx, params, _LOOK_S)
        known = await self._find_servers(ctx, params, partial(self._offers.servers_of, params.uri))
        return known or list(self._servers.upstreams)

    async def _offering_prompt(self, ctx: Context, params: Any, called: str) -> tuple[list[str], str]:
        """The server that offers a prompt, and what it is called there; one that does not say what it offers may."""
        name, prompt = self._prompt_of(called)
        known = await self._find_servers(ctx, params, lambda: [name] if self._offers.has_prompt(name, prompt) else [])
        return known if self._offers.has_prompt(name, prompt) is not None else [name], prompt

    async def _find_servers(self, ctx: Context, params: Any, find: Callable[[], list[str]]) -> list[str]:
        """The servers that offer something; where there are none, they are asked what they offer now."""
        found = find()
        if not found:
            await self._look(ctx, params, _MISS_S)
            found = find()
        return found

    async def _look(self, ctx: Context, params: Any, most_age_s: float) -> None:
        """Learn what servers offer, unless that was looked at lately."""
        now = asyncio.get_running_loop().time
        async with self._looking:
            if self._looked_at is None or now() - self._looked_at > most_age_s:
                lists = self._list_resources, self._list_templates, self._list_prompts
                await asyncio.gather(*(one(ctx, params) for one in lists))
                self._looked_at = now()

    def _prompt_of(self, called: str) -> tuple[str, str]:
        """The server of a prompt, and what it is called there."""
        prefixes = {said.name_of(name, ""): name for name, said in self._servers.terms.items()}
        fitting = [prefix for prefix in prefixes if called.startswith(prefix)]
        if not fitting:
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {called!r}")
        longest = max(fitting, key=len)
        return prefixes[longest], called.removeprefix(longest)


_RESOURCES: Callable[..., Any] = Client.list_resources
_TEMPLATES: Callable[..., Any] = Client.list_resource_templates
_PROMPTS: Callable[..., Any] = Client.list_prompts


def _is_fit(server: str, listed: types.Prompt | types.Resource | types.ResourceTemplate) -> bool:
    """Whether something that nobody has pinned may be listed."""
    why = find_harm(listed)
    if why:
        _log.warning("%s: %r is left out of what is listed: %s", server, listed.name, why)
    return not why


async def _set(
    asked: types.SubscribeRequest | types.UnsubscribeRequest, link: Upstream, caller: DownstreamCall
) -> types.EmptyResult:
    """What is only acknowledged, as it came; the connection after this one is told it again."""
    if isinstance(asked, types.UnsubscribeRequest):  # whatever comes of it, nobody wants to hear any more
        link.settings.note(asked)
    found = await link.ask(asked.method, lambda client: client.session.send_request(asked, types.EmptyResult), caller)
    link.settings.note(asked)
    return found


async def _pages(link: Upstream, what: str, ask: Callable[..., Any]) -> list[Any]:
    """All pages of a list; none of a server that has no such thing."""
    pages: list[Any] = []
    cursor: str | None = None
    caller = DownstreamCall()
    for _page in range(_MOST_PAGES):
        try:
            pages.append(await link.ask(what, partial(ask, cursor=cursor), caller))
        except ToolError:
            if caller.error is not None and caller.error.code == types.METHOD_NOT_FOUND:
                return []
            raise
        cursor = getattr(pages[-1], "next_cursor", None)
        if not cursor:
            break
    return pages
