"""Namesakes: exercises of a family with one name slug, of which only one can be found by it."""

from __future__ import annotations

from collections.abc import Iterator

from interlock_catalog.checks.issues import Issue
from interlock_catalog.document_keys import exercise_key
from interlock_catalog.snapshot import Snapshot


def find_namesakes(family: Snapshot) -> Iterator[Issue]:
    """Live exercises that share a name slug, each with the others.

    Whether they are one exercise is another question (`find_duplicates`): if they are merged, this is settled as well;
    if not, a person has to say which of them is to be called otherwise.
    """
    groups: dict[str, list[str]] = {}
    for identity, doc in sorted(family.live.items()):
        if isinstance(doc.get("name_slug"), str) and doc["name_slug"]:
            groups.setdefault(doc["name_slug"], []).append(identity)
    for slug, group in groups.items():
        for identity in group if len(group) > 1 else ():
            others = ", ".join(exercise_key(other) for other in group if other != identity)
            yield Issue(
                target=exercise_key(identity),
                field="name_slug",
                code="namesake",
                issue_type="inconsistent",
                severity="high",
                evidence=f"name_slug: {slug!r} is also that of {others}",
            )
