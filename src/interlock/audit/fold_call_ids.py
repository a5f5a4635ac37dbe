"""What the records say about callers' own ids: each was used for one change, and a row of its own says for which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from interlock.openings import Digest, call_id_name
from interlock.records import Changed, Stored
from interlock.state import LOCK, Claimed, ClaimState


class _Used(msgspec.Struct, frozen=True):
    """The change that an id was first used for, and the record that has begun it."""

    claim: str
    record: int


class CallIdFold:
    """Folded in the order of record ids; what it has at the end is compared with the rows that stand for ids."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        """What can be in no honest ledger, whatever the tables say now."""
        self._used: dict[tuple[str, str | None, str, str], _Used] = {}

    def begin(self, record: Stored, change: Changed) -> None:
        """A change was begun, perhaps under an id of the caller's own."""
        if change.id_is_ours or change.undoes is not None:
            return
        # In a turn an id is its actor's, whatever the tool; elsewhere it is the tool's, whoever calls.
        tool, actor = (record.tool, "") if record.turn is None else ("", record.actor)
        name = (tool, record.turn, actor, record.call)
        before = self._used.setdefault(name, _Used(change.claim, record.id))
        if before.claim != change.claim:
            self.faults.append(
                f"record {record.id}: begins a change under call id {record.call!r}, which record {before.record} had"
                " used for another one"
            )

    def compare(self, found: Iterable[Claimed], digest: Digest, since: range) -> Iterator[str]:
        """What the rows of ids say otherwise than the ledger; `since`: the records that were written meanwhile."""
        rows = {row.name: row for row in found}
        ids = {name: row for name, row in rows.items() if row.is_call_id}
        for (tool, turn, actor, call), used in self._used.items():
            name = call_id_name(digest, tool=tool, turn=turn, actor=actor, call=call)
            if name == used.claim:  # the claim goes by it
                continue
            ids.pop(name, None)
            row, where = rows.get(name), f"call id {call!r} (record {used.record})"
            if row is None:
                yield f"{where}: the ledger holds it, and the store does not: it could be used for another change"
            elif row != Claimed(name, used.claim, ClaimState.FAILED, 1, holder="", call=call, tool=LOCK):
                yield f"{where}: its row in the store is not the one that was written for it"
        for row in ids.values():
            about = rows.get(row.request)
            if about is None or about.intent not in since:
                yield f"call id {row.call!r}: the store holds it, and the ledger knows of no change under it"
