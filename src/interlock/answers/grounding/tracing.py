"""Each claim of an answer held against the evidence: value, unit, the thing it is said of, and the field."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

from interlock.answers.grounding.binding import Binder, Bound, NearWord, Order
from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.cues import Cues
from interlock.answers.grounding.derivations import Derivations
from interlock.answers.grounding.evidence import Evidence, Fact
from interlock.answers.grounding.expressions import derive
from interlock.answers.grounding.figures import FigureMatcher
from interlock.answers.grounding.index import FactIndex
from interlock.answers.grounding.meaning import ToolMeaning
from interlock.answers.grounding.mentions import Names, is_within
from interlock.answers.grounding.sentences import Sentences
from interlock.answers.grounding.states import States
from interlock.answers.grounding.support import Support
from interlock.answers.grounding.unknown_names import find_unknown_names
from interlock.answers.grounding.verbatim import Codes
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.answers.grounding.words import Meanings, stem

_WEAK = 0.2
"""Less than this is no sign that a field is spoken of: a word far away, behind several breaks."""
_AS_NEAR = 0.7
_BESIDE_IT = 0.3
"""So near stands a word that says which field a figure is: two words away, with no break between."""
_FIGURES_AROUND = 6
_MOST_TEXT = 20_000
_MOST_DATED = 2_000
_MOST_COMPARED = 2_000
_BESIDE = 12
"""A date so near to a day of the week is that day's."""
OF_ANOTHER = "it is of something else"
_ORDERS: tuple[Order, ...] = ("thing first", "figure first")
_MOST_ROUNDS = 3
_MOST_DERIVED = 60
"""For so many figures of an answer a calculation is looked for; with more that need one it is held."""
_TELLING_DIGITS = 3
"""A figure of so many digits is not in a result by chance."""
_OF_A_FIELD = ("number", "date", "time", "ordinal")
_OF_A_THING = ("number", "date", "time", "ordinal", "ratio")
_RANKS = ("exact", "rounded", "counted", "derived", "echo")


# What was: "from 800 to", "it was 800", "instead of 800"; "to 1,500", "now 1,500" are what is.
_PAST_BEFORE = re.compile(
    r"\b(?:from|was|were|had|previously|before|instead of|rather than|not|originally|earlier|formerly|used to be|old|"
    r"until now|prior|former|above|below|over|under|than|read|showed)\b"
    r"(?:\s+(?:the|a|an|at|of|been|only|about|still|your|its|being|standing|limit|balance|rate|in)){0,4}\W{0,3}$",
    re.I,
)
_PAST_AFTER = re.compile(
    r"\W{0,3}(?:\w{1,20}\W{1,3}){0,2}(?:before|previously|earlier|until now|so far|until then|originally|to [$€£\d])",
    re.I,
)


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
_BEFORE_TERM = re.compile(r"[+×*÷/=]\s?[$€£(]?$|\s[-−–]\s$")
_BEHIND_TERM = re.compile(r"\s?[+×*÷=]|\s[-−–x/]\s")
_SOME_OF = re.compile(r"\b(?:the|other|first|last|those|these|all|both|remaining|next|latest|of|between)\s+$", re.I)


