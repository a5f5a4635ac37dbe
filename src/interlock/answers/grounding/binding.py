"""Which thing and which field a figure of an answer is said to be of, and whether a fact is of them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.kinds_apart import KindsApart
from interlock.answers.grounding.mentions import Mention
from interlock.answers.grounding.rows import Row
from interlock.answers.grounding.sentences import Sentences
from interlock.answers.grounding.time_spans import TIME_UNITS
from interlock.answers.grounding.words import Meanings, WordTable, has_stem, words_in
from interlock.values import Value

_A_BREAK = 3
_MOST_NAMED = 12
_REACH = 14
"""So many words before and behind a figure can say what it is."""
_SAME_GROUP = 0.6
_OF_THE_ONE_BEFORE = 0.5
_DESCRIBED = 0.5
_FOLLOWING = 1.4
"""A word right behind a figure says more about it than one before: "12 trees on 3 plots"."""


_NO_NOUN = re.compile(
    r"\b(?:is|are|was|were|will|would|has|have|had|can|may|might|must|should|be|been|against|between|since|through|"
    r"within|without|during|than|after|before|until|as|short|more|less|fewer|instead|rather)\b",
    re.I,
)
"""Behind one of these stands what is said of a figure, and no longer what is counted: "the new 30 will give you 42"."""
_OUT_OF = re.compile(r"\s+(?:out\s+)?of\s+(?:the\s+|all\s+|our\s+|your\s+|those\s+|these\s+)?(?:[^\W\d_]+\s+)?")
"""Between a part and its whole: 80 of 96, 3 out of the 12."""
_PREDICATE = re.compile(r"[^,;:.()\d\n]{0,40}?\b(?:is|are|was|were|has|have|had)\b", re.I)
_PAST_A_BREAK = 0.45
"""A comma, a colon or an "and" between a word and a figure makes it less likely that one is said of the other."""


_AGAINST = re.compile(r"\s(?:against|versus|vs\.?|rather than|compared (?:to|with))\s", re.I)
_AND = re.compile(r"\s?(?:,|,?\sand)\s")
_JOINED = 12
"""So near stand two names that are named together: A and B, A rather than B."""

_LEAD = re.compile(r"\W{0,3}(?:(?:the|your|our|this|that|in|for)\s+)?", re.I)
_IS = re.compile(r"\s+(?:is|are|was|were|has|have|had)\b", re.I)

_JOINING = ("and", "or", "to")
_PARTICLE = re.compile(r"[ -](?P<word>in|out|up|off|down|over|on|back)\b", re.I)

Topics = tuple[dict[str, frozenset[str]], ...]
Order = Literal["nearest", "thing first", "figure first"]
"""Where a sentence names several things: each figure is of the nearest; or all behind their thing, or all before it."""


class NearWord(Value, frozen=True):
    """A word near a claim: what it stands for, how near it is, and where it begins."""

    meanings: Meanings
    near: float
    place: int


class Bound(Value, frozen=True):
    """What one claim is said to be of."""

    topics: Topics
    """The things that it is said of: of each, by kind of name, what it goes by."""
    beside: Topics
    """All things that are named near it: what is made from several values may be of several of them."""
    words: tuple[NearWord, ...]
    """The words around it."""
    noun: Meanings
    """What the word right behind it stands for, where it is one that says what is counted."""
    replaced: Mapping[int, frozenset[str]] = {}
    """By row: the kinds of its names that no longer hold."""

    def affinity(self, meanings: Meanings) -> float:
        """How much the words around it speak of something: each word counts once, one of the same group for less."""
        total = 0.0
        for word in self.words:
            shared = word.meanings & meanings
            if shared:
                total += word.near if has_stem(shared) else word.near * _SAME_GROUP
        return total

    def speaks_of(self, fact: Fact) -> float:
        """How much the words around it speak of a field: by its name, and for half as much by its description."""
        return self.affinity(fact.own) + _DESCRIBED * self.affinity(fact.described - fact.own)

    def naming(self, names: Meanings, apart_from: Meanings = frozenset()) -> Iterator[NearWord]:
        """The words that are one of these themselves, not only of the same group, and none of the others."""
        for word in self.words:
            if has_stem(word.meanings & names) and not has_stem(word.meanings & apart_from):
                yield word

    @property
    def spoken(self) -> Meanings:
        """What the words around it stand for, however near."""
        return frozenset[str]().union(*(word.meanings for word in self.words))

    def fit(self, row: Row) -> int:
        """1: the row is of what is named; 0: nothing is named that it could be of; -1: it is of something else."""
        return _fit(self.topics, row, self.replaced.get(id(row), frozenset()))

    def fit_beside(self, row: Row) -> int:
        """The same of all things that are named near it."""
        return _fit(self.beside, row, self.replaced.get(id(row), frozenset()))


class Binder:
    """Says of each claim what it is said to be of."""

    def __init__(
        self,
        sentences: Sentences,
        claims: Sequence[Claim],
        mentions: Sequence[Mention],
        words: WordTable,
        replaced: Mapping[int, frozenset[str]],
        apart: KindsApart,
    ) -> None:
        self._sentences, self._claims, self._mentions, self._words = sentences, claims, mentions, words
        self._replaced, self._kinds = replaced, apart
        self._by_sentence: dict[int, list[Mention]] = defaultdict(list)
        for mention in mentions:
            self._by_sentence[sentences.at(mention.start)].append(mention)
        self._claims_of: dict[int, list[Claim]] = defaultdict(list)
        for claim in claims:
            self._claims_of[sentences.at(claim.start)].append(claim)
        taken = [(mention.start, mention.end) for mention in mentions]
        starts = [start for start, _end in taken]
        # Read once for the whole text: few words have one behind them.
        particles = {match.start(): match["word"] for match in _PARTICLE.finditer(sentences.text)}
        self._tokens = [
            (place, meanings, word)
            for word, place in words_in(sentences.text)
            if (meanings := self._meanings(word, particles.get(place + len(word)))) or word.lower() in _JOINING
            if not ((at := bisect_right(starts, place)) and place < taken[at - 1][1])
        ]
        self._places = [place for place, _meanings, _word in self._tokens]

    def _meanings(self, word: str, particle: str | None) -> Meanings:
        """What a word stands for, also together with the particle behind it: the check-in of a field `checkin_from`."""
        alone = self._words.meanings(word)
        return alone if particle is None else alone | self._words.meanings(word + particle)

    def bind(self, number: int, order: Order = "nearest") -> Bound:
        """What a claim is said to be of; where a sentence names several things, in which order they are said."""
        claim = self._claims[number]
        words = self._words_around(number)
        noun = self._noun(claim)
        topics, beside = self._topics(claim, order)
        return Bound(topics, beside, words, noun, self._replaced)

    def _noun(self, claim: Claim) -> Meanings:
        at = bisect_left(self._places, claim.end)
        text = self._sentences.text
        limit = self._sentences.all[self._sentences.at(claim.start)].end
        for place, meanings, word in self._tokens[at : at + 3]:
            if (
                place >= limit
                or self._sentences.breaks(claim.end, place)
                or any(c.isdigit() for c in text[claim.end : place])
                or _NO_NOUN.search(text, claim.end, place + len(word))
            ):
                break
            if meanings:
                return meanings
        return frozenset()

    def _words_around(self, number: int, *, alone: bool = False) -> tuple[NearWord, ...]:
        claim = self._claims[number]
        sentence = self._sentences.all[self._sentences.at(claim.start)]
        head = sentence.head_of(claim.start)
        if head is not None:
            return tuple(self._weigh(head[0], head[1], head[1], near=1.0))
        left = max(sentence.start, self._claims[number - 1].end if number and self._is_figure(number - 1) else 0)
        right = sentence.end
        is_whole = self._is_part_and_whole(number - 1)
        said_of_part = predicate_behind(self._sentences.text, claim) if is_whole else None
        if said_of_part is not None:
            right = said_of_part  # "80 of 96 are reserved": what follows is said of the 80
        elif number + 1 < len(self._claims) and self._claims[number + 1].start < right:
            # Behind a break the words are those of the next figure.
            right = min(self._claims[number + 1].start, self._sentences.next_break(claim.end, right))
        found = [*self._weigh(claim.end, right, claim.end, near=_FOLLOWING)]
        found += self._weigh(left, claim.start, claim.start, near=1.0)
        if number + 1 < len(self._claims) and self._is_part_and_whole(number):
            start = predicate_behind(self._sentences.text, self._claims[number + 1])
            if start is not None:
                found += self._weigh(start, self._sentences.next_break(start, sentence.end), start, near=_FOLLOWING)
        alone = alone or said_of_part is not None or left == sentence.start
        if number and not alone and not self._has_words(left, claim.start):
            # "5 and 7 trees", "balances of $5 and $7": what was said before the first holds for the second.
            for word in self._words_around(number - 1, alone=True):
                found.append(NearWord(word.meanings, word.near * _OF_THE_ONE_BEFORE, word.place))
        return tuple(found)

    def _is_part_and_whole(self, number: int) -> bool:
        """Whether a figure is said as a part of the next one: 80 of 96."""
        if number < 0:
            return False
        one, other = self._claims[number : number + 2]
        return is_part_of(self._sentences.text, one, other)

    def _is_figure(self, number: int) -> bool:
        return self._claims[number].kind in ("number", "date", "time", "ratio")

    def _has_words(self, start: int, end: int) -> bool:
        first, last = bisect_left(self._places, start), bisect_left(self._places, end)
        return any(meanings for _place, meanings, _word in self._tokens[first:last])

    def _weigh(self, start: int, end: int, at: int, *, near: float) -> Iterator[NearWord]:
        first, last = bisect_left(self._places, start), bisect_left(self._places, end)
        middle = bisect_left(self._places, at)
        for n in range(max(first, middle - _REACH), min(last, middle + _REACH)):
            place, meanings, _word = self._tokens[n]
            steps = n - middle if n >= middle else middle - n - 1
            breaks = self._sentences.breaks(min(place, at), max(place, at))
            if meanings:
                yield NearWord(meanings, near / (1 + steps) * _PAST_A_BREAK**breaks, place)

    def _topics(self, claim: Claim, order: Order) -> tuple[Topics, Topics]:
        number = self._sentences.at(claim.start)
        all_here = _nearest(self._by_sentence.get(number, ()), claim.start)
        earlier = [mention for mention in self._earlier_mentions(number) if not mention.soft]
        near = [one for one in all_here if not one.soft or not (one.is_date or self._is_apart(one, claim))]
        proper = {kind for mention in [*earlier, *near] for kind in mention.names}
        here = [
            mention
            for mention in all_here
            # A plain word counts where it stands beside the claim, or where things of its kind are named otherwise.
            if not mention.soft
            or set(mention.names) & proper
            or not self._is_apart(mention, claim)
            or self._is_subject(mention, all_here)
            if not (mention.is_date and claim.kind == "date")
        ]
        named = {kind for mention in here for kind in mention.names}
        before = [] if any(not mention.soft for mention in here) else earlier
        # "The X-ray is … The consultation (…)": of a kind that the sentence names itself it is not said before.
        before = [mention for mention in before if not named & set(mention.names)]
        found = [
            _topic(group, group if group[0] in before else self._choose(claim, group, order))
            for group in self._by_topic([*here, *before])
        ]
        compared = [*all_here, *earlier]
        beside = [_topic(group, [*group, *compared]) for group in self._by_topic([*here, *before])]
        return tuple(found), tuple(beside)

    def _by_topic(self, mentions: Sequence[Mention]) -> list[list[Mention]]:
        """Mentions of things of one kind together; what goes by names of two kinds joins them."""
        groups: list[tuple[set[str], list[Mention]]] = []
        for mention in mentions:
            kinds, mine = self._kinds.topic_of(mention.names), [mention]
            apart = []
            for group in groups:
                if group[0] & kinds:
                    kinds |= group[0]
                    mine = [*group[1], *mine]
                else:
                    apart.append(group)
            groups = [*apart, (kinds, mine)]
        return [sorted(group, key=lambda mention: mention.start) for _kinds, group in groups]

    def _is_subject(self, mention: Mention, here: Sequence[Mention]) -> bool:
        """Whether a sentence begins with it and names nothing else of its kind: "April was mildest, with …"."""
        sentence = self._sentences.all[self._sentences.at(mention.start)]
        lead = self._sentences.text[sentence.start : mention.start]
        if _LEAD.fullmatch(lead) is None or not _IS.match(self._sentences.text, mention.end):
            return False
        return not any(other is not mention and set(other.names) & set(mention.names) for other in here)

    def _is_apart(self, mention: Mention, claim: Claim) -> bool:
        first, last = min(mention.end, claim.end), max(mention.start, claim.start)
        return self._sentences.breaks(first, last) > 0

    def _earlier_mentions(self, number: int) -> list[Mention]:
        block = self._sentences.all[number].paragraph
        while number > 0:
            number -= 1
            if self._sentences.all[number].paragraph < block - 1:
                break
            found = [mention for mention in self._by_sentence.get(number, ()) if not mention.soft]
            if found:
                return found
        return []

    def _choose(self, claim: Claim, mentions: Sequence[Mention], order: Order) -> Sequence[Mention]:
        """Of the things of one kind that the sentence names, the one that it is of; several if none stands out."""
        if len({_key(mention) for mention in mentions}) == 1:
            return mentions[:1]
        if order == "thing first":
            return [mention for mention in mentions if mention.end <= claim.start][-1:] or mentions[:1]
        if order == "figure first":
            return [mention for mention in mentions if mention.start >= claim.end][:1] or mentions[-1:]
        in_order = self._in_order(claim, mentions)
        if in_order is not None:
            return [in_order]
        before = [mention for mention in mentions if mention.end <= claim.start]
        after = [mention for mention in mentions if mention.start >= claim.end]
        last, first = (before[-1] if before else None), (after[0] if after else None)
        if last is not None and self._is_in_brackets_of(last, claim):
            return [last]
        if last is None or first is None:
            one = last or first or mentions[0]
            return mentions if one.compared else [one]
        if last.compared or first.compared:
            return [last, first, *(mention for mention in mentions if not mention.compared)]
        behind, ahead = self._apart(claim.end, first.start), self._apart(last.end, claim.start)
        return [first if behind < ahead else last]

    def _apart(self, start: int, end: int) -> int:
        """How far two places are apart: words between them, and breaks, which count for several."""
        return self._sentences.text[start:end].count(" ") + _A_BREAK * self._sentences.breaks(start, end)

    def _is_in_brackets_of(self, mention: Mention, claim: Claim) -> bool:
        """Green Basket ($64.20, $58.75 and $49.90): all three are of what stands before the bracket."""
        between = self._sentences.text[mention.end : claim.start]
        return between.lstrip()[:1] == "(" and ")" not in between

    def _in_order(self, claim: Claim, mentions: Sequence[Mention]) -> Mention | None:
        """X and Y have 5 and 7: as many figures as names, all of them behind those; the first is of the first."""
        here = self._claims_of[self._sentences.at(claim.start)]
        figures = [one for one in here if one.kind == claim.kind and one.units == claim.units]
        distinct = list({_key(mention): mention for mention in mentions}.values())
        if 1 < len(distinct) < len(figures) and all(mention.end <= figures[0].start for mention in distinct):
            figures = figures[: len(distinct)]  # "A and B hold 5 and 7, 12 in all"
            joined = (self._sentences.text[one.end : other.start] for one, other in pairwise(figures))
            if any(_AND.fullmatch(gap) is None for gap in joined):
                return None
        if len(figures) != len(distinct) or claim not in figures:
            return None
        if len(distinct) == 2 and distinct[1].start - distinct[0].end > _JOINED:
            gap = self._sentences.text[figures[0].end : figures[1].start]
            if _AGAINST.search(gap) is not None:
                return None  # "A is shorter, but B earns more: 12 against 4": both are said of B
        if all(mention.end <= figures[0].start for mention in distinct) or all(
            mention.start >= figures[-1].end for mention in distinct
        ):
            return distinct[figures.index(claim)]
        return None


def is_part_of(text: str, one: Claim, other: Claim) -> bool:
    """Whether one figure is said as a part of another that follows it: 80 of 96, half of the six."""
    periods = not other.units or other.units <= TIME_UNITS  # three of the five months
    plain = one.kind in ("number", "ratio") and other.kind == "number" and not one.units and periods
    return plain and one.end < other.start and _OUT_OF.fullmatch(text, one.end, other.start) is not None


def predicate_behind(text: str, whole: Claim) -> int | None:
    """Where that begins which is said of a part, behind its whole and what that is of: 36 of 38 beds are …"""
    match = _PREDICATE.match(text, whole.end)
    return None if match is None else match.end()


def _topic(group: Sequence[Mention], chosen: Sequence[Mention]) -> dict[str, frozenset[str]]:
    kinds = {kind for mention in group for kind in mention.names}
    return {kind: names for kind in kinds if (names := _all_names(chosen, kind))}


def _fit(topics: Topics, row: Row, replaced: frozenset[str]) -> int:
    found = 0
    for topic in topics:
        have = [(row.names_of_kind(kind), wanted) for kind, wanted in topic.items() if kind not in replaced]
        if any(names & wanted for names, wanted in have):
            found = 1
        elif any(names for names, _wanted in have):
            return -1
    return found


def _nearest(mentions: Sequence[Mention], place: int) -> Sequence[Mention]:
    """Of very many names in a sentence, those around a place: what is further off is said of other figures."""
    if len(mentions) <= 2 * _MOST_NAMED:
        return mentions
    at = bisect_left(mentions, place, key=lambda mention: mention.start)
    return mentions[max(0, at - _MOST_NAMED) : at + _MOST_NAMED]


def _key(mention: Mention) -> frozenset[tuple[str, frozenset[str]]]:
    return frozenset(mention.names.items())


def _all_names(mentions: Sequence[Mention], kind: str) -> frozenset[str]:
    return frozenset[str]().union(*(mention.names.get(kind, frozenset()) for mention in mentions))
