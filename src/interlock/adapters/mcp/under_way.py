"""The changes that a connection is making: whoever ends it lets them end first."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator


class ChangesUnderWay:
    """How many there are."""

    def __init__(self) -> None:
        self._count = 0
        self._none = asyncio.Event()
        self._none.set()
        self._last: set[asyncio.Task[None]] = set()  # the event loop keeps no task alive by itself

    @contextlib.contextmanager
    def making(self, *, changes: bool) -> Iterator[None]:
        """A call is made; one that only reads is not waited for."""
        if not changes:
            yield
            return
        self._count += 1
        self._none.clear()
        try:
            yield
        finally:
            self._count -= 1
            if not self._count:
                self._none.set()

    def end_with(self, last: asyncio.Task[None]) -> None:
        """What is left to do about a change whose caller has gone."""
        self._last.add(last)
        last.add_done_callback(self._last.discard)

    async def until_none(self) -> None:
        """Until there are none any more."""
        await self._none.wait()
        await asyncio.gather(*self._last)
