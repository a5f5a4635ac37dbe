"""A runtime as an MCP server: any client gets its tools, and every call takes the path."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import msgspec
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from interlock.runtime import Runtime
from interlock.tools import Tool
from interlock.values import Effect, Outcome, Status

_META = "interlock/"
_KEY, _TURN, _RUN = f"{_META}idempotency-key", f"{_META}turn", f"{_META}run"
"""What a client may say of a call in its `_meta`: which one it is, and what it belongs to."""
_IN_DOUBT = "Nobody knows whether this was done. Do not try it again; somebody has to look."


def mcp_server(runtime: Runtime, *, name: str = "interlock", actor: str = "mcp") -> Server[Any]:
    """A server of the SDK that offers the tools which `actor` may use, for whatever transport it is run on.

    Calls without a key, a turn or a run in their `_meta` belong to the session: the same effect is made once in it.
    """
    session = runtime.context.ids.new()

    async def list_tools(
        _ctx: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_as_mcp_tool(tool) for tool in runtime.tools(actor=actor)])

    async def call_tool(_ctx: ServerRequestContext[Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        said: dict[str, Any] = dict(params.meta or {})
        details = {"call_id": said.get(_KEY), "turn": said.get(_TURN), "run": said.get(_RUN)}
        given: Any = {detail: value for detail, value in details.items() if isinstance(value, str) and value}
        outcome = await runtime.call(params.name, params.arguments or {}, actor=actor, **(given or {"run": session}))
        return _result_of(outcome)

    return Server(name, on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_mcp(runtime: Runtime, *, name: str = "interlock", actor: str = "mcp") -> None:
    """Serve the tools of a runtime over standard input and output, until the client goes."""
    server = mcp_server(runtime, name=name, actor=actor)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _as_mcp_tool(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=tool.effect is Effect.READ, idempotent_hint=True)
    return types.Tool(name=tool.name, description=tool.description, input_schema=tool.input.schema, annotations=hints)


def _result_of(outcome: Outcome) -> types.CallToolResult:
    """What a client is told: a value, or in words why there is none."""
    if outcome.status in (Status.OK, Status.NO_DATA):
        value = outcome.value
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        structured = value if isinstance(value, dict) else None
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=structured)
    said = outcome.problem.message if outcome.problem is not None else outcome.status.value
    if outcome.status is Status.UNKNOWN:
        said = f"{said}. {_IN_DOUBT}"
    if outcome.ticket is not None:
        said = f"{said}. Approve it with: interlock review approve {outcome.ticket}; then make the same call again."
    return types.CallToolResult(content=[types.TextContent(text=f"{outcome.status.value}: {said}")], is_error=True)
