"""Whether the words around a claim let it be a certain field: its name, its unit, what is counted."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from interlock.answers.grounding.binding import Bound, NearWord, is_part_of, predicate_behind
from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.cues import Cues
from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.figures import FigureMatcher
from interlock.answers.grounding.known_rows import KnownFields, texts_of_sources
from interlock.answers.grounding.mentions import is_within
from interlock.answers.grounding.rows import Row
from interlock.answers.grounding.sentences import Sentences
from interlock.answers.grounding.time_spans import A_DAY
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.answers.grounding.words import Meanings, stem, words_in

_SPOKEN_OF = 0.5
"""More than this, and the words beside a figure are about a field."""
_WEAK = 0.2
"""Less than this is no sign that a field is spoken of: a word far away, behind several breaks."""
_AS_NEAR = 0.7
_BESIDE_IT = 0.3
"""So near stands a word that says which field a figure is: two words away, with no break between."""
_FIGURES_AROUND = 6
_MOST_TEXT = 20_000
_MOST_COMPARED = 2_000
_TELLING_DIGITS = 3
"""A figure of so many digits is not in a result by chance."""
_OF_A_FIELD = ("number", "date", "time", "ordinal")
_PER = re.compile(r"\s?(?:an?|per|each|every|/)\s?(?P<period>hour|night|day|week|month|quarter|year|annum)\b", re.I)
_PERIODS = {
    stem(period): frozenset(map(stem, words))
    for period, words in {
        "hour": ("hour", "hourly"),
        "night": ("night", "nightly"),
        "day": ("day", "daily"),
        "week": ("week", "weekly"),
        "month": ("month", "monthly"),
        "year": ("year", "yearly", "annual", "annually"),
    }.items()
}
_IN_A_DAY = re.compile(r"(?:\s[^\W\d_]{2,20}){0,2}\s(?:(?:a|per|each|every)\sday|daily)\b", re.I)
_WITHOUT = re.compile(
    r"\b(?:after|without|excluding|minus|net of|apart from|besides)\s+(?:the\s+|your\s+|its\s+)?$", re.I
)
_SHORT_LEAD = 24
_QUANTITIES = frozenset({stem("quantity"), stem("pieces"), "=stock"})
"""Fields that say how many there are, and not of what: `quantity`, `on_hand`."""
_BEFORE_TERM = re.compile(r"[+×*÷/=]\s?[$€£(]?$|\s[-−–]\s$")
_BEHIND_TERM = re.compile(r"\s?[+×*÷=]|\s[-−–x/]\s")


class FieldFit:
    """Whether a claim of an answer can be a field of the results."""

    def __init__(
        self,
        sentences: Sentences,
        said: Sequence[Claim],
        facts: Sequence[Fact],
        words: Vocabulary,
        cues: Cues,
        matcher: FigureMatcher,
    ) -> None:
        self._sentences, self._text, self._said = sentences, sentences.text, said
        self._facts, self._words, self._cues, self._matcher = facts, words, cues, matcher
        known = once(facts, KnownFields)
        self._asked_words = words.words.in_name(known.asked)
        self._currencies = known.units & words.units.currencies
        self._source_words: dict[str, Meanings] = {}
        self._row_words: dict[int, Meanings] = {}
        self._field_words: Meanings | None = None
        self._rows, self._texts = known.rows, known.texts

    def is_computed(self, claim: Claim) -> bool:
        """Whether a figure stands in a sum that is written out: what it is of was said before."""
        around = self._text[max(0, claim.start - 3) : claim.start], self._text[claim.end : claim.end + 3]
        return _BEFORE_TERM.search(around[0]) is not None or _BEHIND_TERM.match(around[1]) is not None

    def may_be(self, fact: Fact, claim: Claim, bound: Bound) -> bool:
        """Whether the words around a claim let it be this field."""
        if fact.place.name == "$" or claim.kind not in _OF_A_FIELD or self.is_computed(claim) or _is_year(claim):
            return True
        if self._is_per_another(fact, claim) or self._is_in_another_currency(fact, claim):
            return False
        mine = bound.speaks_of(fact)
        if fact.counted:
            return self._counts(fact, claim, bound)
        if fact.asked or self._is_in_a_day(fact, claim):
            return True
        if fact.echo:
            return True  # whose it is said to be was looked at before
        others = [
            other
            for other in self._rows.get((fact.source, id(fact.place.row)), ())
            if other.place.name != fact.place.name and not other.label and _same_kind(claim, fact, other)
        ]
        if others and fact.own and not self._is_as_written(fact, claim):
            own = fact.own | fact.described
            beside = max((word.near for word in bound.naming(own | fact.around)), default=0.0)
            if any(
                word.near >= _BESIDE_IT
                and beside < word.near * _AS_NEAR
                and not self._is_taken(word, other, claim)
                and not self._is_taken_off(word)
                for other in others
                for word in bound.naming(other.own | other.described, own | self._named_in(fact.place.row))
            ):
                return False
        if mine > _WEAK or claim.kind != "number" or fact.number is None or claim.units & fact.units or fact.prose:
            return True
        return bool(claim.units) or _is_telling(claim) or self._is_counted(fact, claim, bound)

    def _is_counted(self, fact: Fact, claim: Claim, bound: Bound) -> bool:
        """Whether the word behind a figure is one that the results have, or is said of a part before it."""
        known = fact.words | self._asked_words | self._words_of(fact.source)
        if fact.own & _QUANTITIES:
            known |= self._all_words()
        return not bound.noun or bool(bound.noun & known) or self._is_whole(claim)

    def _is_whole(self, claim: Claim) -> bool:
        """Whether a part of it is said before a figure, so that the word behind is said of that: 41 of 45 taken."""
        at = bisect_left(self._said, claim.start, key=lambda one: one.start)
        part = self._said[at - 1] if at else claim
        is_less = part.number is not None and claim.number is not None and part.number < claim.number
        return is_less and is_part_of(self._text, part, claim)

    def _is_taken(self, word: NearWord, fact: Fact, claim: Claim) -> bool:
        """Whether a word that names a field stands nearer to a figure that is the field's own: 65 points from 38."""
        here = self._sentences.at(claim.start)
        if self._sentences.at(word.place) != here:
            return False  # the head of its column
        apart = _distance(claim, word.place)
        for other in self._figures_near(claim):
            if other is claim or self._sentences.at(other.start) != here:
                continue
            # "80 of 96 sold": the word behind both is said of the part.
            is_whole = word.place >= claim.end and is_part_of(self._text, other, claim)
            if _distance(other, word.place) >= apart and not is_whole:
                continue
            if is_part_of(self._text, claim, other):
                behind = predicate_behind(self._text, other)
                if behind is not None and word.place >= behind:
                    continue  # "80 of 96 are reserved": the 80 are
            if other.number is None:
                if any(fact.date) and is_within(other.date, fact.date):
                    return True
            elif fact.number is not None and self._matcher.how(other, fact) is not None:
                return True
        return False

    def _is_in_a_day(self, fact: Fact, claim: Claim) -> bool:
        """Whether both are so much a day: two tablets a day of `times_a_day`."""
        if fact.number is None or A_DAY.search(fact.place.name) is None:
            return False
        return _IN_A_DAY.match(self._text, claim.end) is not None

    def _is_taken_off(self, word: NearWord) -> bool:
        """Whether a word names what a figure is without: "after insurance 72 are left"."""
        return _WITHOUT.search(self._text, max(0, word.place - _SHORT_LEAD), word.place) is not None

    def _figures_near(self, claim: Claim) -> Sequence[Claim]:
        at = bisect_left(self._said, claim.start, key=lambda one: one.start)
        return self._said[max(0, at - _FIGURES_AROUND) : at + _FIGURES_AROUND]

    def _words_of(self, source: str) -> Meanings:
        """What the texts of a source speak of."""
        found = self._source_words.get(source)
        if found is None:
            texts = once(self._facts, texts_of_sources, _MOST_TEXT).get(source, "")
            found = self._source_words[source] = self._words.words.in_name(texts)
        return found

    def _named_in(self, row: Row) -> Meanings:
        """What the words of a thing's own names stand for: the set of a brake pad set says what it is, and no field."""
        found = self._row_words.get(id(row))
        if found is None:
            names = " ".join(name for same in row.names.values() for name in same)[:_MOST_TEXT]
            found = self._row_words[id(row)] = self._words.words.in_name(names)
        return found

    def _all_words(self) -> Meanings:
        """What the names of all fields of the results stand for: a quantity may be one of anything that they name."""
        if self._field_words is None:
            own = {fact.place.name: fact.own for fact in self._facts if not fact.asked and not fact.echo}
            self._field_words = frozenset[str]().union(*own.values())
        return self._field_words

    def _is_per_another(self, fact: Fact, claim: Claim) -> bool:
        """Whether a figure is said to be of another length of time than its field: 2.4 % a month of a yearly rate."""
        match = _PER.match(self._text, claim.end)
        if match is None or claim.number is None:
            return False
        known = {period for period, words in _PERIODS.items() if words & (fact.own | fact.described)}
        return bool(known) and stem(match["period"]) not in known

    def _is_in_another_currency(self, fact: Fact, claim: Claim) -> bool:
        """Whether a sum is said in a currency that the results do not know, where they name theirs."""
        said = claim.units & self._words.units.currencies
        if claim.units - said:
            return False  # pounds are a weight, too
        return bool(
            said and self._currencies and not fact.echo and not said & (self._currencies | fact.units | fact.money)
        )

    def _is_as_written(self, fact: Fact, claim: Claim) -> bool:
        """Whether a long figure stands in the row letter by letter: the 0932 of a card."""
        return fact.prose or (
            claim.kind != "time" and _is_telling(claim) and (id(fact.place.row), claim.text) in self._texts
        )

    def _counts(self, fact: Fact, claim: Claim, bound: Bound) -> bool:
        """Whether a number of rows is what is counted: by what they are called, or by what they have in common."""
        if claim.units:
            return False
        value = fact.place.path.rpartition("[")[2].partition("=")
        shared = self._words.words.in_name(f"{value[0]} {value[2].partition(']')[0]}") if value[1] else frozenset()
        if shared:
            sentence = self._cues.words(claim)
            flag = value[2].partition("]")[0]
            if flag in ("True", "False"):
                return self._says_flag(value[0], claim, is_set=flag == "True")
            return bool(shared & sentence)
        known = fact.words | self._asked_words
        return (
            not bound.noun
            or bool(bound.noun & known)
            or bool(bound.spoken & fact.own)
            or self._cues.has("generic", claim)
        )

    def _says_flag(self, name: str, claim: Claim, *, is_set: bool) -> bool:
        """Whether rows are counted by a flag as it stands: two are paid, two are unpaid, two are not paid."""
        one = self._sentences.all[self._sentences.at(claim.start)]
        part = self._text[claim.end : self._sentences.next_break(claim.end, one.end)]
        own = self._words.words.in_name(name)
        words = [word for word, _place in words_in(part)]
        if any(word.lower().startswith("un") and own & self._words.words.meanings(word[2:]) for word in words):
            return not is_set
        spoken = any(own & self._words.words.meanings(word) for word in words)
        return spoken and self._words.states.denies(part) != is_set

    def contradicts(self, claim: Claim, bound: Bound) -> bool:
        """Whether the words around a figure of the user speak of a field of the results, which has another value."""
        for facts in list(self._rows.values())[:_MOST_COMPARED]:
            for fact in facts:
                if fact.echo or fact.asked or fact.label or fact.counted or not _is_like(claim, fact):
                    continue
                if bound.affinity(fact.own) > _SPOKEN_OF and bound.fit(fact.place.row) >= 0:
                    return True
        return False

    def is_computed_beside(self, claim: Claim) -> bool:
        """Whether the sentence reckons with the same figure: six nights cost 6 * 145."""
        here = self._sentences.at(claim.start)
        return any(
            other.number == claim.number and self._sentences.at(other.start) == here and self.is_computed(other)
            for other in self._figures_near(claim)
        )


