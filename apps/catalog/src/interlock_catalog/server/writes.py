"""The functions that change something: each once for each idempotency key, and all of it or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Depends, Request

from interlock.errors import InvalidInput
from interlock_catalog.changes import alias_to, approved, merged, normalised
from interlock_catalog.contracts import Doc, kind_of, live
from interlock_catalog.naming import doc_id
from interlock_catalog.normalise import facts_of
from interlock_catalog.server import requests as ask
from interlock_catalog.server.gate import context_of, needs
from interlock_catalog.server.reads import ERRORS
from interlock_catalog.server.store import ServerStore
from interlock_catalog.vocabulary import slug as slug_of

_CHANGES = {**ERRORS, 400: {"description": "a header is wrong"}, 409: {"description": "fenced off"},
            412: {"description": "at another version"}}  # fmt: skip


class Writing:
    """One write: who asks, under which key, at which version."""

    def __init__(self, store: ServerStore, request: Request, who: str, body: Any) -> None:
        self.store = store
        self.function = request.url.path
        self.context = context_of(request, who)
        self.body = body.model_dump()
        self._if_match = request.headers.get("if-match")

    async def made(self, states: Mapping[str, Doc | None], key: str | None = None) -> dict[str, Any]:
        """Write, once; `key` is the document that If-Match is about."""
        versions = {}
        if self._if_match is not None and key is not None:
            versions[key] = self._if_match.strip('"')
        return await self.store.write(self.context, self.function, self.body, states, versions)

    async def before(self) -> dict[str, Any] | None:
        """The answer that was given to this very request, if there was one."""
        found: dict[str, Any] | None = await self.store.answered(self.context, self.function, self.body)
        return found


def writing(store: ServerStore, tokens: dict[str, tuple[str, str]]) -> APIRouter:
    """The functions that an editor may call."""
    router = APIRouter(responses=_CHANGES)
    editor = Depends(needs(tokens, "editor"))
    _exercises(router, store, editor)
    _merges(router, store, editor)
    _pages(router, store, editor)
    _aliases(router, store, editor)
    _repointing(router, store, editor)
    _whole(router, store, editor, Depends(needs(tokens, "admin")))
    return router


def _exercises(router: APIRouter, store: ServerStore, editor: Any) -> None:
    @router.post("/upsertExercise")
    async def upsert_exercise(request: Request, body: ask.UpsertExercise, who: str = editor) -> dict[str, Any]:
        """Write an exercise whole."""
        work = Writing(store, request, who, body)
        identity = _identity(body.exercise)
        return await work.before() or await work.made({f"exercise:{identity}": body.exercise}, f"exercise:{identity}")

    @router.post("/ensureExerciseExists")
    async def ensure_exercise_exists(request: Request, body: ask.Ensure, who: str = editor) -> dict[str, Any]:
        """An empty draft, unless something is called that already."""
        work = Writing(store, request, who, body)
        known = await work.before()
        if known is not None:
            return known
        await store.get(f"family:{body.family_slug}")
        if not slug_of(body.name):
            raise InvalidInput("a name has letters or digits")
        for key, doc in (await store.backend.named([slug_of(body.name)])).items():
            if live(doc.value):
                return {"id": key.partition(":")[2], "created": False}
        identity = doc_id(body.family_slug, body.name)
        draft = {"id": identity, "name": body.name, "name_slug": slug_of(body.name), "family_slug": body.family_slug}
        return await work.made({f"exercise:{identity}": {**draft, "status": "draft", "merged_into": None}})

    @router.post("/approveExercise")
    async def approve_exercise(request: Request, body: ask.ById, who: str = editor) -> dict[str, Any]:
        """Release a draft."""
        work = Writing(store, request, who, body)
        known = await work.before()
        if known is not None:
            return known
        doc, _version = await store.get(f"exercise:{body.id}")
        return await work.made({f"exercise:{body.id}": approved(doc)}, f"exercise:{body.id}")


def _merges(router: APIRouter, store: ServerStore, editor: Any) -> None:
    @router.post("/mergeExercises")
    async def merge_exercises(request: Request, body: ask.Merge, who: str = editor) -> dict[str, Any]:
        """Merge an exercise into another one of its family, with its aliases."""
        work = Writing(store, request, who, body)
        known = await work.before()
        if known is not None:
            return known
        exercises = (f"exercise:{body.source_id}", f"exercise:{body.target_id}")
        for key in exercises:
            doc, _version = await store.get(key)
            if doc.get("family_slug") != body.family_slug or not live(doc) or body.source_id == body.target_id:
                raise InvalidInput("two live exercises of one family are merged, nothing else")
        pointing = await store.backend.aliases_of([body.source_id])
        keys = {*exercises, *pointing, *(f"alias:{alias}" for alias in body.aliases)}
        held = await store.backend.read_many(keys)
        states = {
            key: merged(key, held[key].value if key in held else None, body.source_id, body.target_id)
            for key in sorted(keys)
        }
        return await work.made(states)


def _pages(router: APIRouter, store: ServerStore, editor: Any) -> None:
    async def normalize(work: Writing, items: dict[str, dict[str, Any]]) -> dict[str, Any]:
        old = {f"alias:{item['old_slug']}": key for key, item in items.items() if item.get("old_slug")}
        held = await store.backend.read_many([*items, *old])
        states = {key: normalised(doc.value, items[key]) for key, doc in held.items() if key in items}
        differ: dict[str, Doc | None] = {key: state for key, state in states.items() if state != held[key].value}
        for alias, key in old.items():
            if alias not in held:
                differ[alias] = alias_to(alias.partition(":")[2], exercise_id=key.partition(":")[2])
        return await work.made(differ) if differ else {"versions": {}}

    async def of_family(family: str) -> dict[str, dict[str, Any]]:
        doc, _version = await store.get(f"family:{family}")
        members = await store.backend.exercises(family=family)
        facts = facts_of(doc, (member.value for member in members.values()))
        return {key: {"family_name": facts.base_name, "qualified": facts.qualified} for key in members}

    @router.post("/normalizeCatalogPage")
    async def normalize_catalog_page(request: Request, body: ask.NormalizePage, who: str = editor) -> dict[str, Any]:
        """Bring exercises of a family into the one spelling."""
        work = Writing(store, request, who, body)
        items = {f"exercise:{item.exercise_id}": item.model_dump() for item in body.items}
        return await work.before() or await normalize(work, items)

    @router.post("/backfillNormalizeFamily")
    async def backfill_normalize_family(request: Request, body: ask.ByFamily, who: str = editor) -> dict[str, Any]:
        """Bring a whole family into the one spelling."""
        work = Writing(store, request, who, body)
        return await work.before() or await normalize(work, await of_family(body.family_slug))

    @router.post("/normalizeCatalog")
    async def normalize_catalog(request: Request, body: ask.Page, who: str = editor) -> dict[str, Any]:
        """Bring a page of families into the one spelling; `next` is where to go on, '' at the end."""
        work = Writing(store, request, who, body)
        known = await work.before()
        if known is not None:
            return known
        page = await store.backend.families(after=body.after, limit=min(body.limit, 20))
        items: dict[str, dict[str, Any]] = {}
        for key in page:
            items |= await of_family(key.partition(":")[2])
        answer = await normalize(work, items)
        return {**answer, "next": next(reversed(page)) if len(page) == min(body.limit, 20) else ""}

    @router.post("/refineExercise")
    async def refine_exercise(request: Request, body: ask.ById, who: str = editor) -> dict[str, Any]:
        """Bring one exercise into the one spelling."""
        work = Writing(store, request, who, body)
        known = await work.before()
        if known is not None:
            return known
        doc, _version = await store.get(f"exercise:{body.id}")
        family = await of_family(str(doc.get("family_slug")))
        return await normalize(work, {f"exercise:{body.id}": family[f"exercise:{body.id}"]})


async def _live_target(store: ServerStore, exercise: str | None, family: str | None) -> None:
    if (exercise is None) == (family is None):
        raise InvalidInput("an alias has one target: an exercise, or a family")
    if exercise is None:
        await store.get(f"family:{family}")
        return
    doc, _version = await store.get(f"exercise:{exercise}")
    if not live(doc):
        raise InvalidInput(f"{exercise!r} is {doc.get('status')}, and no target any more")


def _aliases(router: APIRouter, store: ServerStore, editor: Any) -> None:
    @router.post("/upsertAlias")
    async def upsert_alias(request: Request, body: ask.UpsertAlias, who: str = editor) -> dict[str, Any]:
        """Give an exercise or a family another name."""
        work = Writing(store, request, who, body)
        known = await work.before()
        if known is not None:
            return known
        await _live_target(store, body.exercise_id, body.family_slug)
        doc = alias_to(body.alias_slug, exercise_id=body.exercise_id, family_slug=body.family_slug)
        return await work.made({f"alias:{body.alias_slug}": doc}, f"alias:{body.alias_slug}")

    @router.post("/deleteAlias")
    async def delete_alias(request: Request, body: ask.DeleteAlias, who: str = editor) -> dict[str, Any]:
        """Take an alias away, for another one."""
        work = Writing(store, request, who, body)
        known = await work.before()
        if known is not None:
            return known
        await store.get(f"alias:{body.alias_slug}")
        new = body.replacement
        await _live_target(store, new.exercise_id, new.family_slug)
        states: dict[str, Doc | None] = {f"alias:{body.alias_slug}": None}
        states[f"alias:{new.alias_slug}"] = alias_to(
            new.alias_slug, exercise_id=new.exercise_id, family_slug=new.family_slug
        )
        return await work.made(states)


def _repointing(router: APIRouter, store: ServerStore, editor: Any) -> None:
    @router.post("/repointAlias")
    async def repoint_alias(request: Request, body: ask.Repoint, who: str = editor) -> dict[str, Any]:
        """Have an alias point at another exercise."""
        work = Writing(store, request, who, body)
        known = await work.before()
        if known is not None:
            return known
        await store.get(f"alias:{body.alias_slug}")
        await _live_target(store, body.exercise_id, None)
        doc = alias_to(body.alias_slug, exercise_id=body.exercise_id)
        return await work.made({f"alias:{body.alias_slug}": doc}, f"alias:{body.alias_slug}")

    @router.post("/repointShorthandAliases")
    async def repoint_shorthand_aliases(request: Request, body: ask.ByFamily, who: str = editor) -> dict[str, Any]:
        """Have the bare name of a family stand for the family."""
        work = Writing(store, request, who, body)
        known = await work.before()
        if known is not None:
            return known
        await store.get(f"family:{body.family_slug}")
        doc = alias_to(body.family_slug, family_slug=body.family_slug)
        return await work.made({f"alias:{body.family_slug}": doc})


def _whole(router: APIRouter, store: ServerStore, editor: Any, admin: Any) -> None:
    @router.post("/writeDocuments")
    async def write_documents(request: Request, body: ask.WriteDocuments, who: str = editor) -> dict[str, Any]:
        """Write documents together, as an undo or a restore does; null removes one."""
        work = Writing(store, request, who, body)
        for key, doc in body.documents.items():
            if doc is not None and kind_of(key) == "exercise" and doc.get("id") != key.partition(":")[2]:
                raise InvalidInput(f"{key}: the id in the document is another one")
        first = next(iter(body.documents))
        return await work.before() or await work.made(dict(body.documents), first if len(body.documents) == 1 else None)

    @router.post("/backupExercises")
    async def backup_exercises(body: ask.Page, _who: str = admin) -> dict[str, Any]:
        """A page of every document, for a backup; `next` is where to go on, '' at the end."""
        page = await store.backend.documents.page("", after=body.after, limit=body.limit)
        kept = {key: doc.value for key, doc in page.items() if kind_of(key) in ("exercise", "alias", "family")}
        return {"documents": kept, "next": next(reversed(page)) if len(page) == body.limit else ""}

    @router.post("/duplicateCatalog")
    async def duplicate_catalog(body: ask.Duplicate, _who: str = admin) -> dict[str, Any]:
        """Copy the whole catalog under another name beside it."""
        count = None if body.target == "catalog" else await store.copied(body.target)
        if count is None:
            raise InvalidInput("the copy needs a name that nothing has yet")
        return {"target": body.target, "documents": count}


def _identity(doc: Doc) -> str:
    identity = doc.get("id")
    if not isinstance(identity, str) or not identity.isprintable() or not 1 <= len(identity) <= 128:
        raise InvalidInput("an exercise has an id: printable text of at most 128 characters")
    if any(c in identity for c in "/ \t") or identity.endswith("*"):
        raise InvalidInput("an id has no slashes, spaces or stars")
    if not isinstance(doc.get("family_slug"), str):
        raise InvalidInput("an exercise has a family_slug")
    return identity
