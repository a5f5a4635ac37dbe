"""The units that a question asks for: "in pounds" is no value of an argument, but how the answer is to be printed."""

from __future__ import annotations

import re

from interlock.answers.grounding import Vocabulary
from interlock.answers.sessions.reference_words import words_of

_WORD = re.compile(r"[^\W_]+")
_MOST_CHARS = 20_000
_LONGEST_UNIT = 30
_MOST_UNITS = 4


def asked_units(text: str, vocabulary: Vocabulary) -> tuple[str, ...]:
    """The words for units that a text asks for: behind "in" or "how many", or alone. "In 3 miles" asks for none."""
    found, before = list[str](), ""
    words = _WORD.findall(text[:_MOST_CHARS])
    for word in words:
        if (not before or before in words_of("before_units")) and _is_unit(word, vocabulary):
            found.append(word)
        before = word.lower()
    return tuple(dict.fromkeys(found))[:_MOST_UNITS]


def _is_unit(word: str, vocabulary: Vocabulary) -> bool:
    # One letter may be anything, and "in" is a word before it is an inch.
    long_enough = 1 < len(word) <= _LONGEST_UNIT
    return long_enough and word.lower() not in words_of("fillers") and bool(vocabulary.units.of(word))
