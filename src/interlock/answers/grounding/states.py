"""Whether what is said of each other belongs together: a thing and its state, two names of one row.

"O-5530 is on hold" has no figure in it. Both names stand in the results, and are wrong together if there are rows with
both kinds of name and none that has these two.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from msgspec.structs import replace

from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.mentions import Mention
from interlock.answers.grounding.opposites import Opposites
from interlock.answers.grounding.rows import Row, plain_name
from interlock.answers.grounding.said_parts import SaidPart, SaidParts
from interlock.answers.grounding.sentences import Sentences
from interlock.answers.grounding.state_words import StateTable
from interlock.answers.grounding.superseded import Superseded, is_code, is_past
from interlock.answers.grounding.words import WordTable, words_in
from interlock.values import Value

_MOST_ROWS = 2_000
_MOST_NAMED = 40
"""With more names between two breaks, not every two of them are compared: that is held."""
_MOST_TRUTHS = 200
_LONGEST_NAME = 80
_BOTH = re.compile(r"\b(?:both|neither)\b", re.I)
_PAIR, _BEFORE_VERB = 2, 12
_IT = re.compile(r"\W*(?:it|he|she|they)\b", re.I)


class Mismatch(Value, frozen=True):
    """Words of an answer that the results do not bear out together."""

    start: int
    end: int
    text: str
    why: str


class States:
    """Looks through the parts of an answer's sentences."""

    def __init__(self, facts: Sequence[Fact], table: StateTable, words: WordTable) -> None:
        self._facts, self._table, self._words = facts, table, words
        self._truths: dict[str, list[Fact]] = defaultdict(list)
        """By the name of a flag: where it stands."""
        truths = (fact for fact in facts_of(facts, "truth") if _is_now(fact) and fact.trusted)
        for fact in islice(truths, _MOST_TRUTHS):
            self._truths[fact.place.name].append(fact)
        self._superseded = Superseded(facts)
        self._opposites = Opposites(facts, table, words)
        old = [fact for fact in facts_of(facts, "stale") if _is_value(fact)]
        before = {id(fact.place.row): fact.place.row for fact in old}
        self._old = {(id(fact.place.row), fact.place.name) for fact in old}
        """Rows and their fields of which a change of the turn has made something else."""
        rows = once(facts, _rows_now)
        self._before = _by_name(before.values())
        self._gone_names = _by_name(row for key, row in before.items() if key not in rows)

    def find(self, parts: SaidParts, mentions: Sequence[Mention]) -> Iterator[Mismatch]:
        """What does not belong together."""
        sentences = parts.sentences
        first = {one.start for one in sentences.all}
        mentions = [
            self._uncapitalise(mention, sentences.text) if mention.start in first else mention for mention in mentions
        ]
        starts = [mention.start for mention in mentions]
        heads: tuple[int, list[Mention]] = (-1, [])
        for part in parts.all:
            start, end = part.start, part.end
            near = mentions[bisect_left(starts, start) : bisect_left(starts, end)]
            opens = sentences.text.startswith(":", end)
            if not (near or opens or self._may_be_told(part) or (heads[1] and heads[0] == part.sentence)):
                continue
            here = self._said_of(part, near, mentions, starts, sentences)
            heads = self._heads(heads, part, here, opens=opens)
            if len(here) > _MOST_NAMED:
                yield Mismatch(start, end, part.text.strip()[:80], "it names more than can be checked")
            elif not (self._table.is_open(part.text, part.bits) or parts.is_conditional(part.sentence)):
                yield from self._find(part, near, here, heads[1])
                if not opens and self._truths:  # "Online payments: no" says it behind the colon
                    dates = [mention for mention in near if mention.is_date and mention not in here]
                    yield from self._contradictions(part, [*here, *dates])

    def _may_be_told(self, part: SaidPart) -> bool:
        """Whether a part of a sentence that names nothing may say something of what was named before."""
        return bool(part.bits & self._table.bits_of_opposites or self._truths or self._superseded)

    def _find(
        self, part: SaidPart, near: Sequence[Mention], here: Sequence[Mention], heads: Sequence[Mention]
    ) -> Iterator[Mismatch]:
        start, end, text = part.start, part.end, part.text
        for left, right in self._superseded.find(text, start):
            yield Mismatch(left, right, text.strip()[:80], "it was so before the change")
        yield from self._gone(part, near)
        yield from self._pairs(part, [*heads, *(one for one in here if one not in heads)])
        if part.bits & self._table.bits_of_opposites:
            for why in self._opposites.find(text, part.bits, partial(self._rows_named, here)):
                yield Mismatch(start, end, text.strip()[:80], why)

    def _said_of(
        self,
        part: SaidPart,
        near: Sequence[Mention],
        mentions: Sequence[Mention],
        starts: Sequence[int],
        sentences: Sentences,
    ) -> Sequence[Mention]:
        """What a part of a sentence names, or goes on about."""
        here = [mention for mention in near if mention.end <= part.end]
        if _is_named(here) or any(map(_is_key, here)) or sentences.text.startswith("(", part.end):
            return here  # where a bracket opens, what it is of follows
        several = self._table.is_of_several(part.text, part.bits)  # "the other two are still open"
        said = (_both_before if several else _said_before)(mentions, starts, sentences, part)
        plain = [mention for mention in here if " " in sentences.text[mention.start : mention.end]]
        return [*(said or plain), *(mention for mention in here if self._is_state(mention))]

    def _uncapitalise(self, mention: Mention, text: str) -> Mention:
        """A state that begins its sentence is a plain word all the same: "Open: rent and water"."""
        plain = text[mention.start + 1 : mention.end].islower() and {*mention.names} <= self._table.kinds
        return replace(mention, soft=True) if plain else mention

    def _heads(
        self, heads: tuple[int, list[Mention]], part: SaidPart, here: Sequence[Mention], *, opens: bool
    ) -> tuple[int, list[Mention]]:
        """The states before a colon, which are said of all that follows: "Open at the moment: rent and water"."""
        number = part.sentence
        if opens:
            return number, [] if _is_named(here) else [one for one in here if self._is_state(one)]
        return heads if heads[0] == number else (number, [])

    def _pairs(self, part: SaidPart, here: Sequence[Mention]) -> Iterator[Mismatch]:
        text, start = part.text, part.start
        denied = len(here) > 1 and self._table.denies(text, part.bits)
        for n, one in enumerate(here):
            for other in here[n + 1 :]:
                if one.compared or other.compared or set(one.names) & set(other.names):
                    continue
                is_state = self._is_state(one) or self._is_state(other)
                together = self._together(one, other)
                old = self._old_row(one, other) if is_state and not denied and not together else None
                if old is not None:
                    if self._is_said_as_now(text, start, one, other, old):
                        yield Mismatch(one.start, other.end, text.strip()[:80], "it was so before the change")
                elif together is not None and together == denied and (not denied or is_state):
                    why = "the results say so of it" if denied else "the results do not say this of it"
                    yield Mismatch(one.start, other.end, text.strip()[:80], why)

    def _rows_named(self, here: Sequence[Mention]) -> list[Row] | None:
        """The rows that have all the names of a part of a sentence, and those inside of them; None without a name."""
        hard = [mention for mention in here if (not mention.soft or _is_key(mention)) and not mention.compared]
        if not hard:
            return None
        named = once(self._facts, _rows_by_all_names)
        found = [{id(row): row for row in _rows_of(named, mention)} for mention in hard]
        if len(hard) == 2 and set(hard[0].names) == set(hard[1].names):  # A and B
            return list((found[0] | found[1]).values())
        return [row for key, row in found[0].items() if all(key in others for others in found[1:])]

    def _gone(self, part: SaidPart, here: Sequence[Mention]) -> Iterator[Mismatch]:
        """Things that are said to be there still, and that a list has no longer after a change."""
        text, start, bits = part.text, part.start, part.bits
        if not self._before or not self._table.is_still(text, bits) or self._table.denies(text, bits):
            return
        for one in here:
            keys = [(kind, name) for kind, names in one.names.items() for name in names]
            texts = once(self._facts, _texts_now)
            gone = any(key in self._gone_names for key in keys) and not any(name in texts for _kind, name in keys)
            if gone and not one.soft and not is_past(text, max(0, one.start - start), max(0, one.end - start)):
                yield Mismatch(one.start, one.end, text.strip()[:80], "it was there before the change")

    def _old_row(self, one: Mention, other: Mention) -> Row | None:
        """A row from before a change that has both names."""
        rows = _rows_of(self._before, one, other)
        return next((row for row in rows if _match(row, one) and _match(row, other)), None)

    def _is_said_as_now(self, text: str, start: int, one: Mention, other: Mention, old: Row) -> bool:
        """Whether a state that a thing had before a change is said of it as how it is, and is so of no other."""
        state, thing = (one, other) if self._is_state(one) else (other, one)
        if is_past(text, max(0, state.start - start), max(0, state.end - start)):
            return False
        known = once(self._facts, _rows_by_state, self._table)
        now = [row for kind, names in state.names.items() for name in names for row in known.get((kind, name), ())]
        return all(_match(row, thing) is False or _is_other(row, old) for row in now[:_MOST_ROWS])

    def _is_state(self, mention: Mention) -> bool:
        return mention.soft and bool(set(mention.names) & self._table.kinds)

    def _together(self, one: Mention, other: Mention) -> bool | None:
        """Whether a row has both names; None where no row has names of both kinds."""
        comparable = False
        for row in _rows_of(once(self._facts, _rows_by_name), one, other):
            first, second = self._match(row, one), self._match(row, other)
            if first is None or second is None:
                continue
            if first and second:
                return True
            comparable = comparable or first or second
        return False if comparable else None

    def _match(self, row: Row, mention: Mention) -> bool | None:
        """The same of how a row is now: what it was before a change is no name of it."""
        if any((id(row), kind) in self._old for kind in mention.names):
            return None
        return _match(row, mention)

    def _words_of_flag(self, name: str) -> frozenset[str]:
        """What a flag is about: `signature_required` speaks of a signature."""
        stems = frozenset(one for one in self._words.in_name(name) if not one.startswith("="))
        return stems - self._table.flag_words or stems

    def _contradictions(self, part: SaidPart, here: Sequence[Mention]) -> Iterator[Mismatch]:
        """A truth that is said the other way round: "online payments are on" where the field says false."""
        text, start = part.text, part.start
        spoken = {one for word, _place in words_in(text) for one in self._words.meanings(word)}
        turned = {one for word, _place in words_in(text) for one in self._words.meanings(self._table.without_un(word))}
        telling = [mention for mention in here if not mention.soft or mention.is_date or _is_key(mention)]
        for name, known in self._truths.items():
            mine = self._words_of_flag(name)
            if not mine or not mine <= spoken | turned:
                continue
            facts = [fact for fact in known if _is_one_of(fact.place.row, telling)]
            denied = self._table.denies(text, part.bits) != bool(mine & turned)
            truths = [fact.truth is True for fact in facts]
            if len(set(truths)) == 1 and truths[0] == denied:
                why = f"{name} is {truths[0]}".lower()
            elif len(set(truths)) > 1 and self._table.is_of_all(text, truths.count(not denied)):
                why = f"{name} is not so of all"
            else:
                continue
            yield Mismatch(start, start + len(text), text.strip()[:80], why)
            return


