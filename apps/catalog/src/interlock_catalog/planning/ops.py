"""Operations: tool calls that are decided and not yet made, and what they would make of a family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from interlock_catalog.changes import (
    approve_draft,
    build_alias,
    content_digest,
    list_normalise_items,
    merge_document,
    normalise_exercise,
    patch_exercise,
)
from interlock_catalog.checks import Issue
from interlock_catalog.checks.duplicates import is_copy
from interlock_catalog.confidence import Calibration
from interlock_catalog.contracts import Doc, Json
from interlock_catalog.document_keys import DocumentKey, DocumentKind, alias_key, exercise_key, kind_of, name_of
from interlock_catalog.evidence import Evidence, find_accountable
from interlock_catalog.shortening import shorten
from interlock_catalog.snapshot import Snapshot


class Op(msgspec.Struct, frozen=True, kw_only=True):
    """One call: by whom, with which arguments (the reason among them), on what evidence, with what confidence."""

    tool: str
    actor: str
    arguments: dict[str, Json]
    evidence: tuple[Evidence, ...]
    confidence: float


def plan_certain_ops(family: Snapshot, issues: Iterable[Issue], calibration: Calibration) -> list[Op]:
    """What needs no specialist: merges of duplicates, then aliases (of what is left), then normalisation."""
    found = list(issues)
    duplicates = [issue for issue in found if issue.field == "merged_into" and issue.certain]
    merges = _plan_merges(family, duplicates, calibration)
    gone = {str(op.arguments["source_id"]): str(op.arguments["target_id"]) for op in merges}
    # A merge takes these along. A second operation, planned on what they are now, would find them changed.
    moved = {alias for op in merges for alias in op.arguments["aliases"]}
    aliases = [
        _plan_alias(family, issue, gone, calibration)
        for issue in found
        if kind_of(issue.target) is DocumentKind.ALIAS and issue.suggestion and name_of(issue.target) not in moved
    ]
    return [*merges, *aliases, *_plan_normalisation(family, found, set(gone), calibration)]


def _plan_merges(family: Snapshot, issues: Sequence[Issue], calibration: Calibration) -> list[Op]:
    """One merge for each duplicate, into the one that stays in the end."""
    into = {name_of(issue.target): str(issue.suggestion) for issue in issues if issue.suggestion}
    ops = []
    for issue in issues:
        source = name_of(issue.target)
        target = into.get(source)
        for _hop in into:  # a duplicate of a duplicate: follow the chain, which is no longer than there are issues
            target = into.get(target, target) if target is not None else None
        if target is None or target in into or target not in family.live or source not in family.live:
            continue
        # Words can be the same where equipment is not: then it is a variant.
        if not _has_same_equipment(family, source, target):
            continue
        pointing = [alias for alias, doc in family.aliases.items() if doc.get("exercise_id") == source]
        own = str(family.exercises[source].get("name_slug"))
        # The name that goes becomes an alias, unless something has it: whoever knows it still finds the exercise.
        taken = own in family.aliases or own == family.exercises[target].get("name_slug")
        named = [] if taken or not own else [own]
        arguments = {
            "source_id": source,
            "target_id": target,
            "family_slug": family.slug,
            "aliases": sorted({*pointing, *named}),
            # What was looked at: edited since, neither of them is merged any more (`check_merge`).
            "digests": {identity: content_digest(family.exercises[identity]) for identity in (source, target)},
        }
        ops.append(
            _build_op("merge_exercises", "librarian", arguments, [_rest_on_records(family, issue, target)], calibration)
        )
    return ops


def _rest_on_records(family: Snapshot, issue: Issue, target: str) -> Issue:
    """A duplicate that a model names, and whose record is a copy of the other but for the name, rests on that."""
    source = name_of(issue.target)
    if not issue.judge or not is_copy(family.exercises[source], family.exercises[target]):
        return issue
    return msgspec.structs.replace(issue, by="records", code="copy")


def _has_same_equipment(family: Snapshot, source: str, target: str) -> bool:
    return bool(family.exercises[source].get("equipment") == family.exercises[target].get("equipment"))


def _plan_alias(family: Snapshot, issue: Issue, gone: Mapping[str, str], calibration: Calibration) -> Op:
    slug = name_of(issue.target)
    target = str(issue.suggestion)
    replacement = {"alias_slug": slug, "exercise_id": gone.get(target, target), "family_slug": None}
    arguments = {"alias_slug": slug, "of_family": family.slug, "replacement": replacement}
    return _build_op("delete_alias", "librarian", arguments, [issue], calibration)


def _plan_normalisation(
    family: Snapshot, issues: Sequence[Issue], gone: set[str], calibration: Calibration
) -> list[Op]:
    by_exercise: dict[str, list[Issue]] = {}
    for issue in issues:
        if issue.by == "normaliser":
            by_exercise.setdefault(name_of(issue.target), []).append(issue)
    facts, ids = family.facts, sorted(set(by_exercise) - gone)
    if not ids:
        return []
    items = list_normalise_items(family.live, facts, family.aliases)
    # A change of its own for each, so that each can be denied, and undone, alone.
    return [
        _build_op(
            "normalize_catalog_page",
            "normalizer",
            {"family_slug": family.slug, "items": [items[identity]]},
            by_exercise[identity],
            calibration,
        )
        for identity in ids
    ]


def _build_op(
    tool: str, actor: str, arguments: dict[str, Json], issues: Sequence[Issue], calibration: Calibration
) -> Op:
    evidence = tuple(dict.fromkeys(issue.rule for issue in issues))
    return Op(
        tool=tool,
        actor=actor,
        # The tools take 2,000 characters; an exercise with many issues has more to say.
        arguments={**arguments, "justification": shorten("; ".join(dict.fromkeys(i.evidence for i in issues)), 2000)},
        evidence=evidence,
        # The least of them, so that what a model says of itself can lower the confidence and never raise it.
        confidence=min(
            [calibration.confidence_of(*find_accountable(evidence)), *(issue.confidence for issue in issues)]
        ),
    )


def simulate_ops(family: Snapshot, ops: Iterable[Op]) -> Snapshot:
    """The family once these operations have been made."""
    for op in ops:
        family = family.with_states(simulate_op(family, op))
    return family


def simulate_op(family: Snapshot, op: Op) -> dict[str, Doc | None]:
    """The documents that an operation makes, by the same functions that perform it."""
    given = op.arguments
    match op.tool:
        case "upsert_exercise":
            identity = str(given["exercise_id"])
            return {exercise_key(identity): patch_exercise(family.exercises.get(identity), given["changes"], identity)}
        case "normalize_catalog_page":
            items = {str(item["exercise_id"]): item for item in given["items"]}
            made = {exercise_key(i): normalise_exercise(family.exercises.get(i), item) for i, item in items.items()}
            old = {str(item["old_slug"]): i for i, item in items.items() if item.get("old_slug")}
            return {**made, **{alias_key(slug): build_alias(slug, exercise_id=i) for slug, i in old.items()}}
        case "merge_exercises":
            source, target = str(given["source_id"]), str(given["target_id"])
            keys = [exercise_key(source), exercise_key(target), *(alias_key(alias) for alias in given["aliases"])]
            return {key: merge_document(key, _document(family, key), source, target) for key in keys}
        case "approve_exercise":
            identity = str(given["exercise_id"])
            return {exercise_key(identity): approve_draft(family.exercises.get(identity))}
        case "upsert_alias":
            slug = str(given["alias_slug"])
            targets = {"exercise_id": given.get("exercise_id"), "family_slug": given.get("family_slug")}
            return {alias_key(slug): build_alias(slug, **targets)}
        case "delete_alias":
            to = given["replacement"]
            new = build_alias(to["alias_slug"], exercise_id=to["exercise_id"], family_slug=to["family_slug"])
            return {alias_key(given["alias_slug"]): None, alias_key(to["alias_slug"]): new}
        case _:
            raise ValueError(f"{op.tool!r} is no operation of the catalog")


def _document(family: Snapshot, key: str) -> Doc | None:
    parsed = DocumentKey.parse(key)
    documents = family.exercises if parsed.kind is DocumentKind.EXERCISE else family.aliases
    return documents.get(parsed.name)
