"""Whether the tools of a server are still what was pinned: looked at when it says otherwise, and once in a while."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import mcp_types as types

from interlock.adapters.mcp.pins import PinsFile

_log = logging.getLogger("interlock.mcp")
_LIST_S = 20.0
"""So long a server may take to list its tools."""
_COMPARE_S = 60.0
"""So old the last comparison with the pins may be when a tool is called."""

ListTools = Callable[[], Awaitable[list[types.Tool]]]


class PinWatch:
    """The tools of one connection to a server, held against the pins."""

    def __init__(self, server: str, pins: PinsFile | None) -> None:
        self._server, self._pins = server, pins
        self._compared_at = 0.0
        self._comparing = asyncio.Lock()
        self.switched_off: dict[str, str] = {}
        """The tools that nobody may use as they are, and why."""
        self.told = False
        """The server has said that its tools are others: they are compared before anybody sees or calls them."""

    @property
    def is_due(self) -> bool:
        """Whether its tools are to be compared: it has said that they are others, or the last look is too old."""
        return self._pins is not None and (self._comparing.locked() or self._is_old())

    def _is_old(self) -> bool:
        return self.told or asyncio.get_running_loop().time() - self._compared_at >= _COMPARE_S

    def why_off(self, tool: str) -> str | None:
        """Why a tool may not be called, if that was seen lately; else it is looked at before the call."""
        return None if self.is_due else self.switched_off.get(tool)

    def say_off(self, tool: str, why: str) -> str:
        """Why a tool cannot be called, and what to do."""
        first = why.partition("\n")[0].rstrip(":")
        return (
            f"{self._server}: {tool} is switched off: {first}; interlock mcp show {self._server} has the difference,"
            f" and interlock mcp pin {self._server} accepts it"
        )

    async def compare_if_due(self, list_tools: ListTools) -> None:
        """Before a call; whoever comes meanwhile waits for what is seen."""
        if self.is_due:
            async with self._comparing:
                if self._is_old():
                    await self.compare(list_tools)

    async def compare(self, list_tools: ListTools) -> None:
        """Switch off what is not as it was pinned."""
        if self._pins is None:
            return
        self.told = False
        try:
            offered = await asyncio.wait_for(list_tools(), _LIST_S)
        except BaseException:
            self.told = True  # what was not seen is still to be looked at
            raise
        self._compared_at = asyncio.get_running_loop().time()
        off = self._pins.switched_off(self._server, offered)
        for tool, why in off.items():
            if self.switched_off.get(tool) != why:
                _log.warning("%s: %s is switched off: %s", self._server, tool, why)
        self.switched_off = off
