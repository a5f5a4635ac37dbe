"""The specialists: each proposes values for its own fields, where an issue there is high or critical."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from interlock_catalog.checks import Issue
from interlock_catalog.checks.issues import FIELDS
from interlock_catalog.contracts import Json, is_within, value_at
from interlock_catalog.document_keys import exercise_key, name_of
from interlock_catalog.evidence import Evidence, find_accountable
from interlock_catalog.planning.candidates import candidate_values, estimate_confidence, sibling_support
from interlock_catalog.planning.ops import Op
from interlock_catalog.roles.analyst import visible_exercise, visible_issue
from interlock_catalog.roles.context import Rejection, RoleContext, build_rejection
from interlock_catalog.roles.prompting import Question, request_choices, request_report
from interlock_catalog.roles.reports import CHANGES
from interlock_catalog.shortening import shorten
from interlock_catalog.snapshot import Snapshot

# The texts that a model is given are measured as they stand (calibration.toml, docs/catalog-quality.md).
INSTRUCTIONS = (
    "You are the specialist for {role} of an exercise catalog. You are given exercises with issues, and siblings "
    "of the same family, as JSON. Propose with propose_changes a value for each field that has an issue, only for "
    "these fields: {fields}. Give for each the id, the field, the value, a reason, the evidence as source:detail "
    "(for example record:muscles or siblings:majority), and how sure you are. Use only the words of the "
    "vocabulary; write texts in plain English about this exercise alone; leave out what you cannot tell from the "
    "records."
)
_TASK = "Say for each proposed value whether to use it."
_SIBLINGS_SHOWN = 4
"""Enough to see what the family has in common, without a whole family in every request."""
_USE, _LEAVE = "use", "leave"
_UNFIT = "with this value the exercise would break its contract, or its text would speak of something else"


class EditProposals(msgspec.Struct, frozen=True):
    """The operations of one specialist, and what of its work was rejected."""

    ops: tuple[Op, ...] = ()
    rejections: tuple[Rejection, ...] = ()


class _Proposed(msgspec.Struct, frozen=True):
    """The values that a model proposes, field by field."""

    changes: tuple[Json, ...] = ()
    rejections: tuple[Rejection, ...] = ()


async def propose_edits(context: RoleContext, family: Snapshot, role: str, issues: Sequence[Issue]) -> EditProposals:
    """Have a specialist propose values for the issues in its fields, if there is a model."""
    if context.model is None or not issues:
        return EditProposals()
    if context.model.instructable:
        proposed = await _request_changes(context, family, role, issues)
    else:
        proposed = await _choose_changes(context, family, role, issues)
    ops = _build_ops(context, family, role, proposed.changes, issues)
    # 0 is no low confidence but a value that cannot be; it is kept for people with its reason.
    unfit = [Rejection(op.tool, op.arguments, _UNFIT) for op in ops if op.confidence == 0.0]
    return EditProposals(tuple(op for op in ops if op.confidence > 0.0), (*proposed.rejections, *unfit))


async def _request_changes(context: RoleContext, family: Snapshot, role: str, issues: Sequence[Issue]) -> _Proposed:
    ids = sorted({name_of(issue.target) for issue in issues})
    others = [visible_exercise(doc) for i, doc in sorted(family.live.items()) if i not in ids][:_SIBLINGS_SHOWN]
    content = {
        "role": role,
        "family": family.family,
        "issues": [visible_issue(issue) for issue in issues],
        "exercises": [visible_exercise(family.live[i]) for i in ids if i in family.live],
        "siblings": others,
    }
    instructions = INSTRUCTIONS.format(role=role, fields=", ".join(FIELDS[role]))
    report = await request_report(context, role, CHANGES, instructions, content)
    if report.entries is None:
        return _Proposed((), report.rejections)
    rejections = list(report.rejections)
    arguments = {"family_slug": family.slug, "changes": list(report.entries)}
    outcome = await context.call("propose_changes", arguments, actor=role)
    if not outcome.ok:
        rejections.append(build_rejection("propose_changes", arguments, outcome.summary))
        return _Proposed((), tuple(rejections))
    return _Proposed(tuple(outcome.value["changes"]), tuple(rejections))


async def _choose_changes(context: RoleContext, family: Snapshot, role: str, issues: Sequence[Issue]) -> _Proposed:
    """A model that can only choose says yes or no to the values that the records themselves offer."""
    offers = [(issue, values) for issue in issues if (values := candidate_values(family, issue))]
    questions = [
        Question(f"{family.live[name_of(i.target)].get('name')}, {i.field}: {_preview(values)}", (_USE, _LEAVE))
        for i, values in offers
    ]
    answers = await request_choices(context, role, _TASK, questions)
    changes = []
    for (issue, values), answer in zip(offers, answers, strict=True):
        if answer == _USE:
            changes += [_chosen_change(issue, field, value) for field, value in values.items()]
    return _Proposed(tuple(changes))


def _chosen_change(issue: Issue, field: str, value: Json) -> Json:
    return {
        "exercise_id": name_of(issue.target),
        "field": field,
        "after": value,
        "justification": f"{issue.evidence}; the records offer this",
        "evidence": "siblings:majority" if field != "description" else "record:fields",
        "confidence": 1.0,  # it has said yes; how much that is worth, its record says
    }


def _build_ops(
    context: RoleContext, family: Snapshot, role: str, changes: Sequence[Json], issues: Sequence[Issue]
) -> list[Op]:
    """One operation for each exercise; values that change nothing are left out."""
    by_exercise: dict[str, dict[str, Json]] = {}
    for change in changes:
        identity, field = str(change["exercise_id"]), str(change["field"])
        doc = family.live.get(identity)
        if doc is not None and value_at(doc, field) != change["after"]:
            by_exercise.setdefault(identity, {})[field] = change
    ops = []
    for identity, found in sorted(by_exercise.items()):
        rules = _find_rules(context, identity, role, issues)
        confidence = context.calibration.confidence_of(*find_accountable(rules))
        evidence = [*rules, *(Evidence.parse(str(change["evidence"])) for change in found.values())]
        ops.append(
            Op(
                tool="upsert_exercise",
                actor=role,
                arguments=_edit_arguments(family, identity, found),
                evidence=tuple(dict.fromkeys(evidence)),
                confidence=min(confidence, *(_value_confidence(family, identity, change) for change in found.values())),
            )
        )
    return ops


def _edit_arguments(family: Snapshot, identity: str, changes: dict[str, Json]) -> dict[str, Json]:
    """The arguments of `upsert_exercise`: each field with what it was, which is not for the model to say."""
    fields = [
        {
            "field": field,
            "before": value_at(family.live[identity], field),
            "after": change["after"],
            "justification": change["justification"],
            "evidence": change["evidence"],
        }
        for field, change in sorted(changes.items())
    ]
    reason = shorten("; ".join(str(change["justification"]) for change in changes.values()), 2000)
    return {"exercise_id": identity, "family_slug": family.slug, "changes": fields, "justification": reason}


def _find_rules(context: RoleContext, identity: str, role: str, issues: Sequence[Issue]) -> list[Evidence]:
    """What the work of a specialist rests on: the issues that it fixes, and how well it fixes such issues."""
    mine = [issue for issue in issues if issue.target == exercise_key(identity) and issue.specialist == role]
    # A record for each kind of issue, as a model that is good at empty fields may be no better than chance on outliers.
    own = [Evidence(role, issue.code, context.judge) for issue in mine] or [Evidence(role, "unasked", context.judge)]
    return list(dict.fromkeys([*(issue.rule for issue in mine), *own]))


def _value_confidence(family: Snapshot, identity: str, change: Json) -> float:
    """Muscles depend on each other: each is judged with the others in place, so only the primary ones are compared."""
    field, stated = str(change["field"]), float(change["confidence"])
    if is_within(field, "muscles") and field != "muscles.primary":
        return stated
    if field == "muscles.primary":
        return min(stated, sibling_support(family, identity, field, change["after"]))
    return estimate_confidence(family, identity, field, change["after"], stated)


def _preview(values: dict[str, Json]) -> str:
    return str(next(iter(values.values())))[:160]
