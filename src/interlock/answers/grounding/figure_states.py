"""Words that say of a figure whether it is none or some: "full", "on time", "owes nothing", "in stock".

They have no figure in them, and are wrong all the same where the field that they speak of says otherwise: nothing is
full that has places left, and nobody owes nothing who has a balance to pay.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.figure_kinds import FigureKind, stems_of
from interlock.answers.grounding.mentions import Mention
from interlock.answers.grounding.rows import Row
from interlock.answers.grounding.said_parts import SaidPart, SaidParts
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.answers.grounding.words import stem, words_in
from interlock.values import Value

_MOST_FACTS = 2_000
_MOST_THINGS = 12
_DIGIT = re.compile(r"\d")
_COMPARED = re.compile(r"\b(?:(?<!any )more|less|as much|most|least|than|fewer|enough|yet to)\b", re.I)
_SHARE = re.compile(r"%|\bper ?cent\b|\baverage\b|\bmost of\b", re.I)
_DUE, _PAID = stem("due"), frozenset(map(stem, ("paid", "received")))
_WOULD = re.compile(r"\bwould\b", re.I)
"""What a plan would do is in its preview: that is claimed like anything else."""


class _Known(Value, frozen=True):
    """One field that says how much there is."""

    row: Row
    name: str
    own: frozenset[str]
    some: bool


class _Fields:
    """All fields that say how much there is of one thing, found by what their rows go by."""

    def __init__(self) -> None:
        self.all: list[_Known] = []
        self.sizes: list[Fact] = []
        self._of_name: dict[tuple[str, str], list[_Known]] = defaultdict(list)

    def add(self, known: _Known) -> None:
        self.all.append(known)
        for kind, names in known.row.names_around().items():
            for name in names:
                self._of_name[kind, name].append(known)

    def of(self, thing: Mention | None) -> Sequence[_Known]:
        """Those in whose rows a thing is; all of them without one."""
        if thing is None:
            return self.all
        names = [(kind, name) for kind, same in thing.names.items() for name in same]
        found = (known for name in names for known in self._of_name.get(name, ()))
        return list({id(known): known for known in found}.values())

    def sizes_of(self, thing: Mention | None) -> Iterator[Fact]:
        """The sizes in rows in which a thing is; all of them without one."""
        return (fact for fact in self.sizes if thing is None or _is_of(fact.place.row, thing))


class FigureStates:
    """Looks for parts of sentences that say none where there is some, or some where there is none."""

    def __init__(self, facts: Sequence[Fact], vocabulary: Vocabulary) -> None:
        self._table, self._words = vocabulary.states, vocabulary.words
        self._kinds = list(vocabulary.figure_kinds.items())
        self._fields: dict[str, _Fields] = defaultdict(_Fields)
        self._in_row: dict[int, list[Fact]] = defaultdict(list)
        usable = (fact for fact in facts if fact.trusted and not (fact.echo or fact.asked or fact.stale or fact.label))
        # The name of a field is none of its values.
        known = [one for one in islice(usable, _MOST_FACTS) if not one.is_key or one.number is not None]
        for fact in known:
            self._in_row[id(fact.place.row)].append(fact)
        for fact in known:
            if fact.number is not None or fact.truth is not None:
                self._add(fact)
        self._known = [(name, kind) for name, kind in self._kinds if name in self._fields]
        self._bits = sum(kind.bit for _name, kind in self._known)

    def _add(self, fact: Fact) -> None:
        if fact.prose or (fact.counted and fact.number):
            return  # of lists only that they are empty: which of its items are meant is not known
        names = islice(fact.place.field.names(), 1, 2) if fact.counted else [fact.place.name]
        own = frozenset[str]().union(*(stems_of(name, self._words) for name in names))
        for name, kind in self._kinds:
            if kind.is_field(own):
                some = is_some(fact, self._in_row[id(fact.place.row)])
                self._fields[name].add(_Known(fact.place.row, fact.place.name, own, some))
            elif fact.number and kind.is_size(own):
                self._fields[name].sizes.append(fact)

    def find(self, parts: SaidParts, mentions: Sequence[Mention]) -> Iterator[tuple[int, int, str]]:
        """Where a part of a sentence says it, and which field says otherwise."""
        if not self._known:
            return
        starts = [mention.start for mention in mentions]
        things: list[Mention] = []
        text, number = parts.sentences.text, -1
        for part in parts.all:
            near = mentions[bisect_left(starts, part.start) : bisect_left(starts, part.end)]
            here = [one for one in near if not one.soft]
            last, number = number, part.sentence
            if last != number and here:
                things = []
            if here:
                joined = things and not text[things[-1].end : part.start].strip(" ,")
                things = [*things, *here] if joined else here
            if not part.bits & self._bits or self._is_conditional(parts, number):
                continue
            # "The two direct ones" are not what was named before.
            several = not here and self._table.is_of_several(part.text, part.bits)
            named = [] if several else things[-_MOST_THINGS:]
            is_open = self._table.is_open(part.text, part.bits)
            why = None if is_open else self._contrary(part, named, [one for one in near if one.is_date])
            if why is not None:
                yield part.start, part.end, why

    def _is_conditional(self, parts: SaidParts, number: int) -> bool:
        if not parts.is_conditional(number):
            return False
        return self._table.is_conditional(_WOULD.sub("", parts.sentence(number)))

    def _contrary(self, part: SaidPart, things: Sequence[Mention], days: Sequence[Mention]) -> str | None:
        text, bits = part.text, part.bits
        denied = self._table.denies(text, bits)
        if _SHARE.search(text):
            return None  # of many: 80% are on time
        if denied and (_DIGIT.search(text) or _COMPARED.search(text)):
            return None
        for name, kind in self._known:
            said = kind.says_some(text, denied=denied, bits=bits)
            if said is None:
                continue
            why = self._against(name, kind, text, things, days, said=said)
            if why is not None:
                return why
        return None

    def _against(
        self, name: str, kind: FigureKind, text: str, things: Sequence[Mention], days: Sequence[Mention], *, said: bool
    ) -> str | None:
        """`days`: those that are named beside; where there are fields of these, it is said of them."""
        fields = self._fields[name]
        dated = [one for day in days for one in fields.of(day)]
        for thing in things or (None,):
            known = [one for one in dated if thing is None or _is_of(one.row, thing)] if dated else fields.of(thing)
            mine = self._spoken_of(known, text)
            wrong = [one for one in mine if one.some != said]
            # Without a name it may be said of one of several.
            enough = thing is not None and not said and kind.each
            if wrong and (len(wrong) == len(mine) or enough or (thing is None and self._table.is_of_all(text, 0))):
                return f"{wrong[0].name} says otherwise"
            if not (mine or said) and any(self._has_room(fact, kind) for fact in fields.sizes_of(thing)):
                return "no result says that"
        return None

    def _spoken_of(self, known: Sequence[_Known], text: str) -> Sequence[_Known]:
        """Of several such fields those that are named: "nothing is due for trips" is said of `trips_due`."""
        if len(known) < 2:
            return known
        spoken = {one for word, _place in words_in(text) for one in self._words.meanings(word)}
        counts = [len(one.own & spoken) for one in known]
        most = max(counts)
        return [one for one, count in zip(known, counts, strict=True) if count == most]

    def _has_room(self, size: Fact, kind: FigureKind) -> bool:
        """Whether nothing in the row is as large as what it can hold, and nothing says in words that it is full."""
        row = [fact for fact in self._in_row[id(size.place.row)] if fact is not size]
        assert size.number is not None
        return not any(fact.number == size.number or (fact.text and kind.says_none(fact.text)) for fact in row)


def is_some(fact: Fact, row: Sequence[Fact]) -> bool:
    """Whether a field says that there is some of it. What was due and was paid just so is owed no more."""
    if fact.number is None:
        return bool(fact.truth)
    if fact.number > 0 and _DUE in fact.own:
        paid = any(one.number == fact.number and one.own & _PAID for one in row)
        # Of a bill half of which is paid the other half is due.
        return not paid or any(one.number == 2 * fact.number for one in row)
    return fact.number > 0


def _is_of(row: Row, thing: Mention) -> bool:
    return any(row.names_of_kind(kind) & same for kind, same in thing.names.items())
