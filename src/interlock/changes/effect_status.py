"""Whether an effect landed: told by how the attempt ended, by the state of the resource, or by the tool's probe."""

from __future__ import annotations

from interlock.changes.snapshots import Snapshot, given_version
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
    if not attempts:
        return False  # it was given up before it was begun
    doubtful = reason in _MAY_HAVE_LANDED or any(attempt.error in _MAY_HAVE_LANDED for attempt in attempts)
    return None if doubtful else False


def contradicts_nothing(reading: Reading, plan: Plan, now: tuple[Snapshot, ...], *, shown: bool) -> bool:
    """Whether the resource shows that something was changed, of a call that is said to have changed nothing.

    Nobody else changes its keys through Interlock meanwhile. Somebody may by other means, and that is what a conflict
    says: of a call whose requests are `shown` to have been refused it accounts for whatever has moved, otherwise for
    one key that is not what was planned.
    """
    moved = moved_keys(plan, now)
    if reading.problem is None or reading.problem.reason is not Reason.CONFLICT:
        return bool(moved)
    return not shown and (len(moved) > 1 or any(moved.values()))


def moved_keys(plan: Plan, now: tuple[Snapshot, ...]) -> dict[str, bool]:
    """The keys that are not what they were, each with whether it is what was planned for it."""
    moved: dict[str, bool] = {}
    if len(now) != len(plan.keys) or plan.before is None:
        return moved
    for place, (key, snapshot, before) in enumerate(zip(plan.keys, now, plan.before, strict=True)):
        given, found = given_version(plan.versions[place]), given_version(snapshot.version)
        if snapshot.state == before if given is None or found is None else given == found:
            continue
        if key.endswith("/*"):  # the whole of a resource: each of its parts that moved counts
            was, becomes = before or {}, snapshot.state or {}
            moved |= dict.fromkeys((name for name in {*was, *becomes} if was.get(name) != becomes.get(name)), False)
        else:
            moved[key] = plan.after is not None and snapshot.state == plan.after[place]
    return moved


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
