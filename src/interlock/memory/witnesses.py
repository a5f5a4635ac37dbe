"""Who decides about a memory, and what the ledger is told of it, where a runtime is at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.errors import ConfigError
from interlock.memory.removal import ForgetTarget, Removed
from interlock.principals import check_vouched, default_principal, kind_of

if TYPE_CHECKING:
    from interlock.runtime import Runtime

_MOST_NAMED = 500
_NOT_PEOPLE = ("agent", "model", "tool")


def check_person(by: str | None, runtime: Runtime | None) -> str:
    """Who decides: whoever is named, and else whoever runs the program."""
    own = default_principal() if runtime is None else runtime.principal
    if by is None:
        return own
    check_vouched(by, own)
    if kind_of(by) in ("", *_NOT_PEOPLE):
        raise ConfigError(f"{by!r} is no person; write KIND:NAME, as in 'user:ann'")
    return by


async def record_forget(
    runtime: Runtime | None, target: ForgetTarget, removed: Removed, reason: str, by: str
) -> int | None:
    """Leave a record of what was forgotten; its name as a keyed digest, as it may be the very thing."""
    if runtime is None:
        return None
    from interlock.operations.ledger_writer import LedgerEntry, store_digest  # with a runtime it is loaded anyway

    what = {
        "by": f"memory {target.what}",
        "digest": store_digest(runtime.store, target.name.encode()),
        "reason": reason,
        "count": removed.documents,
        "tombstones": [stone.id for stone in removed.tombstones[:_MOST_NAMED]],
    }
    return await runtime.operations.writer(by).commit(LedgerEntry("erasure", "forgotten", what))


async def record_vouch(runtime: Runtime | None, document: str, reason: str, by: str) -> int | None:
    """Leave a record of who has vouched for which document."""
    if runtime is None:
        return None
    from interlock.operations.ledger_writer import LedgerEntry  # with a runtime it is loaded anyway

    entry = LedgerEntry("memory", "vouched", {"document": document, "reason": reason})
    return await runtime.operations.writer(by).commit(entry)
