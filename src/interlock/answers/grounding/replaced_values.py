"""Values that a change has replaced, said as how it is: "her credit is 130" after the 130 were paid out.

The figure of what was moved stands in the result of the change, too, under a name that says nothing of what it was of.
It may be said as that; where the words before it name the field that has another value since, it is that field's.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from interlock.answers.grounding.binding import Bound
from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.fact_kinds import facts_of

_NEAR = 0.3
_DEED = re.compile(r"\b(?:I|we|I've|we've|been|was|were|from|old)\b", re.I)
_BREAK = re.compile(r"[.;:!?\n(),]\s")
_LEAD = 80


class ReplacedValues:
    """By field: what it says now of which things."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._now: dict[str, list[tuple[frozenset[str], Decimal]]] = defaultdict(list)
        old = {fact.place.name for fact in facts_of(facts, "stale") if fact.number is not None}
        for fact in facts_of(facts, "number") if old else ():
            if fact.place.name in old and fact.number is not None and not (fact.stale or fact.echo or fact.asked):
                self._now[fact.place.name].append((_names(fact), fact.number))

    def is_said(self, fact: Fact, claim: Claim, bound: Bound, text: str) -> bool:
        """Whether a figure is said as the present value of a field that a change has given another one."""
        if not fact.stale or fact.number is None or bound.fit(fact.place.row) < 0:
            return False
        before = _BREAK.split(text[max(0, claim.start - _LEAD) : claim.start])[-1]
        start = claim.start - len(before)
        if _DEED.search(before) is not None:
            return False
        named = any(word.near >= _NEAR and start <= word.place < claim.start for word in bound.naming(fact.own))
        mine = _names(fact)
        known = [number for names, number in self._now.get(fact.place.name, ()) if names & mine]
        return named and bool(known) and fact.number not in known


def _names(fact: Fact) -> frozenset[str]:
    return frozenset[str]().union(*(same for row in fact.place.row.chain() for same in row.names.values()))
