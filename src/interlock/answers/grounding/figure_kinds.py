"""Words that say of a figure whether it is none or some, and the fields that they speak of, as a table has them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from interlock.answers.grounding.state_words import StateTable
from interlock.answers.grounding.trigger_words import ANY, TriggerWords
from interlock.answers.grounding.words import WordTable


class FigureKind:
    """One thing that words say without a figure: which fields hold it, and the words for none and for some of it."""

    def __init__(self, table: Mapping[str, Any], words: WordTable, triggers: TriggerWords) -> None:
        self._fields = [stems_of(name, words) for name in table["fields"]]
        self._other = frozenset().union(*(stems_of(name, words) for name in table.get("other_fields", ())))
        self._sizes = [stems_of(name, words) for name in table.get("sizes", ())]
        self._none, self._some = (_pattern(table.get(side, ())) for side in ("none", "some"))
        self.bit = triggers.add(self._none, self._some)
        """Of a text without it nothing of this is said."""
        self.each = bool(table.get("each"))
        """One field that says some is enough against none; otherwise all of them have to."""

    def is_field(self, own: frozenset[str]) -> bool:
        """Whether a field with such words in its name says how much of it there is."""
        return any(one <= own for one in self._fields) and not own & self._other

    def is_size(self, own: frozenset[str]) -> bool:
        """Whether a field says how many there can be: what is as large as that is full."""
        return own in self._sizes

    def says_some(self, part: str, *, denied: bool, bits: int = ANY) -> bool | None:
        """Whether a part of a sentence says that there is some, or none; None if it speaks of something else."""
        for pattern, some in ((self._none, False), (self._some, True)) if bits & self.bit else ():
            if pattern is not None and pattern.search(part) is not None:
                return some != denied
        return None

    def says_none(self, text: str) -> bool:
        """Whether a text of a result says none in its own words: a status that is `sold_out`."""
        return self._none is not None and self._none.search(text.replace("_", " ")) is not None


def figure_kinds(table: StateTable, words: WordTable) -> dict[str, FigureKind]:
    """All of a table, by name."""
    return {name: FigureKind(one, words, table.triggers) for name, one in table.figures.items()}


def stems_of(name: str, words: WordTable) -> frozenset[str]:
    """What the words of a name stand for themselves."""
    return frozenset(one for one in words.in_name(name) if not one.startswith("="))


def _pattern(listed: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile(rf"\b(?:{'|'.join(listed)})", re.I) if listed else None
