"""Parts and multiples: two thirds of the total, twice as much, 12 percent more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, DivisionByZero, InvalidOperation
from itertools import combinations

from interlock.answers.grounding.binding import Bound
from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.cues import Cues
from interlock.answers.grounding.none_of_them import NONE, NoneOfThem
from interlock.answers.grounding.rows import NOWHERE
from interlock.answers.grounding.surroundings import Surroundings
from interlock.answers.grounding.terms import Calculation, RowGroup, Term
from interlock.answers.grounding.time_spans import Figures
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.answers.grounding.words import Meanings, has_stem

_MOST_PAIRED = 90
_MOST_TOTALS = 20
_MOST_WANTED = 10
_OF = re.compile(r"\s?(?:of|in)\b", re.I)
_TWICE = 2
_MULTIPLE = re.compile(r"doubl|tripl|quadrupl", re.I)
_OF_SOME = re.compile(r"\s+of\s+(?:them|these|those|all|the|our|your|which)\b", re.I)
_OF_WHAT = re.compile(r"\s+of\s+(?:your|the|its|their|our|his|her)\s+(?P<whole>(?:[^\W\d_]+\s?){1,3})", re.I)
_OF_THAT = re.compile(r"\s+of\s+(?:that|it|them|those|this|these|which)\b", re.I)


class Shares:
    """What one value is of another."""

    def __init__(
        self, terms: Figures, counts: Sequence[Term], wanted: Sequence[Term], around: Surroundings, words: Vocabulary
    ) -> None:
        self._none = NoneOfThem(words)
        self._terms, self._counts, self._wanted = terms, counts, wanted
        """`terms`: those of the results, and what was made from them: it grows."""
        self._around, self._words, self._units = around, words.words, words.units
        self.made: dict[int, list[Term]] = {}
        """By sentence: the figures in it that were made, as they were before they were rounded."""

    def find(self, claim: Claim, bound: Bound, groups: Iterable[RowGroup], cues: Cues) -> Iterator[Calculation]:
        """The shares and multiples that a sentence may speak of with a figure."""
        hundred = Decimal(100) if "percent" in claim.units else Decimal(1)
        terms = self._terms.last(_MOST_PAIRED)
        totals = [
            Term.total(group.terms, group.what)
            for group in groups
            if len(group.terms) > 1 and (group.named or not group.field)
        ]
        sentence, stated = self._around.words(claim), self._around.figures(claim, earlier=True)
        of_it = _OF.match(self._around.text, claim.end) is not None
        compared = cues.has("compared", claim) and not of_it  # "nine tenths of the bill" is no growth
        whole = cues.has("sum", claim) or of_it
        for one, other in combinations([*terms, *totals[:_MOST_TOTALS], *self._wanted[:_MOST_WANTED]], 2):
            spoken = one.own & sentence or other.own & sentence or one.number in stated or other.number in stated
            both = one.number in stated and other.number in stated and one.units == other.units
            if (_are_parts(one, other) and spoken) or both:
                for over, under in ((one, other), (other, one)):
                    is_whole = whole or both or not under.path.startswith("the sum")
                    if is_whole and not self._is_other_whole(claim, over, under):
                        growth = compared and (
                            both or over.column == under.column or self._names_one_thing(over, under)
                        )
                        yield from _quotients(over, under, hundred, compared=growth)
        if _OF_SOME.match(self._around.text, claim.end) is not None:
            yield from self._of_counts(claim, sentence, hundred)
        if _OF_THAT.match(self._around.text, claim.end) is not None:
            yield from self._of_that(claim, bound, hundred)
        for term in terms if claim.kind == "ratio" else ():
            if claim.number is not None and claim.number >= _TWICE and _MULTIPLE.match(claim.text):
                continue  # that there are three of something does not triple anything
            yield Calculation(term.number / (100 if "percent" in term.units else 1), frozenset(), term.path, (term,))

    def _is_other_whole(self, claim: Claim, over: Term, under: Term) -> bool:
        """Whether a share is said of something else than two fields of a row: half of the use is not night by day."""
        if claim.kind != "ratio" or over.column == under.column or under.row is NOWHERE:
            return False
        match = _OF_WHAT.match(self._around.text, claim.end)
        return match is not None and not self._words.in_name(match["whole"]) & (under.own | under.described)

    def _of_counts(self, claim: Claim, sentence: Meanings, hundred: Decimal) -> Iterator[Calculation]:
        """Half of them are late: the rows that have something in common, of all rows of their list."""
        for some in self._counts:
            if "[" not in _counted_by(some) or not self._is_shared_in(some, sentence, self._around.behind(claim)):
                continue
            for every in self._counts:
                if every.path == f"{some.path.rpartition('[')[0]}.length":
                    yield from _quotients(some, every, hundred, compared=False)

    def _is_shared_in(self, count: Term, sentence: Meanings, behind: str) -> bool:
        """Whether the sentence speaks of what the counted rows have in common."""
        value = _counted_by(count).partition("=")
        if value[2] == f"{NONE}].length":
            return self._none.says(behind, value[0].removeprefix("["))
        return bool(self._words.in_name(value[2].partition("]")[0]) & sentence)

    def _of_that(self, claim: Claim, bound: Bound, hundred: Decimal) -> Iterator[Calculation]:
        """Two thirds of that are …: of a figure of the sentence before, by a value of the thing that is named."""
        earlier = self._around.figures(claim, earlier=True)
        made = self.made.get(self._around.before(claim), [])
        wholes = [*made, *(term for term in self._terms.last(_MOST_PAIRED) if term.number in earlier)]
        parts = [term for term in self._terms.last(_MOST_PAIRED) if bound.fit(term.row) > 0]
        for whole in wholes:
            for part in parts:
                if part.units == whole.units and part.row is not whole.row:
                    yield from _quotients(part, whole, hundred, compared=False)

    def _names_one_thing(self, one: Term, other: Term) -> bool:
        """Whether two fields are one at two times: `old_rent` and `new_rent`. A deposit is no rent that has grown."""
        return has_stem(frozenset(word for word in one.own & other.own if not self._units.of(word)))


def _counted_by(count: Term) -> str:
    """The value that counted rows share, as the path of their count has it; empty where all are counted."""
    _before, mark, value = count.path.rpartition("[")
    return f"{mark}{value}" if "=" in value else ""


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
