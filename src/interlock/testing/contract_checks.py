"""How a check of the contract of stores becomes a test that pytest runs without a plugin."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from interlock.errors import StoreError
from interlock.ports import Store

OpenStore = Callable[[], Store | Awaitable[Store]]


async def open_ledger(open_store: OpenStore) -> Store:
    """The ledger of a store, opened (again)."""
    opened = open_store()
    return await opened if inspect.isawaitable(opened) else opened


def on_one_store(check: Callable[[Any, Store], Awaitable[None]]) -> Callable[[Any, OpenStore], None]:
    """A check on one open store as a plain test: it has its own loop, so no plugin for async tests is needed."""

    def test(self: Any, open_store: OpenStore) -> None:
        async def run() -> None:
            store = await open_ledger(open_store)
            try:
                await check(self, store)
            finally:
                await store.close()

        asyncio.run(run())

    return _named_like(test, check)


def on_a_ledger(check: Callable[[Any, OpenStore], Awaitable[None]]) -> Callable[[Any, OpenStore], None]:
    """A check that opens and closes the ledger itself."""

    def test(self: Any, open_store: OpenStore) -> None:
        asyncio.run(_finish(check(self, open_store)))

    return _named_like(test, check)


async def _finish(work: Awaitable[None]) -> None:
    await work


def _named_like(test: Callable[[Any, OpenStore], None], check: Any) -> Callable[[Any, OpenStore], None]:
    # Not functools.wraps: pytest would follow it and look for the fixtures of the check.
    test.__name__, test.__qualname__, test.__doc__ = check.__name__, check.__qualname__, check.__doc__
    test.__module__ = check.__module__
    return test


async def refuses(work: Awaitable[Any]) -> bool:
    """Whether it ends in a `StoreError`."""
    try:
        await work
    except StoreError:
        return True
    return False
