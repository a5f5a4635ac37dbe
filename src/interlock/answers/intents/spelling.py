"""Small misspellings of an agent's own words: "perimiter" is no word, and one letter from "perimeter"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from rapidfuzz import process
from rapidfuzz.distance import OSA

from interlock.embedding.wordpiece import vocabulary

_WORD = re.compile(r"[^\W\d_]{4,}")  # shorter words are one letter from too many others
_LONG = 8
_MOST_CORRECTED = 300
"""So many different words of a text are looked at."""


class Spelling:
    """The words that people use with an agent, and what they look like when they are typed in haste."""

    def __init__(self, keywords: Iterable[str], examples: Iterable[str]) -> None:
        seen = Counter(word for text in examples for word in _words(text))
        self._own = sorted({word for text in keywords for word in _words(text)} | {w for w, n in seen.items() if n > 1})
        self._known = frozenset(self._own)
        self._words = vocabulary()

    def correct(self, text: str) -> str:
        """The text with words that are none, but nearly one of the agent's, spelled as that."""
        corrected: dict[str, str] = {}

        def correct(found: re.Match[str]) -> str:
            word = found[0]
            if word not in corrected:
                # Each is compared with all of the agent's words. Nobody mistypes so many; the rest stay as they are.
                corrected[word] = self._one(word) if len(corrected) < _MOST_CORRECTED else word
            return corrected[word]

        return _WORD.sub(correct, text)

    def _one(self, word: str) -> str:
        plain = word.lower()
        # Only what is no word at all is corrected: "pint" is one letter from "print", and means something else.
        if plain in self._words or plain in self._known:
            return word
        most = 1 if len(plain) < _LONG else 2
        # OSA counts two letters in the wrong order as one slip, and that is how people mistype.
        found = process.extractOne(plain, self._own, scorer=OSA.distance, score_cutoff=most)
        if found is None:
            return word
        return str(found[0]).capitalize() if word[:1].isupper() else str(found[0])


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]
