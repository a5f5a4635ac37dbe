"""Each claim of an answer held against the evidence: value, unit, the thing it is said of, and the field."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import islice

from msgspec.structs import replace

from interlock.answers.grounding.binding import Binder, Bound, Order
from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.comparisons import find_compared
from interlock.answers.grounding.contrasts import are_contrasted, find_contrasted
from interlock.answers.grounding.counted_rows import CountedRows
from interlock.answers.grounding.counted_states import CountedStates, CountsAsSaid
from interlock.answers.grounding.cues import Cues
from interlock.answers.grounding.day_times import DayTimes
from interlock.answers.grounding.denied_figures import hold_denied
from interlock.answers.grounding.derivations import Derivations
from interlock.answers.grounding.evidence import Evidence, Fact, once
from interlock.answers.grounding.expressions import derive, is_of_calendar
from interlock.answers.grounding.field_fit import FieldFit
from interlock.answers.grounding.figures import FigureMatcher, is_in_name
from interlock.answers.grounding.index import FactIndex
from interlock.answers.grounding.kinds_apart import KindsApart
from interlock.answers.grounding.known_rows import fields_now, largest_count, old_words, replaced_names
from interlock.answers.grounding.meaning import ToolMeaning
from interlock.answers.grounding.mentions import Names
from interlock.answers.grounding.name_figures import is_only_a_name
from interlock.answers.grounding.other_things import is_of_another
from interlock.answers.grounding.past_words import is_past
from interlock.answers.grounding.quotes import Quotes
from interlock.answers.grounding.replaced_values import ReplacedValues
from interlock.answers.grounding.said_statements import SaidStatements
from interlock.answers.grounding.sentences import Sentences
from interlock.answers.grounding.support import Support
from interlock.answers.grounding.surroundings import Surroundings
from interlock.answers.grounding.unknown_names import words_of_texts
from interlock.answers.grounding.unread_things import is_said_to_exist
from interlock.answers.grounding.users_words import UsersWords
from interlock.answers.grounding.verbatim import Codes, OrdinalPhrases
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.answers.grounding.weekdays import DaysOfWeek
from interlock.answers.grounding.words import has_stem

_OVERLAPPING = 4
"""So many names may begin before a place and reach over it."""
_MOST_ASKED = 2_000
"""A date so near to a day of the week is that day's."""
OF_ANOTHER = "it is of something else"
_ORDERS: tuple[Order, ...] = ("thing first", "figure first")
_MOST_ROUNDS = 3
_MOST_DERIVED = 60
"""For so many figures of an answer a calculation is looked for; with more that need one it is held."""
_OF_A_THING = ("number", "date", "time", "ordinal", "ratio")
_RANKS = ("exact", "rounded", "counted", "derived", "echo")

