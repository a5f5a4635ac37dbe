"""What may be said when a memory is opened and when something is forgotten."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict

from interlock.errors import InvalidInput
from interlock.memory.limits import MemoryLimits
from interlock.memory.removal import ForgetTarget
from interlock.ports import Clock, Faults, Ids

if TYPE_CHECKING:
    from interlock.runtime import Runtime


class MemoryParts(TypedDict, total=False):
    """What may be replaced, for tests and for other machines."""

    limits: MemoryLimits
    clock: Clock
    ids: Ids
    faults: Faults
    busy_s: float


class ForgetOptions(TypedDict, total=False):
    """What is forgotten, by whom, and which ledger is told."""

    document: str
    source: str
    key: str
    older_than: timedelta
    namespace: str
    by: str | None
    runtime: Runtime | None


def target_of(options: ForgetOptions, limits: MemoryLimits, now_us: int) -> ForgetTarget:
    """What is to be forgotten, looked at before anything goes."""
    older = options.get("older_than")
    if older is not None and (not isinstance(older, timedelta) or older <= timedelta(0)):
        raise InvalidInput("older_than= is a stretch of time, such as timedelta(days=90)")
    before_us = None if older is None else max(0, now_us - round(older.total_seconds() * 1e6))
    target = ForgetTarget(
        document=options.get("document"),
        source=options.get("source"),
        key=options.get("key"),
        older_than_us=before_us,
        namespace=options.get("namespace"),
    )
    target.check()
    for name in ("document", "source", "key", "namespace"):
        if getattr(target, name) is not None:
            limits.check_name(name, getattr(target, name))
    return target
