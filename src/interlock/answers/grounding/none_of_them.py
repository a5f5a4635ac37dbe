"""Rows of which a field says none, counted in words without a figure: three are non-stop, two have no arrears."""

from __future__ import annotations

from interlock.answers.grounding.figure_kinds import stems_of
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.answers.grounding.words import words_in

NONE = "0"
"""The value that such rows share, as the path of their count has it."""


class NoneOfThem:
    """Whether words say of rows that they have none of what a field holds."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._table, self._words = vocabulary.states, vocabulary.words
        self._kinds = list(vocabulary.figure_kinds.values())

    def says(self, part: str, *fields: str) -> bool:
        """Whether a part of a sentence says it of a field: by its own name and a "no", or by a word for none of it."""
        if not fields:
            return False
        bits = self._table.triggers.find(part)
        denied = self._table.denies(part, bits)
        kinds = [kind for kind in self._kinds if bits & kind.bit]
        if not denied and not kinds:
            return False
        none = [kind for kind in kinds if kind.says_some(part, denied=denied) is False]
        spoken = self._words.of_all(word for word, _place in words_in(part)) if denied else frozenset()
        owns = (stems_of(field, self._words) for field in fields) if none or spoken else ()
        return any(own & spoken or any(kind.is_field(own) for kind in none) for own in owns)
