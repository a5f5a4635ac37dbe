"""What a run did, compared with what was planted: how much was found and fixed, and whether anything else was touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from interlock import Runtime
from interlock_catalog.checks import Issue
from interlock_catalog.checks.issues import FIELDS
from interlock_catalog.checks.outliers import find_outliers
from interlock_catalog.contracts import Doc, find_violations, is_live, value_at
from interlock_catalog.report.change_report import find_differences
from interlock_catalog.runner.records import Run
from interlock_catalog.seed.demonstration import PlantedFault
from interlock_catalog.snapshot import Snapshot

_RELATED = {"name": ("name", "name_slug", "variant_key"), "name_slug": ("name_slug", "name")}


class Score(msgspec.Struct, frozen=True):
    """Right, wrong and missed."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        """Of what was done, how much was right."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """Of what was to be done, how much was."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0


def score_detection(
    planted: Sequence[PlantedFault], issues: Sequence[Issue], natural: frozenset[str] = frozenset()
) -> Score:
    """A fault is found if there is an issue with its document, in its field or one that hangs on it."""
    flagged: dict[str, set[str]] = {}
    for issue in issues:
        flagged.setdefault(issue.target, set()).add(issue.field)
    found = sum(_is_detected(fault, flagged.get(fault.target, set())) for fault in planted)
    known = {fault.target for fault in planted} | natural
    return Score(found, len(set(flagged) - known), len(planted) - found)


def _is_detected(fault: PlantedFault, fields: set[str]) -> bool:
    wanted = {fault.field, *fault.right, *_RELATED.get(fault.field, ())}
    return any(
        field == want or want.startswith(f"{field}.") or field.startswith(f"{want}.")
        for field in fields
        for want in wanted
    ) or (fault.kind == "retired_field" and "coaching_cues" in fields)


def score_fixes(
    planted: Sequence[PlantedFault], before: dict[str, Doc], after: dict[str, Doc], clean: dict[str, Doc]
) -> tuple[Score, list[str]]:
    """A fault is fixed if its document is what it should be; a document that was changed and is not, is wrong."""
    right = find_fixed(planted, after, clean)
    touched = {key for key in {*before, *after} if before.get(key) != after.get(key) and not key.startswith("search:")}
    by_target = {fault.target: fault for fault in planted}
    wrong = []
    for key in sorted(touched):
        fault = by_target.get(key)
        if (fault is None and not _is_consequence(key, after.get(key), clean.get(key), planted)) or (
            fault is not None and key not in right
        ):
            wrong.append(key)
    return Score(len(right), len(wrong), len(planted) - len(right)), wrong


def find_fixed(planted: Sequence[PlantedFault], after: dict[str, Doc], clean: dict[str, Doc]) -> set[str]:
    """The documents whose fault is gone."""
    families = _build_snapshots(after)
    return {fault.target for fault in planted if _is_fixed(fault, after, clean, families)}


def _build_snapshots(docs: dict[str, Doc]) -> dict[str, Snapshot]:
    found: dict[str, Snapshot] = {}
    for key, doc in docs.items():
        if key.startswith("exercise:"):
            slug = str(doc["family_slug"])
            family = found.setdefault(slug, Snapshot(slug, docs.get(f"family:{slug}"), {}, {}))
            family.exercises[str(doc["id"])] = doc
    return found


def _is_fixed(fault: PlantedFault, after: dict[str, Doc], clean: dict[str, Doc], families: dict[str, Snapshot]) -> bool:
    doc = after.get(fault.target)
    if doc is None:
        return False
    if fault.merged_into is not None:
        return doc.get("status") == "merged" and doc.get("merged_into") == fault.merged_into
    if not all(value_at(doc, field) == value for field, value in fault.right.items()):
        return False
    if not fault.text:
        return True
    if any(found.field == fault.field for found in find_violations("exercise", doc)):
        return False
    outliers = [issue for issue in find_outliers(families[fault.family]) if issue.target == fault.target]
    others = {**doc, fault.field: None}
    same = {**clean[fault.target], fault.field: None}
    return not any(issue.field == fault.field for issue in outliers) and others == same


def _is_consequence(key: str, now: Doc | None, clean: Doc | None, planted: Sequence[PlantedFault]) -> bool:
    """What a right change entails: the lineage of the one that stays, the old name as an alias, an alias for a search."""
    if key.startswith("alias:"):
        return clean is None and now is not None
    if clean is None or now is None:
        return False
    lineage = set(now.get("merge_lineage") or ())
    duplicates = {fault.target.partition(":")[2] for fault in planted if fault.merged_into == clean["id"]}
    return {**now, "merge_lineage": []} == {**clean, "merge_lineage": []} and lineage <= duplicates


async def count_violations(runtime: Runtime, run: Run, after: dict[str, Doc]) -> dict[str, int]:
    """What must never happen, counted in the journal and in the catalog: all of these are to be zero."""
    found: Counter[str] = Counter(invariants=0, cross_family_merges=0, outside_fields=0)
    for turn in run.turns:
        async for entry in runtime.operations.journal(turn=turn):
            if entry.status != "done":
                continue
            if entry.op_type == "merge_exercises":
                docs = [doc for key, doc in entry.before.items() if key.startswith("exercise:")]
                found["cross_family_merges"] += len({doc["family_slug"] for doc in docs}) > 1
            if entry.actor in FIELDS:
                changed = {item.field for item in find_differences(entry.before, entry.after)}
                owned = FIELDS[entry.actor]
                outside = [
                    f
                    for f in changed
                    if not any(f == o or f.startswith(f"{o}.") or o.startswith(f"{f}.") for o in owned)
                ]
                found["outside_fields"] += len(outside)
    slugs = Counter(doc["name_slug"] for key, doc in after.items() if key.startswith("exercise:") and is_live(doc))
    found["invariants"] += sum(count - 1 for count in slugs.values() if count > 1)
    for key, doc in after.items():
        if key.startswith("alias:") and not find_violations("alias", doc) and doc.get("exercise_id"):
            found["invariants"] += not is_live(after.get(f"exercise:{doc['exercise_id']}"))
    return dict(found)


def format_table(rows: list[dict[str, Any]]) -> str:
    """Rows as a table of Markdown."""
    names = list(rows[0])
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    return "\n".join(lines + [f"| {' | '.join(str(row[name]) for name in names)} |" for row in rows])
