"""The analyst: which suspected issues are real, and which were missed. One pass a family."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from interlock_catalog.checks import Issue
from interlock_catalog.contracts import Doc, Json
from interlock_catalog.document_keys import exercise_key, name_of
from interlock_catalog.roles.context import Rejection, RoleContext, build_rejection
from interlock_catalog.roles.prompting import Question, request_choices, request_report
from interlock_catalog.roles.reports import ISSUES
from interlock_catalog.snapshot import Snapshot

# The texts that a model is given are measured as they stand (calibration.toml, docs/catalog-quality.md).
INSTRUCTIONS = (
    "You are the analyst of an exercise catalog. You are given a family of exercises as JSON, with what already "
    "looks odd (suspicions). Report with report_issues what is really wrong, and nothing else: the id, the "
    "field, the type (missing, incomplete, inconsistent, inaccurate), the severity, the evidence in the record "
    "itself, and how sure you are. A variant may differ from its siblings for a good reason: then it is no issue. "
    "Report a real duplicate in the field merged_into of the worse of the two, with duplicate_of. Spelling, sums "
    "and aliases are mended elsewhere; do not report them."
)
_TASK = "Say for each statement about an exercise whether it is a mistake."


class Analysis(msgspec.Struct, frozen=True):
    """The issues that are certain, by the checks or because the analyst confirms them."""

    issues: tuple[Issue, ...]
    rejections: tuple[Rejection, ...] = ()
    judged: bool = False
    """Whether a model that can judge has looked, and its report was accepted."""


async def analyse(context: RoleContext, family: Snapshot, issues: Sequence[Issue]) -> Analysis:
    """Have the suspected issues of a family judged, if there is a model."""
    certain = [issue for issue in issues if issue.certain]
    suspected = [issue for issue in issues if not issue.certain]
    if context.model is None:
        return Analysis(tuple(certain))
    # One that can only choose is shown suspicions and not the family, so it has not judged that: `judged` stays False.
    if not context.model.instructable:
        return Analysis((*certain, *await _confirm(context, family, suspected)))
    content = {
        "family": family.family,
        "exercises": [visible_exercise(doc) for _identity, doc in sorted(family.live.items())],
        "suspicions": [visible_issue(issue) for issue in suspected],
    }
    report = await request_report(context, "analyst", ISSUES, INSTRUCTIONS, content)
    # A model that made no report has judged nothing. What the checks are certain of holds all the same.
    if report.entries is None:
        return Analysis(tuple(certain), report.rejections)
    rejections = list(report.rejections)
    arguments = {"family_slug": family.slug, "issues": list(report.entries)}
    outcome = await context.call("report_issues", arguments, actor="analyst")
    if not outcome.ok:
        rejections.append(build_rejection("report_issues", arguments, outcome.summary))
        return Analysis(tuple(certain), tuple(rejections))
    reported = _accept(family, outcome.value["issues"], certain=certain, suspected=suspected, judge=context.judge)
    return Analysis((*certain, *reported), tuple(rejections), judged=True)


def _accept(
    family: Snapshot, reported: Sequence[Json], *, certain: Sequence[Issue], suspected: Sequence[Issue], judge: str
) -> list[Issue]:
    """Reported issues as ours; what the checks suggest for a suspicion that is confirmed is kept."""
    known = {(issue.target, issue.field) for issue in certain}
    suspicions = {(issue.target, issue.field): issue for issue in suspected}
    found = list[Issue]()
    for item in reported:
        key = (exercise_key(item["exercise_id"]), str(item["field"]))
        # A model may name what is not there, or say twice what the checks have found already.
        if item["exercise_id"] not in family.live or key in known:
            continue
        known.add(key)
        before = suspicions.get(key)
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
            suggestion=_suggestion(family, item, before),
        )
        found.append(made)
    return found


def _code(field: str, before: Issue | None) -> str:
    """What the model confirms; or that it says so alone, which is another rule for a duplicate than for a value."""
    if before is not None:
        return before.code
    return "named" if field == "merged_into" else "confirmed"


def _suggestion(family: Snapshot, item: Json, before: Issue | None) -> Json:
    """What the checks suggest; for a duplicate that only the analyst saw, the one it names, if that is there."""
    if before is not None:
        return before.suggestion
    other = item.get("duplicate_of")
    return other if other in family.live and other != item["exercise_id"] else None


async def _confirm(context: RoleContext, family: Snapshot, suspected: Sequence[Issue]) -> list[Issue]:
    """The suspicions that a model which can only choose takes for mistakes."""
    if not suspected:
        return []
    name = {exercise_key(i): str(doc.get("name")) for i, doc in family.live.items()}
    questions = [Question(f"{name.get(i.target, i.target)}: {i.evidence}", ("mistake", "fine")) for i in suspected]
    answers = await request_choices(context, "analyst", _TASK, questions)
    found = [i for i, answer in zip(suspected, answers, strict=True) if answer == "mistake"]
    return [msgspec.structs.replace(issue, certain=True, by="analyst", judge=context.judge) for issue in found]


def visible_exercise(doc: Doc) -> Doc:
    """What a model sees of an exercise."""
    return {key: value for key, value in doc.items() if key not in ("name_slug", "merge_lineage", "merged_into")}


def visible_issue(issue: Issue) -> Json:
    """What a model sees of an issue."""
    return {
        "exercise_id": name_of(issue.target),
        "field": issue.field,
        "code": issue.code,
        "severity": issue.severity,
        "evidence": issue.evidence,
        "suggestion": issue.suggestion,
    }
