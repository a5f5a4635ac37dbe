"""One family: read it, find what is wrong, have it judged and mended on paper, verify that, and say what to do."""

from __future__ import annotations

from collections import Counter

import msgspec

from interlock_catalog.checks import Issue, grave, inspect
from interlock_catalog.checks.issues import SPECIALISTS
from interlock_catalog.checks.twins import near_twins
from interlock_catalog.planning.ops import Op, after, certain_ops
from interlock_catalog.roles.analyst import analyse
from interlock_catalog.roles.approver import approvals
from interlock_catalog.roles.desk import Asked, Refused
from interlock_catalog.roles.specialists import proposals
from interlock_catalog.snapshot import Snapshot


class FamilyPlan(msgspec.Struct, frozen=True):
    """What is wrong with a family, and what should be done, in order."""

    family: str
    digest: str
    """Of the snapshot that it was decided on."""
    issues: tuple[Issue, ...]
    ops: tuple[Op, ...]
    refused: tuple[Refused, ...] = ()
    left: tuple[Issue, ...] = ()
    """Grave issues that would still be there afterwards."""
    asked: dict[str, int] = {}
    """How often a model was asked, by role."""


async def plan_family(asked: Asked, family: Snapshot) -> FamilyPlan:
    """The same snapshot and the same answers of the model give the same plan."""
    seen = inspect(family) + (near_twins(family, asked.embed) if asked.embed is not None else ())
    issues, refused = await analyse(asked, family, seen)
    ops = certain_ops(family, issues, asked.trust)
    mended = after(family, ops)
    wanted = _for_specialists(mended, issues)
    for role in SPECIALISTS:
        mine = [issue for issue in wanted if issue.specialist == role]
        made, refused_here = await proposals(asked, mended, role, mine)
        ops += made
        refused += refused_here
    final = after(family, ops)
    left = await _verified(asked, final, issues, touched=bool(wanted))
    ops += await approvals(asked, final, left)
    return FamilyPlan(
        family=family.slug,
        digest=family.digest,
        issues=tuple(sorted(issues, key=lambda issue: (issue.target, issue.field, issue.code))),
        ops=tuple(ops),
        refused=tuple(refused),
        left=tuple(left),
        asked=dict(sorted(Counter(asked.calls).items())),
    )


def _for_specialists(mended: Snapshot, issues: tuple[Issue, ...]) -> list[Issue]:
    """Grave issues that the certain operations leave, of exercises that are still there."""
    live = {f"exercise:{identity}" for identity in mended.live}
    return [issue for issue in grave(issues) if issue.target in live and issue.specialist and issue.by != "normaliser"]


async def _verified(asked: Asked, final: Snapshot, issues: tuple[Issue, ...], *, touched: bool) -> list[Issue]:
    """What is still grave on the simulated state; the analyst looks again only where specialists have worked."""
    again = inspect(final)
    confirmed = {(issue.target, issue.field) for issue in issues if issue.by == "analyst"}
    left = grave(again)
    if touched and asked.model is not None:
        looked, _refused = await analyse(asked, final, again)
        left = grave(looked)
    still = {(issue.target, issue.field) for issue in left}
    odd = [i for i in again if not i.certain and (i.target, i.field) in confirmed and (i.target, i.field) not in still]
    return [*left, *(msgspec.structs.replace(issue, certain=True) for issue in odd)]
