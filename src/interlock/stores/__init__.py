"""Stores: memory, SQLite and PostgreSQL, three twins that only execute batches."""

from __future__ import annotations

from pathlib import Path

from interlock.config import Settings, heads_folder, payload_key_file
from interlock.errors import ConfigError
from interlock.ports import Faults, Store
from interlock.stores.dialect import Dialect
from interlock.stores.memory import MemoryStore
from interlock.stores.witness import Witness

__all__ = ["MemoryStore", "Witness", "dialect_of", "open_store"]

_URLS = "memory://, sqlite:///FILE, postgresql://USER@HOST/NAME"


def open_store(
    url: str,
    *,
    busy_s: float = 10.0,
    faults: Faults | None = None,
    own_clock: bool = True,
    witness: Witness | None = None,
    payload_key: str = "",
) -> Store:
    """The store behind a URL: memory://, sqlite:///FILE or postgresql://…

    Without `own_clock` a database goes by the time of whoever asks, for tests that move it. Without a `witness` it is
    held against what the default settings name (`heads`, `anchors`), so that an older copy that was put back is
    noticed; `Witness(None)` compares and notes nothing. `payload_key` is the setting: without one, the payloads of
    SQLite are encrypted with a key of the user's.
    """
    _refuse_other_than_text(url)
    if url in ("memory://", "memory:"):
        return MemoryStore()
    from interlock.stores.sql import SqlStore

    if witness is None:  # a program that opens the store itself is not to be the way around it
        settings = Settings()
        witness = Witness(heads_folder(settings), Path(settings.anchors))
    key = payload_key_file(payload_key, url)
    return SqlStore(dialect_of(url, busy_s, own_clock=own_clock), faults, witness, key)


def dialect_of(url: str, busy_s: float, *, own_clock: bool = True) -> Dialect:
    """The database behind a URL."""
    _refuse_other_than_text(url)
    if url.startswith("sqlite:///"):
        from interlock.stores.sqlite import SqliteDialect

        return SqliteDialect(url, busy_s, own_clock=own_clock)
    if url.startswith(("postgresql://", "postgres://")):
        from interlock.stores.postgres import PostgresDialect

        return PostgresDialect(url, busy_s, own_clock=own_clock)
    raise ConfigError(f"store {url!r} is not one of {_URLS}")


def _refuse_other_than_text(url: object) -> None:
    if not isinstance(url, str):
        raise ConfigError(f"store {url!r:.80} is not one of {_URLS}: it is named by a text")
