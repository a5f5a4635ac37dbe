"""Figures that follow from several values: sums, differences, averages, shares, products, counts and spans of time.

A figure is taken for derived only where the sentence says how: a word such as "total" or "left", or a share of
something. What can be combined is bounded: columns of a table, the values of a row, and values of one unit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal, DivisionByZero, InvalidOperation
from itertools import combinations
from typing import Protocol

from interlock.answers.grounding.binding import Bound
from interlock.answers.grounding.claims import Claim, Units
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.vocabulary import Vocabulary

_MOST_PAIRED = 80
"""So many values are put together in pairs; of more, those of the nearest rows."""
_MOST_ROWS = 500
_TIME_UNITS = frozenset({"minute", "hour", "day", "week", "month", "year"})
_DAYS = {"day": 1, "week": 7}


class SentenceCues(Protocol):
    """What the words of a claim's sentence say."""

    def said(self, name: str, claim: Claim) -> bool: ...


class _Value:
    """A figure that was put together, and from what."""

    __slots__ = ("facts", "number", "units", "what")

    def __init__(self, number: Decimal, units: Units, what: str, facts: Sequence[Fact]) -> None:
        self.number, self.units, self.what, self.facts = number, units, what, facts


class Derivations:
    """What follows from the facts of an answer."""

    def __init__(self, facts: Sequence[Fact], words: Vocabulary, cues: SentenceCues) -> None:
        self._words, self._cues = words, cues
        self._numbers = [
            fact for fact in facts if fact.number is not None and not fact.label and not fact.counted and fact.trusted
        ]
        self._counts = [fact for fact in facts if fact.counted]
        self._dates = [fact for fact in facts if all(fact.date) and not fact.echo]
        self._times = [fact for fact in facts if fact.minutes is not None and not fact.echo]
        self._columns: dict[tuple[str, str], list[Fact]] = defaultdict(list)
        for fact in self._numbers:
            if not fact.echo:
                self._columns[(fact.source, fact.place.column)].append(fact)
        self._texts: dict[int, list[Fact]] = defaultdict(list)
        for fact in facts:
            if (fact.text or fact.truth is not None) and not fact.echo:
                self._texts[id(fact.place.row)].append(fact)

    def find(self, claim: Claim, bound: Bound, supported: Sequence[Claim]) -> tuple[str, str] | None:
        """The sources and the calculation behind a figure; None if there is none that the sentence speaks of."""
        if claim.number is None or claim.kind not in ("number", "ratio"):
            return None
        for value in self._ways(claim, bound):
            if self._agrees(claim, value) and self._fits(bound, value):
                return ", ".join(dict.fromkeys(fact.source for fact in value.facts)), value.what
        return None

    def _ways(self, claim: Claim, bound: Bound) -> Iterator[_Value]:
        said = self._cues.said
        share = "percent" in claim.units or claim.kind == "ratio"
        if share:
            if said("share", claim) or claim.kind == "ratio":
                yield from self._shares(claim)
            return
        if claim.units & _TIME_UNITS:
            yield from self._spans(claim)
        if said("average", claim):
            yield from self._averages()
        if said("sum", claim):
            yield from self._sums(bound)
        if said("difference", claim):
            yield from self._differences(claim)
        if said("sum", claim):
            yield from self._pair_sums(claim)
        if said("product", claim):
            yield from self._products(claim)
        if not claim.units:
            yield from self._count_where(bound)

    def _agrees(self, claim: Claim, value: _Value) -> bool:
        assert claim.number is not None
        said = claim.number
        wanted = [value.number, abs(value.number)]
        if claim.units and value.units and not claim.units & value.units:
            wanted = [abs(one) for one in self._words.measures.convert(value.number, value.units, claim.units)]
        return any(_close(one, said, claim) for one in wanted)

    def _fits(self, bound: Bound, value: _Value) -> bool:
        fits = [bound.fit(fact.place.row) for fact in value.facts]
        return not fits or max(fits) >= 0

    def _sums(self, bound: Bound) -> Iterator[_Value]:
        for facts in self._columns.values():
            for what, some in self._groups(facts):
                numbers = [fact.number or Decimal(0) for fact in some]
                yield _Value(sum(numbers, Decimal(0)), some[0].units | some[0].money, f"the sum of {what}", some)

    def _averages(self) -> Iterator[_Value]:
        for facts in self._columns.values():
            for what, some in self._groups(facts):
                total = sum((fact.number or Decimal(0) for fact in some), Decimal(0))
                yield _Value(total / len(some), some[0].units | some[0].money, f"the mean of {what}", some)

    def _groups(self, facts: Sequence[Fact]) -> Iterator[tuple[str, list[Fact]]]:
        """A column, and the parts of it whose rows have a value in common."""
        if not 2 <= len(facts) <= _MOST_ROWS:
            return
        column = facts[0].place.column
        yield column, list(facts)
        groups: dict[tuple[str, str], list[Fact]] = defaultdict(list)
        for fact in facts:
            for text in self._texts.get(id(fact.place.row), ()):
                value = str(text.truth).lower() if text.truth is not None else text.text
                groups[(text.place.name, value)].append(fact)
        for (name, value), some in groups.items():
            if 2 <= len(some) < len(facts):
                yield f"{column} where {name} is {value[:40]}", some

    def _pairs(self, claim: Claim) -> Iterator[tuple[Fact, Fact]]:
        """Values of one unit, in pairs: those of one row, those of one field, then the others."""
        some = [
            fact
            for fact in self._numbers
            if not claim.units or not (fact.units | fact.money) or claim.units & (fact.units | fact.money)
            or self._words.measures.dimensions(claim.units) & self._words.measures.dimensions(fact.units)
        ]
        for one, other in combinations(some[:_MOST_PAIRED], 2):
            if one.number is not None and other.number is not None and _comparable(one, other):
                yield one, other

    def _differences(self, claim: Claim) -> Iterator[_Value]:
        for one, other in self._pairs(claim):
            assert one.number is not None and other.number is not None
            what = f"{one.place.path} - {other.place.path}"
            yield _Value(one.number - other.number, one.units or other.units, what, (one, other))

    def _pair_sums(self, claim: Claim) -> Iterator[_Value]:
        for one, other in self._pairs(claim):
            assert one.number is not None and other.number is not None
            if not one.echo or not other.echo:
                what = f"{one.place.path} + {other.place.path}"
                yield _Value(one.number + other.number, one.units or other.units, what, (one, other))

    def _products(self, claim: Claim) -> Iterator[_Value]:
        counts = [fact for fact in [*self._numbers, *self._counts] if _is_count(fact)][:40]
        prices = [fact for fact in self._numbers if claim.units & (fact.units | fact.money)][:40]
        for price in prices:
            assert price.number is not None
            if {"month", "day", "week"} & set(price.own) or claim.units:
                for times, what in ((12, "12 months"), (52, "52 weeks")):
                    yield _Value(price.number * times, price.units, f"{price.place.path} * {what}", (price,))
            for count in counts:
                if count is not price and count.number is not None:
                    what = f"{count.place.path} * {price.place.path}"
                    yield _Value(price.number * count.number, price.units | price.money, what, (count, price))

    def _shares(self, claim: Claim) -> Iterator[_Value]:
        assert claim.number is not None
        hundred = Decimal(100) if "percent" in claim.units else Decimal(1)
        some = [fact for fact in self._numbers if not fact.echo][:_MOST_PAIRED]
        pool = [*some, *self._counts[:_MOST_PAIRED]]
        for one, other in combinations(pool, 2):
            if one.counted != other.counted or not _comparable(one, other):
                continue
            for over, under in ((one, other), (other, one)):
                yield from _quotients(over, under, hundred)
        for fact in some:
            assert fact.number is not None
            if claim.kind == "ratio":
                yield _Value(fact.number / (100 if "percent" in fact.units else 1), frozenset(), fact.place.path, (fact,))

    def _spans(self, claim: Claim) -> Iterator[_Value]:
        unit = next(iter(claim.units & _TIME_UNITS))
        if unit in ("minute", "hour"):
            for one, other in combinations(self._times[:_MOST_PAIRED], 2):
                assert one.minutes is not None and other.minutes is not None
                minutes = abs(one.minutes - other.minutes)
                for number in (minutes, 24 * 60 - minutes):
                    what = f"from {one.place.path} to {other.place.path}"
                    yield _Value(Decimal(number), frozenset({"minute"}), what, (one, other))
            return
        for one, other in combinations(self._dates[:_MOST_PAIRED], 2):
            first, second = _day(one), _day(other)
            if first is None or second is None:
                continue
            what = f"from {one.place.path} to {other.place.path}"
            days = abs((first - second).days)
            if unit in _DAYS:
                yield from (
                    _Value(Decimal(n), frozenset({"day"}), what, (one, other)) for n in (days, days + 1)
                )
            else:
                months = abs((first.year - second.year) * 12 + first.month - second.month)
                yield _Value(Decimal(months), frozenset({"month"}), what, (one, other))

    def _count_where(self, bound: Bound) -> Iterator[_Value]:
        """How many rows have something that the words around a figure speak of: a truth, a value of theirs."""
        for facts in self._columns.values():
            if len(facts) >= 2 and bound.affinity(facts[0].own) > 0:
                above = [fact for fact in facts if fact.number]
                yield _Value(Decimal(len(above)), frozenset(), f"rows with {facts[0].place.column}", above)


