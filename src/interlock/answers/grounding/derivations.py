"""Figures that follow from several values: sums, differences, averages, shares, products, counts and spans of time.

A figure is taken for derived only where the sentence says how: a word such as "total" or "left", or a share of
something. What can be combined is bounded: columns of a table, the values of a row, and values of one unit.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal, DivisionByZero, InvalidOperation
from itertools import combinations

from interlock.answers.grounding.binding import Bound
from interlock.answers.grounding.claims import Claim, Units
from interlock.answers.grounding.cues import Cues
from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.known_terms import KnownTerms, is_count
from interlock.answers.grounding.mentions import Mention
from interlock.answers.grounding.rows import NOWHERE
from interlock.answers.grounding.terms import Calculation, Term
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.answers.grounding.words import Meanings

_MOST_PAIRED = 90
"""So many values are put together in pairs, the first that were read."""
_MOST_ROWS = 500
_MOST_GROUPS = 60
_TIME_UNITS = frozenset({"minute", "hour", "day", "week", "month", "year"})
_DAYS = frozenset({"day", "week"})
_OF = re.compile(r"\s?(?:of|in)\b", re.I)
_TIMES = re.compile(r"\s?(?:times|x|×)\b", re.I)
_COMPARED = re.compile(
    r"\b(?:(?P<above>more than|over|above|at least|exceed(?:s|ing)?|longer than|higher than|greater than)"
    r"|(?P<below>less than|under|below|at most|fewer than|shorter than|lower than|within))\s+(?:the\s+)?[$€£]?$",
    re.I,
)
_MOST_COUNTED = 60
_MOST_SHARED = 2_000
_MOST_BESIDE = 30
"""A sentence with more figures is not read for what is above or below one of them."""
_QUESTION = "question"
_TELLING = 4
"""A total of so many digits is not hit by chance."""


class Derivations:
    """What follows from the facts of an answer."""

    def __init__(
        self, facts: Sequence[Fact], words: Vocabulary, cues: Cues, text: str, mentions: Sequence[Mention]
    ) -> None:
        self._words, self._cues, self._text, self._mentions = words, cues, text, mentions
        known = self._known = once(facts, KnownTerms)
        self._wanted, self._counts = known.wanted, known.counts
        self._made: list[Term] = []
        self._dates, self._times = known.dates, known.times
        self._by_sentence: dict[int, list[Claim]] = defaultdict(list)
        self._shared: list[tuple[str, list[Term], Meanings]] | None = None
        self._current, self._columns, self._texts = known.current, known.columns, known.texts

    def find(self, claim: Claim, bound: Bound, said: Sequence[Claim]) -> tuple[str, str] | None:
        """The sources and the calculation behind a figure; None if there is none that the sentence speaks of."""
        if claim.number is None or claim.kind not in ("number", "ratio"):
            return None
        for made in self._ways(claim, bound, said):
            if self._agrees(claim, made) and _fits(bound, made):
                source = ", ".join(dict.fromkeys(term.source for term in made.terms))
                self._made.append(Term.from_others(claim.number, claim.units, source, made.what))
                return source, made.what
        return None

    def _ways(self, claim: Claim, bound: Bound, said: Sequence[Claim]) -> Iterator[Calculation]:
        times = claim.kind == "number" and _TIMES.match(self._text, claim.end) is not None
        if "percent" in claim.units or claim.kind == "ratio" or times:
            yield from self._shares(claim, said)
            if not times:
                return
        if claim.units & _TIME_UNITS:
            yield from self._spans(claim)
        if self._cues.has("average", claim):
            yield from self._averages(claim)
        yield from self._sums(claim)
        if self._cues.has("difference", claim):
            yield from self._differences(claim, said)
        if self._cues.has("sum", claim):
            yield from self._pair_sums(claim, said)
        if self._cues.has("product", claim):
            yield from self._products(claim)
        if not claim.units:
            yield from self._find_counts(claim, bound, said)
        yield from self._threshold(claim, said)

    def _agrees(self, claim: Claim, made: Calculation) -> bool:
        assert claim.number is not None
        wanted = [made.number]
        if claim.units and made.units and not claim.units & made.units:
            wanted = list(self._words.measures.convert(made.number, made.units, claim.units))
        roughly = made.what.startswith(("the mean", "from ")) or "percent" in claim.units
        return any(_close(abs(one), abs(claim.number), claim, roughly=roughly) for one in wanted)

    def _groups(self, claim: Claim) -> Iterator[tuple[str, list[Term], bool]]:
        """Columns, and the parts of them whose rows have a value in common that the sentence speaks of."""
        sentence = self._cues.words(claim)
        telling = _digits(claim) >= _TELLING
        for column, terms in self._columns.items():
            if 2 <= len(terms) <= _MOST_ROWS:
                yield column, terms, False
        for what, some, words in self._shared_values():
            named = bool(words & sentence)
            if telling or named:
                yield what, some, named

    def _shared_values(self) -> list[tuple[str, list[Term], Meanings]]:
        """The parts of columns whose rows have a value in common; found once."""
        if self._shared is None:
            self._shared = [one for terms in self._columns.values() for one in self._parts_of(terms)][:_MOST_SHARED]
        return self._shared

    def _parts_of(self, terms: list[Term]) -> Iterator[tuple[str, list[Term], Meanings]]:
        if not 2 <= len(terms) <= _MOST_ROWS:
            return
        groups: dict[tuple[str, str], list[Term]] = defaultdict(list)
        for term in terms:
            for text in self._texts.get(id(term.row), ()):
                value = text.place.name if text.truth is not None else text.text
                if text.truth is not False and len(value) <= 60:
                    groups[(text.place.name, value)].append(term)
        for (name, value), some in list(groups.items())[:_MOST_GROUPS]:
            if len(some) < len(terms):
                yield f"{terms[0].column} where {name} is {value}", some, self._words.words.in_name(value)

    def _sums(self, claim: Claim) -> Iterator[Calculation]:
        cued = self._cues.has("sum", claim) or _digits(claim) >= _TELLING
        for what, some, named in self._groups(claim):
            if (cued or named) and len(some) > 1:
                total = self._known.total(some)
                yield Calculation(total, some[0].units, f"the sum of {what}", some)

    def _averages(self, claim: Claim) -> Iterator[Calculation]:
        for what, some, _named in self._groups(claim):
            total = self._known.total(some)
            yield Calculation(total / len(some), some[0].units, f"the mean of {what}", some)

    def _pairs(self, claim: Claim, said: Sequence[Claim]) -> Iterator[tuple[Term, Term]]:
        """Values of one unit, in pairs."""
        dimensions = self._words.measures.dimensions(claim.units)

        def fits(units: Units) -> object:
            return (
                not claim.units
                or (not units and claim.units & self._words.units.currencies)
                or claim.units & units
                or dimensions & self._words.measures.dimensions(units)
            )

        newer = [term for term in [*self._made, *self._wanted] if term.number and fits(term.units)]
        some = [*self._known.last(fits, _MOST_PAIRED), *newer][-_MOST_PAIRED:]
        sentence, stated = self._cues.words(claim), self._figures_beside(claim, said)
        spoken = {id(term) for term in some if term.own & sentence or term.number in stated or term.row is NOWHERE}
        for one, other in combinations(some, 2):
            if _comparable(one, other, (id(one) in spoken) + (id(other) in spoken)):
                yield one, other

    def _differences(self, claim: Claim, said: Sequence[Claim]) -> Iterator[Calculation]:
        for one, other in self._pairs(claim, said):
            number = one.number - other.number
            yield Calculation(number, one.units or other.units, f"{one.path} - {other.path}", (one, other))

    def _pair_sums(self, claim: Claim, said: Sequence[Claim]) -> Iterator[Calculation]:
        for one, other in self._pairs(claim, said):
            number = one.number + other.number
            yield Calculation(number, one.units or other.units, f"{one.path} + {other.path}", (one, other))

    def _products(self, claim: Claim) -> Iterator[Calculation]:
        newer = [term for term in [*self._made, *self._counts, *self._wanted] if is_count(term)]
        factors = [*self._known.factors, *newer][:_MOST_COUNTED]
        made = [term for term in self._made if claim.units & term.units]
        prices = [*self._known.first(claim.units.intersection, _MOST_COUNTED), *made][:_MOST_COUNTED]
        for price in prices:
            for times, what in ((12, "12 months"), (52, "52 weeks"), (7, "7 days")):
                yield Calculation(price.number * times, price.units, f"{price.path} * {what}", (price,))
            for factor in factors:
                if factor is not price:
                    number = price.number * factor.number
                    yield Calculation(number, price.units, f"{factor.path} * {price.path}", (factor, price))

    def _shares(self, claim: Claim, said: Sequence[Claim]) -> Iterator[Calculation]:
        hundred = Decimal(100) if "percent" in claim.units else Decimal(1)
        terms = [*self._known.terms[-_MOST_PAIRED:], *self._made][-_MOST_PAIRED:]
        totals = [
            Term.total(some, what)
            for what, some, named in self._groups(claim)
            if len(some) > 1 and (named or some is self._columns.get(what))
        ]
        sentence = self._cues.words(claim)
        stated, compared = self._figures_beside(claim, said), self._cues.has("compared", claim)
        whole = self._cues.has("sum", claim) or _OF.match(self._text, claim.end) is not None
        counts = [term for term in self._counts if term.column in self._columns or self._is_shared_in(term, sentence)]
        for pool in ([*terms, *totals[:20], *self._wanted[:10]], counts):
            for one, other in combinations(pool, 2):
                spoken = one.own & sentence or other.own & sentence or one.number in stated or other.number in stated
                if _are_parts(one, other) and spoken:
                    for over, under in ((one, other), (other, one)):
                        if whole or not under.path.startswith("the sum"):
                            yield from _quotients(over, under, hundred, compared=compared)
        for term in terms if claim.kind == "ratio" else ():
            yield Calculation(term.number / (100 if "percent" in term.units else 1), frozenset(), term.path, (term,))

    def _is_shared_in(self, count: Term, sentence: Meanings) -> bool:
        """Whether the sentence speaks of what the counted rows have in common; of all of them nothing need be said."""
        value = count.path.rpartition("[")[2].partition("=")
        return not value[1] or bool(self._words.words.in_name(value[2].partition("]")[0]) & sentence)

    def _spans(self, claim: Claim) -> Iterator[Calculation]:
        unit = next(iter(claim.units & _TIME_UNITS))
        if unit in ("minute", "hour"):
            for one, other in combinations(self._times[:_MOST_PAIRED], 2):
                assert one.minutes is not None
                assert other.minutes is not None
                minutes = abs(one.minutes - other.minutes)
                for number in (minutes, 24 * 60 - minutes):
                    yield _span(Decimal(number), "minute", one, other)
        for one, other in combinations(self._dates[:_MOST_PAIRED], 2):
            first, second = _day(one), _day(other)
            if first is None or second is None:
                continue
            if unit in _DAYS:
                days = abs((first - second).days)
                yield from (_span(Decimal(number), "day", one, other) for number in (days, days + 1))
            elif unit in ("month", "year"):
                months = abs((first.year - second.year) * 12 + first.month - second.month)
                yield _span(Decimal(months), "month", one, other)

    def _find_counts(self, claim: Claim, bound: Bound, said: Sequence[Claim]) -> Iterator[Calculation]:
        """How many there are: things that the answer names, rows with a value that the sentence speaks of."""
        kinds: dict[str, set[frozenset[str]]] = defaultdict(set)
        for mention in self._mentions:
            for kind, names in mention.names.items():
                if not names.isdisjoint(self._current.get(kind, ())):
                    kinds[kind].add(names)
        for kind, things in kinds.items():
            if len(things) > 1:
                yield Calculation(Decimal(len(things)), frozenset(), f"the {kind} that are named", ())
        for what, some, named in self._groups(claim):
            if named:
                rows = {id(term.row) for term in some}
                yield Calculation(Decimal(len(rows)), frozenset(), f"rows of {what}", some)

    def _beside(self, claim: Claim, said: Sequence[Claim]) -> list[Claim]:
        """The claims of the same sentence."""
        if not self._by_sentence:
            for one in said:
                self._by_sentence[self._cues.number(one)].append(one)
        return self._by_sentence[self._cues.number(claim)]

    def _figures_beside(self, claim: Claim, said: Sequence[Claim]) -> set[Decimal]:
        """The other figures of the same sentence."""
        return {one.number for one in self._beside(claim, said) if one is not claim and one.number is not None}

    def _threshold(self, claim: Claim, said: Sequence[Claim]) -> Iterator[Calculation]:
        """Two cost more than 20 dollars: how many are above, and the figure that they are above."""
        here = self._beside(claim, said)
        if len(here) > _MOST_BESIDE:
            return
        for limit in here:
            match = (
                None if limit.number is None else _COMPARED.search(self._text[max(0, limit.start - 24) : limit.start])
            )
            if match is None or limit.number is None:
                continue
            counts = [one for one in here if one is not limit and one.number is not None and not one.units]
            for column, terms in self._columns.items():
                if len(terms) < 2 or (limit.units and terms[0].units and not limit.units & terms[0].units):
                    continue
                above = [term for term in terms if (term.number > limit.number) == bool(match["above"])]
                if any(count.number == len(above) for count in counts if claim in (count, limit)):
                    yield Calculation(
                        Decimal(len(above)) if claim is not limit else limit.number, claim.units, column, above
                    )


def _digits(claim: Claim) -> int:
    return len(str(abs(claim.number or Decimal(0)).normalize()).replace(".", "").strip("0").partition("E")[0])


def _span(number: Decimal, unit: str, one: Fact, other: Fact) -> Calculation:
    what = f"from {one.place.path} to {other.place.path}"
    terms = tuple(Term.from_others(number, frozenset({unit}), fact.source, what) for fact in (one, other))
    terms[0].row, terms[1].row = one.place.row, other.place.row
    return Calculation(number, frozenset({unit}), what, terms)


def _fits(bound: Bound, made: Calculation) -> bool:
    """Whether nothing that it is made from is of something else than what is named; of a total, not all of it."""
    fits = [bound.fit_beside(term.row) for term in made.terms]
    return not fits or (max(fits) if made.what.startswith("the ") else min(fits)) >= 0


def _close(value: Decimal, said: Decimal, claim: Claim, *, roughly: bool) -> bool:
    if claim.bound and (value < said) == (claim.bound == ">") and value != said:
        return False
    if claim.kind == "ratio":
        off = Decimal("0.1") if claim.bound else Decimal("0.06") if claim.about else Decimal("0.02")
        return said != 0 and abs(value - said) <= abs(said) * off
    if value == said:
        return True
    return abs(value - said) <= claim.reach and (claim.about or bool(claim.bound) or claim.step < 1 or roughly)


def _comparable(one: Term, other: Term, spoken: int) -> bool:
    """Values of one field, or of one unit of which one is spoken of; of no unit only where both are spoken of."""
    if one.units and other.units and not one.units & other.units:
        return False
    if one.column == other.column and one.source != _QUESTION:
        return True
    return spoken >= (1 if one.units and other.units else 2)


def _are_parts(one: Term, other: Term) -> bool:
    """Whether one may be said as a part or a multiple of the other: two of a field, or two of a row in one unit."""
    if one.column == other.column:
        return True
    return one.row is other.row and one.row is not NOWHERE and one.units == other.units


def _quotients(over: Term, under: Term, hundred: Decimal, *, compared: bool) -> Iterator[Calculation]:
    try:
        quotient = over.number / under.number
    except (DivisionByZero, InvalidOperation):
        return
    what = f"{over.path} / {under.path}"
    if over.path.startswith("the sum") and not under.path.startswith("the sum"):
        return  # a whole is said as a multiple of none of its parts
    yield Calculation(quotient * hundred, frozenset(), what, (over, under))
    if compared:
        yield Calculation((quotient - 1) * hundred, frozenset(), f"{what} - 1", (over, under))


def _day(fact: Fact) -> date | None:
    year, month, day = fact.date
    try:
        return date(year or 0, month or 0, day or 0)
    except ValueError:
        return None
