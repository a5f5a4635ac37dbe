"""Whether a sentence is in another language than English, by the small words that every sentence has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+){0,3}")
"""With what a hyphen joins to it: an e-ticket has no Italian "and" in it."""
_ENOUGH = 2


class ForeignWords:
    """The small words of some languages, and those of English."""

    def __init__(self, table: Mapping[str, Sequence[str]]) -> None:
        self._english, self._loans = frozenset(table["english"]), frozenset(table["loans"])
        self._others = frozenset(
            word for name, words in table.items() if name not in ("english", "loans") for word in words
        )

    def is_foreign(self, sentence: str) -> bool:
        """Whether its small words are those of another language, or its letters those of another script."""
        words = [word.lower() for word in _WORD.findall(sentence)]
        letters = [char for char in sentence if char.isalpha()]
        if letters and sum(not _is_latin(char) for char in letters) * 3 > len(letters):
            return True
        english = sum(word in self._english for word in words)
        return sum(word in self._others for word in words) >= max(_ENOUGH, english + 1)

    def has_foreign_word(self, sentence: str, known: Callable[[str], bool]) -> bool:
        """Whether it has a word with a letter that English has not, which is no loan word and stands nowhere else."""
        if sentence.isascii():
            return False
        words = (word.lower() for word in _WORD.findall(sentence) if not word.isascii())
        return any(
            any(char.isalpha() and not char.isascii() for char in word) and word not in self._loans and not known(word)
            for word in (one.removesuffix("'s").removesuffix("’s") for one in words)
        )


def _is_latin(char: str) -> bool:
    return char < "\u0250" or "\u1e00" <= char <= "\u1eff"
