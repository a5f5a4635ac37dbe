"""The functions that read the catalog."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from interlock.errors import NotFound
from interlock.values import Versioned
from interlock_catalog.contracts import Doc, Name, Slug, Text
from interlock_catalog.document_keys import (
    DocumentKey,
    DocumentKind,
    alias_key,
    exercise_key,
    family_key,
    kind_of,
)
from interlock_catalog.name_lookup import look_up_name
from interlock_catalog.name_search import search_names
from interlock_catalog.naming import split_name, variant_of
from interlock_catalog.server.headers import etag_response, require_role
from interlock_catalog.server.store import ServerStore
from interlock_catalog.server.tokens import Tokens
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


def build_read_router(store: ServerStore, tokens: Tokens) -> APIRouter:
    """The functions that a reader may call."""
    router = APIRouter(dependencies=[Depends(require_role(tokens, "reader"))], responses=ERRORS)
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
            found = await backend.read_many(exercise_key(name) for name in ids)
        else:
            found = await backend.exercises(family=family, after=_page_key(DocumentKind.EXERCISE, after), limit=limit)
        return etag_response(request, _page(found))

    @router.get("/getExercise")
    async def get_exercise(request: Request, id: Annotated[Name, Query()]) -> Response:
        """One exercise, with its version as ETag."""
        found = await store.get(exercise_key(id))
        return etag_response(request, {"exercise": found.value, "version": found.version}, f'"{found.version}"')

    @router.get("/listFamilies")
    async def list_families(request: Request, slugs: Many = _NONE, after: After = "", limit: Limit = 200) -> Response:
        """A page of families, or those with these slugs."""
        if slugs:
            return etag_response(request, _page(await backend.read_many(family_key(slug) for slug in slugs)))
        return etag_response(
            request, _page(await backend.families(after=_page_key(DocumentKind.FAMILY, after), limit=limit))
        )

    _add_name_routes(router, store)
    _add_alias_routes(router, store)
    _add_suggestion_routes(router, store)
    return router


def _add_name_routes(router: APIRouter, store: ServerStore) -> None:
    backend = store.backend

    @router.get("/searchExercises")
    async def search_exercises(request: Request, q: Annotated[Text, Query()], limit: Limit = 20) -> Response:
        """Exercises whose names hold every word."""
        return etag_response(request, {"hits": await search_names(backend, q, limit)})

    @router.get("/resolveExercise")
    async def resolve_exercise(request: Request, name: Annotated[Text, Query()]) -> Response:
        """What a name stands for: an exercise's own, or an alias."""
        return etag_response(request, await look_up_name(backend, name))


def _add_alias_routes(router: APIRouter, store: ServerStore) -> None:
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
            found = await backend.read_many(alias_key(slug) for slug in slugs)
        elif exercise_ids or families:
            found = await backend.aliases_of(exercise_ids, families)
        else:
            found = await backend.aliases(after=_page_key(DocumentKind.ALIAS, after), limit=limit)
        return etag_response(request, _page(found))

    @router.get("/findByName")
    async def find_by_name(request: Request, slugs: Many) -> Response:
        """The exercises with one of these name slugs."""
        return etag_response(request, _page(await backend.find_by_name(slugs)))

    @router.get("/listSearches")
    async def list_searches(request: Request, after: After = "", limit: Limit = 500) -> Response:
        """A page of the log of searches."""
        found = await backend.searches(after=after, limit=limit)
        return etag_response(request, {"searches": [[s.id, s.query, s.hits, s.count] for s in found]})


def _add_suggestion_routes(router: APIRouter, store: ServerStore) -> None:
    backend = store.backend

    @router.get("/suggestAliases")
    async def suggest_aliases(request: Request, id: Annotated[Name, Query()]) -> Response:
        """Names that people would also use, and that are free."""
        exercise = await store.get(exercise_key(id))
        wanted = list(_other_names(exercise.value))
        taken = await backend.read_many(alias_key(slug) for slug in wanted)
        named = {str(other.value.get("name_slug")) for other in (await backend.find_by_name(wanted)).values()}
        free = [slug for slug in wanted if alias_key(slug) not in taken and slug not in named]
        return etag_response(request, {"id": id, "aliases": free})

    @router.get("/suggestFamilyVariant")
    async def suggest_family_variant(request: Request, name: Annotated[Text, Query()]) -> Response:
        """The family whose name the words end in, and what makes this one special in it."""
        base = split_name(name)[0]
        parts = slug_of(base).split("-")
        # The longest first, so that the narrowest family with that name is found.
        candidate_slugs = ["-".join(parts[start:]) for start in range(len(parts)) if parts[start]]
        there = await backend.read_many(family_key(guess) for guess in candidate_slugs)
        for guess in candidate_slugs:
            if family_key(guess) in there:
                family = there[family_key(guess)].value
                return etag_response(
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


def _page_key(kind: DocumentKind, after: str) -> str:
    """Where to go on: callers may give the whole key, or the id or slug alone."""
    return after if not after or kind_of(after) is kind else DocumentKey(kind, after).text
