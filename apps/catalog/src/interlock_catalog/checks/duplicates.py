"""Duplicates inside a family: by the words of the name, and by what the name means where vectors are at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

from interlock_catalog.checks.issues import Issue
from interlock_catalog.contracts import Doc, faults, value_at
from interlock_catalog.naming import same_words
from interlock_catalog.snapshot import Snapshot
from interlock_catalog.vocabulary import known, whole

Embed = Callable[[Sequence[str]], Any]
"""Unit vectors of texts, as rows."""
LIKELY = 0.86
"""The similarity of two names from which on somebody should look."""


def twins(family: Snapshot) -> Iterator[Issue]:
    """Live exercises whose names are the same words beside the equipment.

    One is certainly a duplicate only if the words tell everything that the names do, in the same order, and muscles and
    movement agree; otherwise somebody judges ('high to low', 'low to high').
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for identity, doc in sorted(family.live.items()):
        words = _words(doc) if isinstance(doc.get("name"), str) else ()
        if len(words) > 1:
            groups.setdefault(tuple(sorted(words)), []).append(identity)
    for group in groups.values():
        if len(group) < 2:
            continue
        best = best_of(family, group)
        for identity in group:
            if identity != best:
                sure = _surely_the_same(family.exercises[identity], family.exercises[best])
                why = (
                    "the same words, written another way" if sure else "the same words, but perhaps not the same thing"
                )
                yield _issue(identity, best, family, certain=sure, why=why)


def _surely_the_same(one: Doc, other: Doc) -> bool:
    names = (str(one["name"]), str(other["name"]))
    alike = all(value_at(one, field) == value_at(other, field) for field in ("muscles.primary", "movement.type"))
    return alike and all(map(whole, names)) and _words(one, exactly=True) == _words(other, exactly=True)


def copies(one: Doc, other: Doc) -> bool:
    """Whether two records say the same of themselves in everything but the name: one is a copy of the other."""
    fields = ("equipment", "muscles", "movement", "metadata", "category", "description")
    return all(one.get(field) == other.get(field) for field in fields)


def near_twins(family: Snapshot, embed: Embed) -> tuple[Issue, ...]:
    """Pairs with the same equipment, muscles and movement whose names mean nearly the same: somebody has to judge."""
    docs = [(identity, doc) for identity, doc in sorted(family.live.items()) if isinstance(doc.get("name"), str)]
    alike = [
        (one, other)
        for one, other in combinations(docs, 2)
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
            best = best_of(family, [one, other])
            worse = other if best == one else one
            found.append(_issue(worse, best, family, certain=False, why=f"names {near:.2f} alike, all else equal"))
    return tuple(found)


def best_of(family: Snapshot, group: Sequence[str]) -> str:
    """The one that is kept: approved before draft, then the fewest faults, the most text, the first id."""

    def rank(identity: str) -> tuple[int, int, int, str]:
        doc = family.exercises[identity]
        text = len(str(doc.get("description", ""))) + len(str(doc.get("execution_notes", "")))
        return (0 if doc.get("status") == "approved" else 1, len(faults("exercise", doc)), -text, identity)

    return min(group, key=rank)


def _words(doc: Doc, *, exactly: bool = False) -> tuple[str, ...]:
    """The primary equipment and the other words of the name in their order: 'Barbell Row' is 'Row (Barbell)'."""
    equipment = doc.get("equipment")
    first = equipment[0] if isinstance(equipment, list) and equipment and isinstance(equipment[0], str) else ""
    primary = known("equipment", first) or first
    spoken = primary not in ("box", "bench", "other")  # of these a name may speak and mean something by it
    said = [word for word in same_words(str(doc["name"]), exactly=exactly) if not (spoken and word == primary)]
    return (primary, *(word for word in said if word))


def _kind(doc: Doc) -> tuple[str, ...]:
    return tuple(str(doc.get(field)) for field in ("equipment", "muscles", "movement", "metadata", "variant_key"))


def _issue(worse: str, best: str, family: Snapshot, *, certain: bool, why: str) -> Issue:
    names = (family.exercises[worse]["name"], family.exercises[best]["name"])
    return Issue(
        target=f"exercise:{worse}",
        field="merged_into",
        code="duplicate" if certain else "near_duplicate",
        issue_type="inconsistent",
        severity="high",
        evidence=f"{names[0]!r} and {names[1]!r}: {why}",
        certain=certain,
        suggestion=best,
    )
