"""Figures that follow from several values: sums, differences, averages, shares, products, counts and spans of time.

A figure is taken for derived only where the sentence says how: a word such as "total" or "left", or a share of
something. What can be combined is bounded: columns of a table, the values of a row, and values of one unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import combinations

from interlock.answers.grounding.binding import Bound
from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.contrasts import is_turned
from interlock.answers.grounding.cues import Cues
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.groups import Groups
from interlock.answers.grounding.mentions import Mention
from interlock.answers.grounding.question_products import QuestionProducts
from interlock.answers.grounding.row_counts import RowCounts
from interlock.answers.grounding.rows import NOWHERE
from interlock.answers.grounding.shares import Shares
from interlock.answers.grounding.surroundings import Surroundings
from interlock.answers.grounding.terms import Calculation, RowGroup, Term
from interlock.answers.grounding.time_spans import TIME_UNITS, TimeSpans
from interlock.answers.grounding.vocabulary import Vocabulary

_MOST_PAIRED = 90
"""So many values are put together in pairs, the first that were read."""
_EACH = re.compile(r"\s?(?:each|apiece|per|every)\b", re.I)
_TIMES = re.compile(r"\s?(?:times|x|×)\b", re.I)
_COMPARED = re.compile(
    r"\b(?:(?P<above>more than|over|above|at least|exceed(?:s|ing)?|longer than|higher than|greater than)"
    r"|(?P<below>less than|under|below|at most|fewer than|shorter than|lower than|within))\s+(?:the\s+)?[$€£]?$",
    re.I,
)
_MOST_COUNTED = 60
_MOST_TOTALS = 12
_MOST_ASKED = 20_000
_MOST_PORTIONS = 10_000
_LARGE = 100
_SPOKEN_OF = 0.5
_MOST_BESIDE = 30
"""A sentence with more figures is not read for what is above or below one of them."""
_QUESTION = "question"
_TELLING = 4
"""A total of so many digits is not hit by chance."""


class Derivations:
    """What follows from the facts of an answer."""

    def __init__(
        self, facts: Sequence[Fact], words: Vocabulary, cues: Cues, around: Surroundings, mentions: Sequence[Mention]
    ) -> None:
        self._words, self._cues, self._around, self._text = words, cues, around, around.text
        self._mentions = mentions
        usable = [fact for fact in facts if fact.trusted and not fact.label]
        values = [
            (fact, Term(fact))
            for fact in usable
            if fact.number is not None and not fact.counted and not fact.echo and not (fact.prose and fact.asked)
        ]
        self._terms = [term for _fact, term in values]
        self._wanted = [Term(fact) for fact in facts if fact.echo and fact.number is not None]
        self._counts = [Term(fact) for fact in usable if fact.counted][:_MOST_COUNTED]
        self._spans = TimeSpans(usable, self._terms, around)
        self._groups = Groups(values, usable, words.words)
        self._counted = RowCounts(around.text, mentions, usable)
        self._shares = Shares(self._terms, self._counts, self._wanted, around, words.words)
        self._of_user = QuestionProducts(self._wanted, around)
        asked = " ".join(fact.text for fact in facts if fact.echo and fact.text)
        self._asked = words.words.in_name(asked[:_MOST_ASKED])
        """What the question speaks of: an answer need not say it again."""
        self._summed: dict[int, Sequence[Term]] = {}
        """By sentence: what was added up in it. How many those are may be said beside their sum."""

    def find(self, claim: Claim, bound: Bound) -> tuple[str, str] | None:
        """The sources and the calculation behind a figure; None if there is none that the sentence speaks of."""
        if claim.number is None or claim.kind not in ("number", "ratio"):
            return None
        if self._of_user.is_reckoned_with(claim):
            return _QUESTION, "what another figure is made from"
        compared = self._cues.has("against", claim)
        for made in self._ways(claim, bound):
            if not self._agrees(claim, made) or is_turned(self._text, claim, made, self._mentions):
                continue
            if _fits(bound, made, compared=compared):
                source = ", ".join(dict.fromkeys(term.source for term in made.terms))
                self._of_user.note(claim, made)
                self._terms.append(Term.from_others(claim.number, claim.units or made.units, source, made.what))
                exact = Term.from_others(made.number, made.units or claim.units, source, made.what)
                self._shares.made.setdefault(self._around.number(claim), []).append(exact)
                if made.what.startswith("the sum"):
                    self._summed[self._around.number(claim)] = made.terms
                return source, made.what
        return None

    def _ways(self, claim: Claim, bound: Bound) -> Iterator[Calculation]:
        times = claim.kind == "number" and _TIMES.match(self._text, claim.end) is not None
        if "percent" in claim.units or claim.kind == "ratio" or times:
            yield from self._shares.find(claim, bound, self._find_groups(claim), self._cues)
            if not times:
                return
        if claim.units & TIME_UNITS:
            yield from self._spans.between(claim)
            yield from self._spans.lasting(claim)
            yield from self._counted.find_periods(claim)
        if self._cues.has("average", claim):
            yield from self._averages(claim)
        yield from self._sums(claim, bound)
        if self._cues.has("difference", claim):
            yield from self._differences(claim, bound)
        if self._cues.has("sum", claim):
            yield from self._pair_sums(claim, bound)
        multiplied = self._cues.has("product", claim)
        if multiplied or _digits(claim) >= _TELLING:
            yield from self._products(claim, multiplied=multiplied)
        yield from self._of_user.find(claim, cued=multiplied or self._cues.has("needed", claim))
        if claim.units:
            yield from self._portions(claim)
        else:
            yield from self._spans.a_day(claim)
            yield from self._spans.in_all(claim)
            yield from self._counted.find(claim, bound, self._find_groups(claim, asked=False))
            rows = self._summed.get(self._around.number(claim))
            if rows:
                yield Calculation(Decimal(len(rows)), frozenset(), "the rows of a sum", ())
        yield from self._threshold(claim)

    def _agrees(self, claim: Claim, made: Calculation) -> bool:
        assert claim.number is not None
        wanted = [made.number]
        if claim.units and made.units and not claim.units & made.units:
            wanted = list(self._words.measures.convert(made.number, made.units, claim.units))
        roughly = made.what.startswith(("the mean", "from ")) or "percent" in claim.units
        return any(_close(abs(one), abs(claim.number), claim, roughly=roughly) for one in wanted)

    def _find_groups(self, claim: Claim, *, asked: bool = True) -> Iterator[RowGroup]:
        spoken = self._around.words(claim)
        return self._groups.find(spoken | self._asked if asked else spoken, telling=_digits(claim) >= _TELLING)

    def _sums(self, claim: Claim, bound: Bound) -> Iterator[Calculation]:
        cued = self._cues.has("sum", claim) or _digits(claim) >= _TELLING
        large = abs(claim.number or Decimal(0)) >= _LARGE
        for group in self._find_groups(claim):
            some = group.terms
            # A figure is a total where the words beside it speak of the field: "we hold 162".
            said = cued or (group.named and claim.units)
            may_be = large or group.named
            if len(some) > 1 and (said or (may_be and self._is_spoken_of(some[0], bound))):
                total = sum((term.number for term in some), Decimal(0))
                yield Calculation(total, some[0].units, f"the sum of {group.what}", some)

    def _is_spoken_of(self, term: Term, bound: Bound) -> bool:
        """Whether a field is what the words beside a figure say, or what was asked for."""
        return bound.affinity(term.own | term.described) >= _SPOKEN_OF or bool(term.own & self._asked)

    def _averages(self, claim: Claim) -> Iterator[Calculation]:
        for group in self._find_groups(claim):
            some = group.terms
            total = sum((term.number for term in some), Decimal(0))
            yield Calculation(total / len(some), some[0].units, f"the mean of {group.what}", some)

    def _pairs(self, claim: Claim, bound: Bound) -> Iterator[tuple[Term, Term]]:
        """Values of one unit, in pairs."""
        some = [term for term in [*self._terms, *self._wanted] if term.number and self._is_of_kind(term, claim)]
        some = some[-_MOST_PAIRED:]
        sentence, stated = self._around.words(claim, earlier=True), self._around.figures(claim, earlier=True)
        spoken = {id(term) for term in some if term.own & sentence or term.number in stated or term.row is NOWHERE}
        for one, other in combinations(some, 2):
            both = (id(one) in spoken) + (id(other) in spoken)
            if _comparable(one, other, both) or (both and one.row is other.row and bound.fit(one.row) > 0):
                yield one, other

    def _is_of_kind(self, term: Term, claim: Claim) -> bool:
        """Whether a figure may be made from a value by adding or taking away: of its unit, or of one like it."""
        if not claim.units or claim.units & term.units:
            return True
        money = self._words.units.currencies | {"cent"}
        if claim.units & money and (not term.units or ("cent" in claim.units | term.units and term.units & money)):
            return True
        return bool(self._words.measures.dimensions(claim.units) & self._words.measures.dimensions(term.units))

    def _differences(self, claim: Claim, bound: Bound) -> Iterator[Calculation]:
        if abs(claim.number or Decimal(0)) >= _LARGE:
            columns = [terms for terms in self._groups.columns.values() if 2 <= len(terms) <= _MOST_COUNTED]
            totals = [Term.total(terms, terms[0].column) for terms in columns[:_MOST_TOTALS]]
            sentence = self._around.words(claim)
            for one, other in combinations(totals, 2):
                if one.units == other.units and (one.units or (one.own & sentence and other.own & sentence)):
                    number = one.number - other.number
                    yield Calculation(number, one.units, f"{one.path} - {other.path}", (one, other))
        for one, other in self._pairs(claim, bound):
            number = one.number - other.number
            yield Calculation(number, one.units or other.units, f"{one.path} - {other.path}", (one, other))

    def _pair_sums(self, claim: Claim, bound: Bound) -> Iterator[Calculation]:
        for one, other in self._pairs(claim, bound):
            number = one.number + other.number
            yield Calculation(number, one.units or other.units, f"{one.path} + {other.path}", (one, other))

    def _products(self, claim: Claim, *, multiplied: bool) -> Iterator[Calculation]:
        """Prices times counts; where no word says so, times a count that the user has named, and of no chance hit."""
        known = [*self._terms, *self._counts, *self._wanted] if multiplied else self._wanted
        factors = [term for term in known if _is_count(term)][:_MOST_COUNTED]
        prices = [term for term in self._terms if self._is_convertible(term, claim)][-_MOST_COUNTED:]
        for price in prices:
            for times, what in ((12, "12 months"), (52, "52 weeks"), (7, "7 days")) if multiplied else ():
                yield Calculation(price.number * times, price.units, f"{price.path} * {what}", (price,))
            for factor in factors:
                if factor is not price:
                    number = price.number * factor.number
                    yield Calculation(number, price.units, f"{factor.path} * {price.path}", (factor, price))

    def _is_convertible(self, term: Term, claim: Claim) -> bool:
        if claim.units & term.units:
            return True
        if claim.units & TIME_UNITS:
            return False  # seven times eleven days are eleven weeks
        return any(True for _one in self._words.measures.convert(Decimal(1), term.units, claim.units))

    def _portions(self, claim: Claim) -> Iterator[Calculation]:
        """In three instalments of 24 each: a value by a number that the sentence says."""
        counts = [one for one in self._around.figures(claim) if 1 < one <= _MOST_PORTIONS and one == int(one)]
        for term in self._terms[-_MOST_PAIRED:] if _EACH.match(self._text, claim.end) else ():
            if claim.units & term.units:
                for count in counts:
                    yield Calculation(term.number / count, term.units, f"{term.path} / {count}", (term,))

    def _threshold(self, claim: Claim) -> Iterator[Calculation]:
        """Two cost more than 20 dollars: how many are above, and the figure that they are above."""
        here = self._around.beside(claim)
        if len(here) > _MOST_BESIDE:
            return
        for limit in here:
            match = (
                None if limit.number is None else _COMPARED.search(self._text[max(0, limit.start - 24) : limit.start])
            )
            if match is None or limit.number is None:
                continue
            counts = [one for one in here if one is not limit and one.number is not None and not one.units]
            for column, terms in self._groups.columns.items():
                if len(terms) < 2 or (limit.units and terms[0].units and not limit.units & terms[0].units):
                    continue
                above = [term for term in terms if (term.number > limit.number) == bool(match["above"])]
                if any(count.number == len(above) for count in counts if claim in (count, limit)):
                    yield Calculation(
                        Decimal(len(above)) if claim is not limit else limit.number, claim.units, column, above
                    )


def _digits(claim: Claim) -> int:
    return len(str(abs(claim.number or Decimal(0)).normalize()).replace(".", "").strip("0").partition("E")[0])


def _fits(bound: Bound, made: Calculation, *, compared: bool) -> bool:
    """Whether nothing that it is made from is of something else than what is named; of a total, not all of it.

    "Castle Round takes 20 minutes longer": what it is longer than need not be named again.
    """
    fits = [bound.fit_beside(term.row) for term in made.terms]
    if not fits or (max(fits) if made.what.startswith("the ") else min(fits)) >= 0:
        return True
    return compared and len(fits) == 2 and max(fits) > 0 and _field(made.terms[0]) == _field(made.terms[1])


def _close(value: Decimal, said: Decimal, claim: Claim, *, roughly: bool) -> bool:
    if claim.bound and (value < said) == (claim.bound == ">") and value != said:
        return False
    if claim.kind == "ratio":
        off = Decimal("0.12") if claim.bound else Decimal("0.06") if claim.about else Decimal("0.02")
        if claim.bound == ">" and said > 1:
            off = Decimal("0.25")  # "more than double" is said up to two and a half
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
    if one.units and _field(one) == _field(other):
        return True  # a value, and what a call has asked to make of it
    return spoken >= (1 if one.units and other.units else 2)


def _field(term: Term) -> str:
    return term.path.rpartition(".")[2]


def _is_count(term: Term) -> bool:
    return term.number == term.number.to_integral_value() and 1 < term.number <= 10_000
