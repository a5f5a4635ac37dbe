"""Where a ledger was last seen to end, kept outside of it: an older copy that was put back is noticed at the next open.

A restored backup has forgotten effects that were made, and would let them be made again. What was seen of it is noted
in a small file of this machine after every commit, and stands in the newest anchor that was exported.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import msgspec

from interlock.records import Checkpoint, LaneHead

_log = logging.getLogger("interlock")
_SLOT = 160
"""Bytes for one lane: written in place, at once, by whichever process has committed last."""
_HEX = 64


class Witness:
    """What this machine, and the anchors that it can read, have seen of ledgers."""

    def __init__(self, folder: Path | None, anchors: Path | None = None) -> None:
        self._folder = folder
        self._anchors = anchors
        self._file: int | None = None

    def heads(self, ledger: str) -> tuple[LaneHead, ...]:
        """Records that were the last of their lane, and must still be there."""
        return (*self._read_noted(ledger), *self._read_anchored(ledger))

    def note(self, ledger: str, head: LaneHead) -> None:
        """A lane ends here now. Not flushed to the disk: a mark that is a little old still stands in the same chain."""
        if self._folder is None:
            return
        text = f"{head.lane} {head.id} {head.count} {head.hash}".ljust(_SLOT - 1) + "\n"
        try:
            if self._file is None:
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._file = os.open(self._folder / ledger, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(self._file, text.encode(), head.lane * _SLOT)
        except OSError as error:
            self._folder = None  # said once; the anchors are still compared
            _log.warning("where the ledger ends cannot be noted, so a restored copy will not be noticed: %s", error)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _read_noted(self, ledger: str) -> list[LaneHead]:
        try:
            text = (self._folder / ledger).read_text("ascii") if self._folder is not None else ""
        except (OSError, UnicodeDecodeError):
            return []
        return [head for line in text.replace("\0", "").splitlines() if (head := _read_head(line.split())) is not None]

    def _read_anchored(self, ledger: str) -> list[LaneHead]:
        """The heads of the newest anchor of this ledger; whether it was signed well is for `audit verify` to say."""
        try:
            lines = self._anchors.read_bytes().splitlines() if self._anchors is not None else []
        except OSError:
            return []
        for line in reversed(lines):
            try:
                said: Any = msgspec.json.decode(msgspec.json.decode(line, type=Checkpoint).body)
                if said["ledger"] == ledger:
                    return [LaneHead(*head) for head in msgspec.convert(said["heads"], list[tuple[int, int, int, str]])]
            except (msgspec.DecodeError, msgspec.ValidationError, KeyError, TypeError):
                continue
        return []


def accepted_heads(body: str) -> list[tuple[int, int, str]]:
    """Lane, id and hash of the records without which a history was accepted, from the text of the record of that."""
    try:
        found = msgspec.json.decode(body)["arguments"]["missing"]
        return [(int(lane), int(number), str(text)) for lane, number, text in found]
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return []


def _read_head(parts: list[str]) -> LaneHead | None:
    """A slot as it was written; None for one that is empty or was damaged."""
    if len(parts) != 4 or not all(part.isdigit() for part in parts[:3]) or len(parts[3]) != _HEX:
        return None
    return LaneHead(int(parts[0]), int(parts[1]), int(parts[2]), parts[3])
