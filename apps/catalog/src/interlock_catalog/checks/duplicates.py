"""Duplicates inside a family: by the words of the names, and by their embeddings where there are any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

from interlock_catalog.checks.issues import Issue
from interlock_catalog.contracts import Doc, find_violations, value_at
from interlock_catalog.document_keys import exercise_key
from interlock_catalog.naming import name_words
from interlock_catalog.snapshot import Snapshot
from interlock_catalog.vocabulary import AMBIGUOUS_EQUIPMENT, canonical_word, is_lossless_slug

Embed = Callable[[Sequence[str]], Any]
"""Unit vectors of texts, as rows."""
LIKELY = 0.86
"""The cosine similarity of two names from which on they are suspected to be one exercise."""


def find_duplicates(family: Snapshot) -> Iterator[Issue]:
    """Live exercises whose names are the same words beside the equipment.

    One is certainly a duplicate only if the words tell everything that the names do, in the same order, and muscles and
    movement agree; otherwise it is suspected ('high to low', 'low to high').
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for identity, doc in sorted(family.live.items()):
        words = _words(doc) if isinstance(doc.get("name"), str) else ()
        # The first word is the equipment; beside it there must be one to compare.
        if len(words) > 1:
            groups.setdefault(tuple(sorted(words)), []).append(identity)
    for group in groups.values():
        if len(group) < 2:
            continue
        best = choose_survivor(family, group)
        for identity in group:
            if identity != best:
                same = _is_certainly_same(family.exercises[identity], family.exercises[best])
                why = "written another way" if same else "but perhaps not the same thing"
                yield _issue(identity, best, family, certain=same, why=f"the same words, {why}")


def _is_certainly_same(one: Doc, other: Doc) -> bool:
    names = (str(one["name"]), str(other["name"]))
    alike = all(value_at(one, field) == value_at(other, field) for field in ("muscles.primary", "movement.type"))
    # Names of which a slug loses letters or signs may have the same words without being the same.
    return alike and all(map(is_lossless_slug, names)) and _words(one, exactly=True) == _words(other, exactly=True)


def is_copy(one: Doc, other: Doc) -> bool:
    """Whether two records say the same of themselves in everything but the name: one is a copy of the other."""
    fields = ("equipment", "muscles", "movement", "metadata", "category", "description")
    return all(one.get(field) == other.get(field) for field in fields)


def find_near_duplicates(family: Snapshot, embed: Embed) -> tuple[Issue, ...]:
    """Pairs with the same equipment, muscles and movement whose names mean nearly the same: they are suspected."""
    docs = [(identity, doc) for identity, doc in sorted(family.live.items()) if isinstance(doc.get("name"), str)]
    alike = [
        (one, other)
        for one, other in combinations(docs, 2)
        # Filtered first, so that most families need no embedding; the same words are left to `find_duplicates`.
        if _kind(one[1]) == _kind(other[1]) and sorted(_words(one[1])) != sorted(_words(other[1]))
    ]
    if not alike:
        return ()
    names = sorted({str(doc["name"]) for pair in alike for _identity, doc in pair})
    vectors = dict(zip(names, embed(names), strict=True))
    found = []
    for (one, first), (other, second) in alike:
        near = float(vectors[first["name"]] @ vectors[second["name"]])
        if near >= LIKELY:
            best = choose_survivor(family, [one, other])
            worse = other if best == one else one
            found.append(_issue(worse, best, family, certain=False, why=f"names {near:.2f} alike, all else equal"))
    return tuple(found)


def choose_survivor(family: Snapshot, group: Sequence[str]) -> str:
    """The one that is kept: approved before draft, then the fewest violations, the most text, the first id."""

    def rank(identity: str) -> tuple[int, int, int, str]:
        doc = family.exercises[identity]
        text = len(str(doc.get("description", ""))) + len(str(doc.get("execution_notes", "")))
        return (0 if doc.get("status") == "approved" else 1, len(find_violations("exercise", doc)), -text, identity)

    return min(group, key=rank)


def _words(doc: Doc, *, exactly: bool = False) -> tuple[str, ...]:
    """The primary equipment and the other words of the name in their order: 'Barbell Row' is 'Row (Barbell)'."""
    equipment = doc.get("equipment")
    first = equipment[0] if isinstance(equipment, list) and equipment and isinstance(equipment[0], str) else ""
    primary = canonical_word("equipment", first) or first
    said = name_words(str(doc["name"]), exactly=exactly)
    # The bench in "Bench Press" belongs to the name, even where the equipment is a bench.
    return (primary, *(word for word in said if word and (word != primary or primary in AMBIGUOUS_EQUIPMENT)))


def _kind(doc: Doc) -> tuple[str, ...]:
    return tuple(str(doc.get(field)) for field in ("equipment", "muscles", "movement", "metadata", "variant_key"))


def _issue(worse: str, best: str, family: Snapshot, *, certain: bool, why: str) -> Issue:
    names = (family.exercises[worse]["name"], family.exercises[best]["name"])
    return Issue(
        target=exercise_key(worse),
        field="merged_into",
        code="duplicate" if certain else "near_duplicate",
        issue_type="inconsistent",
        severity="high",
        evidence=f"{names[0]!r} and {names[1]!r}: {why}",
        certain=certain,
        suggestion=best,
    )
