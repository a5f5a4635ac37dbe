"""The words that deny a state, leave it open, or name it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from interlock.answers.grounding.trigger_words import ANY, TriggerWords
from interlock.answers.grounding.words import stem

_ALL = re.compile(r"\b(?:all|both|every|each|everything|none|neither|nobody|nothing)\b|^\W*no\s+[a-z]", re.I)
_NOT_ALL = re.compile(
    r"\b(?:not|nearly|almost|of|but|except|at|after|the other)\s+(?:all|both|every|each)\b|\ball but\b", re.I
)
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SHORTEST_UN = 6
_NEITHER = re.compile(r"\bneither\b[^.;:\n]{1,80}\bnor\b", re.I)
_TO_KNOW = re.compile(r"\b(?:should|may|might)\s(?:also\s)?(?:know|note|be aware|be told|want to know)\b", re.I)
"""What somebody should know is said to be so."""
NO = re.compile(r"\b(?:no|without(?:\s+an?|\s+any)?)\s+(?=[a-z])", re.I)
WITH = re.compile(r"\b(?:has|have|with|offers?|includes?|there (?:is|are))\s+(?:an?|one|its own)\s+(?=[a-z])", re.I)
"""Behind them stands what something is without, or what it has."""


class StateTable:
    """Words for states, those that deny, and those that say something of several things at once.

    Where it is asked several things of one text, `bits` is what `triggers` found in it.
    """

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._denies = re.compile(rf"(?:\b(?:{'|'.join(table['denials'])})\b(?!\.\s?\d)|n't\b)", re.I)
        self._to_come = re.compile(rf"\b(?:{'|'.join(table['to_come'])})\s+to\s+be\b|^\W*to\s+be\b", re.I)
        self.partly, self.there = frozenset(table["partly"]), frozenset(table["there"])
        # In lower case: the month of May leaves nothing open.
        self._open = re.compile(rf"\b(?:{'|'.join(table['open'])})\b")
        self._conditions = re.compile(rf"\b(?:{'|'.join(table['conditions'])})\b|\?", re.I)
        self._several = re.compile(rf"\b(?:{'|'.join(table['several'])})\b|(?<=\d\s)\bof\b", re.I)
        self._still = re.compile(rf"\b(?:{'|'.join(table['still'])})\b", re.I)
        self._pairs: dict[str, list[tuple[str, int]]] = {}
        """By the stem of a word: the pairs of opposites that it is in, and on which side."""
        self.triggers = TriggerWords()
        self._bit_of_denial = self.triggers.add(self._denies, self._to_come, _NEITHER)
        self._bit_of_open, self._bit_of_condition = self.triggers.add(self._open), self.triggers.add(self._conditions)
        self._bit_of_several, self._bit_of_still = self.triggers.add(self._several), self.triggers.add(self._still)
        self._phrases: list[tuple[re.Pattern[str], str, int, int]] = []
        for name, sides in table["opposites"].items():
            for side, listed in enumerate(sides):
                for word in listed:
                    self._pairs.setdefault(stem(word), []).append((name, side))
                spelled = "|".join(map(re.escape, listed))
                pattern = re.compile(rf"\b(?:{spelled})\b", re.I)
                self._phrases.append((pattern, name, side, self.triggers.add(pattern)))
        self.bit_of_no, self.bit_of_with = self.triggers.add(NO), self.triggers.add(WITH)
        self._bits_of_phrases = sum(bit for _pattern, _name, _side, bit in self._phrases)
        self.bits_of_opposites = self._bits_of_phrases | self.bit_of_no | self.bit_of_with
        """Of a text without any of them nothing turns round what a row says."""
        self.flag_words = frozenset(map(stem, table["flags"]))
        """Words of a flag's name that do not say what it is about."""
        self.kinds = frozenset(table["kinds"])
        self.figures: Mapping[str, Any] = table["figures"]
        """What is said of figures without a figure, as it stands in the table."""

    def denies(self, text: str, bits: int = ANY) -> bool:
        """Whether a part of a sentence denies what it says; twice is not at all. What is still to be so is not."""
        if not bits & self._bit_of_denial:
            return False
        twice = len(_NEITHER.findall(text))  # "neither a room nor a deposit" is one denial
        return (len(self._denies.findall(text)) + len(self._to_come.findall(text)) - twice) % 2 == 1

    def has_denial(self, text: str) -> bool:
        """Whether anything in it is denied."""
        return self._denies.search(text) is not None

    def is_of_several(self, text: str, bits: int = ANY) -> bool:
        """Whether it speaks of some of many."""
        return bool(bits & self._bit_of_several) and self._several.search(text) is not None

    def sides_of(self, stems: Iterable[str]) -> Iterator[tuple[str, int]]:
        """The pairs of opposites that words are in, and on which side: 0 or 1."""
        return (pair for one in stems for pair in self._pairs.get(one, ()))

    def opposite_words(self, part: str, bits: int = ANY) -> Iterator[tuple[str, int]]:
        """The pairs of opposites that a part of a sentence has a word of, and which side it is on."""
        if bits & self._bits_of_phrases:
            for pattern, name, side, bit in self._phrases:
                if bits & bit and pattern.search(part) is not None:
                    yield name, side

    def is_still(self, part: str, bits: int = ANY) -> bool:
        """Whether a part of a sentence says of things that they are there as before."""
        return bool(bits & self._bit_of_still) and self._still.search(part) is not None

    def is_of_all(self, part: str, count: int) -> bool:
        """Whether a part of a sentence says something of all that there is, and not only of as many as are counted."""
        if _ALL.search(part) is None or _NOT_ALL.search(part) is not None:
            return False
        said = {*re.findall(r"\d+", part), *(word.lower() for word in re.findall(r"[A-Za-z]+", part))}
        return said.isdisjoint({str(count), *_NUMBERS[count : count + 1]})

    def without_un(self, word: str) -> str:
        """What a word denies by its beginning: the "paid" of "unpaid"; nothing if it denies nothing."""
        return word[2:] if word[:2].lower() == "un" and len(word) >= _SHORTEST_UN else ""

    def is_open(self, part: str, bits: int = ANY) -> bool:
        """Whether a part of a sentence claims nothing about how it is now."""
        if not bits & self._bit_of_open:
            return False
        return self._open.search(_TO_KNOW.sub("", part[:1].lower() + part[1:])) is not None

    def is_conditional(self, sentence: str, bits: int = ANY) -> bool:
        """Whether a whole sentence claims nothing: a question, a condition, what somebody says."""
        return bool(bits & self._bit_of_condition) and self._conditions.search(sentence) is not None
