"""The tools of MCP servers as tools of ours: their schema is the contract, their effect is what the operator says."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import mcp_types as types
import msgspec

from interlock.adapters.mcp.address import ServerAddress
from interlock.adapters.mcp.downstream import CALLER
from interlock.adapters.mcp.forms import PromisedForm
from interlock.adapters.mcp.looks import ServerState, key_of, refuse_lost_characters
from interlock.adapters.mcp.pins import PinsFile
from interlock.adapters.mcp.results import size_of_result, value_of
from interlock.adapters.mcp.templates import fill
from interlock.adapters.mcp.terms import ServerTerms, ToolTerms, refuse_odd_terms, refuse_unknown_tools
from interlock.adapters.mcp.upstream import Upstream, link_to
from interlock.canonical import Refusal
from interlock.errors import ContractError
from interlock.tools import Limits, Tool
from interlock.tools.inputs import Input, Parsed
from interlock.values import Context, Effect, Json

_log = logging.getLogger("interlock.mcp")
_KEY = "interlock/idempotency-key"
"""In `_meta` of a call: the same for every delivery of one effect."""


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
    profile: str = "",
    terms: Mapping[str, ToolTerms] | None = None,
    pins: Path | str | None = None,
    **connection: Unpack[ServerAddress],
) -> McpTools:
    """Start a server, or connect to it, and take its tools: each is named `NAME_TOOL`.

    `trusted`: that a tool only reads is believed where the server says so, and what it returns counts as one's own.
    Else every tool is a `send` until `terms` say more, or the `profile` of a server that is known; their keys are names
    of tools, or patterns (`read_*`). `pins`: the file that `pin_mcp_tools` writes; what is not as it was pinned is left
    out (`McpTools.switched_off`).
    """
    pinned = None if pins is None else PinsFile.read(Path(pins))
    upstream = Upstream(name, pins=pinned, **connection)
    try:
        await upstream.start()
        offered = await upstream.list_tools()
        off = dict(upstream.switched_off)
        # What was pinned, and not what is offered under the same names.
        known = offered if pinned is None else pinned.tools_of(name)
        kept = [one for one in known if one.name not in off]
        said = ServerTerms(url="-", trusted=trusted, profile=profile, tools=dict(terms or {}))
        refuse_unknown_tools(name, said, [one.name for one in (*known, *offered)])
        refused: dict[str, str] = {}
        return McpTools(tools_of(upstream, kept, said, refused), upstream, {**off, **refused})
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


def tools_of(
    upstream: Upstream, offered: Sequence[types.Tool], said: ServerTerms, refused: dict[str, str] | None = None
) -> list[Tool]:
    """The tools of a server as tools of ours; `refused` is told of those whose contract cannot be kept, and why."""
    names = {one.name: one for one in offered}
    states: list[ServerState] = []
    found = []
    for one in offered:
        own = said.terms_of(one.name)
        refuse_odd_terms(f"{upstream.name}: {one.name}", own, names)
        state = _state_of(upstream, own, states, one.input_schema) if own.effect == Effect.WRITE else None
        name = said.name_of(upstream.name, one.name)
        try:
            found.append(_tool_of(upstream, one, own, state, name=name, trusted=said.trusted))
        except ContractError as error:
            _log.warning("%s: %s is left out: %s", upstream.name, one.name, error)
            if refused is not None:
                refused[one.name] = str(error)
    return found


def _state_of(
    upstream: Upstream, terms: ToolTerms, states: list[ServerState], schema: Mapping[str, Json]
) -> ServerState:
    """The state that a tool changes: one for all that look at it in the same way."""
    same = next((state for state in states if state.is_of(terms, schema)), None)
    if same is not None:
        return same
    assert terms.look is not None
    name = f"{upstream.name}.{terms.resource or terms.look['tool']}"
    taken = {state.name for state in states}
    made = ServerState(name if name not in taken else f"{name}-{len(taken)}", upstream, terms, schema)
    states.append(made)
    return made


def effect_of(offered: types.Tool, terms: ToolTerms, *, trusted: bool) -> Effect:
    """What a tool does to the world: as the operator says, as a trusted server says, or the worst."""
    if terms.effect:
        return Effect(terms.effect)
    hints = offered.annotations
    is_read = trusted and hints is not None and bool(hints.read_only_hint)
    return Effect.READ if is_read else Effect.SEND


def _tool_of(
    upstream: Upstream, offered: types.Tool, said: ToolTerms, state: ServerState | None, *, name: str, trusted: bool
) -> Tool:
    """A tool of a server as one of ours."""
    if offered.output_schema is not None:
        PromisedForm(offered.output_schema)  # or it is left out: each of its answers would be in doubt
    effect = effect_of(offered, said, trusted=trusted)
    changes = effect is not Effect.READ

    async def run(arguments: dict[str, Json], context: Context) -> Json:
        key = context.idempotency_key if said.idempotent else None
        caller = CALLER.get()
        if state is not None:
            refuse_lost_characters(upstream.name, arguments)
        meta = {**({} if caller is None else caller.meta), **({_KEY: key} if key else {})}
        link = await link_to(upstream)
        found = await link.call_tool(
            offered.name, arguments, changes=changes, timeout_s=said.timeout_s, meta=meta or None, caller=caller
        )
        if caller is not None:
            caller.result = found
        value = value_of(upstream.name, offered.name, found)
        return value if size_of_result(found) <= said.max_bytes else found.model_dump(mode="json", exclude_none=True)

    options: dict[str, Any] = {"idempotent": said.idempotent, "repeatable": said.repeatable} if changes else {}
    if state is not None:
        options |= {"resource": state, "key": key_of(said, offered.input_schema)}
        if said.becomes is not None:
            options["simulate"] = lambda _state, arguments: fill(said.becomes, arguments)
    made = Tool.from_schema(
        name,
        run,
        schema=offered.input_schema,
        effect=effect,
        description=offered.description or offered.title or offered.name,
        timeout_s=said.timeout_s,
        limits=Limits(max_bytes=said.max_bytes),
        trust="trusted" if trusted else "untrusted",
        **options,
    )
    return msgspec.structs.replace(made, input=_PinnedInput(made.input, upstream, offered.name))


class _PinnedInput:
    """The contract of a tool for as long as the server has not made it another one: then nothing fits it."""

    def __init__(self, inner: Input, upstream: Upstream, tool: str) -> None:
        self._inner, self._upstream, self._tool = inner, upstream, tool
        self.schema, self.shown = inner.schema, inner.shown
        self.fills_inner_defaults, self.most_arguments = inner.fills_inner_defaults, inner.most_arguments

    def parse(self, raw: Json) -> Parsed:
        """Arguments that the schema admits, or `Refusal`."""
        caller = CALLER.get()
        why = (caller.seen if caller is not None and caller.seen is not None else self._upstream).watch.why_off(
            self._tool
        )
        if why is not None:
            raise Refusal(self._upstream.watch.say_off(self._tool, why))
        return self._inner.parse(raw)
