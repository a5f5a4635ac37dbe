"""What figures of the user's question come to: 12 boxes of 35 kg are 420 kg, two a day for 14 days are 28."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import combinations

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.surroundings import Surroundings
from interlock.answers.grounding.terms import Calculation, Term

_MOST_WANTED = 10
_YOUR = re.compile(r"\b(?:your|you need|the)\s+$", re.I)
_YOU = re.compile(r"\b(?:you|your)\b", re.I)
_PERIODS = frozenset({"day", "week", "month", "year"})


class QuestionProducts:
    """Products of two figures that only the user has said: they prove nothing, and may be reckoned with."""

    def __init__(self, wanted: Sequence[Term], around: Surroundings) -> None:
        self._wanted, self._around = wanted[:_MOST_WANTED], around
        self._used: dict[int, set[Decimal]] = {}

    def find(self, claim: Claim, *, cued: bool) -> Iterator[Calculation]:
        """The products that a figure may be: where the sentence says so, says both, or says that it is the user's."""
        stated, theirs = self._around.figures(claim), self._is_theirs(claim)
        for one, other in combinations(self._wanted, 2):
            units = (one.units | other.units) - _PERIODS
            if claim.units and not claim.units & units:
                continue
            if cued or theirs or {one.number, other.number} <= stated:
                yield Calculation(one.number * other.number, units, f"{one.path} * {other.path}", (one, other))

    def note(self, claim: Claim, made: Calculation) -> None:
        """Keep which figures of the user the sentence of a claim reckons with."""
        mine = {term.number for term in made.terms if any(term is one for one in self._wanted)}
        self._used.setdefault(self._around.number(claim), set()).update(mine)

    def is_reckoned_with(self, claim: Claim) -> bool:
        """Whether a figure is one of the user's that another one of its sentence was made from: so 25 come to $550."""
        return claim.number in self._used.get(self._around.number(claim), ())

    def _is_theirs(self, claim: Claim) -> bool:
        text = self._around.text
        before, behind = text[max(0, claim.start - 12) : claim.start], text[claim.end : claim.end + 12]
        if _YOUR.search(before) is None:
            return False
        return "your" in before.lower() or _YOU.search(behind) is not None
