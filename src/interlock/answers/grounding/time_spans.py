"""Lengths of time: between two days or times of the results, and how long something lasts at so much a day."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from itertools import combinations, islice
from typing import Protocol

from interlock.answers.grounding.claims import Claim, Units
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.field_names import snake_name
from interlock.answers.grounding.rows import NOWHERE
from interlock.answers.grounding.surroundings import Surroundings
from interlock.answers.grounding.terms import Calculation, Term
from interlock.answers.grounding.words import Meanings, has_stem

TIME_UNITS = frozenset({"minute", "hour", "day", "week", "month", "year"})
_DAYS = frozenset({"day", "week"})
_CLOCK = frozenset({"minute", "hour"})
_DURATION = re.compile(r"(?:^|_)(?:duration|length|travel_time|total)(?:_|$)", re.I)
_MOST_PAIRED = 90
_MOST_RATES = 30
A_DAY = re.compile(r"(?:^|_)(?:a|per|each)_day$|(?:^|_)daily(?:_|$)|_per_day", re.I)
"""Names of fields that say how much a day: `times_a_day`, `daily_dose`, `km_per_day`."""
_EVERY = re.compile(r"(?:^|_)(?:every|interval)(?:_|$)", re.I)
_TIMES_A_DAY = re.compile(r"\s?(?:times|x|×)\s(?:a|per|each|every)\sday|\s?(?:times\s)?daily", re.I)
_LASTS = re.compile(
    r"\b(?:last|lasts|lasting|enough|worth|supply|run|runs|out|gone|for|through|need|needs|take|takes|makes?|in all)\b",
    re.I,
)
_HOURS_A_DAY = 24
_NEAR = 40
_BREAK = re.compile(r"[,;:.!?()]\s")
_APART = re.compile(
    r"\b(?:between|apart|after|afterwards|later|earlier|sooner|from|until|till|to|since|before|gap|within|long|then|more|less|"
    r"another|over|longer|of|ahead|next|following|rest|remaining|left|span|stay|range|wait|notice|period|by|away|behind|ago|overdue|due|old|early)\b",
    re.I,
)
""" What says beside a length of time that it lies between two things."""


_MOVED_BY = re.compile(
    r"\b(?:forward|back|moved?|shift(?:ed|s)?|postponed?|extend(?:ed|s)?|prolong(?:ed|s)?|delay(?:ed|s)?|put|push(?:ed|es)?|"
    r"short(?:er|ened)|length(?:ened|ens)|brought)\s(?:[^\W\d_]+\s){0,3}by\s(?:about\s|around\s|nearly\s|almost\s)?$",
    re.I,
)
"""Before a length of time by which something was moved: it lies between what was and what is now."""


class Figures(Protocol):
    """Those of the results, and behind them what was made from them: it grows."""

    def last(self, most: int) -> list[Term]:
        """The last of them, in order."""


class KnownSpans:
    """The days, times and daily amounts of the results."""

    def __init__(self, facts: Sequence[Fact], terms: Sequence[Term]) -> None:
        dated = [fact for fact in facts_of(facts, "date") if fact.trusted and not fact.label and all(fact.date)]
        found = {fact.date for fact in dated if not fact.asked}
        # What a call asked for and its result has, too, is of the result: that may say itself how long it is.
        self.dates = [fact for fact in dated if not fact.asked or fact.date not in found][:_MOST_PAIRED]
        timed = (fact for fact in facts_of(facts, "time") if fact.trusted and not fact.echo)
        self.times = list(islice(timed, _MOST_PAIRED))
        fields = {column: snake_name(column.rpartition(".")[2]) for column in {term.column for term in terms}}
        a_day = {column for column, field in fields.items() if A_DAY.search(field)}
        every = {column for column, field in fields.items() if _EVERY.search(field)}
        self.a_day = [term for term in terms if term.column in a_day][:_MOST_RATES]
        self.told = {
            (id(term.row), unit) for term in terms for unit in _units_told(fields[term.column], term.units & TIME_UNITS)
        }
        """Rows that say themselves how long they last: `days`, `duration_min`."""
        self.every = [term for term in terms if term.column in every and "hour" in term.units][:_MOST_RATES]


class TimeSpans:
    """What follows from the days, times and daily amounts of the results."""

    def __init__(self, known: KnownSpans, terms: Figures, around: Surroundings) -> None:
        self._known, self._terms, self._around = known, terms, around

    def between(self, claim: Claim) -> Iterator[Calculation]:
        """What lies between two days or two times; those of two things only where the words beside it say so."""
        text = self._around.text
        before, behind = text[max(0, claim.start - _NEAR) : claim.start], text[claim.end : claim.end + _NEAR]
        near = f"{_BREAK.split(before)[-1]} {_BREAK.split(behind)[0]}"
        apart = _APART.search(near) is not None or before.endswith(" in ")
        moved = _MOVED_BY.search(before) is not None
        for one in self._between(claim, inclusive=not moved):
            if (apart or not _are_of_two_rows(one)) and (not moved or _are_of_one_field(one)):
                yield one

    def _between(self, claim: Claim, *, inclusive: bool) -> Iterator[Calculation]:
        unit = next(iter(claim.units & TIME_UNITS))
        if unit in ("minute", "hour"):
            for one, other in combinations(self._known.times, 2):
                if self._is_told(one, other, unit):
                    continue
                assert one.minutes is not None
                assert other.minutes is not None
                minutes = abs(one.minutes - other.minutes)
                for number in (minutes, 24 * 60 - minutes):
                    yield _span(Decimal(number), "minute", one, other)
        for one, other in combinations(self._known.dates, 2):
            first, second = _day(one), _day(other)
            if first is None or second is None:
                continue
            if self._is_told(one, other, unit):
                continue
            if unit in _DAYS:
                days = abs((first - second).days)
                yield from (_span(Decimal(number), "day", one, other) for number in (days, days + 1)[: 1 + inclusive])
            elif unit in ("month", "year"):
                months = abs((first.year - second.year) * 12 + first.month - second.month)
                yield _span(Decimal(months), "month", one, other)

    def _is_told(self, one: Fact, other: Fact, unit: str) -> bool:
        """Whether both ends are of a row that says itself how long it is, as of a flight between two time zones."""
        return one.place.row is other.place.row and (id(one.place.row), unit) in self._known.told

    def lasting(self, claim: Claim) -> Iterator[Calculation]:
        """How long a stock lasts: 56 at two a day are 28 days. One of both is said in the sentence, or spoken of."""
        for amount, rate in self._at_a_rate(claim, self._terms.last(_MOST_PAIRED)):
            if rate.number:
                what = f"{amount.path} / {rate.path}"
                yield Calculation(amount.number / rate.number, frozenset({"day"}), what, (amount, rate))

    def in_all(self, claim: Claim) -> Iterator[Calculation]:
        """How often it is in all: three times a day for seven days."""
        days = [term for term in self._terms.last(_MOST_PAIRED) if term.units == {"day"}]
        for amount, rate in self._at_a_rate(claim, days):
            what = f"{rate.path} * {amount.path}"
            yield Calculation(amount.number * rate.number, frozenset(), what, (amount, rate))

    def a_day(self, claim: Claim) -> Iterator[Calculation]:
        """How often it is a day: every eight hours is three times."""
        if _TIMES_A_DAY.match(self._around.text, claim.end) is not None:
            for term in self._known.every:
                if term.number:
                    number, what = _HOURS_A_DAY / term.number, f"a day / {term.path}"
                    yield Calculation(number, frozenset(), what, (term,))

    def _at_a_rate(self, claim: Claim, amounts: Sequence[Term]) -> Iterator[tuple[Term, Term]]:
        sentence = self._around.beside(claim)
        start, end = sentence[0].start, sentence[-1].end
        if _LASTS.search(self._around.text, max(0, start - 60), end + 40) is None:
            return
        stated = self._around.figures(claim, earlier=True)
        spoken = self._around.words(claim)
        made = [term for term in self._terms.last(_MOST_PAIRED) if term.path.startswith("a day / ")]
        for rate in [*self._known.a_day, *made]:
            for amount in amounts:
                one_thing = amount.row is rate.row or NOWHERE in (amount.row, rate.row)
                if amount is not rate and one_thing and _is_said(amount, rate, stated, spoken):
                    yield amount, rate


def _is_said(amount: Term, rate: Term, stated: set[Decimal], spoken: Meanings) -> bool:
    """Whether the sentence says the one, and the other is not of another kind than a plain amount."""
    if amount.units - {"day", "piece"} and not amount.units & rate.units and amount.row is not NOWHERE:
        return False
    return amount.number in stated or (rate.number in stated and (bool(amount.own & spoken) or rate.row is NOWHERE))


def _span(number: Decimal, unit: str, one: Fact, other: Fact) -> Calculation:
    what = f"from {one.place.path} to {other.place.path}"
    terms = tuple(Term.from_others(number, frozenset({unit}), fact.source, what) for fact in (one, other))
    terms[0].row, terms[1].row = one.place.row, other.place.row
    terms[0].column, terms[1].column = one.place.column, other.place.column
    terms[0].own, terms[1].own = one.own, other.own
    terms[0].stale, terms[1].stale = one.stale, other.stale
    return Calculation(number, frozenset({unit}), what, terms)


def _are_of_two_rows(made: Calculation) -> bool:
    """Whether the ends are of two things."""
    one, other = made.terms
    return one.row is not other.row


def _are_of_one_field(made: Calculation) -> bool:
    """Whether both ends are the same thing at two times: the old departure and the new one."""
    return has_stem(made.terms[0].own & made.terms[1].own)


def _units_told(field: str, units: Units) -> Iterator[str]:
    """The units in which a field says how long its row lasts: by its name, or of a duration in any."""
    if _DURATION.search(field) is not None and units:
        yield from _CLOCK if units <= _CLOCK else units
    yield from (unit for unit in units if field.lower() == f"{unit}s")


def _day(fact: Fact) -> date | None:
    year, month, day = fact.date
    try:
        return date(year or 0, month or 0, day or 0)
    except ValueError:
        return None