def _is_like(claim: Claim, fact: Fact) -> bool:
    """Whether a field could hold what is claimed: a figure of the same unit, or a date."""
    if claim.number is None:
        return claim.kind == "date" and any(fact.date)
    return fact.number is not None and (not claim.units or bool(claim.units & fact.units))


def _distance(claim: Claim, place: int) -> int:
    return place - claim.end if place >= claim.end else claim.start - place


def _same_kind(claim: Claim, one: Fact, other: Fact) -> bool:
    """Whether the claim could as well be of the other field: a figure of the same unit, a date, a time."""
    if one.number is None:
        return (one.minutes is None) == (other.minutes is None) and any(one.date) == any(other.date)
    if other.number is None or other.counted:
        return False
    units = other.units | other.money
    if claim.units & (one.units | one.money):
        return bool(units & claim.units)
    return not units or (not claim.units and bool(one.units))


def _is_year(claim: Claim) -> bool:
    return claim.number is not None and not claim.units and claim.step == 1 and 1900 <= claim.number <= 2100


def _is_telling(claim: Claim) -> bool:
    """Whether a figure has so many digits that it is in a result for what it says."""
    if claim.number is None:
        return True
    said = f"{abs(claim.digits if claim.digits is not None else claim.number):f}"
    return len(said.replace(".", "").lstrip("0")) >= _TELLING_DIGITS or claim.step < 1
