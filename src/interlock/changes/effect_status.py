"""Whether an effect landed: told by how the attempt ended, by the state of the resource, or by the tool's probe."""

from __future__ import annotations

from interlock.changes.snapshots import Snapshot
from interlock.reasons import Reason
from interlock.tools import Reading
from interlock.values import Attempt, Plan

_MAY_HAVE_LANDED = frozenset(
    {
        Reason.TRANSIENT,
        Reason.UNAVAILABLE,
        Reason.TIMEOUT,
        Reason.IN_DOUBT,
        Reason.CANCELLED,
        Reason.INTERRUPTED,
        Reason.LEASE_LOST,
    }
)


def has_landed(reading: Reading, attempts: tuple[Attempt, ...] = ()) -> bool | None:
    """True, False, or None where the attempts alone cannot say.

    A tool that returned has done what it does, even if its answer is unusable; one that reports its own failure is
    taken at its word; one that raised says by the class of the error whether anything happened. An earlier attempt
    that may have landed is not made undone by a later one that did not.
    """
    reason = None if reading.problem is None else reading.problem.reason
    if reading.returned and reason is not Reason.REPORTED_FAILURE:
        return True
    if reason is Reason.LEASE_LOST and not attempts:
        return False  # it was given up before it was begun
    doubtful = reason in _MAY_HAVE_LANDED or any(attempt.error in _MAY_HAVE_LANDED for attempt in attempts)
    return None if doubtful else False


def landed_by_snapshots(plan: Plan, now: tuple[Snapshot, ...]) -> bool | None:
    """Compare the resource with what it was and, where that was simulated, with what it should become."""
    if not now:
        return None
    states = [snapshot.state for snapshot in now]
    if plan.after is not None and plan.after != plan.before and states == plan.after:
        return True
    # An unmoved resource proves nothing where the plan would not have moved it either.
    unmoved = tuple(snapshot.version for snapshot in now) == plan.versions
    return False if unmoved and plan.after != plan.before else None
