"""Going through a whole catalog, a page at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from interlock_catalog.backends.port import Docs

PAGE = 500
"""The largest page that a server gives."""


async def iterate_pages(read_page: Callable[..., Awaitable[Docs]]) -> AsyncIterator[Docs]:
    """The pages of `backend.exercises`, `aliases` or `families`, until one is not full."""
    after = ""
    while True:
        page = await read_page(after=after, limit=PAGE)
        yield page
        if len(page) < PAGE:
            return
        after = next(reversed(page))