def _is_value(fact: Fact) -> bool:
    """Whether it is what a result holds; the name of a field is none of its values."""
    return not (fact.echo or fact.asked or fact.is_key)


def _is_now(fact: Fact) -> bool:
    return not fact.stale and _is_value(fact)


def _rows_now(facts: Sequence[Fact]) -> dict[int, Row]:
    """The rows of which something is still so."""
    found: dict[int, Row] = {}
    last = None
    for fact in facts:
        row = fact.place.row
        if row is not last and _is_now(fact):
            found.setdefault(id(row), row)
            last = row
    return found


def _rows_by_all_names(facts: Sequence[Fact]) -> dict[tuple[str, str], list[Row]]:
    """The rows of now by the names that they have, or that what they are in has."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in islice(once(facts, _rows_now).values(), _MOST_ROWS):
        for kind, names in row.names_around().items():
            for name in names:
                found[kind, name].append(row)
    return found


def _rows_by_name(facts: Sequence[Fact]) -> dict[tuple[str, str], list[Row]]:
    return _by_name(once(facts, _rows_now).values())


def _texts_now(facts: Sequence[Fact]) -> set[str]:
    """What the results say since the last change."""
    texts = {fact.text for fact in facts_of(facts, "text") if len(fact.text) <= _LONGEST_NAME and _is_now(fact)}
    return set(map(plain_name, texts))


def _rows_by_state(facts: Sequence[Fact], table: StateTable) -> dict[tuple[str, str], list[Row]]:
    """By field and state: the rows that are in it."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for fact in facts_of(facts, "text"):
        name = fact.place.name
        if name in table.kinds and _is_now(fact):
            found[(name, plain_name(fact.text))].append(fact.place.row)
    return found


