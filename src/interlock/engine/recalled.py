"""What memories hold that came from nowhere good, by the records of the tools that were told it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from interlock.engine.turn_tail import Newer, TurnTail
from interlock.ports import Faults, Store, digest_of, keyed_digest
from interlock.values import Status

_TOLD = (Status.OK.value, Status.UNKNOWN.value)
"""What may have been told is as foreign as what was."""


class RecalledValues:
    """The values that tools were told, and that come from nowhere good: read once, and carried on."""

    def __init__(self, store: Store, faults: Faults | None) -> None:
        self._store, self._faults = store, faults
        self._digest = partial(digest_of, keyed_digest(store.identity.digest_key))
        self._tails: dict[str, TurnTail] = {}
        self._foreign: dict[str, set[str]] = {}
        self._reading = asyncio.Lock()

    async def find(self, tools: Iterable[str]) -> Callable[[str], bool] | None:
        """Whether a value is one of those that these tools were told; None where there are none."""
        found = set[str]()
        self._at("recalled.lock")
        async with self._reading:
            for tool in tools:
                await self._catch_up(tool)
                found |= self._foreign.get(tool, set())
        return (lambda form: self._digest(form.encode("utf-8", "replace")) in found) if found else None

    def _at(self, point: str) -> None:
        if self._faults is not None:
            self._faults.at(point)

    async def _catch_up(self, tool: str) -> None:
        tail = self._tails.setdefault(tool, TurnTail(self._store, None, self._faults, tool=tool))
        self._at("recalled.read")
        newer = await tail.newer()
        if newer is None:  # an older ledger was put back
            tail = self._tails[tool] = TurnTail(self._store, None, self._faults, tool=tool)
            self._foreign.pop(tool, None)
            newer = await tail.newer() or Newer((), {})
        for record in tail.fresh(newer):
            if record.kind == "call" and record.status in _TOLD:
                verdict = record.content().verdict
                self._foreign.setdefault(tool, set()).update(() if verdict is None else verdict.foreign)
        tail.advance(newer)
