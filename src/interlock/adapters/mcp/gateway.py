"""A runtime as an MCP server: any client gets its tools, and every call takes the path."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import Any, TextIO

import mcp_types as types
from mcp import MCPError
from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.models import InitializationOptions

from interlock.adapters.mcp.downstream import CALLER, DownstreamCall, meta_for_server
from interlock.adapters.mcp.links import LinkPool
from interlock.adapters.mcp.oauth import caller_of
from interlock.adapters.mcp.passing import Passing
from interlock.adapters.mcp.questions import answers_for_server, ask_person
from interlock.adapters.mcp.readings import prompt_tool, resource_tool
from interlock.adapters.mcp.results import result_of
from interlock.adapters.mcp.servers import McpServers
from interlock.adapters.mcp.standard_streams import open_standard_streams
from interlock.adapters.mcp.upstream import Upstream
from interlock.errors import ConfigError
from interlock.reasons import Reason
from interlock.runtime import Runtime
from interlock.state import TicketState
from interlock.tools import Tool
from interlock.values import Effect, Outcome, Status

Context = ServerRequestContext[Any, Any]
_META = "interlock/"
_KEY, _TURN, _RUN = f"{_META}idempotency-key", f"{_META}turn", f"{_META}run"
"""What a client may say of a call in its `_meta`: which one it is, and what it belongs to."""
APPROVE = "interlock review approve"
_ROOTS_CHANGED = "notifications/roots/list_changed"
_ANSWER_LOST = "ok: this was done, and what the server answered to it is lost. Do not make the call again."
_MADE_BEFORE = (
    "(Interlock: this very call was made before and is answered from its record {}; it was not made again. Where"
    " another one is meant, say so by another interlock/idempotency-key, or have the operator say repeatable of it.)"
)
_MOST_LISTS = 100
"""Actors whose lists of tools are kept."""
_MOST_ASKED = 1_000
_TOO_LARGE = "The call was made and answered: ask for less if it reads, and do not make it again if it does more."
_IN_DOUBT = "Nobody knows whether this was done. Do not try it again; somebody has to look."


def mcp_server(
    runtime: Runtime,
    *,
    servers: McpServers | None = None,
    name: str = "interlock",
    actor: str = "mcp",
    approve: str = APPROVE,
) -> Server[Any]:
    """A server of the SDK that offers the tools which `actor` may use, for whatever transport it is run on.

    With `servers`, what they offer beside tools goes through, too. Calls without a key, a turn or a run in their
    `_meta` belong to the session: the same effect is made once in it. `approve`: the command, without its ticket, that
    a client is told of where a call waits for a person.
    """
    gateway = Gateway(runtime, servers, actor, approve)
    passing = Passing(gateway.servers, gateway.read, gateway.request)
    server = _GatewayServer(
        name,
        version=version("interlock"),
        lifespan=gateway.lifespan,
        on_list_tools=gateway.list_tools,
        on_call_tool=gateway.call_tool,
        **(passing.handlers() if servers is not None else {}),
    )
    server.middleware.append(gateway.repeat_list)
    server.add_notification_handler(_ROOTS_CHANGED, types.NotificationParams, gateway.hear_roots_changed)
    if servers is not None:
        passing.add_to(server)
    return server


async def serve_mcp(
    runtime: Runtime,
    *,
    servers: McpServers | None = None,
    name: str = "interlock",
    actor: str = "mcp",
    approve: str = APPROVE,
    out: TextIO | None = None,
) -> None:
    """Serve the tools of a runtime over standard input and output (`out`), until the client goes."""
    server = mcp_server(runtime, servers=servers, name=name, actor=actor, approve=approve)
    async with open_standard_streams(out) as (read, write):
        await server.run(read, write, server.create_initialization_options())


class _GatewayServer(Server[Any]):
    """As the SDK's, and it says that it tells when a list has changed."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *rest: Any, **more: Any
    ) -> InitializationOptions:
        changes = notification_options or NotificationOptions(True, True, True)
        return super().create_initialization_options(changes, *rest, **more)


