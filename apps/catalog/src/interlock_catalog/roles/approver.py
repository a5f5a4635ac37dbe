"""The approver: yes to drafts without an issue when they are looked at again, and a pending decision for the others."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from interlock_catalog.changes import content_digest
from interlock_catalog.checks import Issue
from interlock_catalog.contracts import Doc, Json, find_violations
from interlock_catalog.document_keys import exercise_key
from interlock_catalog.evidence import LEFT, Evidence
from interlock_catalog.planning.ops import Op
from interlock_catalog.roles.context import RoleContext
from interlock_catalog.shortening import shorten
from interlock_catalog.snapshot import Snapshot


class _Review(msgspec.Struct, frozen=True):
    """What was found out about one draft."""

    identity: str
    approve: bool
    breaks_contract: bool
    reason: str
    evidence: tuple[Evidence, ...]

    @property
    def decision(self) -> Json:
        return {
            "exercise_id": self.identity,
            "approve": self.approve,
            "justification": self.reason,
            "evidence": [item.text for item in self.evidence],
        }


async def propose_approvals(
    context: RoleContext, family: Snapshot, unresolved: Sequence[Issue], *, judged: bool
) -> list[Op]:
    """One decision for each draft, on record. A sure yes passes the policy, an unsure one waits for a person; a draft
    that breaks its contract is not proposed at all."""
    rule = Evidence("verified", "judged", context.judge) if judged else Evidence("verified", "checks")
    drafts = {identity: doc for identity, doc in sorted(family.live.items()) if doc.get("status") == "draft"}
    reviews = [_review(identity, doc, unresolved, rule) for identity, doc in drafts.items()]
    # Every decision is put on record, also one that leads to no operation.
    if reviews:
        decisions = [review.decision for review in reviews]
        await context.call("decide_drafts", {"family_slug": family.slug, "decisions": decisions}, actor="approver")
    return [
        Op(
            tool="approve_exercise",
            actor="approver",
            arguments={
                "exercise_id": review.identity,
                "family_slug": family.slug,
                "digest": content_digest(drafts[review.identity]),
                "justification": review.reason,
            },
            evidence=review.evidence,
            # Not denied but below every threshold: by the policy a person is asked (rule approver-asks).
            confidence=context.calibration.confidence_of(rule) if review.approve else 0.0,
        )
        for review in reviews
        if not review.breaks_contract
    ]


def _review(identity: str, doc: Doc, unresolved: Sequence[Issue], rule: Evidence) -> _Review:
    issues = [issue for issue in unresolved if issue.target == exercise_key(identity)]
    broken = [violation.field for violation in find_violations("exercise", doc)]
    if not issues and not broken:
        return _Review(identity, True, False, "looked at again: nothing high or critical", (rule,))
    named = [issue.evidence for issue in issues] or [f"{field} breaks the contract" for field in broken]
    reason = shorten(f"pending, as there is still something wrong: {'; '.join(named)}", 600)
    evidence = tuple(dict.fromkeys(Evidence(LEFT, issue.code) for issue in issues)) or (Evidence(LEFT, "contract"),)
    return _Review(identity, False, bool(broken), reason, evidence)
