"""Resources and prompts of a server: reading one is a call of effect `read`, and takes the path like any other."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp import Client

from interlock.adapters.mcp.downstream import CALLER, DownstreamCall
from interlock.adapters.mcp.results import own_meta
from interlock.adapters.mcp.upstream import Upstream, link_to
from interlock.errors import InputRequired
from interlock.tools import Tool
from interlock.values import Json

_URI: dict[str, Json] = {
    "type": "object",
    "properties": {"uri": {"type": "string", "description": "the address of the resource, as the server lists it"}},
    "required": ["uri"],
}
_PROMPT: dict[str, Json] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "the prompt, as the server lists it"},
        "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["name"],
}


def resource_tool(server: str) -> str:
    """What the tool is called that reads resources of a server: a dot is in no name that a server's tool has here."""
    return f"{server}.resources.read"


def prompt_tool(server: str) -> str:
    """What the tool is called that gets prompts of a server."""
    return f"{server}.prompts.get"


def reading_tools(upstream: Upstream) -> list[Tool]:
    """The two tools by which what a server offers beside its own tools is read."""

    async def read_resource(given: dict[str, Json]) -> Json:
        async def work(client: Client, caller: DownstreamCall) -> Any:
            return await client.session.read_resource(given["uri"], **_along(caller), allow_input_required=True)

        return await _read(upstream, f"the resource {given['uri']}", work)

    async def get_prompt(given: dict[str, Json]) -> Json:
        async def work(client: Client, caller: DownstreamCall) -> Any:
            arguments = given.get("arguments") or None
            return await client.session.get_prompt(
                given["name"], arguments, **_along(caller), allow_input_required=True
            )

        return await _read(upstream, f"the prompt {given['name']}", work)

    name = upstream.name
    return [
        Tool.from_schema(
            resource_tool(name), read_resource, schema=_URI, effect="read", trust="untrusted",
            description=f"Read a resource of {name}.",
        ),
        Tool.from_schema(
            prompt_tool(name), get_prompt, schema=_PROMPT, effect="read", trust="untrusted",
            description=f"Get a prompt of {name}.",
        ),
    ]  # fmt: skip


def _along(caller: DownstreamCall) -> dict[str, Any]:
    return {
        "input_responses": caller.input_responses,
        "request_state": caller.request_state,
        "meta": caller.meta or None,
    }


async def _read(upstream: Upstream, what: str, work: Any) -> Json:
    caller = CALLER.get() or DownstreamCall()
    link = await link_to(upstream)
    found = await link.ask(what, lambda client: work(client, caller), caller)
    if isinstance(found, types.InputRequiredResult):
        caller.asks = found
        wanted = found.model_dump(mode="json", by_alias=True, exclude_none=True)
        raise InputRequired(f"{upstream.name} has to be told something first", requests=wanted)
    caller.result = found
    said, meta = found.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta"}), own_meta(found)
    return {**said, **({"_meta": meta} if meta else {})}
