"""The analyst: which of what looks odd is really wrong, and what else is. One pass a family."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from interlock_catalog.checks import Issue
from interlock_catalog.contracts import Doc, Json
from interlock_catalog.roles.asking import Question, chosen, told
from interlock_catalog.roles.desk import Asked, Refused, refused
from interlock_catalog.roles.repair import repaired
from interlock_catalog.roles.reports import ReportedIssue
from interlock_catalog.snapshot import Snapshot

INSTRUCTIONS = (
    "You are the analyst of an exercise catalog. You are given a family of exercises as JSON, with what already "
    "looks odd (suspicions). Report with report_issues what is really wrong, and nothing else: the id, the "
    "field, the type (missing, incomplete, inconsistent, inaccurate), the severity, the evidence in the record "
    "itself, and how sure you are. A variant may differ from its siblings for a good reason: then it is no issue. "
    "Report a real duplicate in the field merged_into of the worse of the two, with duplicate_of. Spelling, sums "
    "and aliases are mended elsewhere; do not report them."
)
_TASK = "Say for each statement about an exercise whether it is a mistake."


async def analyse(asked: Asked, family: Snapshot, issues: Sequence[Issue]) -> tuple[tuple[Issue, ...], list[Refused]]:
    """The issues that are certain, by the checks or because the analyst confirms them."""
    sure = [issue for issue in issues if issue.certain]
    odd = [issue for issue in issues if not issue.certain]
    if asked.model is None:
        return tuple(sure), []
    if not asked.model.instructable:
        return tuple(sure + await _confirmed(asked, family, odd)), []
    content = {
        "family": family.family,
        "exercises": [shown(doc) for _identity, doc in sorted(family.live.items())],
        "suspicions": [shown_issue(issue) for issue in odd],
    }
    report, why = await told(asked, "report_issues", INSTRUCTIONS, content)
    asked.count("analyst")
    asked.judged = False
    if report is None:
        return tuple(sure), [refused("report_issues", None, why)]
    mended = repaired(report.get("issues"), ReportedIssue)
    odd_ones = [refused("report_issues", entry, reason) for entry, reason in mended.refused]
    arguments = {"family_slug": family.slug, "issues": list(mended.entries)}
    outcome = await asked.call("report_issues", arguments, actor="analyst")
    if not outcome.ok:
        return tuple(sure), [*odd_ones, refused("report_issues", arguments, outcome.summary)]
    asked.judged = True
    return tuple(sure + _taken(family, outcome.value["issues"], (sure, odd), asked.judge)), odd_ones


def _taken(
    family: Snapshot, reported: Sequence[Json], seen: tuple[Sequence[Issue], Sequence[Issue]], judge: str
) -> list[Issue]:
    """Reported issues as ours; what the checks suggest for a suspicion that is confirmed is kept."""
    sure, odd = seen
    known = {(issue.target, issue.field) for issue in sure}
    suspected = {(issue.target, issue.field): issue for issue in odd}
    found = list[Issue]()
    for item in reported:
        key = (f"exercise:{item['exercise_id']}", str(item["field"]))
        if item["exercise_id"] not in family.live or key in known:
            continue
        known.add(key)
        before = suspected.get(key)
        made = Issue(
            target=key[0],
            field=key[1],
            code=_code(key[1], before),
            issue_type=item["issue_type"],
            severity=item["severity"],
            evidence=item["evidence"],
            by="analyst",
            judge=judge,
            confidence=float(item["confidence"]),
            suggestion=_suggested(family, item, before),
        )
        found.append(made)
    return found


def _code(field: str, before: Issue | None) -> str:
    """What the model confirms; or that it says so alone, which is another thing for a duplicate than for a value."""
    if before is not None:
        return before.code
    return "named" if field == "merged_into" else "confirmed"


def _suggested(family: Snapshot, item: Json, before: Issue | None) -> Json:
    """What the checks suggest; for a duplicate that only the analyst saw, the one it names, if that is there."""
    if before is not None:
        return before.suggestion
    other = item.get("duplicate_of")
    return other if other in family.live and other != item["exercise_id"] else None


async def _confirmed(asked: Asked, family: Snapshot, odd: Sequence[Issue]) -> list[Issue]:
    """What a model that can only choose takes for a mistake."""
    if not odd:
        return []
    assert asked.model is not None
    name = {f"exercise:{i}": str(doc.get("name")) for i, doc in family.live.items()}
    questions = [Question(f"{name.get(i.target, i.target)}: {i.evidence}", ("mistake", "fine")) for i in odd]
    answers = await chosen(asked, _TASK, questions)
    asked.count("analyst")
    found = [i for i, answer in zip(odd, answers, strict=True) if answer == "mistake"]
    return [msgspec.structs.replace(issue, certain=True, by="analyst", judge=asked.judge) for issue in found]


def shown(doc: Doc) -> Doc:
    """What a model sees of an exercise."""
    return {key: value for key, value in doc.items() if key not in ("name_slug", "merge_lineage", "merged_into")}


def shown_issue(issue: Issue) -> Json:
    """What a model sees of an issue."""
    return {
        "exercise_id": issue.target.partition(":")[2],
        "field": issue.field,
        "code": issue.code,
        "severity": issue.severity,
        "evidence": issue.evidence,
        "suggestion": issue.suggestion,
    }
