"""The figures of a turn that others may be made from: worked out once, and asked by each draft that needs one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import islice

from interlock.answers.grounding.claims import Units
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.terms import Term

_MOST_COUNTED = 60
_LARGEST_COUNT = 10_000


def is_count(term: Term) -> bool:
    """Whether a figure may say how many there are of something."""
    return term.number == term.number.to_integral_value() and 1 < term.number <= _LARGEST_COUNT


class KnownTerms:
    """Values, counts, dates and times that can be put together, by column and by row."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        usable = [fact for fact in facts if fact.trusted and not fact.label]
        values = [
            (fact, Term(fact))
            for fact in usable
            if fact.number is not None and not fact.counted and not fact.echo and not (fact.prose and fact.asked)
        ]
        self.terms = [term for _fact, term in values]
        self.factors = [*islice((term for term in self.terms if is_count(term)), _MOST_COUNTED)]
        self._of_units: dict[Units, list[int]] = defaultdict(list)
        for place, term in enumerate(self.terms):
            self._of_units[term.units].append(place)
        self.wanted = [Term(fact) for fact in facts if fact.echo and fact.number is not None]
        self.counts = [Term(fact) for fact in usable if fact.counted][:_MOST_COUNTED]
        self.dates = [fact for fact in usable if all(fact.date)]
        self.times = [fact for fact in usable if fact.minutes is not None and not fact.echo]
        self.current: dict[str, set[str]] = defaultdict(set)
        """By kind: the names of what is there now, not of what a change has done away with."""
        for row in {id(fact.place.row): fact.place.row for fact in usable if not fact.stale}.values():
            for kind, names in row.names.items():
                self.current[kind] |= names
        self.columns: dict[str, list[Term]] = defaultdict(list)
        for fact, term in values:
            if not fact.stale:
                self.columns[term.column].append(term)
        self.texts: dict[int, list[Fact]] = defaultdict(list)
        for fact in usable:
            if (fact.text or fact.truth is not None) and not fact.echo:
                self.texts[id(fact.place.row)].append(fact)
        self._totals: dict[int, tuple[list[Term], Decimal]] = {}

    def first(self, fits: Callable[[Units], object], most: int) -> list[Term]:
        """The first of those whose units fit."""
        some = (place for units, places in self._of_units.items() if fits(units) for place in places[:most])
        return [self.terms[place] for place in sorted(some)[:most]]

    def last(self, fits: Callable[[Units], object], most: int) -> list[Term]:
        """The last of those whose units fit and that are not nought."""
        some: list[int] = []
        for units, places in self._of_units.items():
            if fits(units):
                some += islice((place for place in reversed(places) if self.terms[place].number), most)
        return [self.terms[place] for place in sorted(some)[-most:]]

    def total(self, some: list[Term]) -> Decimal:
        """The sum of a column or of a part of one, which is the same for every claim."""
        found = self._totals.get(id(some))
        if found is None:
            found = self._totals[id(some)] = (some, sum((term.number for term in some), Decimal(0)))
        return found[1]
