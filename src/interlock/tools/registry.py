"""The tools there are: no duplicates, and no changes once the runtime is open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from interlock.canonical import nearest
from interlock.errors import ContractError
from interlock.tools.contract import Tool
from interlock.values import Grant


class Registry:
    """Tools by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._frozen = False
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        """Register a tool; a second one of the same name is an error."""
        if self._frozen:
            raise ContractError(f"{tool.name}: the runtime is open; register tools before Runtime.open")
        if not isinstance(tool, Tool):
            raise ContractError(f"{tool!r} is not a Tool; decorate it with @tool(effect=...)")
        if tool.name in self._tools:
            raise ContractError(f"{tool.name}: there is a tool of that name already")
        self._tools[tool.name] = tool

    def freeze(self) -> Registry:
        """From now on nothing is added."""
        self._frozen = True
        return self

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
