"""The specialists: each proposes values for its own fields, where something grave is wrong there."""

from __future__ import annotations

from collections.abc import Sequence

from interlock_catalog.checks import Issue
from interlock_catalog.checks.issues import FIELDS
from interlock_catalog.contracts import Json, value_at
from interlock_catalog.planning.candidates import candidate, confidence, support
from interlock_catalog.planning.ops import Op
from interlock_catalog.roles.analyst import shown, shown_issue
from interlock_catalog.roles.asking import Question, chosen, told
from interlock_catalog.roles.desk import Asked, Refused, refused
from interlock_catalog.roles.repair import repaired
from interlock_catalog.roles.reports import ProposedChange
from interlock_catalog.snapshot import Snapshot
from interlock_catalog.trust import rules_of

INSTRUCTIONS = (
    "You are the specialist for {role} of an exercise catalog. You are given exercises with issues, and siblings "
    "of the same family, as JSON. Propose with propose_changes a value for each field that has an issue, only for "
    "these fields: {fields}. Give for each the id, the field, the value, a reason, the evidence as source:detail "
    "(for example record:muscles or siblings:majority), and how sure you are. Use only the words of the "
    "vocabulary; write texts in plain English about this exercise alone; leave out what you cannot tell from the "
    "records."
)
_TASK = "Say for each proposed value whether to use it."
_SIBLINGS = 4
_USE, _LEAVE = "use", "leave"
_UNFIT = "with this value the exercise would break its contract, or its text would speak of something else"


async def proposals(
    asked: Asked, family: Snapshot, role: str, issues: Sequence[Issue]
) -> tuple[list[Op], list[Refused]]:
    """The operations of one specialist, and what of its work was refused."""
    if asked.model is None or not issues:
        return [], []
    odd: list[Refused] = []
    if asked.model.instructable:
        changes, odd = await _written(asked, family, role, issues)
    else:
        changes = await _chosen(asked, family, issues)
        asked.count(role)
    ops = _ops(asked, family, role, changes, issues)
    unfit = [op for op in ops if op.confidence == 0.0]
    odd += [Refused(op.tool, op.arguments, _UNFIT) for op in unfit]
    return [op for op in ops if op.confidence > 0.0], odd


async def _written(
    asked: Asked, family: Snapshot, role: str, issues: Sequence[Issue]
) -> tuple[list[Json], list[Refused]]:
    assert asked.model is not None
    ids = sorted({issue.target.partition(":")[2] for issue in issues})
    others = [shown(doc) for i, doc in sorted(family.live.items()) if i not in ids][:_SIBLINGS]
    content = {
        "role": role,
        "family": family.family,
        "issues": [shown_issue(issue) for issue in issues],
        "exercises": [shown(family.live[i]) for i in ids if i in family.live],
        "siblings": others,
    }
    instructions = INSTRUCTIONS.format(role=role, fields=", ".join(FIELDS[role]))
    report, why = await told(asked, "propose_changes", instructions, content)
    asked.count(role)
    if report is None:
        return [], [refused("propose_changes", None, why)]
    mended = repaired(report.get("changes"), ProposedChange)
    odd = [refused("propose_changes", entry, reason) for entry, reason in mended.refused]
    arguments = {"family_slug": family.slug, "changes": list(mended.entries)}
    outcome = await asked.call("propose_changes", arguments, actor=role)
    if not outcome.ok:
        return [], [*odd, refused("propose_changes", arguments, outcome.summary)]
    return list(outcome.value["changes"]), odd


async def _chosen(asked: Asked, family: Snapshot, issues: Sequence[Issue]) -> list[Json]:
    """A model that can only choose says yes or no to what the records themselves offer."""
    assert asked.model is not None
    offers = [(issue, found) for issue in issues if (found := candidate(family, issue))]
    questions = [
        Question(f"{family.live[i.target.partition(':')[2]].get('name')}, {i.field}: {_first(found)}", (_USE, _LEAVE))
        for i, found in offers
    ]
    answers = await chosen(asked, _TASK, questions) if questions else []
    changes = []
    for (issue, found), answer in zip(offers, answers, strict=True):
        if answer == _USE:
            changes += [_change(issue, field, value) for field, value in found.items()]
    return changes


def _change(issue: Issue, field: str, value: Json) -> Json:
    return {
        "exercise_id": issue.target.partition(":")[2],
        "field": field,
        "after": value,
        "justification": f"{issue.evidence}; the records offer this",
        "evidence": "siblings:majority" if field != "description" else "record:fields",
        "confidence": 1.0,  # it has said yes; how much that is worth, its record says
    }


def _ops(asked: Asked, family: Snapshot, role: str, changes: Sequence[Json], issues: Sequence[Issue]) -> list[Op]:
    """One operation for each exercise, with what each field was; values that change nothing are left out."""
    by_exercise: dict[str, dict[str, Json]] = {}
    for change in changes:
        identity, field = str(change["exercise_id"]), str(change["field"])
        doc = family.live.get(identity)
        if doc is not None and value_at(doc, field) != change["after"]:
            by_exercise.setdefault(identity, {})[field] = change
    ops = []
    for identity, found in sorted(by_exercise.items()):
        sure = [_sure(family, identity, change) for change in found.values()]
        tags = _tags(asked, identity, role, issues)
        sure.append(asked.trust.of(*rules_of(tags)))
        made = [
            {
                "field": field,
                "before": value_at(family.live[identity], field),
                "after": change["after"],
                "justification": change["justification"],
                "evidence": change["evidence"],
            }
            for field, change in sorted(found.items())
        ]
        evidence = [*tags, *(str(c["evidence"]) for c in found.values())]
        why = "; ".join(str(change["justification"]) for change in found.values())[:2000]
        arguments = {"exercise_id": identity, "family_slug": family.slug, "changes": made, "justification": why}
        ops.append(
            Op(
                tool="upsert_exercise",
                actor=role,
                arguments=arguments,
                evidence=tuple(dict.fromkeys(evidence)),
                confidence=min(sure),
            )
        )
    return ops


def _tags(asked: Asked, identity: str, role: str, issues: Sequence[Issue]) -> list[str]:
    """What the work of a specialist rests on: the issues that it mends, and how well it mends such issues."""
    mine = [issue for issue in issues if issue.target == f"exercise:{identity}" and issue.specialist == role]
    own = [f"{role}:{issue.code}@{asked.judge}" for issue in mine] or [f"{role}:unasked@{asked.judge}"]
    return list(dict.fromkeys([*(issue.tag for issue in mine), *own]))


def _sure(family: Snapshot, identity: str, change: Json) -> float:
    """Muscles hang together: each is judged with the others in place, so only the primary ones are compared."""
    field = str(change["field"])
    said = float(change["confidence"])
    if field.startswith("muscles.") and field != "muscles.primary":
        return said
    if field == "muscles.primary":
        return min(said, support(family, identity, field, change["after"]))
    return confidence(family, identity, field, change["after"], said)


def _first(found: dict[str, Json]) -> str:
    return str(next(iter(found.values())))[:160]
