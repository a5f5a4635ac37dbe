"""The figures that others may be made from: of the results once, and behind them those that were made for an answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

from interlock.answers.grounding.claims import Units
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.groups import Groups
from interlock.answers.grounding.row_counts import KnownCounts
from interlock.answers.grounding.terms import Term
from interlock.answers.grounding.time_spans import KnownSpans
from interlock.answers.grounding.words import WordTable

_MOST_COUNTED = 60
_Kinds = dict[tuple[Units, bool], list[tuple[int, Term]]]
"""By unit, and whether they are more than nothing: figures with their places."""


class KnownTerms:
    """What is known of the figures of all results, however many answers are held against them."""

    def __init__(self, facts: Sequence[Fact], words: WordTable) -> None:
        numbers = facts_of(facts, "number")
        usable = [fact for fact in numbers if fact.trusted and not fact.label]
        values = [
            (fact, Term(fact)) for fact in usable if not (fact.counted or fact.echo or (fact.prose and fact.asked))
        ]
        self.terms = [term for _fact, term in values]
        self.wanted = [Term(fact) for fact in numbers if fact.echo]
        """The figures of the question."""
        self.counts = [Term(fact) for fact in usable if fact.counted][:_MOST_COUNTED]
        self.spans = KnownSpans(facts, self.terms)
        self.groups = Groups(values, facts, words)
        self.rows = KnownCounts(facts)
        self.asked = " ".join(fact.text for fact in facts_of(facts, "text") if fact.echo)
        self.factors = list(islice(filter(is_count, self.terms), _MOST_COUNTED))
        """The first that a price may be multiplied with."""
        self.kinds = _Kinds()
        self.fresh = frozenset({field_of(term) for term in self.terms if not term.stale})
        """The fields of which the results have a value that nothing has replaced."""
        for place, term in enumerate(self.terms):
            self.kinds.setdefault((term.units, bool(term.number)), []).append((place, term))


class TermList:
    """The figures of the results, and behind them what was made from them: it grows with an answer."""

    def __init__(self, known: KnownTerms) -> None:
        self._known = known
        self._made: list[Term] = []
        self._made_kinds: _Kinds = defaultdict(list)

    def append(self, term: Term) -> None:
        """One more that was made."""
        place = len(self._known.terms) + len(self._made)
        self._made.append(term)
        self._made_kinds[(term.units, bool(term.number))].append((place, term))

    def last(self, most: int) -> list[Term]:
        """The last of them, in order."""
        return [*self._known.terms[-most:], *self._made][-most:]

    def last_in(self, fits: Callable[[Units], bool], most: int, *, empty: bool = True) -> list[Term]:
        """The last of them in a unit that fits; `empty`: those of nothing, too. Each unit is looked at once."""
        found = [
            one
            for kinds in (self._known.kinds, self._made_kinds)
            for (units, some), terms in kinds.items()
            if (some or empty) and fits(units)
            for one in terms[-most:]
        ]
        return [term for _place, term in sorted(found, key=lambda one: one[0])[-most:]]

    def factors(self) -> Iterator[Term]:
        """The first that a price may be multiplied with: of the results, made, counted, asked for."""
        more = chain(self._made, self._known.counts, self._known.wanted)
        return islice(chain(self._known.factors, filter(is_count, more)), _MOST_COUNTED)


def is_count(term: Term) -> bool:
    """Whether a figure may be how many there are of something."""
    return term.number == term.number.to_integral_value() and 1 < term.number <= 10_000


def field_of(term: Term) -> str:
    """The field that a figure is a value of, in whichever row."""
    return term.column.rpartition(".")[2]
