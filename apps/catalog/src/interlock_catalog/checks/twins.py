"""Duplicates inside a family: by the words of the name, and by what the name means where vectors are at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

from interlock_catalog.checks.issues import Issue
from interlock_catalog.contracts import Doc, faults
from interlock_catalog.naming import same_words
from interlock_catalog.snapshot import Snapshot
from interlock_catalog.vocabulary import known

Embed = Callable[[Sequence[str]], Any]
"""Unit vectors of texts, as rows."""
LIKELY = 0.86
"""The similarity of two names from which on somebody should look."""


def twins(family: Snapshot) -> Iterator[Issue]:
    """Live exercises whose names are the same words beside the equipment: each but the best one is a duplicate.

    The same words in another order may mean something else ('high to low', 'low to high'): there somebody judges.
    """
    groups: dict[tuple[str, ...], dict[tuple[str, ...], list[str]]] = {}
    for identity, doc in sorted(family.live.items()):
        if isinstance(doc.get("name"), str):
            words = _words(doc)
            groups.setdefault(tuple(sorted(words)), {}).setdefault(words, []).append(identity)
    for group in groups.values():
        for same in group.values():
            best = best_of(family, same)
            for identity in same:
                if identity != best:
                    yield _issue(identity, best, family, certain=True, why="the same words, written another way")
        kept = [best_of(family, same) for same in group.values()]
        best = best_of(family, kept)
        for identity in kept:
            if identity != best:
                yield _issue(identity, best, family, certain=False, why="the same words in another order")


def near_twins(family: Snapshot, embed: Embed) -> tuple[Issue, ...]:
    """Pairs with the same equipment, muscles and movement whose names mean nearly the same: somebody has to judge."""
    docs = [(identity, doc) for identity, doc in sorted(family.live.items()) if isinstance(doc.get("name"), str)]
    alike = [
        (one, other)
        for one, other in combinations(docs, 2)
        if _kind(one[1]) == _kind(other[1]) and _words(one[1]) != _words(other[1])
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


def _words(doc: Doc) -> tuple[str, ...]:
    """The primary equipment and the other words of the name in their order: 'Barbell Row' is 'Row (Barbell)'."""
    equipment = doc.get("equipment")
    first = equipment[0] if isinstance(equipment, list) and equipment and isinstance(equipment[0], str) else ""
    primary = known("equipment", first) or first
    return (primary, *(word for word in same_words(str(doc["name"])) if word != primary))


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
