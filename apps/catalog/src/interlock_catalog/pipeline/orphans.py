"""Orphans: aliases whose target does not exist (repointed where one exercise has the name), exercises of no family."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from interlock_catalog.backends import Backend, iterate_pages
from interlock_catalog.checks import Issue
from interlock_catalog.confidence import Calibration
from interlock_catalog.contracts import Doc, Json, is_live
from interlock_catalog.document_keys import alias_key, exercise_key, family_key, name_of
from interlock_catalog.naming import name_words
from interlock_catalog.planning.ops import Op
from interlock_catalog.vocabulary import canonical_word, equipment_name, slug


class OrphanAlias(msgspec.Struct, frozen=True):
    """An alias without a target, with the family and the operation that fix it, where that can be told."""

    issue: Issue
    family: str | None = None
    op: Op | None = None


async def find_orphan_aliases(backend: Backend, calibration: Calibration) -> AsyncIterator[OrphanAlias]:
    """Go through all aliases."""
    async for page in iterate_pages(backend.aliases):
        targets = {key: target for key, doc in page.items() if (target := _target_key(doc.value)) is not None}
        there = await backend.read_many(targets.values())
        for key in page:
            if key not in targets:
                yield OrphanAlias(_issue(key, "it has no target"))
            # A target that is there, but merged or deprecated, is found with its family (`find_alias_issues`).
            elif targets[key] not in there:
                yield await _repoint(backend, name_of(key), targets[key], calibration)


def _target_key(alias: Json) -> str | None:
    given = alias if isinstance(alias, dict) else {}
    # One that names both targets is an issue of its own (two_targets), and no orphan for that.
    if isinstance(given.get("exercise_id"), str) and given["exercise_id"]:
        return exercise_key(given["exercise_id"])
    return family_key(given["family_slug"]) if isinstance(given.get("family_slug"), str) else None


def _issue(
    key: str, why: str, suggestion: str | None = None, *, field: str = "exercise_id", code: str = "orphan"
) -> Issue:
    return Issue(
        target=key,
        field=field,
        code=code,
        issue_type="inconsistent",
        severity="high",
        evidence=f"{field}: {why}",
        suggestion=suggestion,
    )


async def find_orphan_exercises(backend: Backend) -> AsyncIterator[Issue]:
    """Exercises whose family has no document, and names that two families have: only a person can tell them apart."""
    async for page in iterate_pages(backend.exercises):
        docs = {key: doc.value for key, doc in page.items() if isinstance(doc.value, dict) and is_live(doc.value)}
        families = {family_key(doc.get("family_slug")) for doc in docs.values()}
        there = await backend.read_many(families)
        slugs = {str(doc.get("name_slug")) for doc in docs.values() if doc.get("name_slug")}
        named = {key: doc.value for key, doc in (await backend.find_by_name(slugs)).items() if is_live(doc.value)}
        for key, doc in docs.items():
            if family_key(doc.get("family_slug")) not in there:
                why = f"there is no family {doc.get('family_slug')!r}"
                yield _issue(key, why, field="family_slug", code="stray")
            for other in _namesakes_elsewhere(key, doc, named):
                yield _issue(
                    key, f"{other} has the same name in another family", field="name_slug", code="two_families"
                )


def _namesakes_elsewhere(key: str, doc: Doc, named: dict[str, Doc]) -> list[str]:
    """Exercises of another family with the same name; of each pair only one is told, the one with the first key."""
    return [
        other
        for other, same in named.items()
        if other > key
        and same.get("name_slug") == doc.get("name_slug")
        and same.get("family_slug") != doc.get("family_slug")
    ]


async def _repoint(backend: Backend, alias: str, target: str, calibration: Calibration) -> OrphanAlias:
    meant = await resolve_name(backend, alias)
    why = f"its target {target} is not there"
    issue = _issue(alias_key(alias), why, None if meant is None else str(meant["id"]))
    if meant is None:
        return OrphanAlias(issue)
    family = str(meant["family_slug"])
    op = Op(
        tool="delete_alias",
        actor="librarian",
        arguments={
            "alias_slug": alias,
            "of_family": family,
            "replacement": {"alias_slug": alias, "exercise_id": meant["id"], "family_slug": None},
            "justification": f"{why}; {meant['name']!r} is the one exercise with these words",
        },
        evidence=(issue.rule,),
        confidence=calibration.confidence_of(issue.rule),
    )
    return OrphanAlias(issue, family, op)


async def resolve_name(backend: Backend, words: str) -> Doc | None:
    """The one live exercise whose name is these words, with the equipment in front, behind, or left out."""
    wanted = set(name_words(words.replace("-", " ")))
    for guess in candidate_slugs(words):
        named = (await backend.find_by_name([guess])).items()
        found = {
            key: doc.value
            for key, doc in named
            if is_live(doc.value) and set(name_words(str(doc.value["name"]))) >= wanted
        }
        if found:
            # Of several with these words only a person can tell which is meant; a weaker guess would not tell better.
            return next(iter(found.values())) if len(found) == 1 else None
    return None


def candidate_slugs(words: str) -> list[str]:
    """Name slugs that these words could stand for: as they are, then with equipment as the qualifier."""
    parts = slug(words).split("-")
    made = ["-".join(parts)]
    for length in (3, 2, 1):  # equipment has at most three words
        for start, rest in ((0, parts[length:]), (len(parts) - length, parts[: len(parts) - length])):
            span = parts[start : start + length]
            equipment = canonical_word("equipment", " ".join(span)) if rest and len(span) == length else None
            if equipment is not None:
                made.append(slug(f"{'-'.join(rest)} {equipment_name(equipment)}"))
    return list(dict.fromkeys(made))
