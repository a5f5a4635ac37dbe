"""The tools there are: no duplicates, and no changes once the runtime is open."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from interlock.canonical import did_you_mean, nearest
from interlock.errors import ContractError
from interlock.tools.contract import Tool
from interlock.values import Effect, Grant


def matches(patterns: tuple[str, ...], name: str) -> bool:
    """Whether a tool is meant by a list of names and patterns."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)  # fnmatch would ignore case on Windows


def list_tools(given: Any) -> list[Tool]:
    """The tools that somebody passes as `tools=`: several in any collection, or one; a sentence for what is none."""
    if isinstance(given, Tool):
        return [given]
    if isinstance(given, Mapping):
        raise ContractError("tools= is a list of tools, not a mapping; write tools=[*mapping.values()]")
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ContractError(f"tools= is a list of tools; {_explain_no_tool(given)}")
    found = list(given)
    for item in found:
        if not isinstance(item, Tool):
            raise ContractError(_explain_no_tool(item))
    return found


def _explain_no_tool(item: object) -> str:
    if isinstance(item, list | tuple | set | frozenset):
        return "there is a list inside the list of tools; write [*those, *these]"
    name = getattr(item, "__name__", None)
    if callable(item) and name is not None:
        return f"{name} is not a Tool; decorate it with @tool(effect=...): read, write or send"
    return f"{item!r} is not a Tool; a tool is a function under @tool(effect=...)"


class Registry:
    """Tools by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._frozen = False
        for tool in list_tools(tools):
            self.add(tool)

    def add(self, tool: Tool) -> None:
        """Register a tool; a second one of the same name is an error."""
        if not isinstance(tool, Tool):
            raise ContractError(_explain_no_tool(tool))
        if self._frozen:
            raise ContractError(f"{tool.name}: the runtime is open; register tools before Runtime.open")
        if tool.name in self._tools:
            raise ContractError(f"{tool.name}: there is a tool of that name already")
        self._tools[tool.name] = tool

    def freeze(self) -> Registry:
        """From now on nothing is added, so whatever a tool relies on has to be there: compensation, recalled tools."""
        for tool in self._tools.values():
            if tool.compensate is not None:
                self._refuse_bad_compensation(tool, tool.compensate.tool)
            for name in sorted(tool.recalls - self._tools.keys()):
                hint = did_you_mean(name, self._tools) or "; pass that tool to Runtime.open as well"
                raise ContractError(f"{tool.name}: it recalls {name!r}, and there is no such tool{hint}")
        self._frozen = True
        return self

    def _refuse_bad_compensation(self, tool: Tool, name: str) -> None:
        other = self._tools.get(name)
        if other is None:
            hint = did_you_mean(name, self._tools) or "; pass that tool to Runtime.open as well"
            raise ContractError(f"{tool.name}: it is compensated by {name!r}, and there is no such tool{hint}")
        if other.effect is Effect.READ:
            raise ContractError(f"{tool.name}: it is compensated by {name!r}, which is a read and changes nothing")

    def get(self, name: str) -> Tool | None:
        """The tool of that name."""
        return self._tools.get(name)

    def nearest(self, name: str) -> tuple[str, ...]:
        """Names like `name`, best first."""
        return nearest(name, self._tools)

    def list(self, *, capability: str | None = None, grant: Grant | None = None) -> tuple[Tool, ...]:
        """Tools that need `capability`, and that a grant suffices for."""
        return tuple(
            tool
            for tool in self._tools.values()
            if not tool.operator
            and (capability is None or capability in tool.capabilities)
            and (grant is None or tool.capabilities <= grant.capabilities)
        )

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)