class Tracer:
    """Holds the claims of one answer against one body of evidence."""

    def __init__(
        self,
        text: str,
        said: Sequence[Claim],
        evidence: Evidence,
        words: Vocabulary,
        meanings: Mapping[str, ToolMeaning],
    ) -> None:
        self._text, self._said, self._facts, self._words = text, said, evidence.facts, words
        self._meanings = meanings
        self._codes = Codes(text, said, evidence.facts)
        self._index = FactIndex(said, evidence.facts, words.field_magnitudes.values(), words.measures)
        self._matcher = FigureMatcher(words)
        self._sentences = Sentences(text)
        names = Names(text, evidence.facts, meanings, words)
        named = [*names.find(self._sentences, _addresses(said)), *names.find_dates(said)]
        self._mentions = sorted(named, key=lambda mention: mention.start)
        self._starts = [mention.start for mention in self._mentions]
        self._binder = Binder(self._sentences, said, self._mentions, words.words)
        self._cues = Cues(words.derivations, self._sentences, words.words)
        counts = [fact.number for fact in evidence.facts if fact.counted and fact.number is not None]
        things = {name for mention in self._mentions for name in mention.names.items()}
        self._most = max([*counts, Decimal(len({fact.source for fact in evidence.facts})), Decimal(len(things))])
        self._asked_words = words.words.in_name(
            " ".join(fact.text for fact in evidence.facts if fact.echo and fact.text)
        )
        money = (fact.units | fact.money for fact in evidence.facts if not fact.echo)
        self._currencies = frozenset[str]().union(*money) & words.units.currencies
        self._source_words: dict[str, Meanings] = {}
        self._dated = [fact for fact in evidence.facts if all(fact.date)][:_MOST_DATED]
        self._old = [fact for fact in evidence.facts if fact.stale and fact.number is not None]
        self._rows: dict[tuple[str, int], list[Fact]] = defaultdict(list)
        self._texts: dict[int, set[str]] = defaultdict(set)
        for fact in evidence.facts:
            if fact.text:
                self._texts[id(fact.place.row)].add(fact.text)
            if fact.number is not None or fact.minutes is not None or any(fact.date):
                self._rows[(fact.source, id(fact.place.row))].append(fact)

    def run(self) -> list[Support]:
        """Each claim with what stands behind it."""
        found = [self._trace(number, claim) for number, claim in enumerate(self._said)]
        self._trace_in_order(found)
        for place, path in derive(self._text, self._said, [item.how != "unsupported" for item in found]).items():
            claim = self._said[place]
            found[place] = Support(claim.text, claim.kind, claim.start, claim.end, "answer", path, "derived")
        if any(item.how == "unsupported" for item in found):
            self._derive(found)
        more = [*self._mismatches(), *self._foreign(found), *self._unknown()]
        return sorted([*found, *more], key=lambda support: support.start)

    def _trace_in_order(self, found: list[Support]) -> None:
        """Sentences in which a figure seems to be of another thing: all of them may stand behind, or before, theirs."""
        by_sentence: dict[int, list[int]] = defaultdict(list)
        for number, claim in enumerate(self._said):
            by_sentence[self._sentences.at(claim.start)].append(number)
        for numbers in by_sentence.values():
            if any(found[number].why == OF_ANOTHER for number in numbers):
                for order in _ORDERS:
                    again = [self._trace(number, self._said[number], order) for number in numbers]
                    if not any(one.why == OF_ANOTHER for one in again):
                        for number, support in zip(numbers, again, strict=True):
                            found[number] = support
                        break

    def _foreign(self, found: Sequence[Support]) -> list[Support]:
        """Sentences in another language in which nothing is traced to a result: what they claim cannot be read."""
        traced = {
            self._sentences.at(one.start) for one in found if one.how in ("exact", "rounded", "counted", "derived")
        }
        return [
            Support(
                self._text[one.start : one.end].strip()[:80], "language", one.start, one.end, why="it is not English"
            )
            for number, one in enumerate(self._sentences.all)
            if number not in traced and self._words.foreign.is_foreign(self._text[one.start : one.end])
        ]

    def _unknown(self) -> list[Support]:
        table, calendar = self._words.words, self._words.calendar
        places = find_unknown_names(self._text, self._facts, self._meanings, table, calendar)
        return [Support(self._text[start:end], "name", start, end, why="no result has it") for start, end in places]

    def _mismatches(self) -> list[Support]:
        states = States(self._facts, self._words.states, self._words.words)
        return [
            Support(one.text, "statement", one.start, one.end, why=one.why)
            for one in states.find(self._sentences, self._mentions)
        ]

    def _derive(self, found: list[Support]) -> None:
        """What follows from other values; a figure that does may be what the next one follows from."""
        derived = Derivations(self._facts, self._words, self._cues, self._text, self._mentions)
        # What stands in a result, and is said of something else, has a `why`.
        open_places = [place for place, item in enumerate(found) if item.how == "unsupported" and not item.why]
        for _round in range(_MOST_ROUNDS):
            fresh = False
            for place in open_places[:_MOST_DERIVED]:
                claim = self._said[place]
                known = derived.find(claim, self._binder.bind(place), self._said)
                if known is not None:
                    found[place] = Support(
                        claim.text, claim.kind, claim.start, claim.end, known[0], known[1], "derived"
                    )
                    fresh = True
            open_places = [place for place in open_places if found[place].how == "unsupported"]
            if not fresh or not open_places:
                return

    def _trace(self, number: int, claim: Claim, order: Order = "nearest") -> Support:
        if self._is_named(claim):
            return Support(claim.text, claim.kind, claim.start, claim.end, "name", "", "exact")
        if self._is_some_of_them(claim):
            return Support(claim.text, claim.kind, claim.start, claim.end, "results", "", "counted")
        code = self._codes.find(claim)
        if code is not None:
            return Support(claim.text, claim.kind, claim.start, claim.end, code.source, code.place.path, "exact")
        bound = self._binder.bind(number, order)
        known = [(fact, how) for fact, how in self._candidates(claim) if self._may_be_used(fact, claim, bound)]
        free = claim.kind not in _OF_A_THING or self._is_computed(claim)
        fitting = [(fact, how, 1 if free or fact.counted else bound.fit(fact.place.row)) for fact, how in known]
        kept = [one for one in fitting if one[2] > 0] or [one for one in fitting if one[2] == 0]
        if known and not kept:
            return Support(claim.text, claim.kind, claim.start, claim.end, why=OF_ANOTHER)
        spoken = [(fact, how) for fact, how, _fit in kept if self._is_spoken_of(fact, claim, bound)]
        if kept and not spoken:
            return Support(claim.text, claim.kind, claim.start, claim.end, why="it is another field")
        return self._best(claim, bound, spoken)

    def _best(self, claim: Claim, bound: Bound, known: Sequence[tuple[Fact, str]]) -> Support:
        best: tuple[tuple[int, float], Fact, str] | None = None
        for fact, how in known:
            rank = _RANKS.index("echo" if fact.echo else "counted" if fact.counted else how)
            order = (rank, -bound.affinity(fact.own))
            if best is None or order < best[0]:
                best = (order, fact, _RANKS[rank])
        if best is None:
            return Support(claim.text, claim.kind, claim.start, claim.end)
        return Support(claim.text, claim.kind, claim.start, claim.end, best[1].source, best[1].place.path, best[2])

    def _is_named(self, claim: Claim) -> bool:
        """Whether a claim is part of a name that the results have: the 3526 of Bobby Lake 3526."""
        return any(
            mention.start <= claim.start
            and claim.end <= mention.end
            and (mention.end - mention.start) > len(claim.text)
            for mention in self._mentions
        )

    def _is_computed(self, claim: Claim) -> bool:
        """Whether a figure stands in a sum that is written out: what it is of was said before."""
        around = self._text[max(0, claim.start - 3) : claim.start], self._text[claim.end : claim.end + 3]
        return _BEFORE_TERM.search(around[0]) is not None or _BEHIND_TERM.match(around[1]) is not None

    def _is_some_of_them(self, claim: Claim) -> bool:
        """The other two, the first three, all four: no more than there are."""
        if claim.kind != "number" or claim.units or claim.number is None or not 2 <= claim.number <= self._most:
            return False
        return _SOME_OF.search(self._text[max(0, claim.start - 20) : claim.start]) is not None

    def _candidates(self, claim: Claim) -> list[tuple[Fact, str]]:
        match claim.kind:
            case "number" | "ordinal":
                return self._figures(claim)
            case "weekday":
                return [(fact, "exact") for fact in self._days(claim)]
            case "ratio":
                return []
            case _:
                return [(fact, "exact") for fact in self._index.exact(claim)]

    def _figures(self, claim: Claim) -> list[tuple[Fact, str]]:
        near = self._index.near_number(claim)
        return [(fact, how) for fact in near if (how := self._matcher.how(claim, fact)) is not None]

    def _days(self, claim: Claim) -> list[Fact]:
        """The dates that fall on a day of the week: those that the same sentence says, if it says any."""
        sentence = self._sentences.all[self._sentences.at(claim.start)]
        said = [
            one.date
            for one in self._said
            if one.kind == "date"
            and sentence.start <= one.start < sentence.end
            and -_BESIDE < one.start - claim.end < _BESIDE
        ]
        for fact in self._facts:
            if claim.text.lower() in fact.text.lower():
                return [fact]
        fits = [fact for fact in self._dated if _weekday(*fact.date) == claim.weekday]
        return [fact for fact in fits if not said or any(is_within(one, fact.date) for one in said)]

    def _may_be_used(self, fact: Fact, claim: Claim, bound: Bound) -> bool:
        """Whether a fact can stand behind what is said as true now."""
        if fact.asked:
            # What was tried may be named where it is spoken of; what was looked for, as what was looked for.
            if fact.prose:
                return False  # words of a model
            spoken = bool(fact.words & bound.spoken)
            return spoken if claim.number is not None else self._cues.has("scope", claim) or spoken
        if fact.stale != self._is_past(claim) and (fact.stale or self._has_old(fact)):
            return False
        return fact.trusted or fact.echo or self._cues.has("attribution", claim)

    def _is_past(self, claim: Claim) -> bool:
        """Whether the words beside a claim say that it was so: from $800, was 12, 7 before."""
        before, after = self._text[max(0, claim.start - 34) : claim.start], self._text[claim.end : claim.end + 26]
        return _PAST_BEFORE.search(before) is not None or _PAST_AFTER.match(after) is not None

    def _has_old(self, fact: Fact) -> bool:
        """Whether the results hold an older value of the same field."""
        return any(other.stale and other.own & fact.own for other in self._old)

    def _is_spoken_of(self, fact: Fact, claim: Claim, bound: Bound) -> bool:
        """Whether the words around a claim let it be this field."""
        if fact.place.name == "$" or claim.kind not in _OF_A_FIELD or self._is_computed(claim) or _is_year(claim):
            return True
        if self._is_per_another(fact, claim) or self._is_in_another_currency(fact, claim):
            return False
        mine = bound.speaks_of(fact)
        if fact.counted:
            return self._counts(fact, claim, bound)
        if fact.asked:
            return True
        if fact.echo:
            return not self._contradicts(claim, bound)
        others = [
            other
            for other in self._rows.get((fact.source, id(fact.place.row)), ())
            if other.place.name != fact.place.name and not other.label and _same_kind(claim, fact, other)
        ]
        if others and fact.own and not self._is_as_written(fact, claim):
            own = fact.own | fact.described
            beside = max((word.near for word in bound.naming(own | fact.around)), default=0.0)
            if any(
                word.near >= _BESIDE_IT and beside < word.near * _AS_NEAR and not self._is_taken(word, other, claim)
                for other in others
                for word in bound.naming(other.own, own)
            ):
                return False
        if mine > _WEAK or claim.kind != "number" or claim.units & fact.units or fact.prose:
            return True
        known = fact.words | self._asked_words | self._words_of(fact.source)
        return bool(claim.units) or _is_telling(claim) or not bound.noun or bool(bound.noun & known)

    def _is_taken(self, word: NearWord, fact: Fact, claim: Claim) -> bool:
        """Whether a word that names a field stands nearer to a figure that is the field's own: 65 points from 38."""
        here = self._sentences.at(claim.start)
        if self._sentences.at(word.place) != here:
            return False  # the head of its column
        apart = _distance(claim, word.place)
        for other in self._figures_near(claim):
            if other is claim or self._sentences.at(other.start) != here or _distance(other, word.place) >= apart:
                continue
            if other.number is None:
                if any(fact.date) and is_within(other.date, fact.date):
                    return True
            elif fact.number is not None and self._matcher.how(other, fact) is not None:
                return True
        return False

    def _figures_near(self, claim: Claim) -> Sequence[Claim]:
        at = bisect_left(self._said, claim.start, key=lambda one: one.start)
        return self._said[max(0, at - _FIGURES_AROUND) : at + _FIGURES_AROUND]

    def _words_of(self, source: str) -> Meanings:
        """What the texts of a source speak of."""
        found = self._source_words.get(source)
        if found is None:
            texts = " ".join(fact.text for fact in self._facts if fact.source == source and fact.text)[:_MOST_TEXT]
            found = self._source_words[source] = self._words.words.in_name(texts)
        return found

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
        return bool(
            said and self._currencies and not fact.echo and not said & (self._currencies | fact.units | fact.money)
        )

    def _is_as_written(self, fact: Fact, claim: Claim) -> bool:
        """Whether a long figure stands in the row letter by letter: the 0932 of a card."""
        return fact.prose or (_is_telling(claim) and claim.text in self._texts[id(fact.place.row)])

    def _counts(self, fact: Fact, claim: Claim, bound: Bound) -> bool:
        """Whether a number of rows is what is counted: by what they are called, or by what they have in common."""
        if claim.units:
            return False
        value = fact.place.path.rpartition("[")[2].partition("=")
        shared = self._words.words.in_name(f"{value[0]} {value[2].partition(']')[0]}") if value[1] else frozenset()
        if shared:
            sentence = self._cues.words(claim)
            return bool(shared & sentence)
        known = fact.words | self._asked_words
        return (
            not bound.noun
            or bool(bound.noun & known)
            or bool(bound.spoken & fact.own)
            or self._cues.has("generic", claim)
        )

    def _contradicts(self, claim: Claim, bound: Bound) -> bool:
        """Whether the words around a figure of the user speak of a field of the results, which has another value."""
        if claim.number is None or self._cues.has("user", claim):
            return False
        for facts in list(self._rows.values())[:_MOST_COMPARED]:
            for fact in facts:
                if fact.echo or fact.number is None or fact.label or fact.counted:
                    continue
                if (
                    bound.affinity(fact.own) > 0.5
                    and bound.fit(fact.place.row) >= 0
                    and (claim.units & fact.units or not claim.units)
                ):
                    return True
        return False


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
    digits = (
        str(abs(claim.digits if claim.digits is not None else claim.number).normalize()).replace(".", "").strip("0")
    )
    return len(digits) >= _TELLING_DIGITS or claim.step < 1


def _weekday(year: int | None, month: int | None, day: int | None) -> int:
    try:
        return date(year or 0, month or 0, day or 0).weekday()
    except ValueError:
        return -1


def _addresses(said: Sequence[Claim]) -> list[tuple[int, int]]:
    return [(claim.start, claim.end) for claim in said if claim.kind in ("url", "mail", "phone")]
