"""Aliases whose target is nowhere: found by going through all of them, mended where one exercise bears the name."""

from __future__ import annotations

from collections.abc import AsyncIterator

from interlock_catalog.backends import Backend
from interlock_catalog.checks import Issue
from interlock_catalog.contracts import Doc, live
from interlock_catalog.naming import same_words
from interlock_catalog.planning.ops import SURE, Op
from interlock_catalog.vocabulary import equipment_name, known, ordered, slug

_PAGE = 500


async def lost_aliases(backend: Backend) -> AsyncIterator[tuple[Issue, str | None, Op | None]]:
    """Each lost alias, with the family and the operation that mend it, where that can be told."""
    after = ""
    while True:
        page = await backend.aliases(after=after, limit=_PAGE)
        targets = {str(doc.value["exercise_id"]) for doc in page.values() if doc.value.get("exercise_id")}
        there = await backend.read_many(f"exercise:{target}" for target in targets)
        for key, doc in page.items():
            target = doc.value.get("exercise_id")
            if target and f"exercise:{target}" not in there:
                yield await _one(backend, key.partition(":")[2], str(target))
        if len(page) < _PAGE:
            return
        after = next(reversed(page))


async def _one(backend: Backend, alias: str, target: str) -> tuple[Issue, str | None, Op | None]:
    meant = await meant_by(backend, alias)
    why = f"alias:{alias}: its target {target!r} is not there"
    issue = Issue(
        target=f"alias:{alias}",
        field="exercise_id",
        code="orphan",
        issue_type="inconsistent",
        severity="high",
        evidence=why,
        suggestion=None if meant is None else meant["id"],
    )
    if meant is None:
        return issue, None, None
    family = str(meant["family_slug"])
    arguments = {
        "alias_slug": alias,
        "of_family": family,
        "replacement": {"alias_slug": alias, "exercise_id": meant["id"], "family_slug": None},
        "justification": f"{why}; {meant['name']!r} is the one exercise with these words",
    }
    op = Op(tool="delete_alias", actor="librarian", arguments=arguments, evidence=(issue.tag,), confidence=SURE)
    return issue, family, op


async def meant_by(backend: Backend, words: str) -> Doc | None:
    """The one live exercise whose name is these words with the equipment said in front, behind, or not at all."""
    found: dict[str, Doc] = {}
    for guess in guesses(words):
        for key, doc in (await backend.named([guess])).items():
            if live(doc.value) and set(same_words(str(doc.value["name"]))) >= set(same_words(words.replace("-", " "))):
                found[key] = doc.value
        if found:
            break
    return next(iter(found.values())) if len(found) == 1 else None


def guesses(words: str) -> list[str]:
    """Name slugs that these words could stand for: as they are, then with equipment as the qualifier."""
    parts = slug(words).split("-")
    made = ["-".join(parts)]
    for length in (3, 2, 1):
        for start, rest in ((0, parts[length:]), (len(parts) - length, parts[: len(parts) - length])):
            span = parts[start : start + length]
            equipment = known("equipment", " ".join(span)) if rest and len(span) == length else None
            if equipment is not None:
                made.append(slug(f"{'-'.join(rest)} {equipment_name(equipment)}"))
    return list(dict.fromkeys(made))


def any_equipment(words: str) -> list[str]:
    """Name slugs of these words with each equipment."""
    return [slug(f"{words} {equipment_name(equipment)}") for equipment in ordered("equipment")]
