"""Each claim of an answer held against the evidence: value, unit, the thing it is said of, and the field."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import islice

from msgspec.structs import replace

from interlock.answers.grounding.binding import Binder, Bound, Order
from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.comparisons import find_compared
from interlock.answers.grounding.contrasts import are_contrasted, find_contrasted
from interlock.answers.grounding.cues import Cues
from interlock.answers.grounding.day_times import DayTimes
from interlock.answers.grounding.denied_figures import hold_denied
from interlock.answers.grounding.derivations import Derivations
from interlock.answers.grounding.evidence import Evidence, Fact, once
from interlock.answers.grounding.expressions import derive
from interlock.answers.grounding.field_fit import FieldFit
from interlock.answers.grounding.figures import FigureMatcher
from interlock.answers.grounding.index import FactIndex
from interlock.answers.grounding.kinds_apart import KindsApart
from interlock.answers.grounding.known_rows import first_dated, largest_count, old_words, replaced_names
from interlock.answers.grounding.meaning import ToolMeaning
from interlock.answers.grounding.mentions import Names, is_within
from interlock.answers.grounding.other_things import is_of_another
from interlock.answers.grounding.past_words import is_past
from interlock.answers.grounding.quotes import Quotes
from interlock.answers.grounding.said_statements import SaidStatements
from interlock.answers.grounding.sentences import Sentences
from interlock.answers.grounding.support import Support
from interlock.answers.grounding.surroundings import Surroundings
from interlock.answers.grounding.unknown_names import words_of_texts
from interlock.answers.grounding.unread_things import is_said_to_exist
from interlock.answers.grounding.users_words import UsersWords
from interlock.answers.grounding.verbatim import Codes, OrdinalPhrases
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.answers.grounding.words import has_stem

_OVERLAPPING = 4
"""So many names may begin before a place and reach over it."""
_MOST_DATED = 2_000
_BESIDE = 12
"""A date so near to a day of the week is that day's."""
OF_ANOTHER = "it is of something else"
_ORDERS: tuple[Order, ...] = ("thing first", "figure first")
_MOST_ROUNDS = 3
_MOST_DERIVED = 60
"""For so many figures of an answer a calculation is looked for; with more that need one it is held."""
_OF_A_THING = ("number", "date", "time", "ordinal", "ratio")
_RANKS = ("exact", "rounded", "counted", "derived", "echo")

