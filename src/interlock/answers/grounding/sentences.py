"""Sentences, lines and table cells of a text, and within a sentence the breaks between its parts."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import pairwise

from interlock.values import Value

# A full stop ends a sentence before a capital, a digit or a mark; not behind a short word that is written with one.
_END = re.compile(
    r"(?=[.!?…])(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bSt)(?<!\bNo)(?<!\bvs)(?<!\bapprox)(?<!\bMrs)(?<!\be\.g)(?<!\bi\.e)(?<!\b[A-Z])"
    r"[.!?…]+[\"')\]]*(?:\s+(?=[\"'(\[]?[A-Z0-9¿¡$€£+*•–-])|\s*$)|\n+|;\s"
)
# The colon of a time and the comma of a figure break nothing.
_BREAK = re.compile(
    r"(?=[;()\[\]|,:—\s]|\b[abopstvw])(?:[;()\[\]|]|(?<!\d)[,:]|[,:](?!\d)|\s[–—-]\s|—|\b(?:and|but|while|whereas|though|although|plus|versus|vs|or|then|so|because|since)\b)",
    re.I,
)
_CELL = re.compile(r"\|")
_RULE = re.compile(r"^[\s|:-]+$")


class SentenceSpan(Value, frozen=True):
    """One sentence, or one line of a list, by its place in the text."""

    start: int
    end: int
    paragraph: int
    """Which block of lines it is in: what a sentence leaves out is said before it in the same block."""
    header: tuple[tuple[int, int], ...] = ()
    """The cells of the table's head, where it is a row of one."""
    cells: tuple[tuple[int, int], ...] = ()

    def head_of(self, place: int) -> tuple[int, int] | None:
        """The head of the column that a place of the text is in."""
        at = next((n for n, (start, end) in enumerate(self.cells) if start <= place < end), None)
        return self.header[at] if at is not None and at < len(self.header) else None


class Sentences:
    """The sentences of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.all = tuple(split_sentences(text))
        self._starts = [one.start for one in self.all]
        self._breaks = [match.start() for match in _BREAK.finditer(text)]

    def at(self, place: int) -> int:
        """The number of the sentence that a place is in."""
        number = bisect_right(self._starts, place) - 1
        return number if number > 0 else 0

    def parts(self) -> list[tuple[int, int, int]]:
        """The parts of all sentences, between the breaks, each with the number of its sentence."""
        found = []
        for number, sentence in enumerate(self.all):
            at = sentence.start
            first = bisect_right(self._breaks, sentence.start - 1)
            for n in range(first, len(self._breaks)):
                place = self._breaks[n]
                if place >= sentence.end:
                    break
                found.append((at, place, number))
                at = place
            found.append((at, sentence.end, number))
        return [one for one in found if one[1] - one[0] > 2]

    def next_break(self, start: int, end: int) -> int:
        """Where the first break behind a place is; the end if there is none before it."""
        at = bisect_right(self._breaks, start - 1)
        return min(end, self._breaks[at]) if at < len(self._breaks) else end

    def breaks(self, start: int, end: int) -> int:
        """How many breaks stand between two places."""
        count = bisect_right(self._breaks, end - 1) - bisect_right(self._breaks, start - 1)
        return count if count > 0 else 0


def split_sentences(text: str) -> list[SentenceSpan]:
    """Where the sentences of a text stand."""
    found: list[SentenceSpan] = []
    header: tuple[tuple[int, int], ...] = ()
    at = paragraph = 0
    ends = [(match.start(), match.end()) for match in _END.finditer(text)] + [(len(text), len(text))]
    for stop, after in ends:
        if text[at:after].strip():
            line = text[at:stop]
            cells = _cells(text, at, stop) if line.count("|") >= 2 else ()
            if cells and not header:
                header = cells
            elif not cells:
                header = ()
            if not (cells and _RULE.match(line)):
                found.append(SentenceSpan(at, after, paragraph, header if cells and cells != header else (), cells))
        paragraph += text.count("\n", stop, after) > 1
        at = after
    return found or [SentenceSpan(0, len(text), 0)]


def _cells(text: str, start: int, end: int) -> tuple[tuple[int, int], ...]:
    marks = [start - 1, *(match.start() for match in _CELL.finditer(text, start, end)), end]
    cells = [(left + 1, right) for left, right in pairwise(marks)]
    # A row that begins and ends with a mark has nothing before and behind them.
    if cells and not text[cells[0][0] : cells[0][1]].strip():
        cells = cells[1:]
    if cells and not text[cells[-1][0] : cells[-1][1]].strip():
        cells = cells[:-1]
    return tuple(cells)
