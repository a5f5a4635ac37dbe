"""Whether what is said of each other belongs together: a thing and its state, two names of one row.

"O-5530 is on hold" has no figure in it. Both names stand in the results, and are wrong together if there are rows with
both kinds of name and none that has these two.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.mentions import Mention
from interlock.answers.grounding.rows import Row
from interlock.answers.grounding.sentences import Sentences
from interlock.answers.grounding.state_words import StateTable
from interlock.answers.grounding.words import WordTable, words_in
from interlock.values import Value

_MOST_ROWS = 2_000
_MOST_NAMED = 40
"""With more names between two breaks, not every two of them are compared: that is held."""
_MOST_TRUTHS = 200


class Mismatch(Value, frozen=True):
    """Words of an answer that the results do not bear out together."""

    start: int
    end: int
    text: str
    why: str


class States:
    """Looks through the parts of an answer's sentences."""

    def __init__(self, facts: Sequence[Fact], table: StateTable, words: WordTable) -> None:
        self._table, self._words = table, words
        self._truths, self._by_name, self._moved = once(facts, _rows_and_truths)

    def find(self, sentences: Sentences, mentions: Sequence[Mention]) -> Iterator[Mismatch]:
        """What does not belong together."""
        starts = [mention.start for mention in mentions]
        conditional = [self._table.is_conditional(sentences.text[one.start : one.end]) for one in sentences.all]
        for start, end in sentences.parts():
            text = sentences.text[start:end]
            near = mentions[bisect_left(starts, start) : bisect_left(starts, end)]
            here = [mention for mention in near if mention.end <= end]
            if not _is_named(here) and sentences.text[end : end + 1] != "(":  # else what it is of follows
                states = [mention for mention in here if self._is_state(mention)]
                here = [*_said_before(mentions, starts, sentences, start), *states]
            if len(here) > _MOST_NAMED:
                yield Mismatch(start, end, text.strip()[:80], "it names more than can be checked")
                continue
            if conditional[sentences.at(start)] or self._table.is_open(text):
                continue
            yield from self._pairs(text, start, here)
            if sentences.text[end : end + 1] != ":":  # "Online payments: no" says it behind the colon
                yield from self._contradictions(text, start, here)

    def _pairs(self, text: str, start: int, here: Sequence[Mention]) -> Iterator[Mismatch]:
        denied = len(here) > 1 and self._table.denies(text)
        for n, one in enumerate(here):
            for other in here[n + 1 :]:
                if one.compared or other.compared or set(one.names) & set(other.names):
                    continue
                if self._moved and (self._is_state(one) or self._is_state(other)):
                    continue
                together = self._together(one, other)
                if together is None:
                    continue
                if together == denied and (not denied or self._is_state(one) or self._is_state(other)):
                    why = "the results say so of it" if denied else "the results do not say this of it"
                    yield Mismatch(one.start, other.end, text.strip()[:80], why)

    def _is_state(self, mention: Mention) -> bool:
        return mention.soft and bool(set(mention.names) & self._table.kinds)

    def _together(self, one: Mention, other: Mention) -> bool | None:
        """Whether a row has both names; None where no row has names of both kinds."""
        comparable = False
        for row in self._rows_of(one, other):
            first, second = _match(row, one), _match(row, other)
            if first is None or second is None:
                continue
            if first and second:
                return True
            comparable = comparable or first or second
        return False if comparable else None

    def _rows_of(self, *mentions: Mention) -> list[Row]:
        """The rows that have one of the names themselves."""
        keys = {(kind, name) for mention in mentions for kind, names in mention.names.items() for name in names}
        return [row for key in keys for row in self._by_name.get(key, ())][:_MOST_ROWS]

    def _words_of_flag(self, name: str) -> frozenset[str]:
        """What a flag is about: `signature_required` speaks of a signature."""
        stems = frozenset(one for one in self._words.in_name(name) if not one.startswith("="))
        return stems - self._table.flag_words or stems

    def _contradictions(self, text: str, start: int, here: Sequence[Mention]) -> Iterator[Mismatch]:
        """A truth that is said the other way round: "online payments are on" where the field says false."""
        if not self._truths:
            return
        denied, several = self._table.denies(text), self._table.is_of_several(text)
        spoken = {one for word, _place in words_in(text) for one in self._words.meanings(word)}
        hard = [mention for mention in here if not mention.soft]
        for fact in self._truths:
            mine = self._words_of_flag(fact.place.name)
            if not mine or not mine <= spoken or any(_match(fact.place.row, mention) is False for mention in hard):
                continue
            others = {one.truth for one in self._truths if one.place.name == fact.place.name} - {fact.truth}
            if others and (several or not hard):
                continue  # of several rows that differ nobody says which
            if (fact.truth is True) == denied:
                yield Mismatch(
                    start, start + len(text), text.strip()[:80], f"{fact.place.name} is {fact.truth}".lower()
                )
                return


def _rows_and_truths(facts: Sequence[Fact]) -> tuple[list[Fact], dict[tuple[str, str], list[Row]], bool]:
    """The first truths, the rows by what they go by, and whether something was changed: what state a thing is in now,
    its row need not say."""
    rows: dict[int, Row] = {}
    truths: list[Fact] = []
    for fact in facts:
        if fact.echo or fact.asked or fact.stale:
            continue
        rows.setdefault(id(fact.place.row), fact.place.row)
        if fact.truth is not None and fact.trusted:
            truths.append(fact)
    by_name: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows.values():
        for kind, names in row.names.items():
            for name in names:
                by_name[(kind, name)].append(row)
    return truths[:_MOST_TRUTHS], by_name, any(fact.stale for fact in facts)


def _is_named(mentions: Sequence[Mention]) -> bool:
    return any(not mention.soft for mention in mentions)


def _said_before(mentions: Sequence[Mention], starts: Sequence[int], sentences: Sentences, place: int) -> list[Mention]:
    """What the sentence has named before a part of it that names nothing: that part goes on about it."""
    first = sentences.all[sentences.at(place)].start
    for number in range(bisect_left(starts, place) - 1, -1, -1):
        if mentions[number].start < first:
            return []
        if not mentions[number].soft:
            return [mentions[number]]
    return []


def _match(row: Row, mention: Mention) -> bool | None:
    """Whether a row has the name; None if it has none of that kind."""
    have = [(row.names_of_kind(kind), names) for kind, names in mention.names.items()]
    if any(mine & names for mine, names in have):
        return True
    return False if any(mine for mine, _names in have) else None
