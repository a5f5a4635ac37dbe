"""The parts of an answer's sentences, each with what its words say may be in it: looked through once for all checks."""

from __future__ import annotations

from interlock.answers.grounding.sentences import Sentences
from interlock.answers.grounding.state_words import StateTable
from interlock.values import Value


class SaidPart(Value, frozen=True):
    """What stands between two breaks of a sentence."""

    start: int
    end: int
    text: str
    sentence: int
    """The number of its sentence."""
    bits: int
    """The patterns of the table of states that may be in it."""


class SaidParts:
    """All parts of an answer, in order."""

    def __init__(self, sentences: Sentences, table: StateTable) -> None:
        self.sentences, self._table = sentences, table
        text, find = sentences.text, table.triggers.find
        self.all = [
            SaidPart(start, end, said := text[start:end], number, find(said))
            for start, end, number in sentences.parts()
        ]
        self._bits: dict[int, int] = {}
        self._conditional: dict[int, bool] = {}

    def bits_of_sentence(self, number: int) -> int:
        """What may be in a whole sentence: a part that is no more than a mark is none of its parts."""
        found = self._bits.get(number)
        if found is None:
            found = self._bits[number] = self._table.triggers.find(self.sentence(number))
        return found

    def sentence(self, number: int) -> str:
        """A whole sentence."""
        one = self.sentences.all[number]
        return self.sentences.text[one.start : one.end]

    def is_conditional(self, number: int) -> bool:
        """Whether a sentence claims nothing: a question, a condition, what somebody says."""
        found = self._conditional.get(number)
        if found is None:
            bits = self.bits_of_sentence(number)
            found = self._conditional[number] = self._table.is_conditional(self.sentence(number), bits)
        return found
