"""The functions that change something: each once for each idempotency key, and all of it or nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import APIRouter, Depends

from interlock.errors import Conflict, InvalidInput, NotFound
from interlock_catalog.changes import alias_to, approved, merged, normalised
from interlock_catalog.contracts import Doc, kind_of, live
from interlock_catalog.naming import doc_id
from interlock_catalog.normalise import facts_of
from interlock_catalog.server import requests as ask
from interlock_catalog.server.gate import Refusal, Under, needs, writes_under
from interlock_catalog.server.reads import ERRORS
from interlock_catalog.server.store import Reading, ServerStore, known_as
from interlock_catalog.vocabulary import slug as slug_of

_CHANGES = {**ERRORS, 400: {"description": "a header is wrong"}, 409: {"description": "moved, or fenced off"},
            412: {"description": "at another version"}}  # fmt: skip
Items = dict[str, dict[str, Any]]


class Writing:
    """One write: who asks, under which key, at which version, and what was read for it."""

    def __init__(self, store: ServerStore, under: Under, body: Any) -> None:
        self.store = store
        self.reading = Reading(store)
        self._context = under.context
        self._request = known_as(under.function, body.model_dump())
        self._if_match = under.if_match

    async def once(self, make: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """The answer that was given to this very request, or what is made now; also if another delivery was faster."""
        known = await self.store.answered(self._context, self._request)
        if known is not None:
            return known
        try:
            return await make()
        except (NotFound, InvalidInput, Conflict):
            again = await self.store.answered(self._context, self._request)
            if again is None:
                raise
            return again

    async def made(self, states: Mapping[str, Doc | None], key: str | None = None, **more: Any) -> dict[str, Any]:
        """Write, if nothing that was read has moved; `key` is the document that If-Match is about."""
        if self._if_match is not None:
            if key is None:
                raise Refusal(400, "If-Match has no meaning where several documents are written")
            if self._if_match == "*":
                await self.reading.one(key)
            else:
                self.reading.versions[key] = self._if_match.strip('"')
        return await self.store.write(self._context, self._request, states, self.reading, more)


def writing(store: ServerStore, tokens: dict[str, tuple[str, str]]) -> APIRouter:
    """The functions that an editor may call."""
    router = APIRouter(responses=_CHANGES)
    editor = Depends(writes_under(tokens))
    _exercises(router, store, editor)
    _merges(router, store, editor)
    _pages(router, store, editor)
    _aliases(router, store, editor)
    _repointing(router, store, editor)
    _whole(router, store, editor, Depends(needs(tokens, "admin")))
    return router


def _exercises(router: APIRouter, store: ServerStore, editor: Any) -> None:
    @router.post("/upsertExercise")
    async def upsert_exercise(body: ask.UpsertExercise, under: Under = editor) -> dict[str, Any]:
        """Write an exercise whole."""
        work = Writing(store, under, body)
        key = f"exercise:{_identity(body.exercise)}"
        return await work.once(lambda: work.made({key: body.exercise}, key))

    @router.post("/ensureExerciseExists")
    async def ensure_exercise_exists(body: ask.Ensure, under: Under = editor) -> dict[str, Any]:
        """An empty draft, unless something is called that already."""
        work = Writing(store, under, body)

        async def make() -> dict[str, Any]:
            await work.reading.one(f"family:{body.family_slug}")
            if not slug_of(body.name):
                raise InvalidInput("a name has letters or digits")
            for key, doc in (await store.backend.named([slug_of(body.name)])).items():
                if live(doc.value):
                    return await work.made({}, id=key.partition(":")[2], created=False)
            identity = doc_id(body.family_slug, body.name)
            if await work.reading.many([f"exercise:{identity}"]):
                raise Conflict(f"{identity!r} is there already, under another name or merged away")
            draft = {
                "id": identity,
                "name": body.name,
                "name_slug": slug_of(body.name),
                "family_slug": body.family_slug,
            }
            made = {f"exercise:{identity}": {**draft, "status": "draft", "merged_into": None}}
            return await work.made(made, id=identity, created=True)

        return await work.once(make)

    @router.post("/approveExercise")
    async def approve_exercise(body: ask.ById, under: Under = editor) -> dict[str, Any]:
        """Release a draft."""
        work, key = Writing(store, under, body), f"exercise:{body.id}"

        async def make() -> dict[str, Any]:
            doc = await work.reading.one(key)
            if not live(doc):
                raise InvalidInput(f"{body.id!r} is {doc.get('status')}, and not approved any more")
            return await work.made({key: approved(doc)}, key)

        return await work.once(make)


def _merges(router: APIRouter, store: ServerStore, editor: Any) -> None:
    @router.post("/mergeExercises")
    async def merge_exercises(body: ask.Merge, under: Under = editor) -> dict[str, Any]:
        """Merge an exercise into another one of its family, with its aliases."""
        work = Writing(store, under, body)

        async def make() -> dict[str, Any]:
            exercises = (f"exercise:{body.source_id}", f"exercise:{body.target_id}")
            for key in exercises:
                doc = await work.reading.one(key)
                if doc.get("family_slug") != body.family_slug or not live(doc) or body.source_id == body.target_id:
                    raise InvalidInput("two live exercises of one family are merged, nothing else")
            pointing = await work.reading.aliases_of(body.source_id)
            keys = {*exercises, *pointing, *(f"alias:{alias}" for alias in body.aliases)}
            held = await work.reading.many(sorted(keys))
            return await work.made({k: merged(k, held.get(k), body.source_id, body.target_id) for k in sorted(keys)})

        return await work.once(make)


async def _normalize(work: Writing, items: Items, family: str | None = None, **more: Any) -> dict[str, Any]:
    old = {f"alias:{item['old_slug']}": key for key, item in items.items() if item.get("old_slug")}
    held = await work.reading.many([*items, *old])
    foreign = [key for key in items if family is not None and (held.get(key) or {}).get("family_slug") != family]
    if foreign:
        raise InvalidInput(f"{foreign[0]} is not of the family {family!r}")
    states = {key: normalised(held[key], items[key]) for key in items if key in held}
    differ: dict[str, Doc | None] = {key: state for key, state in states.items() if state != held[key]}
    for alias, key in old.items():
        if alias not in held:
            differ[alias] = alias_to(alias.partition(":")[2], exercise_id=key.partition(":")[2])
    return await work.made(differ, **more)


async def _of_family(work: Writing, family: str) -> Items:
    doc = await work.reading.one(f"family:{family}")
    members = await work.store.backend.exercises(family=family)
    facts = facts_of(doc, (member.value for member in members.values() if isinstance(member.value, dict)))
    return {key: {"family_name": facts.base_name, "qualified": facts.qualified} for key in members}


def _pages(router: APIRouter, store: ServerStore, editor: Any) -> None:
    @router.post("/normalizeCatalogPage")
    async def normalize_catalog_page(body: ask.NormalizePage, under: Under = editor) -> dict[str, Any]:
        """Bring exercises of a family into the one spelling."""
        work = Writing(store, under, body)
        items = {f"exercise:{item.exercise_id}": item.model_dump() for item in body.items}
        return await work.once(lambda: _normalize(work, items, body.family_slug))

    @router.post("/backfillNormalizeFamily")
    async def backfill_normalize_family(body: ask.ByFamily, under: Under = editor) -> dict[str, Any]:
        """Bring a whole family into the one spelling."""
        work = Writing(store, under, body)

        async def make() -> dict[str, Any]:
            return await _normalize(work, await _of_family(work, body.family_slug))

        return await work.once(make)

    @router.post("/normalizeCatalog")
    async def normalize_catalog(body: ask.Page, under: Under = editor) -> dict[str, Any]:
        """Bring a page of families into the one spelling; `next` is where to go on, '' at the end."""
        work, limit = Writing(store, under, body), min(body.limit, 20)

        async def make() -> dict[str, Any]:
            page = await store.backend.families(after=body.after, limit=limit)
            items: Items = {}
            for key in page:
                items |= await _of_family(work, key.partition(":")[2])
            return await _normalize(work, items, next=next(reversed(page)) if len(page) == limit else "")

        return await work.once(make)

    @router.post("/refineExercise")
    async def refine_exercise(body: ask.ById, under: Under = editor) -> dict[str, Any]:
        """Bring one exercise into the one spelling."""
        work, key = Writing(store, under, body), f"exercise:{body.id}"

        async def make() -> dict[str, Any]:
            doc = await work.reading.one(key)
            family = await _of_family(work, str(doc.get("family_slug")))
            return await _normalize(work, {key: family[key]})

        return await work.once(make)


async def _live_target(work: Writing, exercise: str | None, family: str | None) -> None:
    """What an alias points at is there, and still is when it is written."""
    if (exercise is None) == (family is None):
        raise InvalidInput("an alias has one target: an exercise, or a family")
    if exercise is None:
        await work.reading.one(f"family:{family}")
        return
    doc = await work.reading.one(f"exercise:{exercise}")
    if not live(doc):
        raise InvalidInput(f"{exercise!r} is {doc.get('status')}, and no target any more")


def _aliases(router: APIRouter, store: ServerStore, editor: Any) -> None:
    @router.post("/upsertAlias")
    async def upsert_alias(body: ask.UpsertAlias, under: Under = editor) -> dict[str, Any]:
        """Give an exercise or a family another name."""
        work, key = Writing(store, under, body), f"alias:{body.alias_slug}"

        async def make() -> dict[str, Any]:
            await _live_target(work, body.exercise_id, body.family_slug)
            doc = alias_to(body.alias_slug, exercise_id=body.exercise_id, family_slug=body.family_slug)
            return await work.made({key: doc}, key)

        return await work.once(make)

    @router.post("/deleteAlias")
    async def delete_alias(body: ask.DeleteAlias, under: Under = editor) -> dict[str, Any]:
        """Take an alias away, for another one."""
        work, new = Writing(store, under, body), body.replacement

        async def make() -> dict[str, Any]:
            await work.reading.one(f"alias:{body.alias_slug}")
            await _live_target(work, new.exercise_id, new.family_slug)
            states: dict[str, Doc | None] = {f"alias:{body.alias_slug}": None}
            made = alias_to(new.alias_slug, exercise_id=new.exercise_id, family_slug=new.family_slug)
            return await work.made({**states, f"alias:{new.alias_slug}": made})

        return await work.once(make)


def _repointing(router: APIRouter, store: ServerStore, editor: Any) -> None:
    @router.post("/repointAlias")
    async def repoint_alias(body: ask.Repoint, under: Under = editor) -> dict[str, Any]:
        """Have an alias point at another exercise."""
        work, key = Writing(store, under, body), f"alias:{body.alias_slug}"

        async def make() -> dict[str, Any]:
            await work.reading.one(key)
            await _live_target(work, body.exercise_id, None)
            return await work.made({key: alias_to(body.alias_slug, exercise_id=body.exercise_id)}, key)

        return await work.once(make)

    @router.post("/repointShorthandAliases")
    async def repoint_shorthand_aliases(body: ask.ByFamily, under: Under = editor) -> dict[str, Any]:
        """Have the bare name of a family stand for the family."""
        work, key = Writing(store, under, body), f"alias:{body.family_slug}"

        async def make() -> dict[str, Any]:
            await work.reading.one(f"family:{body.family_slug}")
            return await work.made({key: alias_to(body.family_slug, family_slug=body.family_slug)}, key)

        return await work.once(make)


def _whole(router: APIRouter, store: ServerStore, editor: Any, admin: Any) -> None:
    @router.post("/writeDocuments")
    async def write_documents(body: ask.WriteDocuments, under: Under = editor) -> dict[str, Any]:
        """Write documents together, as an undo or a restore does; null removes one."""
        work = Writing(store, under, body)
        for key, doc in body.documents.items():
            if doc is not None and kind_of(key) == "exercise" and doc.get("id") != key.partition(":")[2]:
                raise InvalidInput(f"{key}: the id in the document is another one")
        single = next(iter(body.documents)) if len(body.documents) == 1 else None
        return await work.once(lambda: work.made(dict(body.documents), single))

    @router.post("/backupExercises")
    async def backup_exercises(body: ask.Page, _who: str = admin) -> dict[str, Any]:
        """A page of every document, for a backup; `next` is where to go on, '' at the end."""
        page = await store.backend.documents.page("", after=body.after, limit=body.limit)
        kept = {key: doc.value for key, doc in page.items() if kind_of(key) in ("exercise", "alias", "family")}
        return {"documents": kept, "next": next(reversed(page)) if len(page) == body.limit else ""}

    @router.post("/duplicateCatalog")
    async def duplicate_catalog(body: ask.Duplicate, _who: str = admin) -> dict[str, Any]:
        """Copy the whole catalog under another name beside it."""
        count = await store.copied(body.target)
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
