"""Figures that something is said to be above or below: less than one percent, where the field says 0.8."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from interlock.answers.grounding.binding import Bound
from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.index import FactIndex

_ABOVE = re.compile(r"\b(?:more than|above|at least|exceeding|no less than|not less than|higher than)\s+[$€£]?$", re.I)
_BELOW = re.compile(
    r"\b(?:less than|fewer than|under|below|at most|no more than|not more than|lower than)\s+[$€£]?$", re.I
)
_LOOKED_AT = 24
_NAMED = 0.3
"""So near stands a word that says which field is compared."""
_AT_MOST_ABOVE, _AT_LEAST_BELOW = Decimal("1.5"), Decimal("0.5")
"""Further off nobody names the figure: five is less than a hundred, and that says nothing."""


def find_compared(text: str, claim: Claim, bound: Bound, index: FactIndex) -> Iterator[Fact]:
    """The values of the field beside a figure that are above or below it, as the words before it say."""
    if claim.kind != "number" or claim.number is None or claim.number <= 0:
        return
    before = text[max(0, claim.start - _LOOKED_AT) : claim.start]
    if _ABOVE.search(before):
        low, high = claim.number, claim.number * _AT_MOST_ABOVE
    elif _BELOW.search(before):
        low, high = claim.number * _AT_LEAST_BELOW, claim.number
    else:
        return
    for fact in index.between(low, high):
        if fact.number is None or fact.echo or fact.asked or fact.label or fact.counted or fact.prose:
            continue
        same = claim.units & (fact.units | fact.money) if claim.units else not fact.units
        named = any(word.near >= _NAMED for word in bound.naming(fact.own))
        if same and named and low <= fact.number <= high:
            yield fact
