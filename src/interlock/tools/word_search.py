"""Many words in one text, in one pass: the work grows with the text and the words, not with one times the other."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

Span = tuple[int, int]

LEAST = 3
"""Shorter words stand in every second sentence: looking for them would hide the text and no secret."""
_FEW = 40
"""Up to so many words are looked for one by one, which the interpreter does at the speed of memory. Measured, that is
quicker than one pass for up to 40 of them in short texts, and for up to 500 in long ones."""
_MOST_OVERLAPS = 256
"""Of one word with itself, in one text: beyond, the whole text is taken for it instead of searching on and on."""
_WINDOWS = (64, 32, 16, 8, 4, LEAST)
"""How many characters of a word are looked up in the pass: the most that it has of these. So words that begin alike
are told apart by as much of them as there is, and there are six passes at most."""
_WORK_PER_LETTER = 100
_WORK_IN_ANY_CASE = 10_000_000
"""Characters that may be compared in one text beside the pass itself. Only words that repeat themselves, in a text that
does so too, come near it; then the whole text is taken for them."""
_PARTIAL = re.compile(r"(?:%[0-9a-f]?|\\(?:u[0-9a-f]{0,3}|x[0-9a-f]?)?|&#?[0-9a-z]{0,8})$", re.IGNORECASE)
_LONGEST_PARTIAL = 10
"""An escape that was cut in its middle, and how long it can be."""
_CUTS = ("…", "...")
"""What stands where a text was cut."""


class WordIndex:
    """Words, and where they stand in texts."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = frozenset(words)
        self._sorted = sorted(self._words)
        self._longest = max(map(len, self._words), default=0)
        self._beginnings = frozenset(word[:LEAST] for word in self._words)
        self._lengths: dict[int, dict[str, list[int]]] = {}
        if len(self._words) > _FEW:
            self._index()

    def _index(self) -> None:
        found: dict[int, dict[str, set[int]]] = {}
        for word in self._words:
            window = next(window for window in _WINDOWS if window <= len(word))
            found.setdefault(window, {}).setdefault(word[:window], set()).add(len(word))
        self._lengths = {
            window: {head: sorted(lengths, reverse=True) for head, lengths in heads.items()}
            for window, heads in found.items()
        }

    def find(self, text: str) -> Iterator[Span]:
        """Where words stand: of those that begin at one place the longest; all of the text where that took too long."""
        if len(self._words) <= _FEW:
            for word in self._sorted:
                yield from _occurrences(text, word)
            return
        left = _work(text)
        for window, heads in self._lengths.items():
            for start in [at for at in range(len(text) - window + 1) if text[at : at + window] in heads]:
                for length in heads[text[start : start + window]]:
                    left -= length
                    part = text[start : start + length]  # at the end of the text it may be a shorter word
                    if part in self._words:
                        yield start, start + len(part)
                        break
                if left < 0:
                    yield 0, len(text)
                    return

    def find_cut(self, text: str) -> Iterator[Span]:
        """Where the beginning of a word stands before an ellipsis: what somebody has cut is still half of it."""
        left: int | None = None
        for mark in _CUTS:
            end = text.find(mark)
            while end >= 0:
                left = _work(text) if left is None else left
                start, work = self._cut_start(text, end)
                left -= work
                if left < 0:
                    yield 0, len(text)
                    return
                if start is not None:
                    yield start, end
                end = text.find(mark, end + len(mark))

    def _cut_start(self, text: str, end: int) -> tuple[int | None, int]:
        """Where the longest beginning of a word that ends at a place begins, and how much was compared to find it."""
        partial = _PARTIAL.search(text, max(0, end - _LONGEST_PARTIAL), end)
        end = end if partial is None else partial.start()
        first = max(0, end - self._longest)
        work, most = end - first, _work(text)
        for start in range(first, end - LEAST + 1):
            if text[start : start + LEAST] in self._beginnings:
                work += end - start
                if self._begins(text[start:end]):
                    return start, work
                if work > most:
                    break
        return None, work

    def _begins(self, part: str) -> bool:
        """Whether a word begins with the part: in their order, those that do come right after it."""
        place = bisect_left(self._sorted, part)
        return place < len(self._sorted) and self._sorted[place].startswith(part)


def _work(text: str) -> int:
    return _WORK_IN_ANY_CASE + _WORK_PER_LETTER * len(text)


def _occurrences(text: str, part: str) -> Iterator[Span]:
    """Every place of a part in a text, also where it overlaps itself."""
    start, last_end, overlaps = text.find(part), 0, 0
    while start >= 0:
        if start < last_end:
            overlaps += 1
            if overlaps > _MOST_OVERLAPS:
                yield 0, len(text)
                return
        last_end = start + len(part)
        yield start, last_end
        start = text.find(part, start + 1)
