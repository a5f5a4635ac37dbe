"""Which history stands: an older copy of a ledger, put back, is used again only when somebody says so."""

from __future__ import annotations

from interlock.errors import NotAllowed
from interlock.operations.ledger_writer import LedgerEntry, LedgerWriter


async def accept_history(writer: LedgerWriter, reason: str) -> int:
    """Say that the ledger stands as it is, without the records that were seen of it and are gone; the record of that.

    Runtimes that are open keep refusing: whoever says so should have them opened again, on purpose.
    """
    missing = writer.store.missing
    if not missing:
        raise NotAllowed("the ledger holds everything that was seen of it; there is nothing to accept")
    gone = [[head.lane, head.id, head.hash] for head in missing]
    return await writer.commit(LedgerEntry("history", "accepted", {"missing": gone, "reason": reason}))
