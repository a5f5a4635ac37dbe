"""Rows of which a field says none, counted in words without a figure: three are non-stop, two have no arrears."""

from __future__ import annotations

from interlock.answers.grounding.figure_states import FigureKind
from interlock.answers.grounding.state_words import StateTable
from interlock.answers.grounding.words import WordTable, words_in

NONE = "0"
"""The value that such rows share, as the path of their count has it."""


class NoneOfThem:
    """Whether words say of rows that they have none of what a field holds."""

    def __init__(self, table: StateTable, words: WordTable) -> None:
        self._table, self._words = table, words
        self._kinds = [FigureKind(one, words) for one in table.figures.values()]

    def says(self, field: str, part: str) -> bool:
        """Whether a part of a sentence says it of a field: by its own name and a "no", or by a word for none of it."""
        own = frozenset(one for one in self._words.in_name(field) if not one.startswith("="))
        denied = self._table.denies(part)
        if denied and any(own & self._words.meanings(word) for word, _place in words_in(part)):
            return True
        return any(kind.is_field(own) and kind.says_some(part, denied=denied) is False for kind in self._kinds)
