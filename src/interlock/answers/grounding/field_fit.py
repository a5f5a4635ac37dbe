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
from interlock.answers.grounding.known_rows import KnownFields, SourceWords, mixed_figures, mixed_flags, texts_of_rows
from interlock.answers.grounding.mentions import is_within
from interlock.answers.grounding.none_of_them import NONE, NoneOfThem
from interlock.answers.grounding.periods import is_per_another
from interlock.answers.grounding.rows import STATES, Row
from interlock.answers.grounding.sentences import Sentences
from interlock.answers.grounding.time_spans import A_DAY
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.answers.grounding.words import Meanings, has_stem, stem, words_in

_SPOKEN_OF = 0.5
"""More than this, and the words beside a figure are about a field."""
_WEAK = 0.2
"""Less than this is no sign that a field is spoken of: a word far away, behind several breaks."""
_AS_NEAR = 0.7
_BESIDE_IT = 0.3
"""So near stands a word that says which field a figure is: two words away, with no break between."""
_FIGURES_AROUND = 6
_A_BREAK = 15
_MOST_TEXT = 20_000
_MOST_COMPARED = 2_000
_TELLING_DIGITS = 3
"""A figure of so many digits is not in a result by chance."""
_OF_A_FIELD = ("number", "date", "time", "ordinal")
_IN_A_DAY = re.compile(r"(?:\s[^\W\d_]{2,20}){0,2}\s(?:(?:a|per|each|every)\sday|daily)\b", re.I)
_WITHOUT = re.compile(
    r"\b(?:after|without|excluding|minus|net of|apart from|besides)\s+(?:the\s+|your\s+|its\s+)?$", re.I
)
_TOWARDS = re.compile(r"\w+\s+(?:on|against|towards?|out of)\s+(?:the|your|this|that)\s+", re.I)
_SHORT_LEAD = 24
_TO_NEXT = 6
_PRICES = frozenset({"=price", "=fee", "=pay"})
_NARROWING = re.compile(
    r"(?:\s(?!(?:is|are|was|were|and|but|have|has|with|due|still|lacks?)\b)[^\W\d_]{2,20}){1,4}", re.I
)
"""The words between a number and what is said of it."""
_QUANTITIES = frozenset({stem("quantity"), stem("pieces"), "=stock"})
"""Fields that say how many there are, and not of what: `quantity`, `on_hand`."""
_OF_SOME = re.compile(
    r"(?:[a-z]{2}ed|(?:^|_)(?:sold|lost|taken|left|sent|broken|held|paid|unpaid|late|overdue))$", re.I
)
"""Names of fields that count those to which something was done, or that are in a state: `reserved`, `units_sold`."""
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
        self._row_words: dict[int, Meanings] = {}
        self._field_words: Meanings | None = None
        self._rows = known.rows
        self._none = NoneOfThem(words)

    def is_computed(self, claim: Claim) -> bool:
        """Whether a figure stands in a sum that is written out: what it is of was said before."""
        around = self._text[max(0, claim.start - 3) : claim.start], self._text[claim.end : claim.end + 3]
        return _BEFORE_TERM.search(around[0]) is not None or _BEHIND_TERM.match(around[1]) is not None

    def may_be(self, fact: Fact, claim: Claim, bound: Bound) -> bool:
        """Whether the words around a claim let it be this field."""
        if fact.place.name == "$" or claim.kind not in _OF_A_FIELD or self.is_computed(claim) or _is_year(claim):
            return True
        row = self._rows.get((fact.source, id(fact.place.row)), ())
        mine = bound.speaks_of(fact)
        if self._is_another(fact, claim, bound, row, mine):
            return False
        if fact.counted:
            return self._counts(fact, claim, bound)
        if not fact.own and self.is_narrowed(claim):
            return False  # the `count` of a list is that of all its rows
        if fact.asked or fact.echo or self._is_in_a_day(fact, claim):
            return True  # whose it is said to be was looked at before
        others = [
            other
            for other in row
            if other.place.name != fact.place.name and not other.label and _same_kind(claim, fact, other)
        ]
        if others and fact.own and not self._is_as_written(fact, claim):
            own = fact.own | fact.described
            beside = max((word.near for word in bound.naming(own | fact.around)), default=0.0)
            if any(
                word.near >= _BESIDE_IT
                and beside < word.near * _AS_NEAR
                and not self._is_taken(word, other, claim)
                and not self._is_taken_off(word, claim)
                for other in others
                for word in bound.naming(other.own | other.described, own | self._named_in(fact.place.row))
            ):
                return False
        if self._is_of_another_part(fact, claim, bound):
            return False
        if mine > _WEAK or claim.kind != "number" or fact.number is None or claim.units & fact.units or fact.prose:
            return True
        return bool(claim.units) or _is_telling(claim) or self._is_counted(fact, claim, bound)

    def _is_another(self, fact: Fact, claim: Claim, bound: Bound, row: Sequence[Fact], mine: float) -> bool:
        """Whether a figure is said to be of another length of time, currency, place or order than its field."""
        return (
            is_per_another(self._text, claim, fact, self._facts, row)
            or self._is_in_another_currency(fact, claim)
            or self._is_in_other_containers(fact, bound)
            or self._is_other_order(fact, claim, bound, mine)
        )

    def _is_other_order(self, fact: Fact, claim: Claim, bound: Bound, mine: float) -> bool:
        """Whether an ordinal is said of something else than a field numbers: three that work are no third time."""
        if claim.kind != "ordinal" or fact.number is None or fact.prose or fact.label or fact.echo or fact.asked:
            return False
        if fact.counted:
            shared = fact.place.path.rpartition("[")[2].removesuffix(".length")
            rows = self._words.words.in_name(shared) | (fact.around - fact.own)
            return bool(bound.noun) and not bound.noun & rows
        return mine <= _WEAK and not bound.noun & (fact.own | fact.described | fact.around)

    def _is_of_another_part(self, fact: Fact, claim: Claim, bound: Bound) -> bool:
        """Whether a field of the same name in another part of the row is meant: the reading of the `last_service`."""
        twins = [
            other
            for other in self._rows.get((fact.source, id(fact.place.row)), ())
            if other.place.name == fact.place.name and other.place.column != fact.place.column
            if _same_kind(claim, fact, other)
        ]
        mine = max((word.near for word in bound.naming(fact.around)), default=0.0) if twins else 0.0
        return any(
            word.near >= _BESIDE_IT and mine < word.near * _AS_NEAR and not self._is_taken(word, other, claim)
            for other in twins
            for word in bound.naming(other.around, fact.around | fact.described)
        )

    def _is_counted(self, fact: Fact, claim: Claim, bound: Bound) -> bool:
        """Whether the word behind a figure is one that the results have, or is said of a part before it."""
        if self._is_only_some(fact):
            return False
        known = fact.words | self._asked_words | self._words_of(fact.source)
        if fact.own & _QUANTITIES:
            known |= self._all_words()
        said = not bound.noun or bool(bound.noun & known) or self._is_whole(claim)
        spoken = bool(claim.units) or _is_telling(claim) or said
        return spoken and not self._lacks_unit(fact, claim, bound)

    def _is_only_some(self, fact: Fact) -> bool:
        """Whether it counts those in a state, which nobody speaks of, of a stock: 6 headlights are not the reserved."""
        if not _OF_SOME.search(fact.place.name) or fact.own & (self._asked_words | self._said_words()):
            return False
        row = self._rows.get((fact.source, id(fact.place.row)), ())
        return any(other.own & _QUANTITIES for other in row if other is not fact and not other.counted)

    def _is_whole(self, claim: Claim) -> bool:
        """Whether a part of it is said before a figure, so that the word behind is said of that: 41 of 45 taken."""
        at = bisect_left(self._said, claim.start, key=lambda one: one.start)
        part = self._said[at - 1] if at else claim
        is_less = part.number is not None and claim.number is not None and part.number < claim.number
        return is_less and is_part_of(self._text, part, claim)

    def _lacks_unit(self, fact: Fact, claim: Claim, bound: Bound) -> bool:
        """Whether a bare figure is of something else than a field with a unit: 24 that are free are no price."""
        if not fact.units or claim.units or _is_telling(claim) or bound.noun & fact.words:
            return False
        money = bool(fact.units & self._words.units.currencies)
        if not (bound.noun or money) or (money and bound.affinity(_PRICES) > _WEAK):
            return False
        # "42 and 55 dollars" have one unit.
        near = (one for one in self._figures_near(claim) if 0 < one.start - claim.end <= _TO_NEXT)
        return not any(one.units & fact.units for one in near)

    def _is_taken(self, word: NearWord, fact: Fact, claim: Claim) -> bool:
        """Whether a word that names a field stands nearer to a figure that is the field's own: 65 points from 38."""
        here = self._sentences.at(claim.start)
        if self._sentences.at(word.place) != here:
            return False  # the head of its column
        apart = self._distance(claim, word.place)
        for other in self._figures_near(claim):
            if other is claim or self._sentences.at(other.start) != here:
                continue
            # "80 of 96 sold": the word behind both is said of the part.
            is_whole = word.place >= claim.end and is_part_of(self._text, other, claim)
            if self._distance(other, word.place) >= apart and not is_whole:
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

    def _distance(self, claim: Claim, place: int) -> int:
        """How far a word is from a figure; a break between them counts for words: "5 are paid and 7 are due"."""
        apart = place - claim.end if place >= claim.end else claim.start - place
        return apart + _A_BREAK * self._sentences.breaks(min(place, claim.end), max(place, claim.start))

    def _is_in_a_day(self, fact: Fact, claim: Claim) -> bool:
        """Whether both are so much a day: two tablets a day of `times_a_day`."""
        if fact.number is None or A_DAY.search(fact.place.name) is None:
            return False
        return _IN_A_DAY.match(self._text, claim.end) is not None

    def _is_taken_off(self, word: NearWord, claim: Claim) -> bool:
        """Whether a word names what a figure is without, or a part: "after insurance 72 are left", "paid on the 72"."""
        if _WITHOUT.search(self._text, max(0, word.place - _SHORT_LEAD), word.place) is not None:
            return True
        return _TOWARDS.fullmatch(self._text, word.place, claim.start) is not None

    def _figures_near(self, claim: Claim) -> Sequence[Claim]:
        at = bisect_left(self._said, claim.start, key=lambda one: one.start)
        return self._said[max(0, at - _FIGURES_AROUND) : at + _FIGURES_AROUND]

    def _words_of(self, source: str) -> Meanings:
        """What the texts of a source speak of."""
        return once(self._facts, SourceWords, self._words.words, _MOST_TEXT).of(source)

    def _named_in(self, row: Row) -> Meanings:
        """What a thing's own names stand for, and what it was looked up as (a brake pad set, a bill): no field."""
        found = self._row_words.get(id(row))
        if found is None:
            things = (same for kind, same in row.names.items() if kind not in STATES)
            kinds = (kind for one in row.chain() if one.of_call for kind in one.names)
            names = " ".join((*(name for same in things for name in same), *kinds))[:_MOST_TEXT]
            found = self._row_words[id(row)] = self._words.words.in_name(names)
        return found

    def _said_words(self) -> Meanings:
        """What the words of the whole answer stand for."""
        return self._words.words.in_name(self._text[:_MOST_TEXT])

    def _all_words(self) -> Meanings:
        """What the names of all fields of the results stand for: a quantity may be one of anything that they name."""
        if self._field_words is None:
            own = {fact.place.name: fact.own for fact in self._facts if not fact.asked and not fact.echo}
            self._field_words = frozenset[str]().union(*own.values())
        return self._field_words

    def _is_in_another_currency(self, fact: Fact, claim: Claim) -> bool:
        """Whether a sum is said in a currency that the results do not know, where they name theirs."""
        said = claim.units & self._words.units.currencies
        if claim.units - said:
            return False  # pounds are a weight, too
        return bool(
            said and self._currencies and not fact.echo and not said & (self._currencies | fact.units | fact.money)
        )

    def _is_in_other_containers(self, fact: Fact, bound: Bound) -> bool:
        """Whether a figure is said of cases, and its field counts bottles."""
        containers = self._words.words.containers
        mine, said = fact.own & containers, bound.noun & containers
        return bool(mine and said) and not mine & said

    def _is_as_written(self, fact: Fact, claim: Claim) -> bool:
        """Whether a long figure stands in the row letter by letter: the 0932 of a card."""
        return fact.prose or (
            claim.kind != "time"
            and _is_telling(claim)
            and (id(fact.place.row), claim.text) in once(self._facts, texts_of_rows)
        )

    def _counts(self, fact: Fact, claim: Claim, bound: Bound) -> bool:
        """Whether a number of rows is what is counted: by what they are called, or by what they have in common."""
        if claim.units:
            return False
        value = fact.place.path.rpartition("[")[2].partition("=")
        shared = self._words.words.in_name(f"{value[0]} {value[2].partition(']')[0]}") if value[1] else frozenset()
        if shared:
            sentence = self._cues.words(claim)
            part = self._words.words.in_name(self._part_around(claim))
            flag = value[2].partition("]")[0]
            if flag == NONE:
                return self._none.says(self._part_behind(claim), value[0])
            if flag in ("True", "False"):
                return self._says_flag(value[0], claim, is_set=flag == "True")
            return bool(shared & sentence) and (bool(shared & part) or not bound.noun)
        known = fact.words | self._asked_words
        if self.is_narrowed(claim):
            return False
        if claim.kind == "ordinal":  # the third of three rows, and no third time
            return not bound.noun or has_stem(bound.noun & known)
        return (
            not bound.noun
            or bool(bound.noun & known)
            or bool(bound.spoken & fact.own)
            or self._cues.has("generic", claim)
        )

    def _part_behind(self, claim: Claim) -> str:
        """What follows a claim, up to the next break."""
        end = self._sentences.all[self._sentences.at(claim.start)].end
        return self._text[claim.end : self._sentences.next_break(claim.end, end)]

    def _part_around(self, claim: Claim) -> str:
        """The part of a sentence between the breaks before and behind a claim."""
        one = self._sentences.all[self._sentences.at(claim.start)]
        start = max(self._text.rfind(mark, one.start, claim.start) for mark in ",;:(")
        return self._text[max(one.start, start) : self._sentences.next_break(claim.end, one.end)]

    def is_narrowed(self, claim: Claim) -> bool:
        """Whether those are counted with a flag, or none of something, that only some have: "all four late books"."""
        behind = _NARROWING.match(self._text, claim.end)
        if self._is_whole(claim):
            return False  # "two of the four are late": that is said of the two
        if self._none.says(self._part_behind(claim), *once(self._facts, mixed_figures)):
            return True
        if behind is None:
            return False
        spoken = self._words.words.in_name(behind[0])
        return any(own & spoken for own in once(self._facts, mixed_flags))

    def _says_flag(self, name: str, claim: Claim, *, is_set: bool) -> bool:
        """Whether rows are counted by a flag as it stands: two are paid, two are unpaid, two are not paid."""
        part = self._part_behind(claim)
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


def _same_kind(claim: Claim, one: Fact, other: Fact) -> bool:
    """Whether the claim could as well be of the other field: a figure of the same unit, a date, a time."""
    if one.number is None:
        return (one.minutes is None) == (other.minutes is None) and any(one.date) == any(other.date)
    if other.number is None or other.counted:
        return False
    units = other.units | other.money
    if units & one.units:
        return True  # also where it is said in another one: dollars of two fields that keep cents
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
