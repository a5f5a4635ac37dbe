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

    async def until_none(self) -> None:
        """Until there are none any more."""
        await self._none.wait()
