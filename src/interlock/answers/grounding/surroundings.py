"""What stands around a figure of an answer: the other figures and the words of its sentence, and of the one before."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.sentences import Sentences
from interlock.answers.grounding.words import Meanings, WordTable

_NEXT, _LONGEST_PART = 4, 300


class Surroundings:
    """The sentences of an answer, with the figures and words of each; what a sentence leaves out, the last one said."""

    def __init__(self, sentences: Sentences, said: Sequence[Claim], words: WordTable) -> None:
        self._sentences, self._words = sentences, words
        self.text = sentences.text
        self._claims: dict[int, list[Claim]] = defaultdict(list)
        for claim in said:
            self._claims[sentences.at(claim.start)].append(claim)
        self._meanings: dict[int, Meanings] = {}

    def number(self, claim: Claim) -> int:
        """Which sentence a claim stands in."""
        return self._sentences.at(claim.start)

    def sentence(self, claim: Claim) -> str:
        """The sentence that a claim stands in."""
        one = self._sentences.all[self.number(claim)]
        return self.text[one.start : one.end]

    def behind(self, claim: Claim) -> str:
        """What follows a claim, up to the next break or the end of its sentence."""
        end = self._sentences.all[self.number(claim)].end
        return self.text[claim.end : self._sentences.next_break(claim.end, end)]

    def beside(self, claim: Claim) -> list[Claim]:
        """The claims of the same sentence."""
        return self._claims[self.number(claim)]

    def next_to(self, claim: Claim) -> list[Claim]:
        """The few claims before and behind one in its sentence, with it."""
        here = self.beside(claim)
        at = bisect_left(here, claim.start, key=lambda one: one.start)
        return here[max(0, at - _NEXT) : at + _NEXT + 1]

    def figures(self, claim: Claim, *, earlier: bool = False) -> set[Decimal]:
        """The other figures of the same sentence; and those of the sentence before."""
        found = {one.number for one in self.beside(claim) if one is not claim and one.number is not None}
        if earlier:
            found |= {one.number for one in self._claims.get(self.before(claim), ()) if one.number is not None}
        return found

    def up_to_break(self, place: int) -> str:
        """What stands behind a place, up to the next break of its sentence."""
        end = self._sentences.all[self._sentences.at(place)].end
        return self.text[place : min(place + _LONGEST_PART, self._sentences.next_break(place, end))]

    def words(self, claim: Claim, *, earlier: bool = False) -> Meanings:
        """What the words of the sentence stand for that a claim stands in; and those of the sentence before."""
        here = self._of(self.number(claim))
        return here | self._of(self.before(claim)) if earlier else here

    def before(self, claim: Claim) -> int:
        """The sentence before that of a claim; -1 if it is the first of its block."""
        number = self.number(claim)
        all_of_them = self._sentences.all
        return number - 1 if number and all_of_them[number - 1].paragraph == all_of_them[number].paragraph else -1

    def _of(self, number: int) -> Meanings:
        if number < 0:
            return frozenset()
        if number not in self._meanings:
            one = self._sentences.all[number]
            self._meanings[number] = self._words.in_name(self.text[one.start : one.end])
        return self._meanings[number]
