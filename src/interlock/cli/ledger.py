"""The ledger that the settings name, for commands that only look or decide: no tools, no policy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from interlock.config import Settings, heads_folder
from interlock.errors import ConfigError
from interlock.ports import Store
from interlock.stores import Witness, open_store


@asynccontextmanager
async def open_ledger(settings: Settings) -> AsyncIterator[Store]:
    """The store that the settings name; a file that is not there is not made just to look into it."""
    refuse_no_ledger(settings)
    witness = Witness(heads_folder(settings), Path(settings.anchors))
    store = open_store(settings.store, busy_s=settings.busy_s, witness=witness, payload_key=settings.payload_key)
    try:
        yield store
    finally:
        await store.close()


def refuse_no_ledger(settings: Settings) -> None:
    """Refuse a file that is not there."""
    if settings.store.startswith("sqlite:///"):
        path = Path(settings.store.removeprefix("sqlite:///").partition("?")[0])
        if not path.exists():
            raise ConfigError(f"{path}: there is no ledger yet; make a call first, or name another with --store")
