"""The functions that change the catalog: each once for each idempotency key, and all of it or nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from fastapi import APIRouter, Depends

from interlock.errors import Conflict, InvalidInput, NotFound
from interlock_catalog.changes import (
    approve_draft,
    build_alias,
    list_normalise_items,
    merge_document,
    normalise_exercise,
)
from interlock_catalog.contracts import KINDS, Doc, Strict, find_new_violations, is_live
from interlock_catalog.document_keys import DocumentKind, alias_key, exercise_key, family_key, kind_of, name_of
from interlock_catalog.naming import build_exercise_id
from interlock_catalog.normalise import family_facts
from interlock_catalog.server import requests as bodies
from interlock_catalog.server.errors import RequestRefused
from interlock_catalog.server.headers import WriteHeaders, require_role, require_write_headers
from interlock_catalog.server.read_routes import ERRORS
from interlock_catalog.server.store import ABSENT, ReadSet, ServerStore, digest_request
from interlock_catalog.server.tokens import Tokens
from interlock_catalog.vocabulary import slug as slug_of

_CHANGES = {
    **ERRORS,
    400: {"description": "a header is wrong"},
    409: {"description": "moved, or fenced off"},
    412: {"description": "at another version"},
}
_MAX_FAMILIES = 20
"""Families of one normalisation: more would not be done within the time of a request."""
_MAX_NAMED = 10
Items = dict[str, dict[str, Any]]


class WriteRequest:
    """One write: who asks, under which key, at which version, and what was read for it."""

    def __init__(self, store: ServerStore, headers: WriteHeaders, body: Strict) -> None:
        self.store = store
        self.read_set = ReadSet(store)
        self._context = headers.context
        self._digest = digest_request(headers.function, body.model_dump())
        self._if_match = headers.if_match
        self._guarded = ""
        """The document that If-Match is about, once it is known."""

    async def run_once(self, make: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """The answer that was given to this very request, or what is made now; also if another delivery was faster."""
        known = await self.store.find_answer(self._context, self._digest)
        if known is not None:
            return known
        try:
            return await make()
        except (NotFound, InvalidInput, Conflict) as error:
            # Another delivery may have been faster, and its effect what made this one fail: then its answer is ours.
            again = await self.store.find_answer(self._context, self._digest)
            if again is not None:
                return again
            if isinstance(error, Conflict) and await self._has_failed_precondition():
                raise RequestRefused(412, str(error)) from None
            raise

    async def commit(self, states: Mapping[str, Doc | None], key: str | None = None, **more: Any) -> dict[str, Any]:
        """Write, if nothing that was read has moved; `key` is the document that If-Match is about."""
        if self._if_match is not None:
            if key is None:
                raise RequestRefused(400, "If-Match has no meaning where several documents are written")
            self._guarded = key
            if self._if_match == "*":
                await self.read_set.read_one(key)
            else:
                # In place of the version that was read: the one the caller saw has to hold.
                self.read_set.versions[key] = self._if_match.strip('"')
        return await self.store.write(states, self.read_set, context=self._context, request=self._digest, more=more)

    async def _has_failed_precondition(self) -> bool:
        """Whether a conflict is that of If-Match, and not one of a fencing token or of another document."""
        if not self._guarded:
            return False
        found = (await self.store.backend.read_many([self._guarded])).get(self._guarded)
        return self.read_set.versions[self._guarded] != (ABSENT if found is None else found.version)


def build_write_router(store: ServerStore, tokens: Tokens) -> APIRouter:
    """The functions that an editor may call, and those of an administrator."""
    router = APIRouter(responses=_CHANGES)
    editor = Depends(require_write_headers(tokens))
    _add_exercise_routes(router, store, editor)
    _add_creation_route(router, store, editor)
    _add_merge_route(router, store, editor)
    _add_normalise_routes(router, store, editor)
    _add_alias_routes(router, store, editor)
    _add_repoint_routes(router, store, editor)
    _add_document_routes(router, store, editor, Depends(require_role(tokens, "admin")))
    return router


def _add_exercise_routes(router: APIRouter, store: ServerStore, editor: Any) -> None:
    @router.post("/upsertExercise")
    async def upsert_exercise(body: bodies.UpsertExercise, headers: WriteHeaders = editor) -> dict[str, Any]:
        """Write a whole exercise: a new one keeps its contract, and one that is there breaks it nowhere else."""
        write = WriteRequest(store, headers, body)
        key = exercise_key(_require_id(body.exercise))

        async def make() -> dict[str, Any]:
            before = (await write.read_set.read_many([key])).get(key)
            _require_contract(key, before, body.exercise)
            return await write.commit({key: body.exercise}, key)

        return await write.run_once(make)

    @router.post("/approveExercise")
    async def approve_exercise(body: bodies.ById, headers: WriteHeaders = editor) -> dict[str, Any]:
        """Approve a draft."""
        write, key = WriteRequest(store, headers, body), exercise_key(body.id)

        async def make() -> dict[str, Any]:
            doc = await write.read_set.read_one(key)
            if not is_live(doc):
                raise InvalidInput(f"{body.id!r} is {doc.get('status')}, and not approved any more")
            _require_contract(key, None, doc)  # people see it as it is then
            return await write.commit({key: approve_draft(doc)}, key)

        return await write.run_once(make)


def _add_creation_route(router: APIRouter, store: ServerStore, editor: Any) -> None:
    @router.post("/ensureExerciseExists")
    async def ensure_exercise_exists(body: bodies.Ensure, headers: WriteHeaders = editor) -> dict[str, Any]:
        """An empty draft, unless something is called that already."""
        write = WriteRequest(store, headers, body)

        async def make() -> dict[str, Any]:
            await write.read_set.read_one(family_key(body.family_slug))
            if not slug_of(body.name):
                raise InvalidInput("a name has letters or digits")
            for key, doc in (await store.backend.find_by_name([slug_of(body.name)])).items():
                if is_live(doc.value):
                    # No document is written, but the answer is: the same request has to be answered the same later.
                    return await write.commit({}, id=name_of(key), created=False)
            identity = build_exercise_id(body.family_slug, body.name)
            if await write.read_set.read_many([exercise_key(identity)]):
                raise Conflict(f"{identity!r} is there already, under another name or merged away")
            draft = {
                "id": identity,
                "name": body.name,
                "name_slug": slug_of(body.name),
                "family_slug": body.family_slug,
                "status": "draft",
                "merged_into": None,
            }
            return await write.commit({exercise_key(identity): draft}, id=identity, created=True)

        return await write.run_once(make)


def _add_merge_route(router: APIRouter, store: ServerStore, editor: Any) -> None:
    @router.post("/mergeExercises")
    async def merge_exercises(body: bodies.Merge, headers: WriteHeaders = editor) -> dict[str, Any]:
        """Merge an exercise into another one of its family, with its aliases."""
        write = WriteRequest(store, headers, body)

        async def make() -> dict[str, Any]:
            exercises = (exercise_key(body.source_id), exercise_key(body.target_id))
            for key in exercises:
                doc = await write.read_set.read_one(key)
                if doc.get("family_slug") != body.family_slug or not is_live(doc) or body.source_id == body.target_id:
                    raise InvalidInput("two live exercises of one family are merged, nothing else")
            # Also those that came after the caller looked: none may be left pointing at what is gone.
            pointing = await write.read_set.read_aliases_of(body.source_id)
            keys = sorted({*exercises, *pointing, *(alias_key(alias) for alias in body.aliases)})
            docs = await write.read_set.read_many(keys)
            merged = {key: merge_document(key, docs.get(key), body.source_id, body.target_id) for key in keys}
            return await write.commit(merged)

        return await write.run_once(make)


async def _normalise(write: WriteRequest, items: Items, family: str | None = None, **more: Any) -> dict[str, Any]:
    aliases = {alias_key(item["old_slug"]): key for key, item in items.items() if item.get("old_slug")}
    docs = await write.read_set.read_many([*items, *aliases])
    foreign = [key for key in items if family is not None and (docs.get(key) or {}).get("family_slug") != family]
    if foreign:
        raise InvalidInput(f"{foreign[0]} is not of the family {family!r}")
    states = {key: normalise_exercise(docs[key], items[key]) for key in items if key in docs}
    # What is canonical already is not written, and keeps its version.
    differ: dict[str, Doc | None] = {key: state for key, state in states.items() if state != docs[key]}
    for alias, key in aliases.items():
        # A name that something has already stays with it.
        if alias not in docs:
            differ[alias] = build_alias(name_of(alias), exercise_id=name_of(key))
    return await write.commit(differ, **more)


async def _items_of_family(write: WriteRequest, family: str) -> Items:
    """What brings each live exercise of a family into canonical form, and keeps every name that it had."""
    doc = await write.read_set.read_one(family_key(family))
    members = await write.store.backend.exercises(family=family)
    docs = {name_of(key): found.value for key, found in members.items() if isinstance(found.value, dict)}
    live = {identity: member for identity, member in docs.items() if is_live(member)}
    slugs = sorted({value for member in live.values() if isinstance(value := member.get("name_slug"), str) and value})
    aliases = {name_of(key): alias for key, alias in (await write.read_set.read_many(map(alias_key, slugs))).items()}
    facts = family_facts(doc, live.values(), aliases)
    # A name that an exercise of another family has, too, could not become an alias of this one.
    named = (await write.store.backend.find_by_name(slugs)).items()
    others = {str(item.value["name_slug"]) for key, item in named if is_live(item.value) and name_of(key) not in live}
    facts = msgspec.structs.replace(facts, held=facts.held | others)
    items = list_normalise_items(live, facts, aliases)
    return {exercise_key(identity): item for identity, item in items.items()}


def _add_normalise_routes(router: APIRouter, store: ServerStore, editor: Any) -> None:
    @router.post("/normalizeCatalogPage")
    async def normalize_catalog_page(body: bodies.NormalizePage, headers: WriteHeaders = editor) -> dict[str, Any]:
        """Bring exercises of a family into canonical form."""
        write = WriteRequest(store, headers, body)
        items = {exercise_key(item.exercise_id): item.model_dump() for item in body.items}
        return await write.run_once(lambda: _normalise(write, items, body.family_slug))

    @router.post("/backfillNormalizeFamily")
    async def backfill_normalize_family(body: bodies.ByFamily, headers: WriteHeaders = editor) -> dict[str, Any]:
        """Bring a whole family into canonical form."""
        write = WriteRequest(store, headers, body)

        async def make() -> dict[str, Any]:
            return await _normalise(write, await _items_of_family(write, body.family_slug))

        return await write.run_once(make)

    @router.post("/normalizeCatalog")
    async def normalize_catalog(body: bodies.Page, headers: WriteHeaders = editor) -> dict[str, Any]:
        """Bring a page of families into canonical form; `next` is where to go on, '' at the end."""
        write, limit = WriteRequest(store, headers, body), min(body.limit, _MAX_FAMILIES)

        async def make() -> dict[str, Any]:
            page = await store.backend.families(after=body.after, limit=limit)
            items: Items = {}
            for key in page:
                items |= await _items_of_family(write, name_of(key))
            return await _normalise(write, items, next=next(reversed(page)) if len(page) == limit else "")

        return await write.run_once(make)

    @router.post("/refineExercise")
    async def refine_exercise(body: bodies.ById, headers: WriteHeaders = editor) -> dict[str, Any]:
        """Bring one exercise into canonical form."""
        write, key = WriteRequest(store, headers, body), exercise_key(body.id)

        async def make() -> dict[str, Any]:
            doc = await write.read_set.read_one(key)
            family = await _items_of_family(write, str(doc.get("family_slug")))
            # One that is merged or deprecated stays as it is.
            return await _normalise(write, {key: family[key]} if key in family else {})

        return await write.run_once(make)


async def _require_live_target(write: WriteRequest, exercise: str | None, family: str | None) -> None:
    """What an alias points at is there, and still is when it is written."""
    if (exercise is None) == (family is None):
        raise InvalidInput("an alias has one target: an exercise, or a family")
    if exercise is None:
        await write.read_set.read_one(family_key(family))
        return
    doc = await write.read_set.read_one(exercise_key(exercise))
    if not is_live(doc):
        raise InvalidInput(f"{exercise!r} is {doc.get('status')}, and no target any more")


def _add_alias_routes(router: APIRouter, store: ServerStore, editor: Any) -> None:
    @router.post("/upsertAlias")
    async def upsert_alias(body: bodies.UpsertAlias, headers: WriteHeaders = editor) -> dict[str, Any]:
        """Give an exercise or a family another name."""
        write, key = WriteRequest(store, headers, body), alias_key(body.alias_slug)

        async def make() -> dict[str, Any]:
            await _require_live_target(write, body.exercise_id, body.family_slug)
            before = (await write.read_set.read_many([key])).get(key)
            doc = build_alias(body.alias_slug, exercise_id=body.exercise_id, family_slug=body.family_slug)
            _require_contract(key, before, doc)
            return await write.commit({key: doc}, key)

        return await write.run_once(make)

    @router.post("/deleteAlias")
    async def delete_alias(body: bodies.DeleteAlias, headers: WriteHeaders = editor) -> dict[str, Any]:
        """Remove an alias, for another one."""
        write, new = WriteRequest(store, headers, body), body.replacement

        async def make() -> dict[str, Any]:
            await write.read_set.read_one(alias_key(body.alias_slug))
            await _require_live_target(write, new.exercise_id, new.family_slug)
            before = (await write.read_set.read_many([alias_key(new.alias_slug)])).get(alias_key(new.alias_slug))
            states: dict[str, Doc | None] = {alias_key(body.alias_slug): None}
            made = build_alias(new.alias_slug, exercise_id=new.exercise_id, family_slug=new.family_slug)
            _require_contract(alias_key(new.alias_slug), before, made)
            return await write.commit({**states, alias_key(new.alias_slug): made})

        return await write.run_once(make)


def _add_repoint_routes(router: APIRouter, store: ServerStore, editor: Any) -> None:
    @router.post("/repointAlias")
    async def repoint_alias(body: bodies.Repoint, headers: WriteHeaders = editor) -> dict[str, Any]:
        """Have an alias point at another exercise."""
        write, key = WriteRequest(store, headers, body), alias_key(body.alias_slug)

        async def make() -> dict[str, Any]:
            await write.read_set.read_one(key)
            await _require_live_target(write, body.exercise_id, None)
            return await write.commit({key: build_alias(body.alias_slug, exercise_id=body.exercise_id)}, key)

        return await write.run_once(make)

    @router.post("/repointShorthandAliases")
    async def repoint_shorthand_aliases(body: bodies.ByFamily, headers: WriteHeaders = editor) -> dict[str, Any]:
        """Have the bare name of a family stand for the family."""
        write, key = WriteRequest(store, headers, body), alias_key(body.family_slug)

        async def make() -> dict[str, Any]:
            await write.read_set.read_one(family_key(body.family_slug))
            return await write.commit({key: build_alias(body.family_slug, family_slug=body.family_slug)}, key)

        return await write.run_once(make)


def _add_document_routes(router: APIRouter, store: ServerStore, editor: Any, admin: Any) -> None:
    @router.post("/writeDocuments")
    async def write_documents(body: bodies.WriteDocuments, headers: WriteHeaders = editor) -> dict[str, Any]:
        """Write documents together, as an undo or a restore does; null removes one."""
        write = WriteRequest(store, headers, body)
        for key, doc in body.documents.items():
            if doc is not None and kind_of(key) is DocumentKind.EXERCISE and doc.get("id") != name_of(key):
                raise InvalidInput(f"{key}: the id in the document is another one")
        single = next(iter(body.documents)) if len(body.documents) == 1 else None
        return await write.run_once(lambda: write.commit(dict(body.documents), single))

    @router.post("/fence")
    async def fence(body: bodies.Nothing, headers: WriteHeaders = editor) -> dict[str, Any]:
        """Refuse writes under tokens older than those of the headers, as whoever recovers from a dead worker needs."""
        del body
        await store.fence(headers.context)
        return {"fenced": sorted(headers.context.tokens)}

    @router.post("/backupExercises")
    async def backup_exercises(body: bodies.Page, _who: str = admin) -> dict[str, Any]:
        """A page of every document, for a backup; `next` is where to go on, '' at the end."""
        page = await store.backend.documents.page("", after=body.after, limit=body.limit)
        docs = {key: doc.value for key, doc in page.items() if kind_of(key) in KINDS}
        return {"documents": docs, "next": next(reversed(page)) if len(page) == body.limit else ""}

    @router.post("/duplicateCatalog")
    async def duplicate_catalog(body: bodies.Duplicate, _who: str = admin) -> dict[str, Any]:
        """Copy the whole catalog under another name beside it."""
        count = await store.copy_catalog(body.target)
        if count is None:
            raise InvalidInput("the copy needs a name that nothing has yet")
        return {"target": body.target, "documents": count}


def _require_contract(key: str, before: Doc | None, after: Doc | None) -> None:
    """Refuse what breaks the contract of a document where it was not broken before."""
    wrong = find_new_violations(str(kind_of(key)), before, after)
    if wrong:
        named = "; ".join(f"{found.field}: {found.message}" for found in wrong[:_MAX_NAMED])
        raise InvalidInput(f"{key} would break its contract: {named}")


def _require_id(doc: Doc) -> str:
    identity = doc.get("id")
    if not isinstance(identity, str) or not identity.isprintable() or not 1 <= len(identity) <= 128:
        raise InvalidInput("an exercise has an id: printable text of at most 128 characters")
    if any(c in identity for c in "/ \t") or identity.endswith("*"):
        raise InvalidInput("an id has no slashes, spaces or stars")
    if not isinstance(doc.get("family_slug"), str):
        raise InvalidInput("an exercise has a family_slug")
    return identity
