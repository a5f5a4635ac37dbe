"""The approver: yes to drafts that hold when they are looked at again, and a pending decision for all others."""

from __future__ import annotations

from collections.abc import Sequence

from interlock_catalog.changes import known_by
from interlock_catalog.checks import Issue
from interlock_catalog.contracts import faults
from interlock_catalog.planning.ops import Op
from interlock_catalog.roles.desk import Asked
from interlock_catalog.snapshot import Snapshot


async def approvals(asked: Asked, family: Snapshot, left: Sequence[Issue]) -> list[Op]:
    """One decision for each draft. A sure yes passes the policy; an unsure one waits for a person; a draft with faults
    is written down as not approved."""
    decisions, ops = [], list[Op]()
    looked = f"verified:judged@{asked.judge}" if asked.judged else "verified:checks"
    for identity, doc in sorted(family.live.items()):
        if doc.get("status") != "draft":
            continue
        wrong = [issue for issue in left if issue.target == f"exercise:{identity}"]
        broken = [fault.field for fault in faults("exercise", doc)]
        approve = not wrong and not broken
        why = "looked at again: nothing high or critical" if approve else _why_not(wrong, broken)
        evidence = [looked] if approve else [f"left:{issue.code}" for issue in wrong] or ["left:contract"]
        evidence = list(dict.fromkeys(evidence))
        decisions.append({"exercise_id": identity, "approve": approve, "justification": why, "evidence": evidence})
        if not broken:
            arguments = {
                "exercise_id": identity,
                "family_slug": family.slug,
                "seen": known_by(doc),
                "justification": why,
            }
            ops.append(
                Op(
                    tool="approve_exercise",
                    actor="approver",
                    arguments=arguments,
                    evidence=tuple(evidence),
                    confidence=asked.trust.of(looked) if approve else 0.0,
                )
            )
    if decisions:
        await asked.call("decide_drafts", {"family_slug": family.slug, "decisions": decisions}, actor="approver")
    return ops


def _why_not(wrong: Sequence[Issue], fields: Sequence[str]) -> str:
    named = [issue.evidence for issue in wrong] or [f"{field} breaks the contract" for field in fields]
    return f"pending, as there is still something wrong: {'; '.join(named)}"[:600]
