"""`PendingTurn`: a turn that is found by what the ledger says, before it can be entered."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any

from interlock.answers.turn import Turn


class PendingTurn:
    """A turn that is being looked up in the ledger: enter it, or await it."""

    def __init__(self, find: Callable[[], Coroutine[Any, Any, Turn]]) -> None:
        self._find = find
        self._turn: Turn | None = None

    def __await__(self) -> Generator[Any, Any, Turn]:
        return self._find().__await__()

    async def __aenter__(self) -> Turn:
        self._turn = await self._find()
        return await self._turn.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        assert self._turn is not None
        await self._turn.__aexit__(*error)
