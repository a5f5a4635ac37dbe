"""Figures that follow from several values: sums, differences, averages, shares, products, counts and spans of time.

A figure is taken for derived only where the sentence says how: a word such as "total" or "left", or a share of
something. What can be combined is bounded: columns of a table, the values of a row, and values of one unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import partial
from itertools import combinations, islice

from interlock.answers.grounding.binding import Bound
from interlock.answers.grounding.claims import Claim, Units
from interlock.answers.grounding.contrasts import is_turned
from interlock.answers.grounding.counted_states import CountedStates, CountsAsSaid
from interlock.answers.grounding.cues import Cues
from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.field_names import snake_name
from interlock.answers.grounding.figures import is_plain_count
from interlock.answers.grounding.known_terms import KnownTerms, TermList, field_of, is_count
from interlock.answers.grounding.mentions import Mention
from interlock.answers.grounding.periods import is_total
from interlock.answers.grounding.question_products import QuestionProducts
from interlock.answers.grounding.row_counts import RowCounts
from interlock.answers.grounding.rows import NOWHERE
from interlock.answers.grounding.shares import Shares
from interlock.answers.grounding.surroundings import Surroundings
from interlock.answers.grounding.terms import Calculation, RowGroup, Term
from interlock.answers.grounding.time_spans import A_DAY, TIME_UNITS, TimeSpans
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.answers.grounding.words import has_stem

_MOST_PAIRED = 90
"""So many values are put together in pairs, the first that were read."""
_EACH = re.compile(r"\s?(?:each|apiece|per|every)\b", re.I)
_ALL_OF = re.compile(r"\ball\s(?:three|four|five|six|seven|eight|nine|ten|[3-9]|[1-9]\d)\b", re.I)
"""What is said of more than two is no sum of two."""
_OF_EACH = re.compile(r"\b(?:each|every)\s[^.,;:()\n]{2,60}\b(?:costs?|is|are|weighs?|takes?|has)\s\W?$", re.I)
"""What each of them costs is a price, and not the price of several."""
_LEAD = 80
_BOTH = 2
_OF_THESE = re.compile(r"\b(?:difference|gap)\s(?:is|of|comes to|amounts to|:)\s?(?:about\s|only\s|just\s)?$", re.I)
"""What is said to lie between the figures before it."""
_TIMES = re.compile(r"\s?(?:times|x|×)\b", re.I)
_COMPARED = re.compile(
    r"\b(?:(?P<above>more than|over|above|at least|exceed(?:s|ing)?|longer than|higher than|greater than)"
    r"|(?P<below>less than|under|below|at most|fewer than|shorter than|lower than|within))\s+(?:the\s+)?[$€£]?$",
    re.I,
)
_PER = re.compile(r"\s?(?:an|per|each|every|/)\s?(?:hour|night|day|week|month|year)\b", re.I)
_ON_AVERAGE = re.compile(r"\s?(?:on average|in the mean)\b", re.I)
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
        known = self._known = once(facts, KnownTerms, words.words)
        self._terms, self._wanted, self._groups = TermList(known), known.wanted, known.groups
        self._spans = TimeSpans(known.spans, self._terms, around)
        self._counted = RowCounts(around.text, mentions, known.rows)
        self._as_said = CountsAsSaid(around, once(facts, CountedStates, words))
        self._shares = Shares(self._terms, known.counts, known.wanted, around, words)
        self._of_user = QuestionProducts(self._wanted, around)
        self._asked = words.words.in_name(known.asked[:_MOST_ASKED])
        """What the question speaks of: an answer need not say it again."""
        self._summed: dict[int, Sequence[Term]] = {}
        """By sentence: what was added up in it. How many those are may be said beside their sum."""

    def find(self, claim: Claim, bound: Bound, *, past: bool = False) -> tuple[str, str] | None:
        """The sources and the calculation behind a figure; None if there is none that the sentence speaks of.

        `past`: it is said as what was, and may be made from what a change has replaced since.
        """
        if claim.number is None or claim.kind not in ("number", "ratio"):
            return None
        if self._of_user.is_reckoned_with(claim):
            return _QUESTION, "what another figure is made from"
        compared = self._cues.has("against", claim)
        for made in self._ways(claim, bound):
            if not self._agrees(claim, made) or is_turned(self._text, claim, made, self._mentions):
                continue
            if _fits(bound, made, compared=compared) and (past or not self._is_old(made)):
                source = ", ".join(dict.fromkeys(term.source for term in made.terms))
                self._of_user.note(claim, made)
                self._terms.append(Term.from_others(claim.number, claim.units or made.units, source, made.what))
                exact = Term.from_others(made.number, made.units or claim.units, source, made.what)
                self._shares.made.setdefault(self._around.number(claim), []).append(exact)
                if made.what.startswith("the sum"):
                    self._summed[self._around.number(claim)] = made.terms
                return source, made.what
        return None

    def _is_old(self, made: Calculation) -> bool:
        """Whether it is made from what a change has replaced, where the results have what is there since.

        Not where both are compared: how many more it is than before.
        """
        old, now = ({field_of(one) for one in made.terms if one.stale is stale} for stale in (True, False))
        return bool(old - now) and bool((old - now) & self._known.fresh)

    def _ways(self, claim: Claim, bound: Bound) -> Iterator[Calculation]:
        counts = self._as_said.find(claim, bound)
        yield from counts
        if self._as_said.whole_of(claim) is not None:
            # Of three of the five rows it is said how they are, and not what theirs come to.
            if not counts:
                yield from self._counted.find(claim, bound, self._find_groups(claim, asked=False))
            yield from self._threshold(claim)
            return
        times = claim.kind == "number" and _TIMES.match(self._text, claim.end) is not None
        if "percent" in claim.units or claim.kind == "ratio" or times:
            yield from self._shares.find(claim, bound, self._find_groups(claim), self._cues)
            if not times:
                return
        if _ON_AVERAGE.match(self._text, claim.end):
            yield from self._averages(claim)
            return
        if claim.units & TIME_UNITS:
            yield from self._spans.between(claim)
            yield from self._spans.lasting(claim)
            yield from self._counted.find_periods(claim)
        yield from self._put_together(claim, bound)
        if claim.units:
            yield from self._portions(claim)
        else:
            yield from self._spans.a_day(claim)
            yield from self._spans.in_all(claim)
            if not counts:
                yield from self._counted.find(claim, bound, self._find_groups(claim, asked=False))
            rows = self._summed.get(self._around.number(claim))
            if rows:
                yield Calculation(Decimal(len(rows)), frozenset(), "the rows of a sum", ())
        yield from self._threshold(claim)

    def _put_together(self, claim: Claim, bound: Bound) -> Iterator[Calculation]:
        """What is put together by a word of the sentence that says so."""
        if self._cues.has("average", claim):
            yield from self._averages(claim)
        yield from self._sums(claim, bound)
        if self._cues.has("difference", claim) and _PER.match(self._text, claim.end) is None:
            yield from self._differences(claim, bound)
        if self._cues.has("sum", claim) and _ALL_OF.search(self._around.sentence(claim)) is None:
            yield from self._pair_sums(claim, bound)
        each = _OF_EACH.search(self._text[: claim.start][-_LEAD:]) is not None
        multiplied = self._cues.has("product", claim) and not each
        if multiplied or (_digits(claim) >= _TELLING and not each):
            yield from self._products(claim, multiplied=multiplied)
        yield from self._of_user.find(claim, cued=multiplied or self._cues.has("needed", claim))

    def _agrees(self, claim: Claim, made: Calculation) -> bool:
        assert claim.number is not None
        wanted = [made.number]
        in_cents = "cent" in made.units and bool(claim.units & self._words.units.currencies)
        if claim.units and made.units and (in_cents or not claim.units & made.units):
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
            one_list = len({term.source for term in some}) == 1
            counted = one_list and has_stem(bound.noun & (some[0].own | some[0].described))  # eleven guests in all
            may_be = large or group.named or counted
            if len(some) > 1 and (said or (may_be and self._is_spoken_of(some[0], bound))):
                total = self._groups.total(group)
                yield Calculation(total, some[0].units, f"the sum of {group.what}", some)

    def _is_spoken_of(self, term: Term, bound: Bound) -> bool:
        """Whether a field is what the words beside a figure say, or what was asked for."""
        return bound.affinity(term.own | term.described) >= _SPOKEN_OF or bool(term.own & self._asked)

    def _averages(self, claim: Claim) -> Iterator[Calculation]:
        for group in self._find_groups(claim):
            some = group.terms
            total = self._groups.total(group)
            yield Calculation(total / len(some), some[0].units, f"the mean of {group.what}", some)

    def _pairs(self, claim: Claim, bound: Bound) -> Iterator[tuple[Term, Term]]:
        """Values of one unit, in pairs."""
        fits = partial(self._may_be_paired, claim.units)
        wanted = [term for term in self._wanted if term.number and fits(term.units)]
        some = [*self._terms.last_in(fits, _MOST_PAIRED, empty=False), *wanted][-_MOST_PAIRED:]
        if claim.units & self._words.units.currencies:
            some = [term for term in some if term.units or not self._is_count(term)]
        if bound.noun and not claim.units:  # "five visits" are no five minutes
            some = [term for term in some if not term.units & TIME_UNITS or term.own & bound.noun]
        sentence, stated = self._around.words(claim, earlier=True), self._around.figures(claim, earlier=True)
        spoken = {id(term) for term in some if term.own & sentence or term.number in stated or term.row is NOWHERE}
        for one, other in combinations(some, 2):
            both = (id(one) in spoken) + (id(other) in spoken)
            if _comparable(one, other, both) or (both and one.row is other.row and bound.fit(one.row) > 0):
                yield one, other

    def _may_be_paired(self, said: Units, units: Units) -> bool:
        """Whether a figure may be made from values in a unit by adding or taking away: of its own or a like one."""
        if not said or said & units:
            return True
        money, measures = self._words.units.currencies | {"cent"}, self._words.measures
        if said & money and (not units or ("cent" in said | units and units & money)):
            return True
        return bool(measures.dimensions(said) & measures.dimensions(units))

    def _is_count(self, term: Term) -> bool:
        """Whether a term is a number of things, of which no sum of money is made."""
        return bool(term.own) and is_plain_count(term.number, term.own | term.described, self._words.words.amounts)

    def _differences(self, claim: Claim, bound: Bound) -> Iterator[Calculation]:
        if abs(claim.number or Decimal(0)) >= _LARGE:
            columns = [terms for terms in self._groups.columns.values() if 2 <= len(terms) <= _MOST_COUNTED]
            totals = [Term.total(terms, terms[0].column) for terms in columns[:_MOST_TOTALS]]
            sentence = self._around.words(claim)
            for one, other in combinations(totals, 2):
                if one.units == other.units and (one.units or (one.own & sentence and other.own & sentence)):
                    number = one.number - other.number
                    yield Calculation(number, one.units, f"{one.path} - {other.path}", (one, other))
        compared = self._two_before(claim)
        for one, other in self._pairs(claim, bound):
            if len(compared) == _BOTH and not compared <= {abs(one.number), abs(other.number)}:
                continue
            number = one.number - other.number
            yield Calculation(number, one.units or other.units, f"{one.path} - {other.path}", (one, other))

    def _two_before(self, claim: Claim) -> set[Decimal]:
        """The two figures that are said right before their difference: 576 and 947, a difference of 371."""
        if not claim.units or _OF_THESE.search(self._text, max(0, claim.start - _LEAD), claim.start) is None:
            return set()
        before = [one for one in self._around.beside(claim) if one.start < claim.start and one.units & claim.units]
        return {abs(one.number) for one in before if one.number is not None}

    def _pair_sums(self, claim: Claim, bound: Bound) -> Iterator[Calculation]:
        for one, other in self._pairs(claim, bound):
            if _is_part(one, other) or _is_part(other, one):
                continue
            number = one.number + other.number
            yield Calculation(number, one.units or other.units, f"{one.path} + {other.path}", (one, other))

    def _products(self, claim: Claim, *, multiplied: bool) -> Iterator[Calculation]:
        """Prices times counts; where no word says so, times a count that the user has named, and of no chance hit."""
        named = (term for term in self._wanted if is_count(term))
        factors = list(self._terms.factors() if multiplied else islice(named, _MOST_COUNTED))
        for price in self._terms.last_in(partial(self._is_convertible, claim.units), _MOST_COUNTED):
            for times, what in ((12, "12 months"), (52, "52 weeks"), (7, "7 days")) if multiplied else ():
                yield Calculation(price.number * times, price.units, f"{price.path} * {what}", (price,))
            # So much a day is multiplied with days, and not with how many there are of something.
            a_day = A_DAY.search(snake_name(field_of(price))) is not None and _PER.match(self._text, claim.end) is None
            for factor in factors:
                is_rate = a_day and factor.path.endswith(".length")
                if factor is not price and not is_rate and not factor.units & price.units:  # nothing is dollars squared
                    number = price.number * factor.number
                    yield Calculation(number, price.units, f"{factor.path} * {price.path}", (factor, price))

    def _is_convertible(self, said: Units, units: Units) -> bool:
        if said & units:
            return True
        if said & TIME_UNITS or "decade" in said:
            return False  # seven times eleven days are eleven weeks
        return any(True for _one in self._words.measures.convert(Decimal(1), units, said))

    def _portions(self, claim: Claim) -> Iterator[Calculation]:
        """In three instalments of 24 each: a value by a number that the sentence says."""
        counts = [one for one in self._around.figures(claim) if 1 < one <= _MOST_PORTIONS and one == int(one)]
        for term in self._terms.last(_MOST_PAIRED) if _EACH.match(self._text, claim.end) else ():
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
    if len(made.terms) > 1 and len({id(term.row) for term in made.terms}) == 1 and made.terms[0].row is not NOWHERE:
        return bound.fit(made.terms[0].row) >= 0  # what is made of one thing alone is of that
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


def _is_part(one: Term, other: Term) -> bool:
    """Whether one is counted in the other already: `sick_days` of a row in its `days`, a fee in its `total`."""
    if one.source != other.source or one.column == other.column:
        return False
    if one.row is other.row and one.row is not NOWHERE and is_total(_field(other)) and not is_total(_field(one)):
        return True
    if one.units & other.units:
        return False
    stems = [{word for word in term.own if not word.startswith("=")} for term in (one, other)]
    return _field(one) == _field(other) or (one.row is other.row and bool(stems[1]) and stems[1] < stems[0])


def _field(term: Term) -> str:
    return term.path.rpartition(".")[2]
