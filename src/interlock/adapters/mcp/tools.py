"""The tools of MCP servers as tools of ours: their schema is the contract, their effect is what the operator says."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Unpack

import mcp_types as types
import msgspec

from interlock.adapters.mcp.pins import PinsFile
from interlock.adapters.mcp.upstream import ServerAddress, Upstream
from interlock.errors import ConfigError, Permanent
from interlock.tools import Tool
from interlock.values import Context, Effect, Json, shorten

_log = logging.getLogger("interlock.mcp")
_SAID = 500
_KEY = "interlock/idempotency-key"
"""In `_meta` of a call: the same for every delivery of one effect."""


class ToolTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator says of a tool, or of all whose names fit a pattern."""

    effect: Effect | str | None = None
    timeout_s: float = 60.0
    idempotent: bool = False
    """The server does the same thing once for one `interlock/idempotency-key` in `_meta`."""
    repeatable: bool = False


class McpTools(list[Tool]):
    """The tools of one server; `async with` ends the server with the block, else it ends with the event loop."""

    def __init__(self, tools: Iterable[Tool], upstream: Upstream, switched_off: Mapping[str, str]) -> None:
        super().__init__(tools)
        self._upstream = upstream
        self.switched_off = dict(switched_off)
        """Tools that the server offers and that are left out, by their names there: why."""

    async def __aenter__(self) -> McpTools:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the server."""
        await self._upstream.close()


async def mcp_tools(
    name: str,
    *,
    trusted: bool = False,
    terms: Mapping[str, ToolTerms] | None = None,
    pins: Path | str | None = None,
    **connection: Unpack[ServerAddress],
) -> McpTools:
    """Start a server, or connect to it, and take its tools: each is named `NAME_TOOL`.

    `trusted`: that a tool only reads is believed where the server says so, and what it returns counts as one's own.
    Else every tool is a `send` until `terms` say more; their keys are names of tools, or patterns (`read_*`).
    `pins`: the file that `pin_mcp_tools` writes; what is not as it was pinned is left out (`McpTools.switched_off`).
    """
    upstream = Upstream(name, **connection)
    await upstream.start()
    try:
        offered = await upstream.list_tools()
        off = {} if pins is None else PinsFile.read(Path(pins)).switched_off(name, offered)
        for tool, why in off.items():
            _log.warning("%s: %s is switched off: %s", name, tool, why)
        kept = [tool_of(upstream, one, trusted=trusted, terms=terms or {}) for one in offered if one.name not in off]
        return McpTools(kept, upstream, off)
    except BaseException:
        await upstream.close()
        raise


async def pin_mcp_tools(name: str, pins: Path | str, **connection: Unpack[ServerAddress]) -> tuple[str, ...]:
    """Write the tools of a server into the file of pins as they are now, once somebody has looked at them."""
    file = Path(pins)
    async with Upstream(name, **connection) as upstream:
        offered = await upstream.list_tools()
    PinsFile.read(file).pin(name, offered).write(file)
    return tuple(one.name for one in offered)


def tool_of(upstream: Upstream, offered: types.Tool, *, trusted: bool, terms: Mapping[str, ToolTerms]) -> Tool:
    """A tool of a server as one of ours."""
    said = _terms_of(offered.name, terms)
    effect = Effect(said.effect) if said.effect else (_claimed_effect(offered) if trusted else Effect.SEND)
    if effect is Effect.WRITE:
        raise ConfigError(
            f"{upstream.name}: {offered.name} cannot be a write: nothing says how to look at what it changes"
        )
    changes = effect is not Effect.READ

    async def run(arguments: dict[str, Json], context: Context) -> Json:
        key = context.idempotency_key if said.idempotent else None
        meta = {_KEY: key} if key else None
        found = await upstream.call_tool(offered.name, arguments, changes=changes, timeout_s=said.timeout_s, meta=meta)
        return value_of(upstream.name, offered.name, found)

    options: dict[str, Any] = {"idempotent": said.idempotent, "repeatable": said.repeatable} if changes else {}
    return Tool.from_schema(
        f"{upstream.name}_{offered.name}",
        run,
        schema=offered.input_schema,
        effect=effect,
        description=offered.description or offered.title or offered.name,
        timeout_s=said.timeout_s,
        trust="trusted" if trusted else "untrusted",
        **options,
    )


def _terms_of(name: str, terms: Mapping[str, ToolTerms]) -> ToolTerms:
    """What is said of a tool: by its name, or by the longest pattern that fits it."""
    fitting = [pattern for pattern in terms if pattern == name or fnmatchcase(name, pattern)]
    return terms[max(fitting, key=lambda one: (one == name, len(one)))] if fitting else ToolTerms()


def _claimed_effect(offered: types.Tool) -> Effect:
    hints = offered.annotations
    return Effect.READ if hints is not None and hints.read_only_hint else Effect.SEND


def value_of(server: str, tool: str, found: types.CallToolResult) -> Json:
    """What a tool has returned: its structured content, a text, or a list of what it consists of."""
    if found.is_error:
        raise Permanent(f"{server}: {tool} failed: {shorten(_text_of(found) or 'it does not say why', _SAID)}")
    if found.structured_content is not None:
        return found.structured_content
    if len(found.content) == 1 and isinstance(found.content[0], types.TextContent):
        return found.content[0].text
    return [part.model_dump(mode="json", by_alias=True, exclude_none=True) for part in found.content] or None


def _text_of(found: types.CallToolResult) -> str:
    return "\n".join(part.text for part in found.content if isinstance(part, types.TextContent))