class Gateway:
    """The tools of a runtime for clients of MCP."""

    def __init__(self, runtime: Runtime, servers: McpServers | None, actor: str, approve: str = APPROVE) -> None:
        self._runtime, self._actor, self._approve = runtime, actor, approve
        self.servers = McpServers({}, None) if servers is None else servers
        self._offered = self.servers.offered
        self._owners = self.servers.owners
        self._listed: dict[str, tuple[object, frozenset[str], types.ListToolsResult]] = {}
        self._asked: dict[str, str] = {}
        """Calls that wait for a person, and their tickets."""
        self._written: dict[str, tuple[types.ListToolsResult, HandlerResult]] = {}
        self._pool = LinkPool()
        self._session = runtime.context.ids.new()
        self._inner = {make(name) for name in self.servers.upstreams for make in (resource_tool, prompt_tool)}

    @contextlib.asynccontextmanager
    async def lifespan(self, _server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        """For as long as it is served."""
        try:
            yield {}
        finally:
            await self._pool.close()

    async def hear_roots_changed(self, ctx: Context, _params: Any) -> None:
        """The folders of a client are others: so they are for the servers that it uses."""
        client = self._pool.client(ctx)
        if client is not None:
            await client.tell_roots_changed()

    async def list_tools(self, ctx: Context, _params: Any) -> types.ListToolsResult:
        """The tools that clients may use, those of servers as they were pinned."""
        off = frozenset(await self._switched_off(ctx))
        known, context = caller_of(ctx), self._runtime.context
        actor = self._actor if known is None else known[1]
        kept = self._listed.get(actor)
        # The same for as long as tools and policy are, and nothing else is switched off.
        if kept is None or kept[0] is not context or kept[1] != off:
            left_out = self._inner | off
            tools = [self._as_mcp_tool(one) for one in self._runtime.tools(actor=actor) if one.name not in left_out]
            if len(self._listed) > _MOST_LISTS:
                self._listed.clear()
            kept = self._listed[actor] = (context, off, types.ListToolsResult(tools=tools))
        return kept[2]

    async def _switched_off(self, ctx: Context) -> set[str]:
        """The tools that this client may not use, by what they are called here: of a server that has said that they are
        others, and does not show them soon, all."""
        links = {name: self._pool.connection_of(ctx, upstream) for name, upstream in self.servers.upstreams.items()}
        due = [name for name, link in links.items() if link.watch.is_due]
        fresh = await asyncio.gather(*(links[name].refresh() for name in due))
        unseen = {name for name, is_fresh in zip(due, fresh, strict=True) if not is_fresh}
        found: set[str] = set()
        for name, link in links.items():
            off = self.servers.pins.servers.get(name, {}) if name in unseen else link.switched_off
            called = {self.servers.terms[name].name_of(name, tool) for tool in off}
            found |= {tool for tool in called if self._owners.get(tool) is self.servers.upstreams[name]}
        return found

    async def repeat_list(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """A long list is written out once for as long as it is the same, and not for everybody who asks."""
        is_first = (ctx.params or {}).get("cursor") is None and ctx.session.client_capabilities is not None
        if ctx.method != "tools/list" or not is_first:
            return await call_next(ctx)
        listed = await self.list_tools(ctx, None)
        before = self._written.get(ctx.protocol_version)
        if before is None or before[0] is not listed:
            before = self._written[ctx.protocol_version] = (listed, await call_next(ctx))
        return before[1]

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """A call of a client, on the path."""
        async with self.request(ctx, params) as caller:
            outcome = await self._call(ctx, params.name, params.arguments or {}, params.meta)
            decided = await ask_person(self._runtime, ctx, outcome, params)
            if isinstance(decided, types.InputRequiredResult):
                return decided
            outcome = decided
            if caller.asks is not None and outcome.status is Status.INPUT_REQUIRED:
                return caller.asks
            if outcome.ok and outcome.repeats is None and isinstance(caller.result, types.CallToolResult):
                return caller.result
            if caller.error is not None and outcome.status is Status.FAILED:
                raise caller.error
            answer = caller.result
            if outcome.status is Status.FAILED and isinstance(answer, types.CallToolResult) and answer.is_error:
                return answer  # that it has failed is said there, in its own words
        return self._as_result(outcome, says_which=_KEY in dict(params.meta or {}))

    def _as_result(self, outcome: Outcome, *, says_which: bool) -> types.CallToolResult:
        """What a client is told. Of an effect that was found made after a crash nobody has the answer; where the tool
        promises one of a form, that cannot be said but as an error: any other result its client would not take."""
        found, known = explain(outcome, self._approve), self._offered.get(outcome.tool)
        if outcome.ok and outcome.repeats is not None and not says_which:
            found = found.model_copy(
                update={"content": [*found.content, types.TextContent(text=_MADE_BEFORE.format(outcome.repeats))]}
            )
        promised = known is not None and known.output_schema is not None
        if found.is_error or found.structured_content is not None or not promised:
            return found
        return types.CallToolResult(content=[types.TextContent(text=_ANSWER_LOST)], is_error=True)

    async def read(self, ctx: Context, tool: str, arguments: dict[str, Any], params: Any) -> Any:
        """Something that is read from a server: a call of effect `read`, on the path."""
        async with self.request(ctx, params) as caller:
            outcome = await self._call(ctx, tool, arguments, params.meta)
            if caller.asks is not None and outcome.status is Status.INPUT_REQUIRED:
                return caller.asks
            if outcome.ok:
                return outcome.value if caller.result is None else caller.result
            if caller.error is not None:
                raise caller.error
        said = outcome.problem.message if outcome.problem is not None else outcome.status.value
        raise MCPError(types.INVALID_REQUEST, f"{outcome.status.value}: {said}")

    async def _call(self, ctx: Context, tool: str, arguments: dict[str, Any], meta: Any) -> Outcome:
        said: dict[str, Any] = dict(meta or {})
        details = {"call_id": said.get(_KEY), "turn": said.get(_TURN), "run": said.get(_RUN)}
        given: Any = {detail: value for detail, value in details.items() if value is not None}
        if not all(isinstance(value, str) and value for value in given.values()):
            raise MCPError(types.INVALID_PARAMS, f"{_KEY}, {_TURN} and {_RUN} in _meta are texts")
        known = caller_of(ctx)
        if known is not None:  # names that two callers choose are not the same
            given = {detail: f"{_digest(known)}.{value}" for detail, value in given.items()}
        given = given or {"run": self._run_of(ctx)}
        caller = CALLER.get()
        # What goes to the server beside the arguments is part of what somebody has allowed.
        asked = _digest((tool, arguments, given, {} if caller is None else caller.meta))
        if await self._is_approved(asked):
            outcome = await self._runtime.operations.resume(self._asked[asked])
            self._asked.pop(asked, None)  # not before: the same call may have been delivered twice at a time
            return outcome
        owner = self._owners.get(tool)
        if caller is not None and owner is not None:
            caller.seen = self._pool.connection_of(ctx, owner)
            await caller.seen.refresh()
        who: Any = {"actor": self._actor} if known is None else {"principal": known[0], "actor": known[1]}
        try:
            outcome = await self._runtime.call(tool, arguments, **who, **given)
        except ConfigError as error:  # a name that the client gives, which cannot be one
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        if outcome.ticket is not None and outcome.status is Status.PARKED:
            self._asked[asked] = outcome.ticket
            if len(self._asked) > _MOST_ASKED:
                del self._asked[next(iter(self._asked))]
        return outcome

    async def _is_approved(self, asked: str) -> bool:
        """Whether this very call was made before, and somebody has allowed it since."""
        ticket = await self._runtime.store.ticket(self._asked[asked]) if asked in self._asked else None
        return ticket is not None and ticket.state is TicketState.APPROVED

    def _run_of(self, ctx: Context) -> str:
        """What a call belongs to that says nothing of it: its session, or, where there is none, whoever calls."""
        client, known = self._pool.client(ctx), caller_of(ctx)
        who = "" if known is None else f".{_digest(known)}"
        return f"{self._session}{who}" if client is None else f"{self._session}.{client.number}{who}"

    @contextlib.asynccontextmanager
    async def request(self, ctx: Context, params: Any) -> AsyncIterator[DownstreamCall]:
        """A request of a client, while it is answered: what a server asks back meanwhile reaches that client."""
        own: list[Upstream] = []
        client = self._pool.client(ctx)
        caller = DownstreamCall(
            link=self._pool.link_for(ctx, own) if client is None else client.link,
            meta=meta_for_server(getattr(params, "meta", None)),
            progress=ctx.session.report_progress,
            **answers_for_server(params),
        )
        token, under_way = CALLER.set(caller), None if client is None else client.begin(ctx)
        try:
            yield caller
        finally:
            CALLER.reset(token)
            if client is not None and under_way is not None:
                client.end(under_way)
            for link in own:
                await link.close()

    def _as_mcp_tool(self, tool: Tool) -> types.Tool:
        known, reads = self._offered.get(tool.name), tool.effect is Effect.READ
        if known is None:
            hints = types.ToolAnnotations(read_only_hint=reads, idempotent_hint=True)
            schema = tool.input.schema
            return types.Tool(name=tool.name, description=tool.description, input_schema=schema, annotations=hints)
        hints = (known.annotations or types.ToolAnnotations()).model_copy(update={"read_only_hint": reads})
        return known.model_copy(update={"name": tool.name, "annotations": hints})


def _digest(value: Any) -> str:
    """What stands for a value: the same for equal ones alone."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def explain(outcome: Outcome, approve: str = APPROVE) -> types.CallToolResult:
    """What a client is told: a value, or in words why there is none."""
    if outcome.status in (Status.OK, Status.NO_DATA):
        return result_of(outcome.value)
    said = outcome.problem.message if outcome.problem is not None else outcome.status.value
    if outcome.status is Status.PLANNED:
        diff = "" if outcome.plan is None or not outcome.plan.diff else f"\n{outcome.plan.diff}"
        said = f"{outcome.said or said}; the policy says so (mode).{diff}"
    if outcome.status is Status.UNKNOWN:
        said = f"{said}. {_IN_DOUBT}"
    if outcome.problem is not None and outcome.problem.reason is Reason.TOO_LARGE:
        said = f"{said}. {_TOO_LARGE}"
    if outcome.ticket is not None:
        said = f"{said}. Approve it with: {approve} {outcome.ticket}; then make the same call again."
    return types.CallToolResult(content=[types.TextContent(text=f"{outcome.status.value}: {said}")], is_error=True)
