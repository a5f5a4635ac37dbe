"""When records say that they were written, held against the checkpoints before them: what comes after is not older."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec

from interlock.audit.checkpoints import statement_of
from interlock.ports import lanes_of
from interlock.records import Checkpoint, Stored

CLOCKS_US = 300_000_000
"""How far the clocks of machines that write into one ledger may be apart."""


def is_about(found_us: int, recorded_us: int) -> bool:
    """Whether a time by the store's clock can be that of a record, by the clock of whoever wrote it."""
    return abs(found_us - recorded_us) <= CLOCKS_US


class _Late(msgspec.Struct):
    """Records of one lane that say they are older than the checkpoint before them."""

    first: int
    last: int
    count: int
    oldest_us: int


class SignedTimes:
    """The times of checkpoints, lane by lane; only those of the keys that count, where these are known."""

    def __init__(self, keys: frozenset[str] | None, checkpoints: Iterable[Checkpoint]) -> None:
        self._signed: dict[int, list[tuple[int, int, int]]] = {}
        """For each lane the last record that each checkpoint knows, its number, and when it was signed."""
        self._late: dict[tuple[int, int, int], _Late] = {}
        for item in checkpoints:
            if keys is None or item.public_key in keys:
                self._add(item)
        for signed in self._signed.values():
            signed.sort()

    @property
    def has_any(self) -> bool:
        """Whether there is a time to compare with."""
        return bool(self._signed)

    def _add(self, checkpoint: Checkpoint) -> None:
        try:
            said = statement_of(checkpoint)
        except msgspec.DecodeError:
            return
        ends = {lane: number for lane, number, _count, _hash in said.heads}
        # A lane that was empty then: its first record came later.
        for lane in {*ends, *range(lanes_of(said.ledger) or 0)}:
            self._signed.setdefault(lane, []).append((ends.get(lane, 0), said.n, said.at_us))

    def see(self, record: Stored) -> None:
        """Compare one record with the newest checkpoint that does not know it.

        Not with all that came before: whoever signs again, once a clock is right, is not reminded of it for ever.
        """
        signed = self._signed.get(record.lane)
        place = 0 if signed is None else bisect_left(signed, (record.id,))
        if signed is None or place == 0:
            return
        _number, n, at_us = signed[place - 1]
        if record.at_us >= at_us - CLOCKS_US:
            return
        late = self._late.setdefault((record.lane, n, at_us), _Late(record.id, record.id, 0, record.at_us))
        late.last, late.count, late.oldest_us = record.id, late.count + 1, min(late.oldest_us, record.at_us)

    def problems(self) -> Iterator[str]:
        """A sentence for each checkpoint that has younger records which say that they are older."""
        for (lane, n, at_us), late in self._late.items():
            which = f"record {late.first}: says that it is"
            if late.count > 1:
                which = f"{late.count} records of lane {lane}, from {late.first} to {late.last}: say that they are"
            yield (
                f"{which} older ({_text(late.oldest_us)}) than checkpoint {n} ({_text(at_us)}), which does not know of"
                " them: somebody else put them there; or a clock was ahead when that was signed, or has been set back"
                " by more than five minutes since. If it was a clock, set it right and sign again (interlock audit"
                " anchor): what is written after that is compared with the new checkpoint, and of these verify goes on"
                " to say so"
            )


def _text(at_us: int) -> str:
    try:
        return datetime.fromtimestamp(at_us // 1_000_000, UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{at_us} µs"  # no time that a clock could show
