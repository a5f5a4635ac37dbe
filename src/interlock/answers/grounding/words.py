"""Words as they are compared: their stems, the groups of words that mean the same, and the words of a field's name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from interlock.answers.grounding.field_names import snake_name

Meanings = frozenset[str]
"""What a word may stand for: its stem, and the names of the groups that it belongs to."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ies", "ied", "ers", "er", "ed", "es", "ly", "s")
_SHORTEST = 3
_LONGEST_KEPT = 500
"""What a shorter text stands for is remembered: names of fields and descriptions of tools come again and again."""


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A word without the ending that its form gives it: closures, closed and closing are one."""
    word = word.lower().replace("’", "'")
    word = word.removesuffix("'s")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST and not (ending == "s" and word[-2] == "s"):
            word = word[: -len(ending)] + ("y" if ending in ("ies", "ied") else "")
            break
    if len(word) > _SHORTEST and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] if len(word) > _SHORTEST and word.endswith("e") else word


class WordTable:
    """Which words mean the same, which are short for others, and which say nothing about what a value is."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._empty = frozenset(table["empty"])
        self._short: dict[str, str] = table["short"]
        self._groups: dict[str, frozenset[str]] = {}
        for name, words in table["groups"].items():
            for word in words:
                kept = self._groups.get(stem(word), frozenset())
                self._groups[stem(word)] = kept | {f"={name}"}
        self.amounts: Meanings = frozenset(f"={name}" for name in table["amounts"])
        """What fields are called that hold money or a length of time, whether or not they name its unit."""
        self.containers: Meanings = frozenset(map(stem, table["containers"]))
        """What things are counted in, no two of which are the same."""
        self._known: dict[str, Meanings] = {}
        self._in_name = lru_cache(maxsize=4096)(self._find_in_name)

    def meanings(self, word: str) -> Meanings:
        """What a word may stand for; nothing for one that is in any sentence."""
        found = self._known.get(word)
        if found is None:
            lower = word.lower()
            long = self._short.get(lower, lower)
            root = stem(long)
            found = frozenset() if long in self._empty else frozenset({root}) | self._groups.get(root, frozenset())
            if len(self._known) < 20_000:
                self._known[word] = found
        return found

    def of_all(self, words: Iterable[str]) -> Meanings:
        """What any of some words may stand for."""
        return frozenset[str]().union(*map(self.meanings, words))

    def in_name(self, name: str) -> Meanings:
        """What the words of a field's name, or of a sentence about it, stand for."""
        return self._in_name(name) if len(name) <= _LONGEST_KEPT else self._find_in_name(name)

    def _find_in_name(self, name: str) -> Meanings:
        return self.of_all(_WORD.findall(snake_name(name).replace("_", " ")))


def words_in(text: str) -> Iterable[tuple[str, int]]:
    """The words of a text, and where each begins."""
    return ((match[0], match.start()) for match in _WORD.finditer(text))


def has_stem(words: Meanings) -> bool:
    """Whether a word itself is among them, and not only the groups that it belongs to."""
    return any(not word.startswith("=") for word in words)