def _by_name(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        for kind, names in row.names.items():
            for name in names:
                found[(kind, name)].append(row)
    return found


def _rows_of(rows: Mapping[tuple[str, str], list[Row]], *mentions: Mention) -> list[Row]:
    """The rows that have one of the names themselves."""
    keys = {(kind, name) for mention in mentions for kind, names in mention.names.items() for name in names}
    return [row for key in keys for row in rows.get(key, ())][:_MOST_ROWS]


def _is_other(one: Row, other: Row) -> bool:
    """Whether two rows are of different things: they have codes of the same kind, and not the same."""
    return any(
        names.isdisjoint(other.names[kind]) and any(map(is_code, names))
        for kind, names in one.names.items()
        if kind in other.names
    )


def _is_named(mentions: Sequence[Mention]) -> bool:
    return any(not mention.soft for mention in mentions)


def _said_before(
    mentions: Sequence[Mention], starts: Sequence[int], sentences: Sentences, part: SaidPart
) -> list[Mention]:
    """What the sentence has named before a part of it that names nothing: that part goes on about it.

    A sentence that begins with "it" goes on about what the one before it has named last.
    """
    number = part.sentence
    own = sentences.all[number]
    goes_on = number > 0 and _IT.match(sentences.text, own.start) is not None
    before = sentences.all[number - 1]
    first = before.start if goes_on and before.paragraph == own.paragraph else own.start
    compared: list[Mention] = []
    for at in range(bisect_left(starts, part.start) - 1, -1, -1):
        if mentions[at].start < first:
            break
        if mentions[at].compared:  # "Rex weighs more than Bella. He is …": what was compared is gone on with
            compared = compared or [mentions[at]]
        elif not mentions[at].soft:
            return [mentions[at]]
    return compared


def _both_before(
    mentions: Sequence[Mention], starts: Sequence[int], sentences: Sentences, part: SaidPart
) -> list[Mention]:
    """The two things that a sentence has named before a part that says something of both."""
    own, place = sentences.all[part.sentence], part.start
    here = mentions[bisect_left(starts, own.start) : bisect_left(starts, place)]
    named = [one for one in here if (not one.soft or _is_key(one)) and not one.compared]
    pair = named[-_PAIR:]
    alike = len(named) == _PAIR and set(pair[0].names) == set(pair[1].names)
    return pair if alike and _BOTH.search(sentences.text, place, place + _BEFORE_VERB) is not None else []


def _is_key(mention: Mention) -> bool:
    """Whether it is the key of a table of things, whose names need no capital: the gas check of {"gas": {…}}."""
    return any(kind.endswith(".{}") for kind in mention.names)


def _is_one_of(row: Row, mentions: Sequence[Mention]) -> bool:
    """Whether a row may be among those that are named: of each kind of name it has one, where it has any."""
    has: dict[str, bool] = {}
    for mention in mentions:
        match = _match(row, mention)
        if match is not None:
            for kind in mention.names:
                has[kind] = has.get(kind, False) or match
    return all(has.values())


def _match(row: Row, mention: Mention) -> bool | None:
    """Whether a row has the name; None if it has none of that kind."""
    have = [(row.names_of_kind(kind), names) for kind, names in mention.names.items()]
    if any(mine & names for mine, names in have):
        return True
    return False if any(mine for mine, _names in have) else None
