"""The client that the conformance suite looks at: it reaches its servers as Interlock reaches those behind the gateway.

The suite starts it with the address of a server behind it, and names the scenario in `MCP_CONFORMANCE_SCENARIO`. The
connection is an `Upstream`, its tools are taken as `mcp_tools` takes them, and every call of a tool takes the path of a
runtime. What a program that uses the library would say itself is said here: the answers to a server's questions.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import mcp_types as types
from mcp.client import ClientRequestContext

from interlock import Runtime
from interlock.adapters.mcp import ToolTerms, Upstream, mcp_tools
from interlock.adapters.mcp.callbacks import ClientCallbacks
from interlock.adapters.mcp.downstream import CALLER, DownstreamCall
from interlock.adapters.mcp.terms import ServerTerms
from interlock.adapters.mcp.tools import tools_of
from interlock.errors import ContractError
from interlock.values import Outcome, Status

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "initialize")
REVISION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
POLICY = {"version": 1, "mode": "apply", "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}]}
TERMS = {"*": ToolTerms(effect="send", repeatable=True)}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "tools_call": ("add_numbers", {"a": 5, "b": 3}),
    "sse-retry": ("test_reconnection", {}),
    "elicitation-sep1034-client-defaults": ("test_client_elicitation_defaults", {}),
}
"""Scenarios that want one call of a tool. The server of `request-metadata` lists none, and a runtime calls no other."""
PLAIN = ("initialize", "tools_call", "sse-retry")
"""Scenarios in which nothing is asked back: `mcp_tools` alone, as a program would use it."""
ELSEWHERE = "json-schema-ref-no-deref"
"""A scenario with a tool whose schema lies at another address: nobody may fetch it, and we refuse such a contract."""
STATES = ("test_mrtr_echo_state", "test_mrtr_unrelated", "test_mrtr_no_state", "test_mrtr_no_result_type")
FILLER: dict[str, Any] = {"string": "x", "integer": 0, "number": 0, "boolean": False, "object": {}, "array": []}
MOST_ROUNDS = 5


async def answer(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Whoever is asked takes what the form proposes."""
    del context
    return types.ElicitResult(action="accept", content=proposed(params))


def proposed(params: types.ElicitRequestParams) -> dict[str, Any]:
    """What a form proposes, and yes where it only wants a yes."""
    form = params.requested_schema if isinstance(params, types.ElicitRequestFormParams) else {}
    fields: dict[str, Any] = form.get("properties", {})
    needed = {name: True for name in form.get("required", ()) if fields.get(name, {}).get("type") == "boolean"}
    return needed | {name: one["default"] for name, one in fields.items() if "default" in one}


async def sample(context: ClientRequestContext, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    """A model that has nothing to say."""
    del context, params
    content = types.TextContent(type="text", text="")
    return types.CreateMessageResult(role="assistant", model="none", content=content)


async def list_roots(context: ClientRequestContext) -> types.ListRootsResult:
    """Nothing is open to the server."""
    del context
    return types.ListRootsResult(roots=[])


async def call(runtime: Runtime, tool: str, arguments: dict[str, Any]) -> None:
    """Make a call; one that does not end well ends the client, which the suite then does not let pass."""
    outcome = await call_and_tell(runtime, tool, arguments)
    problem = "" if outcome.problem is None else outcome.problem.message
    print(f"{tool}: {outcome.status} {problem}", file=sys.stderr)
    if outcome.status not in (Status.OK, Status.NO_DATA):
        raise SystemExit(1)


async def call_and_tell(runtime: Runtime, tool: str, arguments: dict[str, Any]) -> Outcome:
    """Make a call; where the server has to be told something first, tell it, and make the call again."""
    caller = DownstreamCall()
    for _round in range(MOST_ROUNDS):
        token = CALLER.set(caller)
        try:
            outcome = await runtime.call(tool, arguments, actor="agent")
        finally:
            CALLER.reset(token)
        if outcome.status is not Status.INPUT_REQUIRED or caller.asks is None:
            return outcome
        asked = caller.asks.input_requests or {}
        told = {
            name: types.ElicitResult(action="accept", content=proposed(one.params))
            for name, one in asked.items()
            if isinstance(one, types.ElicitRequest)
        }
        caller = DownstreamCall(input_responses=told, request_state=caller.asks.request_state)
    return outcome


def fill(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments that have what a schema requires, and nothing else."""
    fields = schema.get("properties", {})
    return {name: FILLER.get(fields.get(name, {}).get("type"), "x") for name in schema.get("required", [])}


async def read_everything(upstream: Upstream) -> None:
    """List resources and prompts, and read the first of each."""
    resources = await upstream.ask("resources/list", lambda client: client.list_resources())
    if resources.resources:
        uri = resources.resources[0].uri
        await upstream.ask("resources/read", lambda client: client.read_resource(uri))
    prompts = await upstream.ask("prompts/list", lambda client: client.list_prompts())
    if prompts.prompts:
        name = prompts.prompts[0].name
        await upstream.ask("prompts/get", lambda client: client.get_prompt(name))


def calls_of(offered: list[types.Tool]) -> list[tuple[str, dict[str, Any]]]:
    """What a scenario wants to be called."""
    schemas = {one.name: one.input_schema for one in offered}
    if SCENARIO in CALLS:
        return [CALLS[SCENARIO]]
    if SCENARIO == "sep-2322-client-request-state":
        return [(name, {}) for name in STATES]
    if SCENARIO == "json-schema-2020-12-preservation":
        return [("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})]
    if SCENARIO == "http-custom-headers":
        wanted = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}").get("toolCalls", [])
        return [(one["name"], one.get("arguments") or {}) for one in wanted if one["name"] in schemas]
    if SCENARIO in ("http-standard-headers", "http-invalid-tool-headers"):
        return [(name, fill(schema)) for name, schema in schemas.items()]
    return []


async def run(url: str) -> None:
    """One scenario over a connection on which a server may ask back."""
    asks = ClientCallbacks(sampling=sample, elicitation=answer, roots=list_roots, legacy=REVISION < "2026")
    async with Upstream("suite", url=url, callbacks=asks) as upstream:
        offered = await upstream.list_tools()
        tools = tools_of(upstream, offered, ServerTerms(url=url, prefix="", tools=TERMS))
        async with Runtime.open("memory://", policy=POLICY, tools=tools) as runtime:
            for tool, arguments in calls_of(offered):
                await call(runtime, tool, arguments)
        if SCENARIO == "http-standard-headers":
            await read_everything(upstream)


async def run_plain(url: str) -> None:
    """One scenario in the way of a program that only takes the tools of a server, and calls one."""
    async with (
        await mcp_tools("suite", url=url, terms=TERMS) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
    ):
        if SCENARIO in CALLS:
            tool, arguments = CALLS[SCENARIO]
            await call(runtime, f"suite_{tool}", arguments)


async def main() -> None:
    """The scenario that the suite has named."""
    try:
        await (run_plain if SCENARIO in PLAIN else run)(sys.argv[-1])
    except ContractError as error:
        if SCENARIO != ELSEWHERE:
            raise
        print(f"refused: {error}", file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main())
