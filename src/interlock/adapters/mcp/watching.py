"""A connection whose end is noticed when it comes, and not by the next call."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from mcp.client import Transport


class _WatchedReads:
    """What a server sends; whoever watches is told before anybody else that no more will come."""

    def __init__(self, inner: Any, ended: Callable[[], None]) -> None:
        self._inner, self._ended = inner, ended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __aiter__(self) -> _WatchedReads:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._inner.__anext__()
        except BaseException:
            self._ended()
            raise

    async def __aenter__(self) -> _WatchedReads:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> bool | None:
        found: bool | None = await self._inner.__aexit__(*exc)
        return found


@contextlib.asynccontextmanager
async def watch_end(transport: Transport, ended: Callable[[], None]) -> AsyncIterator[Any]:
    """The same transport; `ended` is called when the server has nothing more to say."""
    async with transport as (reads, writes):
        yield _WatchedReads(reads, ended), writes
