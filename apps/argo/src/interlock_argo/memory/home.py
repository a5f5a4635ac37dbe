"""The memory of Argo, opened when it is first used."""

from __future__ import annotations

from interlock import Trust
from interlock.memory import Document, DocumentKind, Ingested, Memory, Retention
from interlock_argo.settings import Settings

_DAY_S = 86_400.0
DEFAULT = "default"
WEB = "web_cache"


class MemoryHome:
    """One memory for all tools and commands."""

    def __init__(self, settings: Settings) -> None:
        self._place = settings.memory
        self.namespaces = tuple(dict.fromkeys((DEFAULT, WEB, *settings.security.memory_write_allowed_namespaces)))
        self._memory: Memory | None = None

    @property
    def memory(self) -> Memory:
        """The memory; opened the first time."""
        if self._memory is None:
            self._memory = Memory.open(self._place.url, namespaces=self.namespaces)
        return self._memory

    async def keep_page(self, url: str, title: str, text: str) -> Ingested:
        """A page that was read: untrusted for ever, and only for some days."""
        days, half = self._place.web_cache_ttl_days, self._place.web_cache_half_life_days
        return await self.memory.ingest(
            Document(
                text=text,
                source=url,
                title=title,
                trust=Trust.UNTRUSTED,
                namespace=WEB,
                kind=DocumentKind.WEB,
                key=url,
                retention=Retention(keep_s=days * _DAY_S, half_life_s=half * _DAY_S),
                replaces=True,
            )
        )

    async def close(self) -> None:
        """Let it go."""
        memory, self._memory = self._memory, None
        if memory is not None:
            await memory.close()