_MADE, _KEYS, _NOT_FOUND = "$.made.", "$.keys", "$.not_found"
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
        names = self._names = Names(evidence.facts, meanings, words)
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
        self._counted = CountedRows(self._sentences, self._mentions, evidence.facts)
        self._cues = Cues(words.cues, self._sentences, words.words)
        things = {name for mention in self._mentions for name in mention.names.items()}
        self._most = max(once(evidence.facts, largest_count), Decimal(len(things)))
        self._fields = FieldFit(self._sentences, said, evidence.facts, words, self._cues, self._matcher)
        self._weekdays = DaysOfWeek(self._sentences, said, evidence.facts)
        self._old = once(evidence.facts, old_words)
        self._in_own_units = frozenset(
            name
            for meaning in meanings.values()
            for name, field in meaning.fields.items()
            if field.unit and not words.units.of_field(field.unit)
        )
        """Fields whose author names a unit that the vocabulary does not have."""
        self._users = UsersWords(self._sentences, self._cues, self._fields)
        self._around = Surroundings(self._sentences, said, words.words)
        self._as_said = CountsAsSaid(self._around, once(evidence.facts, CountedStates, words))
        self._day_times = DayTimes(self._sentences, evidence.facts)
        said_of = (self._sentences, self._mentions, evidence.facts)
        self._statements = SaidStatements(*said_of, words, meanings, self._quotes)

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
        spoken: set[tuple[str, str]] = set()
        for place in islice(odd, _MOST_DERIVED):
            spoken = spoken or self._spoken | self._asked_names()
            one, other = self._said[place : place + 2]
            mine, its = self._binder.bind(place, "thing first"), self._binder.bind(place + 1)
            firsts = [fact for fact in self._usable(one, mine) if mine.fit(fact.place.row) > 0]
            pairs = ((first, second) for first in firsts for second in self._usable(other, its))
            for pair in pairs:
                if are_contrasted(*pair, self._mentions, spoken, other.end):
                    found[place], found[place + 1] = (
                        Support(claim.text, claim.kind, claim.start, claim.end, fact.source, fact.place.path, "exact")
                        for claim, fact in zip((one, other), pair, strict=True)
                    )
                    break

    def _asked_names(self) -> set[tuple[str, str]]:
        """What the question names: "which is heavier, A or B?"."""
        asked = Sentences(" ".join(fact.text for fact in self._facts if fact.echo)[:_MOST_ASKED])
        named = (one.names.items() for one in self._names.find(asked, []))
        return {(kind, name) for names in named for kind, same in names for name in same}

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
        derived = Derivations(self._facts, self._words, self._cues, self._around, self._mentions)
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
        if self._fields.is_computed(claim) and is_of_calendar(self._around.sentence(claim), claim):
            return Support(claim.text, claim.kind, claim.start, claim.end, "calendar", "", "derived")
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
        counts = self._as_said.find(claim, bound) if claim.kind == "number" else ()
        so_many = next((one for one in counts if one.number == claim.number), None)
        if so_many is not None:
            return Support(claim.text, claim.kind, claim.start, claim.end, "results", so_many.what, "counted")
        candidates = self._candidates(claim, bound)
        known = [(fact, how) for fact, how in candidates if self._may_be_used(fact, claim, bound)]
        replaced = once(self._facts, ReplacedValues)
        old = {one.place.name for one, _how in candidates if replaced.is_said(one, claim, bound, self._text)}
        known = [one for one in known if not old or one[0].place.name in old]
        # It is so of another number of rows: a figure that is told of something else is none of theirs.
        known = [one for one in known if not counts or not (one[0].counted or bound.speaks_of(one[0]) == 0)]
        free = claim.kind not in _OF_A_THING or self._fields.is_computed(claim)
        fitting = [(fact, how, 1 if free or fact.label else self._fit(bound, claim, fact)) for fact, how in known]
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
        if not known and self._was_so(claim, bound):
            return Support(claim.text, claim.kind, claim.start, claim.end, why="it was so before the change")
        if known and not kept:
            return Support(claim.text, claim.kind, claim.start, claim.end, why=OF_ANOTHER)
        spoken = [(fact, how) for fact, how, _fit in kept if self._fields.may_be(fact, claim, bound)]
        if kept and not spoken and not all(fact.counted for fact, _how, _fit in kept):
            return Support(claim.text, claim.kind, claim.start, claim.end, why="it is another field")
        return self._best(claim, bound, spoken)

    def _fit(self, bound: Bound, claim: Claim, fact: Fact) -> int:
        """Whether a fact is of what is named. The days that were looked for are of no thing."""
        if fact.counted:
            return -1 if self._counted.are_of_others(fact, claim) else 1
        fit = bound.fit(fact.place.row)
        return max(0, fit) if fact.asked and any(fact.date) else fit

    def _was_so(self, claim: Claim, bound: Bound) -> bool:
        """Whether a figure is what a field of the thing said before a change: it does not follow from others, then."""
        if not claim.units or is_past(self._text, claim):
            return False
        now = once(self._facts, fields_now)
        known = (fact for fact, how in self._candidates(claim, bound) if how == "exact" and fact.stale)
        return any(fact.place.name in now and bound.fit(fact.place.row) >= 0 for fact in known)

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
                return [(fact, "exact") for fact in self._weekdays.find(claim)]
            case "ratio":
                return []
            case _:
                return [(fact, "exact") for fact in self._index.exact(claim)]

    def _figures(self, claim: Claim) -> list[tuple[Fact, str]]:
        near = self._index.near_number(claim)
        if claim.units:  # 56 of a field that its author says is in tablets are not 56 days
            near = [fact for fact in near if fact.units or fact.place.field.key not in self._in_own_units]
        # The 36 of Rope Walk 36 says nothing of how many there are.
        near = [fact for fact in near if fact.units or not is_in_name(fact)]
        return [(fact, how) for fact in near if (how := self._matcher.how(claim, fact)) is not None]

    def _may_be_used(self, fact: Fact, claim: Claim, bound: Bound) -> bool:
        """Whether a fact can stand behind what is said as true now."""
        if fact.asked:
            # What was tried may be named where it is spoken of; what was looked for, as what was looked for.
            if fact.prose:
                return False  # words of a model
            spoken = bool(fact.words & bound.spoken)
            # A day of those that were looked for: up to the 12th.
            if claim.number is not None and not any(fact.date):
                return spoken and (
                    self._users.may_repeat(claim, bound) or self._cues.has_beside("tried", claim, fact.own)
                )
            return self._cues.has("scope", claim) or spoken
        if fact.echo:
            return self._users.may_repeat(claim, bound)
        path = fact.place.path
        if path == _NOT_FOUND and not self._cues.has("none", claim):
            return False  # why nothing was found says nothing of what there is
        if (fact.prose and path.startswith(_MADE)) or (claim.kind == "number" and path.startswith(_KEYS)):
            return False  # the words of a note that a model wrote are no finding of its own, nor is a key
        if is_only_a_name(fact, claim, bound, self._words.words):
            return False
        if (fact.stale or fact.own & self._old) and fact.stale != is_past(self._text, claim):
            return False
        return fact.trusted or self._cues.has("attribution", claim) or self._is_theirs(claim.start)

    def _is_theirs(self, place: int) -> bool:
        """Whether the whole line is said to be somebody else's: "According to read_mail: …"."""
        start = self._text.rfind("\n", 0, place) + 1
        return _ACCORDING_TO.match(self._text, start) is not None


def _addresses(said: Sequence[Claim]) -> list[tuple[int, int]]:
    return [(claim.start, claim.end) for claim in said if claim.kind in ("url", "mail", "phone")]
