"""Stores: memory, SQLite and PostgreSQL, three twins that only execute batches."""

from __future__ import annotations

from interlock.errors import ConfigError
from interlock.ports import Faults, Store
from interlock.stores.memory import MemoryStore

__all__ = ["MemoryStore", "open_store"]


def open_store(url: str, *, busy_s: float = 10.0, faults: Faults | None = None) -> Store:
    """The store behind a URL: memory://, sqlite:///FILE or postgresql://…"""
    if url in ("memory://", "memory:"):
        return MemoryStore()
    if url.startswith("sqlite:///"):
        from interlock.stores.sql import SqlStore
        from interlock.stores.sqlite import SqliteDialect

        return SqlStore(SqliteDialect(url, busy_s), faults)
    if url.startswith(("postgresql://", "postgres://")):
        from interlock.stores.postgres import PostgresDialect
        from interlock.stores.sql import SqlStore

        return SqlStore(PostgresDialect(url, busy_s), faults)
    raise ConfigError(f"store {url!r} is not one of memory://, sqlite:///FILE, postgresql://USER@HOST/NAME")
