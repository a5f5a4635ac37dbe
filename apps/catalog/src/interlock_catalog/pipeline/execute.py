"""Execution of a plan: every operation is a call through the gate, under the family's lock, once."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Collection, Sequence
from enum import StrEnum

import msgspec

from interlock import Mode, Outcome, Status
from interlock.reasons import Reason
from interlock.values import Budget, Lock
from interlock_catalog.backends.planned import PlannedStates, planning
from interlock_catalog.document_keys import RESOURCE
from interlock_catalog.planning.ops import Op
from interlock_catalog.roles.context import RoleContext

SERVICE = "service:catalog"
"""The principal: the autopilot proposes, people approve."""
MAX_CHANGES_BUDGET = "max-changes"
_CONTENDED = frozenset(
    {
        Reason.BUSY,
        Reason.BLOCKED,
        Reason.IN_PROGRESS,
        Reason.LEASE_LOST,
        Reason.PLAN_MOVED,
        Reason.MOVED,
        Reason.CONFLICT,  # of a worker that was taken for dead: the server refuses its token
        Reason.STORE_UNAVAILABLE,
    }
)
"""Somebody else is at work there: the family waits for the next run."""
_PERHAPS_ABANDONED = frozenset({Reason.BUSY, Reason.BLOCKED, Reason.IN_PROGRESS, Reason.IN_DOUBT, Reason.LEASE_LOST})
"""This may only mean that a process died there, or that one was so slow that others took it for dead.

Asked again, the claim says whether the change was made.
"""
_POLL_S = 0.5
_APPROVE = "approve_exercise"


class Stop(StrEnum):
    """Why the rest of a plan was left for a later run."""

    DEFERRED = "deferred"
    OVERFLOW = "overflow"


class ExecutionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run goes."""

    mode: str
    max_changes: int
    wait_s: float = 0.0
    """How long an operation waits for what somebody else has begun there."""


class Execution(msgspec.Struct, frozen=True):
    """How far a plan was carried out."""

    stop: Stop | None = None
    """Why some of it was left for a later run, None if nothing was."""
    foreseen: tuple[Op, ...] = ()
    """Approvals that come after changes which were not made, or only planned: they are decided once those are made."""


async def execute_operations(
    context: RoleContext,
    ops: Sequence[Op],
    options: ExecutionOptions,
    locks: tuple[Lock, ...],
    withheld: Collection[str] = (),
) -> Execution:
    """Make the operations in their order, but for those whose call ids are withheld.

    What rests (cooldown) is left, and the others are made; any other reason to stop ends the plan there, as later
    operations rest on earlier ones. Where they are only planned, each is judged as if those before it had been made.
    """
    with planning() as planned:
        return await _execute_in_order(context, ops, options, locks, withheld, planned)


async def _execute_in_order(
    context: RoleContext,
    ops: Sequence[Op],
    options: ExecutionOptions,
    locks: tuple[Lock, ...],
    withheld: Collection[str],
    planned: PlannedStates,
) -> Execution:
    not_applied: set[str] = set()
    stopped: Stop | None = None
    foreseen = list[Op]()
    for op in ops:
        if call_id_of(op) in withheld:
            not_applied |= _exercises_of(op) if op.tool != _APPROVE else set()
            continue
        if op.tool == _APPROVE and str(op.arguments["exercise_id"]) in not_applied:
            foreseen.append(op)  # it was to be fixed first, and was not, or was only planned: it cannot be approved yet
            continue
        outcome = await _execute(context, op, options, locks)
        if options.mode != Mode.APPLY.value and outcome.status is Status.PLANNED:
            planned |= _states_of(outcome)
        reason = None if outcome.problem is None else outcome.problem.reason
        if reason is Reason.COOLDOWN:
            stopped = Stop.DEFERRED
        elif reason is Reason.BUDGET_EXHAUSTED:
            return Execution(Stop.OVERFLOW, tuple(foreseen))
        elif reason in _CONTENDED and outcome.status in (Status.FAILED, Status.DENIED, Status.UNKNOWN):
            return Execution(Stop.DEFERRED, tuple(foreseen))
        if outcome.status not in (Status.OK, Status.NO_DATA):
            not_applied.update(_exercises_of(op))
    return Execution(stopped, tuple(foreseen))


def _states_of(outcome: Outcome) -> PlannedStates:
    """The documents as a plan would leave them."""
    plan = outcome.plan
    if plan is None or plan.after is None:
        return {}
    return {key.removeprefix(f"{RESOURCE}/"): state for key, state in zip(plan.keys, plan.after, strict=True)}


def _exercises_of(op: Op) -> set[str]:
    """The exercises that an operation was to change."""
    items = [str(item["exercise_id"]) for item in op.arguments.get("items", ())]
    return {str(op.arguments.get("exercise_id")), *items}


async def _execute(context: RoleContext, op: Op, options: ExecutionOptions, locks: tuple[Lock, ...]) -> Outcome:
    """One operation. What a dead process has left open there is recovered first, once its lease has expired."""
    end = time.monotonic() + options.wait_s
    while True:
        outcome = await context.call(
            op.tool,
            op.arguments,
            actor=op.actor,
            mode=options.mode,
            principal=SERVICE,
            evidence=tuple(item.text for item in op.evidence),
            confidence=op.confidence,
            call_id=call_id_of(op),
            locks=locks,
            # The cap of this run goes with the call; the policy has only the limit that no request can raise.
            budgets=(Budget(id=MAX_CHANGES_BUDGET, per="run", calls=options.max_changes),),
        )
        reason = None if outcome.problem is None else outcome.problem.reason
        if reason not in _PERHAPS_ABANDONED or time.monotonic() > end:
            return outcome
        await asyncio.sleep(_POLL_S)
        # It settles only what has no lease any more, so it is tried again until that of the dead process has expired.
        await context.runtime.operations.recover()


def call_id_of(op: Op) -> str:
    """Identifies an operation within its turn: after a crash, the same plan makes the same calls."""
    # Without the confidence, which moves with the record of its rules: what a person has denied is known by this id.
    text = msgspec.json.encode([op.tool, op.actor, op.arguments], order="deterministic")
    return f"op-{hashlib.sha256(text).hexdigest()[:24]}"
