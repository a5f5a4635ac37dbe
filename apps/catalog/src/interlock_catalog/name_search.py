"""Searching exercises by the words of their names: the same for the tool and for the server."""

from __future__ import annotations

import msgspec

from interlock_catalog.backends import Backend, iterate_pages
from interlock_catalog.contracts import Json, is_live
from interlock_catalog.document_keys import name_of
from interlock_catalog.vocabulary import slug


class _Hit(msgspec.Struct, frozen=True, order=True):
    length: int
    """The shortest name first: it has the least that was not searched for."""
    id: str
    name: str


async def search_names(backend: Backend, query: str, limit: int) -> list[dict[str, Json]]:
    """Live exercises whose names hold every word of a query, best first."""
    words = [word for word in slug(query).split("-") if word]
    if not words:
        return []
    hits = list[_Hit]()
    async for page in iterate_pages(backend.exercises):
        for key, doc in page.items():
            name = slug(str(doc.value.get("name", "")))
            if is_live(doc.value) and all(word in name for word in words):
                hits.append(_Hit(len(name), name_of(key), str(doc.value.get("name"))))
    return [{"id": hit.id, "name": hit.name} for hit in sorted(hits)[:limit]]
