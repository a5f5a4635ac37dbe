"""In which texts words stand one behind the other: few are looked through, many are taken in."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import partial

from interlock.policy.provenance.normal_forms import words_of

_MOST_TRIED = 2_000
"""So many places of a word are tried; a value that is made of words which stand everywhere is found by then."""
_FEW_TEXTS, _SHORT_TEXTS = 200, 20_000
"""So many texts and characters are looked through as they are: to take their words in costs more."""


class TextWords:
    """Texts by their number, in the order in which they were added."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._stream: list[str] = []
        self._starts: list[int] = []
        self._places: defaultdict[str, array[int]] = defaultdict(partial(array, "Q"))
        self._fresh_chars = 0
        """Of what was added since words were taken in."""

    def add(self, text: str) -> None:
        """From now on this is found."""
        self._texts.append(text)
        self._fresh_chars += len(text)

    def may_stand(self, word: str) -> bool:
        """Whether one word is worth looking for; most names that a model looks something up by are new."""
        if not self._is_little() or word in self._places:
            return True
        return any(word in text for text in self._texts[len(self._starts) :])

    def _take_in(self) -> None:
        """Take the words in of what was added since, once that is too much to be looked through."""
        if self._is_little():
            return
        for text in self._texts[len(self._starts) :]:
            words, start = words_of(text), len(self._stream)
            self._starts.append(start)
            self._stream += words
            for place, word in enumerate(words, start):
                self._places[word].append(place)
        self._fresh_chars = 0

    def _is_little(self) -> bool:
        return self._fresh_chars <= _SHORT_TEXTS and len(self._texts) - len(self._starts) <= _FEW_TEXTS

    def find(self, words: list[str]) -> Iterator[int]:
        """The texts in which these words stand one behind the other."""
        self._take_in()
        if not words:
            return
        yield from self._find_taken_in(words)
        longest = max(words, key=len)
        for number in range(len(self._starts), len(self._texts)):
            text = self._texts[number]
            if longest in text and _is_part(words, words_of(text)):
                yield number

    def _find_taken_in(self, words: list[str]) -> Iterator[int]:
        if any(word not in self._places for word in words):
            return
        rarest = min(range(len(words)), key=lambda at: len(self._places[words[at]]))
        last = -1
        for place in self._places[words[rarest]][:_MOST_TRIED]:
            start = place - rarest
            if start < 0 or self._stream[start : start + len(words)] != words:
                continue
            number = bisect_right(self._starts, start) - 1
            end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self._stream)
            if number != last and start + len(words) <= end:
                last = number
                yield number


def _is_part(words: list[str], of: list[str]) -> bool:
    """Whether words stand in others one behind the other."""
    count = len(words)
    return any(word == words[0] and of[at : at + count] == words for at, word in enumerate(of))