def _close(value: Decimal, said: Decimal, claim: Claim) -> bool:
    if claim.kind == "ratio":
        return said != 0 and abs(value - said) <= abs(said) * Decimal("0.02")
    if value == said:
        return True
    off = abs(value - said)
    if claim.bound == ">" and value < said or claim.bound == "<" and value > said:
        return False
    return off <= claim.reach and (claim.about or claim.step < 1 or value != value.to_integral_value())


def _comparable(one: Fact, other: Fact) -> bool:
    """Values of one unit: of one field, of one row, or of two results."""
    first, second = one.units | one.money, other.units | other.money
    if first and second and not first & second:
        return False
    if one.place.name == other.place.name or bool(first) and bool(second):
        return True
    return one.place.row is other.place.row or one.source != other.source


def _quotients(over: Fact, under: Fact, hundred: Decimal) -> Iterator[_Value]:
    assert over.number is not None and under.number is not None
    try:
        quotient = over.number / under.number
    except (DivisionByZero, InvalidOperation):
        return
    what = f"{over.place.path} / {under.place.path}"
    yield _Value(quotient * hundred, frozenset(), what, (over, under))
    if hundred == 100:
        yield _Value((quotient - 1) * hundred, frozenset(), f"{what} - 1", (over, under))


def _is_count(fact: Fact) -> bool:
    return fact.number is not None and fact.number == fact.number.to_integral_value() and 1 < fact.number <= 10_000


def _day(fact: Fact) -> date | None:
    year, month, day = fact.date
    try:
        return date(year or 0, month or 0, day or 0)
    except ValueError:
        return None
