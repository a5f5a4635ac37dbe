"""Where the catalog is: embedded, PostgreSQL, or behind HTTP. One port."""

from interlock_catalog.backends.paging import iterate_pages
from interlock_catalog.backends.port import Backend, Docs, Search, Write

__all__ = ["Backend", "Docs", "Search", "Write", "iterate_pages"]
