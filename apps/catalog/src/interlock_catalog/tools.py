"""The tools that change the catalog: keyed, simulated by the very functions that perform them, and undoable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

from pydantic import Field

from interlock import Context, RetryRule, Tool, tool
from interlock_catalog import invariants
from interlock_catalog.backends import Backend, Write
from interlock_catalog.changes import (
    AliasTarget,
    FieldChange,
    NormaliseItem,
    approve_draft,
    build_alias,
    merge_document,
    normalise_exercise,
    patch_exercise,
)
from interlock_catalog.contracts import Doc, Json
from interlock_catalog.document_keys import DocumentKey, DocumentKind, alias_key, exercise_key, name_of
from interlock_catalog.resource import Catalog

Id = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\s/]+$")]
FamilySlug = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[a-z0-9-]+$")]
Key = Annotated[str, Field(pattern=r"^(exercise|alias|family):[^\s/]+$", max_length=160)]
BackupKey = Annotated[str, Field(pattern=r"^(exercise|alias|family|search):[^\s/]+$", max_length=160)]
Why = Annotated[str, Field(min_length=3, max_length=2000)]
States = Mapping[str, Json]
Simulation = Callable[[Doc | None, States, str], Doc | None]
Invariant = Callable[[Backend, States, States, States], Awaitable[list[str]]]
MAX_ITEMS = 60
"""Exercises of one normalisation: what fits into one transaction and one request to a server."""
_RETRY = RetryRule(max_attempts=3, base_s=0.1, factor=2.0, cap_s=2.0)


def build_write_tools(catalog: Catalog) -> tuple[Tool, ...]:
    """The tools that change one catalog."""
    makers = (_upsert_exercise, _normalize, _merge, _upsert_alias, _delete_alias, _approve, _restore)
    return tuple(make(catalog) for make in makers)


def _options(
    catalog: Catalog, simulate: Simulation, check: Invariant, locks: str = "lease:{family_slug}"
) -> dict[str, Any]:
    """What the tools have in common: one change at a time in a family, each at most once in a run."""
    return {
        "effect": "write",
        "resource": catalog,
        "locks": locks,
        "simulate": simulate,
        "invariants": _bind_backend(check, catalog.backend),
        "once_per": "run",
        "idempotent": True,
        "capabilities": {"catalog:write"},
        "timeout_s": 30.0,
        "retry": _RETRY,
    }


def _bind_backend(check: Invariant, backend: Backend) -> Callable[..., Awaitable[list[str]]]:
    async def check_states(arguments: States, before: States, after: States) -> list[str]:
        return await check(backend, arguments, before, after)

    return check_states


async def _perform(
    catalog: Catalog, simulate: Simulation, keys: tuple[str, ...], op: str, arguments: dict[str, Json], context: Context
) -> None:
    found = await catalog.backend.read_many(keys)
    states = {key: simulate(found[key].value if key in found else None, arguments, key) for key in keys}
    await catalog.change(Write(op, states, arguments=arguments), found, context)


def _upsert_exercise(catalog: Catalog) -> Tool:
    def simulate(state: Doc | None, arguments: Mapping[str, Json], key: str) -> Doc | None:
        return patch_exercise(state, arguments["changes"], name_of(key))

    @tool(key="exercise:{exercise_id}", **_options(catalog, simulate, invariants.check_upsert))
    async def upsert_exercise(
        exercise_id: Id,
        family_slug: FamilySlug,
        changes: Annotated[list[FieldChange], Field(min_length=1, max_length=40)],
        justification: Why,
        context: Context,
    ) -> dict[str, Any]:
        """Set fields of an exercise, each with what it was and why; an id that is not there becomes a draft."""
        plain = [change.model_dump() for change in changes]
        arguments = {"exercise_id": exercise_id, "family_slug": family_slug, "changes": plain}
        arguments["justification"] = justification
        await _perform(catalog, simulate, (exercise_key(exercise_id),), "upsert_exercise", arguments, context)
        return {"exercise_id": exercise_id, "fields": [change.field for change in changes]}

    return upsert_exercise


def _normalize(catalog: Catalog) -> Tool:
    def simulate(state: Doc | None, arguments: Mapping[str, Json], key: str) -> Doc | None:
        parsed = DocumentKey.parse(key)
        name = parsed.name
        if parsed.kind is DocumentKind.ALIAS:
            item = next(item for item in arguments["items"] if item["old_slug"] == name)
            # One that is there is left as it is; where it leads elsewhere, `check_normalise` refuses the whole.
            return state or build_alias(name, exercise_id=item["exercise_id"])
        return normalise_exercise(state, next(item for item in arguments["items"] if item["exercise_id"] == name))

    def key(arguments: Mapping[str, Json]) -> tuple[str, ...]:
        old = tuple(alias_key(item["old_slug"]) for item in arguments["items"] if item["old_slug"])
        return (*(exercise_key(item["exercise_id"]) for item in arguments["items"]), *old)

    @tool(key=key, **_options(catalog, simulate, invariants.check_normalise))
    async def normalize_catalog_page(
        family_slug: FamilySlug,
        items: Annotated[list[NormaliseItem], Field(min_length=1, max_length=MAX_ITEMS)],
        justification: Why,
        context: Context,
    ) -> dict[str, Any]:
        """Bring exercises of a family into canonical form: names, words, sums. An old slug becomes an alias."""
        plain = [item.model_dump() for item in items]
        arguments = {"family_slug": family_slug, "items": plain, "justification": justification}
        await _perform(catalog, simulate, key(arguments), "normalize_catalog_page", arguments, context)
        return {"family_slug": family_slug, "exercises": [item.exercise_id for item in items]}

    return normalize_catalog_page


def _merge(catalog: Catalog) -> Tool:
    def simulate(state: Doc | None, arguments: Mapping[str, Json], key: str) -> Doc | None:
        return merge_document(key, state, str(arguments["source_id"]), str(arguments["target_id"]))

    def key(arguments: Mapping[str, Json]) -> tuple[str, ...]:
        exercises = (exercise_key(arguments["source_id"]), exercise_key(arguments["target_id"]))
        return (*exercises, *(alias_key(alias) for alias in arguments["aliases"]))

    @tool(key=key, **_options(catalog, simulate, invariants.check_merge))
    async def merge_exercises(
        source_id: Id,
        target_id: Id,
        family_slug: FamilySlug,
        aliases: Annotated[list[Id], Field(max_length=100)],
        digests: dict[str, str],
        justification: Why,
        context: Context,
    ) -> dict[str, Any]:
        """Merge an exercise into another one of its family, with these aliases, if both still have these digests."""
        arguments: dict[str, Json] = {"source_id": source_id, "target_id": target_id, "family_slug": family_slug}
        arguments |= {"aliases": aliases, "digests": digests, "justification": justification}
        await _perform(catalog, simulate, key(arguments), "merge_exercises", arguments, context)
        return {"merged": source_id, "into": target_id, "aliases": aliases}

    return merge_exercises


def _upsert_alias(catalog: Catalog) -> Tool:
    def simulate(_state: Doc | None, arguments: Mapping[str, Json], _key: str) -> Doc | None:
        targets = {"exercise_id": arguments["exercise_id"], "family_slug": arguments["family_slug"]}
        return build_alias(str(arguments["alias_slug"]), **targets)

    options = _options(catalog, simulate, invariants.check_alias, "lease:{of_family}")

    @tool(key="alias:{alias_slug}", **options)
    async def upsert_alias(
        alias_slug: Id,
        of_family: FamilySlug,
        justification: Why,
        context: Context,
        exercise_id: Id | None = None,
        family_slug: FamilySlug | None = None,
    ) -> dict[str, Any]:
        """Give an exercise, or a whole family, another name that is not taken yet."""
        arguments = {"alias_slug": alias_slug, "exercise_id": exercise_id, "family_slug": family_slug}
        arguments |= {"of_family": of_family, "justification": justification}
        await _perform(catalog, simulate, (alias_key(alias_slug),), "upsert_alias", arguments, context)
        return {"alias_slug": alias_slug, "target": exercise_id or family_slug}

    return upsert_alias


def _delete_alias(catalog: Catalog) -> Tool:
    def simulate(state: Doc | None, arguments: Mapping[str, Json], key: str) -> Doc | None:
        replacement = arguments["replacement"]
        if key == alias_key(replacement["alias_slug"]):
            targets = {"exercise_id": replacement["exercise_id"], "family_slug": replacement["family_slug"]}
            return build_alias(str(replacement["alias_slug"]), **targets)
        return None if key == alias_key(arguments["alias_slug"]) else state

    def key(arguments: Mapping[str, Json]) -> tuple[str, ...]:
        return (alias_key(arguments["alias_slug"]), alias_key(arguments["replacement"]["alias_slug"]))

    options = _options(catalog, simulate, invariants.check_replacement, "lease:{of_family}")

    @tool(key=key, **options)
    async def delete_alias(
        alias_slug: Id, of_family: FamilySlug, replacement: AliasTarget, justification: Why, context: Context
    ) -> dict[str, Any]:
        """Remove an alias and put the right one in its place: under the same name, or under another."""
        arguments = {"alias_slug": alias_slug, "of_family": of_family, "replacement": replacement.model_dump()}
        arguments["justification"] = justification
        # An alias that is only repointed is its own replacement: then both keys are one.
        await _perform(catalog, simulate, tuple(dict.fromkeys(key(arguments))), "delete_alias", arguments, context)
        return {"alias_slug": alias_slug, "replacement": replacement.model_dump()}

    return delete_alias


def _approve(catalog: Catalog) -> Tool:
    def simulate(state: Doc | None, _arguments: Mapping[str, Json], _key: str) -> Doc | None:
        return approve_draft(state)

    @tool(key="exercise:{exercise_id}", **_options(catalog, simulate, invariants.check_approval))
    async def approve_exercise(
        exercise_id: Id,
        family_slug: FamilySlug,
        digest: str,
        justification: Why,
        context: Context,
    ) -> dict[str, Any]:
        """Approve a draft that holds its contract and still has this digest."""
        arguments = {"exercise_id": exercise_id, "family_slug": family_slug, "digest": digest}
        arguments["justification"] = justification
        await _perform(catalog, simulate, (exercise_key(exercise_id),), "approve_exercise", arguments, context)
        return {"exercise_id": exercise_id, "status": "approved"}

    return approve_exercise


def _restore(catalog: Catalog) -> Tool:
    # Only for `interlock catalog restore`: no invariants, as a backup may hold what breaks them today.
    @tool(
        effect="write",
        key="{key}",
        resource=catalog,
        simulate=lambda _state, arguments: arguments["state"],
        once_per="run",
        idempotent=True,
        capabilities={"catalog:admin"},
    )
    async def restore_document(key: BackupKey, state: dict[str, Any] | None, context: Context) -> dict[str, Any]:
        """Bring a document back to what it is in a backup; null removes it."""
        found = await catalog.backend.read_many([key])
        await catalog.change(Write("restore", {key: state}, arguments={"key": key}), found, context)
        return {"key": key}

    return restore_document
