"""The tools that read the catalog, through the same gate as changes: what was looked at is on record."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from pydantic import Field

from interlock import Context, Limits, Tool, tool
from interlock.errors import NotFound
from interlock_catalog.backends import Backend
from interlock_catalog.contracts import KINDS, Doc, Violation, find_violations, is_live
from interlock_catalog.document_keys import DocumentKind, exercise_key, kind_of, name_of
from interlock_catalog.family_reader import SnapshotCache, read_family
from interlock_catalog.name_lookup import look_up_name
from interlock_catalog.name_search import search_names
from interlock_catalog.vocabulary import slug as slug_of

_LIMITS = Limits(max_bytes=4_000_000)
# Names and texts of exercises come from wherever they were imported from; ids, slugs and states are the catalog's own.
_OPTIONS: dict[str, Any] = {
    "effect": "read",
    "capabilities": {"catalog:read"},
    "timeout_s": 30.0,
    "limits": _LIMITS,
    "free": {"instructions", "notes", "description"},
    "outsiders": {"name", "aliases", "alias", "source"},
    "own": {"id", "exercise_id", "family_slug", "status", "version"},
}
_SEARCHES = {**_OPTIONS, "outsiders": {"query"}}
"""What people have looked for is what anybody has typed."""
Page = Annotated[int, Field(ge=1, le=500)]


def build_read_tools(backend: Backend, snapshots: SnapshotCache) -> tuple[Tool, ...]:
    """The tools that read one backend."""
    return (*_lists(backend), *_by_id(backend), *_by_name(backend), _open_family(backend, snapshots))


def _lists(backend: Backend) -> tuple[Tool, ...]:
    @tool(**_OPTIONS)
    async def list_families(after: str = "", limit: Page = 200) -> list[dict[str, Any]]:
        """A page of families, in the order of their slugs."""
        return [doc.value for doc in (await backend.families(after=_page_key("family", after), limit=limit)).values()]

    @tool(**_OPTIONS)
    async def list_exercises(
        family: str | None = None,
        status: Literal["draft", "approved", "deprecated", "merged"] | None = None,
        after: str = "",
        limit: Page = 100,
    ) -> list[dict[str, Any]]:
        """A page of exercises: id, name, family, status, version."""
        found = await backend.exercises(family=family, after=_page_key("exercise", after), limit=limit)
        rows = [
            {
                "id": name_of(key),
                "name": doc.value.get("name"),
                "family_slug": doc.value.get("family_slug"),
                "equipment": doc.value.get("equipment"),
                "status": doc.value.get("status"),
                "version": doc.version,
            }
            for key, doc in found.items()
        ]
        return [row for row in rows if status is None or row["status"] == status]

    @tool(**_OPTIONS)
    async def list_aliases(after: str = "", limit: Page = 200) -> list[dict[str, Any]]:
        """A page of aliases and what they point at."""
        return [doc.value for doc in (await backend.aliases(after=_page_key("alias", after), limit=limit)).values()]

    @tool(**_SEARCHES)
    async def list_searches(after: str = "", limit: Page = 200, failed: bool = True) -> list[dict[str, Any]]:
        """A page of the log of searches: what people looked for, how often, and how much they found."""
        found = await backend.searches(after=after, limit=limit)
        return [
            {"id": item.id, "query": item.query, "hits": item.hits, "count": item.count}
            for item in found
            if not (failed and item.hits)
        ]

    return list_families, list_exercises, list_aliases, list_searches


def _by_id(backend: Backend) -> tuple[Tool, ...]:
    @tool(**_OPTIONS)
    async def get_exercise(exercise_id: str) -> dict[str, Any]:
        """One exercise, whole, with its version."""
        found = (await backend.read_many([exercise_key(exercise_id)])).get(exercise_key(exercise_id))
        if found is None:
            near = await backend.find_by_name([slug_of(exercise_id)])
            raise NotFound(f"there is no exercise {exercise_id!r}", hints=tuple(name_of(key) for key in near))
        return {"exercise": found.value, "version": found.version}

    @tool(**_OPTIONS)
    async def get_exercises(
        exercise_ids: Annotated[list[str], Field(min_length=1, max_length=200)],
    ) -> list[dict[str, Any]]:
        """Several exercises in one go."""
        found = await backend.read_many(exercise_key(identity) for identity in exercise_ids)
        return [{"exercise": doc.value, "version": doc.version} for doc in found.values()]

    @tool(**_OPTIONS)
    async def validate_exercise(key: str) -> dict[str, Any]:
        """Every way in which a document breaks its contract, and whether it has the name slug of another exercise."""
        found = (await backend.read_many([key])).get(key)
        kind = kind_of(key)
        if found is None or kind not in KINDS:
            raise NotFound(f"there is no document {key!r}; write exercise:ID, alias:SLUG or family:SLUG")
        violations = [*find_violations(kind, found.value), *await _find_namesakes(backend, key, found.value)]
        return {"key": key, "valid": not violations, "violations": msgspec.to_builtins(violations)}

    return get_exercise, get_exercises, validate_exercise


async def _find_namesakes(backend: Backend, key: str, doc: Doc) -> list[Violation]:
    """Other live exercises with the name slug of this one, in whichever family: one slug leads to one exercise."""
    name_slug = doc.get("name_slug") if kind_of(key) is DocumentKind.EXERCISE and isinstance(doc, dict) else None
    if not isinstance(name_slug, str) or not name_slug or not is_live(doc):
        return []
    named = await backend.find_by_name([name_slug])
    others = [other for other, same in named.items() if other != key and is_live(same.value)]
    return [Violation("name_slug", "namesake", f"{name_slug!r} is also that of {other}") for other in others]


def _by_name(backend: Backend) -> tuple[Tool, ...]:
    @tool(**_OPTIONS)
    async def resolve_exercise(name: str) -> dict[str, Any]:
        """The exercise or family that a name stands for: its own name, or an alias."""
        return await look_up_name(backend, name)

    @tool(**_OPTIONS)
    async def search_exercises(query: str, limit: Page = 20) -> list[dict[str, Any]]:
        """Exercises whose names hold every word of the query, best first."""
        return await search_names(backend, query, limit)

    return resolve_exercise, search_exercises


def _open_family(backend: Backend, snapshots: SnapshotCache) -> Tool:
    @tool(**_OPTIONS)
    async def open_family(family_slug: str, context: Context) -> dict[str, Any]:
        """Read a family to work on it: what was read is known by its digest, its versions are on record."""
        snapshot = await read_family(backend, family_slug)
        snapshots.put(context.turn or context.call_id, snapshot)
        return {
            "family_slug": family_slug,
            "exercises": len(snapshot.exercises),
            "aliases": len(snapshot.aliases),
            "digest": snapshot.digest,
            "versions": snapshot.versions,
        }

    return open_family


def _page_key(kind: str, name: str) -> str:
    return f"{kind}:{name}" if name and ":" not in name else name