_MADE, _KEYS = "$.made.", "$.keys"
_ACCORDING_TO = re.compile(r"\W{0,3}according to [^:\n]{1,60}:", re.I)
_SOME_OF = re.compile(r"\b(?:the|other|first|last|those|these|all|both|remaining|next|latest|of|between)\s+$", re.I)
_MULTIPLE_OF = re.compile(r"\s(?:the|of|as|that|what|its|his|her|their|your|our|this|those)\b", re.I)
_AS_A_NAME = re.compile(r"\b(?:an?|the|one|standard|single|room|your|this)\s(?:[a-z]{3,12}\s)?$", re.I)


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
        self._ordinals = OrdinalPhrases(text, said, evidence.facts)
        self._matcher = FigureMatcher(words)
        self._sentences = Sentences(text)
        self._quotes = Quotes(self._sentences, evidence.facts)
        names = Names(evidence.facts, meanings, words)
        named = [*names.find(self._sentences, _addresses(said)), *names.find_dates(said)]
        self._mentions = sorted(named, key=lambda mention: mention.start)
        self._starts = [mention.start for mention in self._mentions]
        names_of = (mention.names.items() for mention in self._mentions)
        self._spoken = spoken = {(kind, name) for names in names_of for kind, same in names for name in same}
        self._index = FactIndex(evidence.facts, words.field_magnitudes.values(), words.measures, spoken)
        self._binder = Binder(
            self._sentences,
            said,
            self._mentions,
            words.words,
            once(evidence.facts, replaced_names),
            once(evidence.facts, KindsApart),
        )
        self._cues = Cues(words.cues, self._sentences, words.words)
        things = {name for mention in self._mentions for name in mention.names.items()}
        self._most = max(once(evidence.facts, largest_count), Decimal(len(things)))
        self._fields = FieldFit(self._sentences, said, evidence.facts, words, self._cues, self._matcher)
        self._dated = once(evidence.facts, first_dated, _MOST_DATED)
        self._old = once(evidence.facts, old_words)
        self._days_in_texts: dict[str, Fact | None] = {}
        self._in_own_units = frozenset(
            name
            for meaning in meanings.values()
            for name, field in meaning.fields.items()
            if field.unit and not words.units.of_field(field.unit)
        )
        """Fields whose author names a unit that the vocabulary does not have."""
        self._users = UsersWords(self._sentences, self._cues, self._fields)
        self._day_times = DayTimes(self._sentences, evidence.facts)
        self._statements = SaidStatements(
            self._sentences, self._mentions, evidence.facts, words, meanings, self._quotes
        )

    def run(self) -> list[Support]:
        """Each claim with what stands behind it."""
        found = [self._trace(number, claim) for number, claim in enumerate(self._said)]
        self._trace_in_order(found)
        self._trace_contrasts(found)
        for place, path in derive(self._text, self._said, [item.how != "unsupported" for item in found]).items():
            claim = self._said[place]
            found[place] = Support(claim.text, claim.kind, claim.start, claim.end, "answer", path, "derived")
        if any(item.how == "unsupported" for item in found):
            self._derive(found)
        more = self._statements.find(found, self._cues.pattern("attribution"), self._is_theirs)
        known = hold_denied(self._text, found, self._words.words)
        known = [replace(one, how="unsupported", why="it was not found") if is_said_to_exist(self._text, one) else one
                 for one in known]  # fmt: skip
        return sorted([*known, *more], key=lambda support: support.start)

    def _trace_in_order(self, found: list[Support]) -> None:
        """Sentences in which a figure seems to be of another thing: all of them may stand behind, or before, theirs."""
        by_sentence: dict[int, list[int]] = defaultdict(list)
        for number, claim in enumerate(self._said):
            by_sentence[self._sentences.at(claim.start)].append(number)
        for numbers in by_sentence.values():
            odd = next((number for number in numbers if found[number].why == OF_ANOTHER), None)
            if odd is not None:
                for order in self._orders(self._said[odd]):
                    again = [self._trace(number, self._said[number], order) for number in numbers]
                    if not any(one.why == OF_ANOTHER for one in again):
                        for number, support in zip(numbers, again, strict=True):
                            found[number] = support
                        break

    def _trace_contrasts(self, found: list[Support]) -> None:
        """A is heavier: 58 kg against 5. The first is of what stands before it, the second of the other."""
        odd = (n for n in find_contrasted(self._text, self._said) if OF_ANOTHER in (found[n].why, found[n + 1].why))
        for place in islice(odd, _MOST_DERIVED):
            one, other = self._said[place : place + 2]
            mine, its = self._binder.bind(place, "thing first"), self._binder.bind(place + 1)
            firsts = [fact for fact in self._usable(one, mine) if mine.fit(fact.place.row) > 0]
            pairs = ((first, second) for first in firsts for second in self._usable(other, its))
            for pair in pairs:
                if are_contrasted(*pair, self._mentions, self._spoken, other.end):
                    found[place], found[place + 1] = (
                        Support(claim.text, claim.kind, claim.start, claim.end, fact.source, fact.place.path, "exact")
                        for claim, fact in zip((one, other), pair, strict=True)
                    )
                    break

    def _usable(self, claim: Claim, bound: Bound) -> list[Fact]:
        known = [fact for fact, _how in self._candidates(claim, bound) if self._may_be_used(fact, claim, bound)]
        return known[:_MOST_DERIVED]

    def _orders(self, claim: Claim) -> tuple[Order, ...]:
        """The orders that a sentence may have: where a name stands first, things stand before their figures."""
        sentence = self._sentences.all[self._sentences.at(claim.start)]
        at = bisect_right(self._starts, sentence.start - 1)
        first = self._mentions[at] if at < len(self._mentions) else None
        if first is None or first.soft or first.start >= sentence.end:
            return _ORDERS
        here = self._said[bisect_left(self._said, sentence.start, key=lambda one: one.start) :]
        figure = next(one for one in here if (one.kind, one.units) == (claim.kind, claim.units))
        return _ORDERS[:1] if first.start < figure.start else _ORDERS[1:]

    def _derive(self, found: list[Support]) -> None:
        """What follows from other values; a figure that does may be what the next one follows from."""
        around = Surroundings(self._sentences, self._said, self._words.words)
        derived = Derivations(self._facts, self._words, self._cues, around, self._mentions)
        open_places = [place for place, item in enumerate(found) if self._may_follow(self._said[place], item)]
        for _round in range(_MOST_ROUNDS):
            fresh = False
            for place in open_places[:_MOST_DERIVED]:
                claim = self._said[place]
                bound = self._binder.bind(place)
                known = derived.find(claim, bound, past=is_past(self._text, claim)) or self._day_times.find_end(
                    claim, bound
                )
                if known is not None:
                    found[place] = Support(
                        claim.text, claim.kind, claim.start, claim.end, known[0], known[1], "derived"
                    )
                    fresh = True
            open_places = [place for place in open_places if found[place].how == "unsupported"]
            if not fresh or not open_places:
                return

    def _may_follow(self, claim: Claim, item: Support) -> bool:
        """Whether a calculation is looked for: not for what stands in a result, and is said of something else.

        An average, and the end of a span of time, may be equal to a value of something else by chance.
        """
        if item.how != "unsupported":
            return False
        return not item.why or claim.kind == "time" or self._cues.has("average", claim)

    def _trace(self, number: int, claim: Claim, order: Order = "nearest") -> Support:
        if self._is_named(claim):
            return Support(claim.text, claim.kind, claim.start, claim.end, "name", "", "exact")
        if self._is_some_of_them(claim):
            return Support(claim.text, claim.kind, claim.start, claim.end, "results", "", "counted")
        if self._is_word_of_results(claim):
            return Support(claim.text, claim.kind, claim.start, claim.end, "results", "", "exact")
        code = self._codes.find(claim) or self._ordinals.find(claim)
        if code is not None:
            return Support(claim.text, claim.kind, claim.start, claim.end, code.source, code.place.path, "exact")
        bound = self._binder.bind(number, order)
        support = self._trace_bound(claim, bound)
        return self._quote(claim, bound) or support if support.how == "unsupported" else support

    def _quote(self, claim: Claim, bound: Bound) -> Support | None:
        """A sentence that a result has word for word, where a figure in it is understood no better."""
        quoted = self._quotes.find(self._sentences.at(claim.start))
        if (
            quoted is None
            or not (quoted.trusted or self._is_theirs(claim.start))
            or bound.fit_beside(quoted.place.row) < 0
        ):
            return None
        return Support(claim.text, claim.kind, claim.start, claim.end, quoted.source, quoted.place.path, "exact")

    def _trace_bound(self, claim: Claim, bound: Bound) -> Support:
        known = [(fact, how) for fact, how in self._candidates(claim, bound) if self._may_be_used(fact, claim, bound)]
        free = claim.kind not in _OF_A_THING or self._fields.is_computed(claim)
        fitting = [(fact, how, 1 if free or fact.counted else _fit(bound, fact)) for fact, how in known]
        kept = [one for one in fitting if one[2] > 0]
        if all(fact.counted for fact, _how, _fit in kept):  # "for three nights", however many rows there are
            others = [one for one in fitting if one[2] == 0 and not is_of_another(one[0], bound, self._facts)]
            kept += [one for one in others if not kept or has_stem(bound.noun & one[0].own)]
        if not kept:
            for fact in find_compared(self._text, claim, bound, self._index):
                if bound.fit(fact.place.row) >= 0 and self._may_be_used(fact, claim, bound):
                    return Support(
                        claim.text, claim.kind, claim.start, claim.end, fact.source, fact.place.path, "rounded"
                    )
        if known and not kept:
            return Support(claim.text, claim.kind, claim.start, claim.end, why=OF_ANOTHER)
        spoken = [(fact, how) for fact, how, _fit in kept if self._fields.may_be(fact, claim, bound)]
        if kept and not spoken and not all(fact.counted for fact, _how, _fit in kept):
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
        at = bisect_right(self._starts, claim.start)
        return any(
            claim.end <= mention.end and ((mention.end - mention.start) > len(claim.text) or claim.text[-1:] == "s")
            for mention in self._mentions[max(0, at - _OVERLAPPING) : at]
        )

    def _is_word_of_results(self, claim: Claim) -> bool:
        """Whether it is what a thing is called: a double, where a result has the word, and no double of anything."""
        if claim.kind != "ratio" or " " in claim.text or _MULTIPLE_OF.match(self._text, claim.end) is not None:
            return False
        article = _AS_A_NAME.search(self._text, max(0, claim.start - 24), claim.start) is not None
        return article and claim.text.lower() in once(self._facts, words_of_texts)

    def _is_some_of_them(self, claim: Claim) -> bool:
        """The other two, the first three, all four: no more than there are."""
        if claim.kind != "number" or claim.units or claim.number is None or not 2 <= claim.number <= self._most:
            return False
        some = _SOME_OF.search(self._text[max(0, claim.start - 20) : claim.start]) is not None
        return some and not self._fields.is_narrowed(claim)

    def _candidates(self, claim: Claim, bound: Bound) -> list[tuple[Fact, str]]:
        day = self._day_times.as_day(claim)
        if day is not None:
            return [(fact, "exact") for fact in self._index.exact(day)]
        match claim.kind:
            case "number" | "ordinal":
                hour = self._day_times.as_hour(claim, bound)
                hours = [] if hour is None else [(fact, "exact") for fact in self._index.exact(hour)]
                return [*self._figures(claim), *hours]
            case "weekday":
                return [(fact, "exact") for fact in self._days(claim)]
            case "ratio":
                return []
            case _:
                return [(fact, "exact") for fact in self._index.exact(claim)]

    def _figures(self, claim: Claim) -> list[tuple[Fact, str]]:
        near = self._index.near_number(claim)
        if claim.units:  # 56 of a field that its author says is in tablets are not 56 days
            near = [fact for fact in near if fact.units or fact.place.name not in self._in_own_units]
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
        written = self._day_in_text(claim.text.lower())
        if written is not None:
            return [written]
        fits = [fact for fact in self._dated if _weekday(*fact.date) == claim.weekday]
        spoken = [fact for fact in fits if not said or any(is_within(one, fact.date) for one in said)]
        return spoken or [fact for fact in self._facts if fact.echo and claim.text.lower() in fact.text.lower()][:1]

    def _day_in_text(self, day: str) -> Fact | None:
        if day not in self._days_in_texts:
            self._days_in_texts[day] = next(
                (fact for fact in self._facts if not fact.echo and day in fact.text.lower()), None
            )
        return self._days_in_texts[day]

    def _may_be_used(self, fact: Fact, claim: Claim, bound: Bound) -> bool:
        """Whether a fact can stand behind what is said as true now."""
        if fact.asked:
            # What was tried may be named where it is spoken of; what was looked for, as what was looked for.
            if fact.prose:
                return False  # words of a model
            spoken = bool(fact.words & bound.spoken)
            # A day of those that were looked for: up to the 12th.
            if claim.number is not None and not any(fact.date):
                return spoken and (self._users.may_repeat(claim, bound) or self._cues.has("tried", claim))
            return self._cues.has("scope", claim) or spoken
        if fact.echo:
            return self._users.may_repeat(claim, bound)
        path = fact.place.path
        if (fact.prose and path.startswith(_MADE)) or (claim.kind == "number" and path.startswith(_KEYS)):
            return False  # the words of a note that a model wrote are no finding of its own, nor is a key
        if fact.stale != is_past(self._text, claim) and (fact.stale or fact.own & self._old):
            return False
        return fact.trusted or self._cues.has("attribution", claim) or self._is_theirs(claim.start)

    def _is_theirs(self, place: int) -> bool:
        """Whether the whole line is said to be somebody else's: "According to read_mail: …"."""
        start = self._text.rfind("\n", 0, place) + 1
        return _ACCORDING_TO.match(self._text, start) is not None


def _fit(bound: Bound, fact: Fact) -> int:
    """Whether a fact is of what is named. The days that were looked for are of no thing."""
    fit = bound.fit(fact.place.row)
    return max(0, fit) if fact.asked and any(fact.date) else fit


def _weekday(year: int | None, month: int | None, day: int | None) -> int:
    try:
        return date(year or 0, month or 0, day or 0).weekday()
    except ValueError:
        return -1


def _addresses(said: Sequence[Claim]) -> list[tuple[int, int]]:
    return [(claim.start, claim.end) for claim in said if claim.kind in ("url", "mail", "phone")]
