"""Aliases: each has one live target, and none stands in the way of an exercise's own name."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from interlock_catalog.checks.issues import Issue
from interlock_catalog.contracts import Doc, is_live
from interlock_catalog.document_keys import alias_key, exercise_key
from interlock_catalog.normalise import normalise
from interlock_catalog.snapshot import Snapshot

_MAX_MERGE_CHAIN = 10
"""Merges of merges; a longer chain is a circle."""


def find_alias_issues(family: Snapshot) -> Iterator[Issue]:
    """What is wrong with the aliases of a family, with the target that each should have."""
    slugs = _future_slugs(family)
    for alias, doc in sorted(family.aliases.items()):
        target, own = doc.get("exercise_id"), doc.get("family_slug")
        key = alias_key(alias)
        if target and own:
            yield _issue(key, "two_targets", "it names an exercise and a family", str(target))
        elif target and not is_live(found := find_exercise(family, str(target))):
            last = resolve_merged(family, found)
            what = "is not there" if found is None else f"is {found.get('status')}"
            yield _issue(key, "orphan", f"its target {target!r} {what}", last)
        elif target and alias in slugs and slugs[alias] != target:
            yield _issue(key, "shadows", f"{slugs[alias]!r} has this very name", slugs[alias])


def find_held_names(family: Snapshot) -> Iterator[Issue]:
    """Names that normalisation would correct, if the old one could become an alias: it is that of something else."""
    facts = family.facts
    free = msgspec.structs.replace(facts, held=frozenset())
    for identity, doc in sorted(family.live.items()):
        held = str(doc.get("name_slug"))
        # What exercises of one name are to be called is asked about with them (`find_namesakes`).
        if held not in facts.held or held not in family.aliases:
            continue
        wanted = normalise(doc, free).doc
        if wanted.get("name_slug") != normalise(doc, facts).doc.get("name_slug"):
            yield Issue(
                target=exercise_key(identity),
                field="name",
                code="held_name",
                issue_type="inconsistent",
                severity="high",
                evidence=f"name: it would be {wanted.get('name')!r}, but its old name could not become an alias:"
                f" {alias_key(held)} leads to {_describe_target(family.aliases[held])}",
            )


def _describe_target(alias: Doc) -> str:
    return f"family {alias.get('family_slug')!r}" if alias.get("family_slug") else f"{alias.get('exercise_id')!r}"


def _future_slugs(family: Snapshot) -> dict[str, str]:
    """The exercise of each name slug, as normalisation will make it.

    That takes a while for a large family, so it is done only where an alias has the name of an exercise at all.
    """
    named = {str(doc.get("name_slug")) for doc in family.live.values()}
    if not named & set(family.aliases):
        return {}
    facts = family.facts
    return {str(normalise(doc, facts).doc.get("name_slug")): i for i, doc in sorted(family.live.items())}


def find_exercise(family: Snapshot, identity: str) -> Doc | None:
    """An exercise of this family, or one elsewhere that something in it points at."""
    return family.exercises.get(identity) or family.elsewhere.get(identity)


def resolve_merged(family: Snapshot, doc: Doc | None) -> str | None:
    """The live exercise of this family at the end of a chain of merges; None if there is none."""
    for _step in range(_MAX_MERGE_CHAIN):
        if doc is None:
            return None
        if is_live(doc):
            # Only this family is locked: an alias that belongs to another one by now is not repointed from here.
            return str(doc["id"]) if doc.get("id") in family.exercises else None
        target = doc.get("merged_into")
        doc = find_exercise(family, str(target)) if target else None
    return None


def _issue(key: str, code: str, why: str, suggestion: str | None) -> Issue:
    return Issue(
        target=key,
        field="exercise_id",
        code=code,
        issue_type="inconsistent",
        severity="high",
        evidence=f"exercise_id: {why}",
        suggestion=suggestion,
    )
