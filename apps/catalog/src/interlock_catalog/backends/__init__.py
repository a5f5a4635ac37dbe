"""Where the catalog lives: embedded, PostgreSQL, or behind HTTP. One port."""

from interlock_catalog.backends.port import Backend, Docs, Search, Write

__all__ = ["Backend", "Docs", "Search", "Write"]
