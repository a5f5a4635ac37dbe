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
from interlock.adapters.mcp.readings import prompt_tool, resource_tool
from interlock.adapters.mcp.servers import McpServers
from interlock.adapters.mcp.upstream import Upstream, link_to
from interlock.errors import ToolError

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]
Read = Callable[[Context, str, dict[str, Any], Any], Awaitable[Any]]
Request = Callable[[Context, Any], AbstractAsyncContextManager[DownstreamCall]]
_MOST_PAGES = 100
_MOST_OWNERS = 10_000
_LIST_S = 10.0
"""So long the others wait for one server."""
_log = logging.getLogger("interlock.mcp")


class Passing:
    """The requests of clients that are no calls of tools. What is read takes the path; what only lists does not."""

    def __init__(self, servers: McpServers, read: Read, request: Request) -> None:
        self._servers, self._read, self._request = servers, read, request
        self._owners: dict[str, str] = {}
        """Of resources that were listed: the servers that they are of."""

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
                # The first who lists an address has it: another server cannot take it away.
                if self._owners.setdefault(one.uri, name) == name:
                    found.setdefault(one.uri, one)
        while len(self._owners) > _MOST_OWNERS:
            del self._owners[next(iter(self._owners))]
        return types.ListResourcesResult(resources=list(found.values()))

    async def _list_templates(self, ctx: Context, params: Any) -> types.ListResourceTemplatesResult:
        listed = await self._gather(ctx, params, "resources/templates/list", _TEMPLATES)
        found = [one for _name, pages in listed for page in pages for one in page.resource_templates]
        return types.ListResourceTemplatesResult(resource_templates=found)

    async def _list_prompts(self, ctx: Context, params: Any) -> types.ListPromptsResult:
        found: dict[str, types.Prompt] = {}
        for name, pages in await self._gather(ctx, params, "prompts/list", _PROMPTS):
            for one in (one for page in pages for one in page.prompts):
                called = self._servers.terms[name].name_of(name, one.name)
                if self._prompt_of(called)[0] == name:  # else it would be got from another server
                    found.setdefault(called, one.model_copy(update={"name": called}))
        return types.ListPromptsResult(prompts=list(found.values()))

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        problem: MCPError | None = None
        for name in self._servers_of(params.uri):
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
        ref, names = params.ref, list(self._servers.upstreams)
        if isinstance(ref, types.PromptReference):
            name, prompt = self._prompt_of(ref.name)
            ref, names = ref.model_copy(update={"name": prompt}), [name]
        argument = {"name": params.argument.name, "value": params.argument.value}
        context = None if params.context is None else params.context.arguments
        return await self._first(ctx, params, names, lambda client: client.complete(ref, argument, context))

    async def _subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        names = self._servers_of(params.uri)
        return await self._first(ctx, params, names, _sending(types.SubscribeRequest(params=params)))

    async def _unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        names = self._servers_of(params.uri)
        return await self._first(ctx, params, names, _sending(types.UnsubscribeRequest(params=params)))

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        async with self._request(ctx, params):
            return await listen(ctx, params, [link for _name, link in await self._links()])

    async def _set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        asked = _sending(types.SetLevelRequest(params=params))

        async def ask(client: Client, cursor: str | None) -> Any:
            del cursor
            return await asked(client)

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

    async def _first(self, ctx: Context, params: Any, names: list[str], work: Callable[[Client], Awaitable[T]]) -> T:
        """The answer of the first server that has one."""
        problem: MCPError | None = None
        async with self._request(ctx, params) as caller:
            for name in names:
                link = await link_to(self._servers.upstreams[name])
                try:
                    return await link.ask(ctx.method, work, caller)
                except ToolError as error:
                    problem = caller.error or MCPError(types.INTERNAL_ERROR, str(error))
        raise problem or MCPError(types.METHOD_NOT_FOUND, "no server offers this")

    async def _links(self) -> list[tuple[str, Upstream]]:
        return [(name, await link_to(upstream)) for name, upstream in self._servers.upstreams.items()]

    def _servers_of(self, uri: str) -> list[str]:
        """The server that has listed a resource; else all of them, one after the other."""
        return [self._owners[uri]] if uri in self._owners else list(self._servers.upstreams)

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


def _sending(request: types.ClientRequest) -> Callable[[Client], Awaitable[types.EmptyResult]]:
    """A request that is only acknowledged, as it came."""
    return lambda client: client.session.send_request(request, types.EmptyResult)


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
