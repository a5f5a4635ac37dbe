"""What the records say about callers' own ids: each was used for one change, and a row of its own says for which.

So does one for a change that was taken back by a claim that does not go by that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from interlock.openings import Digest, call_id_name, undo_name
from interlock.records import Changed, Stored
from interlock.state import Claimed, call_id_row, may_bind

_Id = tuple[str, str | None, str, str]
"""The tool, the turn, the actor and the call id. In a turn an id is its actor's, whatever the tool; elsewhere it is the
tool's, whoever calls."""


class CallIdFold:
    """Folded in the order of record ids; what it has at the end is compared with the rows that stand for ids."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        """What can be in no honest ledger, whatever the tables say now."""
        self._rows: dict[_Id, Claimed] = {}
        """Without their names, which are digests."""
        self._undoing: dict[str, Claimed] = {}
        """What stands for a change's being taken back, by what that is called."""
        self._first: dict[_Id, int] = {}
        """The records that have first used them."""

    def begin(self, record: Stored, change: Changed) -> None:
        """A change was begun, perhaps under an id of the caller's own."""
        if change.undoes is not None:
            self._take_back(record, change, change.undoes)
            return
        if change.id_is_ours:
            return
        name = _id_of(record)
        known = self._rows.get(name)
        if known is not None and known.request != change.claim:
            self.faults.append(
                f"record {record.id}: begins a change under call id {record.call!r}, which record {self._first[name]}"
                " had used for another one"
            )
            return
        self._note(record, call_id_row(known, "", change.claim, change.generation, record.call), None)

    def _take_back(self, record: Stored, change: Changed, undoes: str) -> None:
        known = self._undoing.get(undoes)
        if known is not None and known.request != change.claim:
            self.faults.append(
                f"record {record.id}: begins to take a change back, which record {known.intent} had begun to do by"
                " another one"
            )
            return
        row = call_id_row(known, "", change.claim, change.generation, record.call)
        self._undoing[undoes] = msgspec.structs.replace(row, intent=record.id)

    def answer(self, record: Stored, key: str, repeats: int) -> None:
        """A call was answered from the record of a change (`key`): from then on its id stands for that."""
        claim, _, number = key.rpartition(".")
        generation, known = int(number) if number.isdecimal() else 0, self._rows.get(_id_of(record))
        if may_bind(known, claim, generation):
            self._note(record, call_id_row(known, "", claim, generation, record.call), repeats)

    def _note(self, record: Stored, row: Claimed, answered: int | None) -> None:
        name = _id_of(record)
        self._first.setdefault(name, record.id)
        self._rows[name] = msgspec.structs.replace(row, intent=record.id, record=answered)

    def compare(self, found: Iterable[Claimed], digest: Digest, since: range) -> Iterator[str]:
        """What the rows of ids say otherwise than the ledger; `since`: the records that were written meanwhile."""
        rows = {row.name: row for row in found}
        ids = {name: row for name, row in rows.items() if row.is_call_id}
        named = {
            call_id_name(digest, tool=tool, turn=turn, actor=actor, call=call): wanted
            for (tool, turn, actor, call), wanted in self._rows.items()
        }
        for name, wanted in (named | {undo_name(digest, key): row for key, row in self._undoing.items()}).items():
            if name == wanted.request:  # the claim goes by it
                continue
            ids.pop(name, None)
            row, where = rows.get(name), f"call id {wanted.call!r} (record {wanted.intent})"
            if row is None:
                yield f"{where}: the ledger holds it, and the store does not: it could be used for another change"
            elif row.intent not in since and row != msgspec.structs.replace(wanted, name=name):
                yield f"{where}: its row in the store is not the one that was written for it"
        for row in ids.values():
            if row.intent not in since:
                yield f"call id {row.call!r}: the store holds it, and the ledger knows of no change under it"


def _id_of(record: Stored) -> _Id:
    tool, actor = (record.tool, "") if record.turn is None else ("", record.actor)
    return tool, record.turn, actor, record.call
