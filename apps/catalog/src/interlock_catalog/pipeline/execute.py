"""Carrying a plan out: every operation is a call through the gate, under the family's lease, once."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Sequence

import msgspec

from interlock import Outcome, Status
from interlock.values import Budget, Lock
from interlock_catalog.planning.ops import Op
from interlock_catalog.roles.desk import Asked

SERVICE = "service:catalog"
"""Who calls: the autopilot proposes, people approve."""
LATER = frozenset({"busy", "blocked", "in_progress", "lease_lost", "plan_moved", "moved"})
"""Errors that say that somebody else is at work there: the family waits for the next run."""
LEFT_BEHIND = frozenset({"busy", "blocked", "in_progress", "in_doubt"})
"""Errors that may only say that a process died there, and will pass."""
_LOOK_AGAIN_S = 0.5
CAP = "max-changes"
RESTS = "cooldown"
"""The rule of the policy by which a document rests after a change."""


class Terms(msgspec.Struct, frozen=True):
    """How far a run goes."""

    mode: str
    max_changes: int
    patience_s: float = 0.0
    """How long an operation waits for what somebody else has begun there."""


async def carry_out(asked: Asked, ops: Sequence[Op], terms: Terms, locks: tuple[Lock, ...]) -> str:
    """Make the operations in their order; why the rest was left, '' if nothing was: deferred or overflow."""
    spoiled: set[str] = set()
    rests = ""
    for op in ops:
        target = str(op.arguments.get("exercise_id"))
        if op.tool == "approve_exercise" and target in spoiled:
            continue  # it was to be mended first, and was not, or was only planned: then nobody can release it yet
        outcome = await _made(asked, op, terms, locks)
        why = _left(outcome)
        if why == RESTS:
            rests = "deferred"
        elif why:
            return why
        if outcome.status not in (Status.OK, Status.NO_DATA):
            spoiled.update(_exercises(op))
    return rests


def _exercises(op: Op) -> set[str]:
    """The exercises that an operation was to change."""
    items = [str(item["exercise_id"]) for item in op.arguments.get("items", ())]
    return {str(op.arguments.get("exercise_id")), *items}


async def _made(asked: Asked, op: Op, terms: Terms, locks: tuple[Lock, ...]) -> Outcome:
    """One operation. What a dead process has left open there is settled first, as soon as it may be taken for dead."""
    end = time.monotonic() + terms.patience_s
    while True:
        outcome = await _called(asked, op, terms, locks)
        error = None if outcome.problem is None else outcome.problem.error
        if error not in LEFT_BEHIND or time.monotonic() > end:
            return outcome
        await asyncio.sleep(_LOOK_AGAIN_S)
        await asked.runtime.operations.recover()


async def _called(asked: Asked, op: Op, terms: Terms, locks: tuple[Lock, ...]) -> Outcome:
    return await asked.call(
        op.tool,
        op.arguments,
        actor=op.actor,
        mode=terms.mode,
        principal=SERVICE,
        evidence=op.evidence,
        confidence=op.confidence,
        call_id=f"op-{digest(op)}",
        locks=locks,
        budgets=(Budget(id=CAP, per="run", calls=terms.max_changes),),
    )


def digest(op: Op) -> str:
    """What an operation is known by within its turn."""
    text = msgspec.json.encode([op.tool, op.actor, op.arguments], order="deterministic")
    return hashlib.sha256(text).hexdigest()[:24]


def _left(outcome: Outcome) -> str:
    if outcome.problem is None:
        return ""
    error = outcome.problem.error
    if outcome.status is Status.DENIED and outcome.verdict is not None and outcome.verdict.rule == RESTS:
        return RESTS
    if outcome.status is Status.DENIED and error == "budget_exhausted":
        return "overflow"
    return "deferred" if outcome.status in (Status.FAILED, Status.DENIED) and error in LATER else ""
