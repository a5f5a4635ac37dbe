"""The functions that read."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from interlock.errors import NotFound
from interlock.values import Versioned
from interlock_catalog.contracts import Doc, Name, Slug, Text, live
from interlock_catalog.naming import split_name, variant_of
from interlock_catalog.server.gate import needs, tagged
from interlock_catalog.server.store import ServerStore
from interlock_catalog.vocabulary import equipment_name
from interlock_catalog.vocabulary import slug as slug_of

Limit = Annotated[int, Query(ge=1, le=500)]
After = Annotated[str, Query(max_length=160, pattern=r"^[^\x00-\x1f]*$")]
Many = Annotated[list[Name], Query(max_length=200)]
_NONE: list[str] = []
ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"description": text}
    for code, text in (
        (304, "not changed"),
        (401, "no token"),
        (403, "wrong role"),
        (404, "not there"),
        (413, "too large"),
        (503, "try again later"),
    )
}


def reading(store: ServerStore, tokens: dict[str, tuple[str, str]]) -> APIRouter:
    """The functions that a reader may call."""
    router = APIRouter(dependencies=[Depends(needs(tokens, "reader"))], responses=ERRORS)
    backend = store.backend

    @router.get("/getExercises")
    async def get_exercises(
        request: Request,
        family: Slug | None = None,
        ids: Many = _NONE,
        after: After = "",
        limit: Limit = 100,
    ) -> Response:
        """A page of exercises, all of a family, or those with these ids."""
        if ids:
            found = await backend.read_many(f"exercise:{name}" for name in ids)
        else:
            found = await backend.exercises(family=family, after=_key("exercise", after), limit=limit)
        return tagged(request, _page(found))

    @router.get("/getExercise")
    async def get_exercise(request: Request, id: Annotated[Name, Query()]) -> Response:
        """One exercise, with its version as ETag."""
        doc, version = await store.get(f"exercise:{id}")
        return tagged(request, {"exercise": doc, "version": version}, f'"{version}"')

    _names(router, store)
    _aliases(router, store)
    _suggestions(router, store)
    return router


def _names(router: APIRouter, store: ServerStore) -> None:
    backend = store.backend

    @router.get("/searchExercises")
    async def search_exercises(request: Request, q: Annotated[Text, Query()], limit: Limit = 20) -> Response:
        """Exercises whose names hold every word."""
        words, hits, after = [word for word in slug_of(q).split("-") if word], list[tuple[int, str, str]](), ""
        while words:
            page = await backend.exercises(after=after, limit=500)
            for key, doc in page.items():
                name = slug_of(str(doc.value.get("name", "")))
                if live(doc.value) and all(word in name for word in words):
                    hits.append((len(name), key.partition(":")[2], str(doc.value.get("name"))))
            if len(page) < 500:
                break
            after = next(reversed(page))
        return tagged(request, {"hits": [{"id": key, "name": name} for _n, key, name in sorted(hits)[:limit]]})

    @router.get("/resolveExercise")
    async def resolve_exercise(request: Request, name: Annotated[Text, Query()]) -> Response:
        """What a name stands for: an exercise's own, or an alias."""
        wanted = slug_of(name)
        for key, doc in (await backend.named([wanted])).items():
            if live(doc.value):
                return tagged(request, {"exercise_id": key.partition(":")[2], "by": "name"})
        alias, _version = await store.get(f"alias:{wanted}")
        return tagged(request, {**alias, "by": "alias"})

    @router.get("/listFamilies")
    async def list_families(request: Request, slugs: Many = _NONE, after: After = "", limit: Limit = 200) -> Response:
        """A page of families, or those with these slugs."""
        if slugs:
            return tagged(request, _page(await backend.read_many(f"family:{slug}" for slug in slugs)))
        return tagged(request, _page(await backend.families(after=_key("family", after), limit=limit)))


def _aliases(router: APIRouter, store: ServerStore) -> None:
    backend = store.backend

    @router.get("/searchAliases")
    async def search_aliases(
        request: Request,
        exercise_ids: Many = _NONE,
        families: Many = _NONE,
        slugs: Many = _NONE,
        after: After = "",
        limit: Limit = 500,
    ) -> Response:
        """A page of aliases, or those that point at these exercises or families, or have these slugs."""
        if slugs:
            found = await backend.read_many(f"alias:{slug}" for slug in slugs)
        elif exercise_ids or families:
            found = await backend.aliases_of(exercise_ids, families)
        else:
            found = await backend.aliases(after=_key("alias", after), limit=limit)
        return tagged(request, _page(found))

    @router.get("/findByName")
    async def find_by_name(request: Request, slugs: Many) -> Response:
        """The exercises that bear one of these name slugs."""
        return tagged(request, _page(await backend.named(slugs)))

    @router.get("/listSearches")
    async def list_searches(request: Request, after: After = "", limit: Limit = 500) -> Response:
        """A page of the log of searches."""
        found = await backend.searches(after=after, limit=limit)
        return tagged(request, {"searches": [[s.id, s.query, s.hits, s.count] for s in found]})


def _suggestions(router: APIRouter, store: ServerStore) -> None:
    backend = store.backend

    @router.get("/suggestAliases")
    async def suggest_aliases(request: Request, id: Annotated[Name, Query()]) -> Response:
        """Names that people would also use, and that nothing has yet."""
        doc, _version = await store.get(f"exercise:{id}")
        wanted = list(_other_names(doc))
        taken = await backend.read_many(f"alias:{slug}" for slug in wanted)
        named = {str(other.value.get("name_slug")) for other in (await backend.named(wanted)).values()}
        free = [slug for slug in wanted if f"alias:{slug}" not in taken and slug not in named]
        return tagged(request, {"id": id, "aliases": free})

    @router.get("/suggestFamilyVariant")
    async def suggest_family_variant(request: Request, name: Annotated[Text, Query()]) -> Response:
        """The family whose name the words end in, and what makes this one special in it."""
        base = split_name(name)[0]
        parts = slug_of(base).split("-")
        guesses = ["-".join(parts[start:]) for start in range(len(parts)) if parts[start]]
        there = await backend.read_many(f"family:{guess}" for guess in guesses)
        for guess in guesses:
            if f"family:{guess}" in there:
                family = there[f"family:{guess}"].value
                return tagged(
                    request, {"family_slug": guess, "variant": variant_of(base, str(family.get("base_name", guess)))}
                )
        raise NotFound(f"no family fits {name!r}")


def _other_names(doc: Doc) -> dict[str, None]:
    base, equipment = split_name(str(doc.get("name", "")))[0], doc.get("equipment") or ["other"]
    first = equipment_name(str(equipment[0]))
    return dict.fromkeys(
        slug for slug in (slug_of(f"{first} {base}"), slug_of(f"{base} {first}"), slug_of(base)) if slug
    )


def _page(found: dict[str, Versioned]) -> dict[str, Any]:
    return {"documents": {key: {"state": doc.value, "version": doc.version} for key, doc in found.items()}}


def _key(kind: str, after: str) -> str:
    return f"{kind}:{after}" if after and not after.startswith(f"{kind}:") else after
