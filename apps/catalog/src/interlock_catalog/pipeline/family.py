"""One family: find what is wrong, have it judged and fixed on paper, verify that, and say what to do."""

from __future__ import annotations

import msgspec

from interlock_catalog.checks import Issue, check_apart, run_checks, severe_issues
from interlock_catalog.checks.duplicates import find_near_duplicates
from interlock_catalog.checks.issues import SPECIALISTS
from interlock_catalog.document_keys import exercise_key
from interlock_catalog.planning.ops import Op, plan_certain_ops, simulate_ops
from interlock_catalog.roles.analyst import Analysis, analyse
from interlock_catalog.roles.approver import propose_approvals
from interlock_catalog.roles.context import Rejection, RoleContext
from interlock_catalog.roles.specialists import propose_edits
from interlock_catalog.snapshot import Snapshot


class FamilyPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a family, and what should be done, in order."""

    family: str
    digest: str = ""
    """Of the snapshot that it was decided on."""
    issues: tuple[Issue, ...] = ()
    ops: tuple[Op, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    unresolved: tuple[Issue, ...] = ()
    """Severe issues that would still be there afterwards."""
    model_calls: dict[str, int] = {}
    """By role."""


class _Verification(msgspec.Struct, frozen=True):
    """What a second look at the simulated state found."""

    unresolved: tuple[Issue, ...]
    judged: bool


async def plan_family(context: RoleContext, whole: Snapshot) -> FamilyPlan:
    """The same snapshot and the same replies of the model give the same plan."""
    checked = check_apart(whole)
    family, found = checked.family, checked.issues
    if context.embed is not None:
        found += find_near_duplicates(family, context.embed)
    analysis = await analyse(context, family, found)
    ops = plan_certain_ops(family, analysis.issues, context.calibration)
    rejected = list(analysis.rejections)
    # Specialists see the family as it will be then: what is merged away or respelled is not theirs to judge.
    cleaned = simulate_ops(family, ops)
    wanted = _specialist_issues(cleaned, analysis.issues)
    for role in SPECIALISTS:
        mine = [issue for issue in wanted if issue.specialist == role]
        # All on the same state: no field belongs to two of them, so none has to wait for what another proposes.
        proposals = await propose_edits(context, cleaned, role, mine)
        ops += proposals.ops
        rejected += proposals.rejections
    final = simulate_ops(family, ops)
    verification = await _verify(context, final, analysis, edited=bool(wanted))
    ops += await propose_approvals(context, final, verification.unresolved, judged=verification.judged)
    issues = (*analysis.issues, *checked.unreadable)
    return FamilyPlan(
        family=family.slug,
        digest=whole.digest,
        issues=tuple(sorted(issues, key=lambda issue: (issue.target, issue.field, issue.code))),
        ops=tuple(ops),
        rejected=tuple(rejected),
        unresolved=(*verification.unresolved, *checked.unreadable),
        model_calls=dict(sorted(context.model_calls.items())),
    )


def _specialist_issues(cleaned: Snapshot, issues: tuple[Issue, ...]) -> list[Issue]:
    """Severe issues that the certain operations leave, of exercises that are still there."""
    live = {exercise_key(identity) for identity in cleaned.live}
    # What normalisation found it corrects by itself, and a specialist would be asked for what is right by then.
    return [i for i in severe_issues(issues) if i.target in live and i.specialist and i.by != "normaliser"]


async def _verify(context: RoleContext, final: Snapshot, before: Analysis, *, edited: bool) -> _Verification:
    """What is still severe on the simulated state; the analyst looks again only where specialists have worked."""
    found = run_checks(final)
    judged, left = before.judged, severe_issues(found)
    if edited and context.model is not None:
        again = await analyse(context, final, found)
        judged, left = again.judged, severe_issues(again.issues)
    # What the analyst confirmed before and the checks still suspect is not resolved, whoever has looked since.
    confirmed = {(issue.target, issue.field) for issue in before.issues if issue.by == "analyst"}
    named = {(issue.target, issue.field) for issue in left}
    suspected = [i for i in found if not i.certain and (i.target, i.field) in confirmed - named]
    unresolved = (*left, *(msgspec.structs.replace(issue, certain=True) for issue in suspected))
    return _Verification(unresolved, judged)
