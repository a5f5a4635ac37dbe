"""Whether an effect landed: told by how the attempt ended, by the state of the resource, or by the tool's probe."""

from __future__ import annotations

from interlock.changes.images import Image
from interlock.schema import Reading
from interlock.values import Plan, Status

_MAY_HAVE_LANDED = frozenset({"timeout", "in_doubt", "cancelled", "interrupted", "lease_lost"})
_LANDED_ALL_THE_SAME = frozenset({"bad_result", "too_large"})


def landed(reading: Reading) -> bool | None:
    """True, False, or None where the attempt alone cannot say.

    A tool that returned has done what it does, even if its answer is unusable; one that raised says by the class of
    the error whether anything happened; one that reports its own failure is taken at its word.
    """
    if reading.status in (Status.OK, Status.NO_DATA):
        return True
    error = reading.problem.error if reading.problem is not None else ""
    if error in _MAY_HAVE_LANDED:
        return None
    return error in _LANDED_ALL_THE_SAME


def landed_by_images(plan: Plan, now: tuple[Image, ...]) -> bool | None:
    """Compare the resource with what it was and, where that was simulated, with what it should become."""
    if not now:
        return None
    states = [image.state for image in now]
    if plan.after is not None and plan.after != plan.before and states == plan.after:
        return True
    unmoved = tuple(image.version for image in now) == plan.versions
    return False if unmoved and plan.after != plan.before else None
