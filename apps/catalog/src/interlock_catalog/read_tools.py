"""The tools that read the catalog: the same gate as for changes, so that what was looked at is on record."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from interlock import Context, Limits, Tool, tool
from interlock.errors import NotFound
from interlock_catalog.backends import Backend
from interlock_catalog.contracts import faults, kind_of, live
from interlock_catalog.reading import Memo, read_family
from interlock_catalog.vocabulary import slug as slug_of

_LIMITS = Limits(max_bytes=4_000_000)
_OPTIONS: dict[str, Any] = {"effect": "read", "capabilities": {"catalog:read"}, "timeout_s": 30.0, "limits": _LIMITS}
Page = Annotated[int, Field(ge=1, le=500)]


def reading_tools(backend: Backend, memo: Memo) -> tuple[Tool, ...]:
    """The tools over one backend."""
    return (*_lists(backend), *_single(backend), _open(backend, memo))


def _lists(backend: Backend) -> tuple[Tool, ...]:
    @tool(**_OPTIONS)
    async def list_families(after: str = "", limit: Page = 200) -> list[dict[str, Any]]:
        """A page of families, in the order of their slugs."""
        return [doc.value for doc in (await backend.families(after=_after("family", after), limit=limit)).values()]

    @tool(**_OPTIONS)
    async def list_exercises(
        family: str | None = None,
        status: Literal["draft", "approved", "deprecated", "merged"] | None = None,
        after: str = "",
        limit: Page = 100,
    ) -> list[dict[str, Any]]:
        """A page of exercises: id, name, family, status, version."""
        found = await backend.exercises(family=family, after=_after("exercise", after), limit=limit)
        rows = [
            {
                "id": key.partition(":")[2],
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
        return [doc.value for doc in (await backend.aliases(after=_after("alias", after), limit=limit)).values()]

    @tool(**_OPTIONS)
    async def list_searches(after: str = "", limit: Page = 200, failed: bool = True) -> list[dict[str, Any]]:
        """A page of the log of searches: what people looked for, how often, and how much they found."""
        found = await backend.searches(after=after, limit=limit)
        return [
            {"id": item.id, "query": item.query, "hits": item.hits, "count": item.count}
            for item in found
            if not (failed and item.hits)
        ]

    return list_families, list_exercises, list_aliases, list_searches


def _single(backend: Backend) -> tuple[Tool, ...]:
    return (*_by_id(backend), *_by_name(backend))


def _by_id(backend: Backend) -> tuple[Tool, ...]:
    @tool(**_OPTIONS)
    async def get_exercise(exercise_id: str) -> dict[str, Any]:
        """One exercise, whole, with its version."""
        found = (await backend.read_many([f"exercise:{exercise_id}"])).get(f"exercise:{exercise_id}")
        if found is None:
            near = await backend.named([slug_of(exercise_id)])
            raise NotFound(f"there is no exercise {exercise_id!r}", hints=tuple(key.partition(":")[2] for key in near))
        return {"exercise": found.value, "version": found.version}

    @tool(**_OPTIONS)
    async def get_exercises(
        exercise_ids: Annotated[list[str], Field(min_length=1, max_length=200)],
    ) -> list[dict[str, Any]]:
        """Several exercises in one go."""
        found = await backend.read_many(f"exercise:{identity}" for identity in exercise_ids)
        return [{"exercise": doc.value, "version": doc.version} for doc in found.values()]

    @tool(**_OPTIONS)
    async def validate_exercise(key: str) -> dict[str, Any]:
        """Every way in which a document breaks its contract."""
        found = (await backend.read_many([key])).get(key)
        if found is None or kind_of(key) not in ("exercise", "alias", "family"):
            raise NotFound(f"there is no document {key!r}; write exercise:ID, alias:SLUG or family:SLUG")
        wrong = faults(kind_of(key), found.value)
        shown = [{"field": fault.field, "code": fault.code, "message": fault.message} for fault in wrong]
        return {"key": key, "valid": not wrong, "faults": shown}

    return get_exercise, get_exercises, validate_exercise


def _by_name(backend: Backend) -> tuple[Tool, ...]:
    @tool(**_OPTIONS)
    async def resolve_exercise(name: str) -> dict[str, Any]:
        """The exercise or family that a name stands for: its own name, or an alias."""
        wanted = slug_of(name)
        for key, doc in (await backend.named([wanted])).items():
            if live(doc.value):
                return {"exercise_id": key.partition(":")[2], "by": "name"}
        alias = (await backend.read_many([f"alias:{wanted}"])).get(f"alias:{wanted}")
        if alias is None:
            raise NotFound(f"nothing in the catalog is called {name!r}")
        return {**alias.value, "by": "alias"}

    @tool(**_OPTIONS)
    async def search_exercises(query: str, limit: Page = 20) -> list[dict[str, Any]]:
        """Exercises whose names hold every word of the query, best first."""
        words = [word for word in slug_of(query).split("-") if word]
        hits: list[tuple[int, str, dict[str, Any]]] = []
        after = ""
        while words:
            page = await backend.exercises(after=after, limit=500)
            for key, doc in page.items():
                name = slug_of(str(doc.value.get("name", "")))
                if live(doc.value) and all(word in name for word in words):
                    row = {"id": key.partition(":")[2], "name": doc.value.get("name")}
                    hits.append((len(name), key, row))
            if len(page) < 500:
                break
            after = next(reversed(page))
        return [row for _length, _key, row in sorted(hits, key=lambda hit: hit[:2])[:limit]]

    return resolve_exercise, search_exercises


def _open(backend: Backend, memo: Memo) -> Tool:
    @tool(**_OPTIONS)
    async def open_family(family_slug: str, context: Context) -> dict[str, Any]:
        """Read a family to work on it: what was read is known by its digest, its versions are on record."""
        snapshot = await read_family(backend, family_slug)
        memo.put(context.turn or context.call_id, snapshot)
        return {
            "family_slug": family_slug,
            "exercises": len(snapshot.exercises),
            "aliases": len(snapshot.aliases),
            "digest": snapshot.digest,
            "versions": snapshot.versions,
        }

    return open_family


def _after(kind: str, name: str) -> str:
    return f"{kind}:{name}" if name and ":" not in name else name
