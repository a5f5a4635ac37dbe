"""Aliases whose target is nowhere: found by going through all of them, mended where one exercise bears the name."""

from __future__ import annotations

from collections.abc import AsyncIterator

from interlock_catalog.backends import Backend
from interlock_catalog.checks import Issue
from interlock_catalog.contracts import Doc, Json, live
from interlock_catalog.naming import same_words
from interlock_catalog.planning.ops import Op
from interlock_catalog.trust import Trust
from interlock_catalog.vocabulary import equipment_name, known, slug

_PAGE = 500


async def lost_aliases(backend: Backend, trust: Trust) -> AsyncIterator[tuple[Issue, str | None, Op | None]]:
    """Each lost alias, with the family and the operation that mend it, where that can be told."""
    after = ""
    while True:
        page = await backend.aliases(after=after, limit=_PAGE)
        targets = {key: target for key, doc in page.items() if (target := _target(doc.value)) is not None}
        there = await backend.read_many(targets.values())
        for key in page:
            if key not in targets:
                yield _issue(key, "it has no target"), None, None
            elif targets[key] not in there:
                yield await _one(backend, key.partition(":")[2], targets[key], trust)
        if len(page) < _PAGE:
            return
        after = next(reversed(page))


def _target(alias: Json) -> str | None:
    """The key of what an alias points at."""
    given = alias if isinstance(alias, dict) else {}
    if isinstance(given.get("exercise_id"), str) and given["exercise_id"]:
        return f"exercise:{given['exercise_id']}"
    return f"family:{given['family_slug']}" if isinstance(given.get("family_slug"), str) else None


def _issue(
    key: str, why: str, suggestion: str | None = None, field: str = "exercise_id", code: str = "orphan"
) -> Issue:
    return Issue(
        target=key,
        field=field,
        code=code,
        issue_type="inconsistent",
        severity="high",
        evidence=f"{key}: {why}",
        suggestion=suggestion,
    )


async def strays(backend: Backend) -> AsyncIterator[Issue]:
    """Exercises whose family has no document, and names that two families have: nobody but a person can say which."""
    after = ""
    while True:
        page = await backend.exercises(after=after, limit=_PAGE)
        docs = {key: doc.value for key, doc in page.items() if isinstance(doc.value, dict) and live(doc.value)}
        families = {f"family:{doc.get('family_slug')}" for doc in docs.values()}
        there = await backend.read_many(families)
        named = await backend.named({str(doc.get("name_slug")) for doc in docs.values() if doc.get("name_slug")})
        for key, doc in docs.items():
            if f"family:{doc.get('family_slug')}" not in there:
                yield _issue(key, f"there is no family {doc.get('family_slug')!r}", None, "family_slug", "stray")
            for other, same in named.items():
                clash = same.value.get("name_slug") == doc.get("name_slug") and live(same.value) and other > key
                if clash and same.value.get("family_slug") != doc.get("family_slug"):
                    yield _issue(key, f"{other} has the same name in another family", None, "name_slug", "two_families")
        if len(page) < _PAGE:
            return
        after = next(reversed(page))


async def _one(backend: Backend, alias: str, target: str, trust: Trust) -> tuple[Issue, str | None, Op | None]:
    meant = await meant_by(backend, alias)
    why = f"its target {target} is not there"
    issue = _issue(f"alias:{alias}", why, None if meant is None else str(meant["id"]))
    if meant is None:
        return issue, None, None
    family = str(meant["family_slug"])
    arguments = {
        "alias_slug": alias,
        "of_family": family,
        "replacement": {"alias_slug": alias, "exercise_id": meant["id"], "family_slug": None},
        "justification": f"{why}; {meant['name']!r} is the one exercise with these words",
    }
    sure = trust.of(issue.tag)
    op = Op(tool="delete_alias", actor="librarian", arguments=arguments, evidence=(issue.tag,), confidence=sure)
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
