"""The catalog in a database of its own: SQLite on a laptop, PostgreSQL for several workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from interlock import Context
from interlock.resources import Documents
from interlock.values import Versioned
from interlock_catalog.backends.port import Docs, Search, Write
from interlock_catalog.contracts import Doc, Json
from interlock_catalog.document_keys import RESOURCE, DocumentKind


class DatabaseBackend:
    """Documents in one table, found by family, by target and by name."""

    def __init__(self, url: str, *, busy_s: float = 10.0) -> None:
        self.url = url
        self.documents = Documents(
            url, RESOURCE, busy_s=busy_s, indexed=("family_slug", "exercise_id", "name_slug", "merged_into")
        )

    async def read_many(self, keys: Iterable[str]) -> Docs:
        return await self.documents.read_many(keys)

    async def families(self, *, after: str = "", limit: int = 200) -> Docs:
        return await self.documents.page(DocumentKind.FAMILY.prefix, after=after, limit=limit)

    async def exercises(self, *, family: str | None = None, after: str = "", limit: int = 200) -> Docs:
        if family is not None:
            return await self.documents.find("family_slug", [family], prefix=DocumentKind.EXERCISE.prefix)
        return await self.documents.page(DocumentKind.EXERCISE.prefix, after=after, limit=limit)

    async def aliases(self, *, after: str = "", limit: int = 500) -> Docs:
        return await self.documents.page(DocumentKind.ALIAS.prefix, after=after, limit=limit)

    async def aliases_of(self, exercises: Iterable[str], families: Iterable[str] = ()) -> Docs:
        found = await self.documents.find("exercise_id", exercises, prefix=DocumentKind.ALIAS.prefix)
        found |= await self.documents.find("family_slug", families, prefix=DocumentKind.ALIAS.prefix)
        return dict(sorted(found.items()))

    async def find_by_name(self, slugs: Iterable[str]) -> Docs:
        return await self.documents.find("name_slug", slugs, prefix=DocumentKind.EXERCISE.prefix)

    async def searches(self, *, after: str = "", limit: int = 500) -> list[Search]:
        page = await self.documents.page(DocumentKind.SEARCH.prefix, after=after, limit=limit)
        return [_search(key, found) for key, found in page.items()]

    async def write(self, write: Write, context: Context | None = None) -> None:
        await self.documents.write_all(write.states, context, versions=write.versions)

    async def fence(self, tokens: dict[str, int], ledger: str) -> None:
        await self.documents.fence(tokens, ledger)

    async def fill(self, docs: Mapping[str, Doc | None]) -> None:
        """Put documents there as they are, past the gate: for `init`, before anybody works. All of them or none."""
        await self.documents.write_all(docs)

    async def read_all(self) -> dict[str, Json]:
        return await self.documents.snapshot()

    async def close(self) -> None:
        await self.documents.close()


def _search(key: str, found: Versioned) -> Search:
    value = found.value if isinstance(found.value, dict) else {}
    # What is no number counts as a hit: a broken row must not pass for a search that found nothing.
    hits, count = (value.get(name) if isinstance(value.get(name), int) else 1 for name in ("hits", "count"))
    return Search(key, str(value.get("query", "")), hits or 0, count or 1)
