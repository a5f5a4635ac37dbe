"""Everything that the results and tools of a turn have a name for: worked out once, and asked by each draft."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product

from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.meaning import ToolMeaning
from interlock.answers.grounding.rows import kind_of_argument, plain_name
from interlock.answers.grounding.words import WordTable, has_stem

_LEAST_LETTERS = 3
_MOST_WORDS = 10
Kinds = Mapping[str, frozenset[str]]
"""By kind of name: the plain names that are meant."""
Date = tuple[int | None, int | None, int | None]


class NameTable:
    """Names as they are compared, each with what it may stand for."""

    def __init__(self, facts: Sequence[Fact], meanings: Mapping[str, ToolMeaning], words: WordTable) -> None:
        self._words = words
        self._kinds: dict[str, dict[str, frozenset[str]]] = {}
        """Plain name → kind → the names that are the same thing."""
        for names in (*_names_of_rows(facts), *_known_values(meanings)):
            self._add(names)
        self._with_word: dict[str, list[str]] = defaultdict(list)
        lengths: dict[str, set[int]] = defaultdict(set)
        for name in self._kinds:
            parts = name.split()
            for word in dict.fromkeys(parts) if len(parts) > 1 else parts:
                self._with_word[word].append(name)
            if parts and len(parts) <= _MOST_WORDS and is_name(name):
                lengths[parts[0]].add(len(parts))
        self._lengths: dict[str, Sequence[int]] = {
            first: sorted(found | {1, 2}, reverse=True) for first, found in lengths.items()
        }
        self._found: dict[str, Kinds] = {}
        self._fields = frozenset[str]().union(*{fact.own for fact in facts}, *map(words.in_name, _arguments(meanings)))

    def _add(self, names: Kinds) -> None:
        for kind, same in names.items():
            for name in same:
                kinds = self._kinds.setdefault(name, {})
                kinds[kind] = kinds[kind] | same if kind in kinds else same

    def lengths(self, first: str) -> Sequence[int]:
        """How many words a name that begins with a word may have, the longest first."""
        found = self._lengths.get(first)
        if found is None:
            found = self._lengths[first] = (2, 1) if self._names_with(first) else ()
        return found

    def find(self, name: str) -> Kinds:
        """What a name stands for, or a part of one that only one thing has."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = (self._kinds.get(name) or self._part(name)) if is_name(name) else {}
        return found

    def _part(self, said: str) -> Kinds:
        """A word that stands in one name of a kind alone: "Holiday" where one account is called so."""
        first, _space, second = said.partition(" ")
        if not second:
            telling = len(first) >= _LEAST_LETTERS and not first.isdigit() and bool(self._words.meanings(first))
            names = self._names_with(first) if telling else []
        elif " " not in second and (first.isdigit() or second.isdigit()):  # the 70 Ah of several batteries
            some = min(self._with_word.get(first, []), self._with_word.get(second, []), key=len)
            names = [name for name in some if (first, second) in pairwise(name.split())]
        else:
            names = []
        found: dict[str, frozenset[str] | None] = {}
        for name in names:
            for kind, same in self._kinds[name].items():
                known = found.get(kind, same)
                found[kind] = same if known == same else _as_one(known, same)
        return {kind: one for kind, one in found.items() if one is not None}

    def is_field_word(self, word: str) -> bool:
        """Whether a word says what something is, in a field or an argument, and is by itself no name of anything."""
        return word not in self._kinds and has_stem(self._words.meanings(word) & self._fields)

    def is_known(self, word: str) -> bool:
        """Whether a name has the word itself."""
        return word in self._with_word

    def _names_with(self, word: str) -> Sequence[str]:
        """The names that have a word; of several, where none has it, those that have one: the pads of a pad set."""
        found = self._with_word.get(word)
        if found is None and len(word) > _LEAST_LETTERS and word.endswith("s"):
            found = self._with_word.get(word[:-1])
        return found or ()


def _names_of_rows(facts: Sequence[Fact]) -> Iterator[Kinds]:
    seen: set[int] = set()
    last = None
    for fact in facts:
        if fact.place.row is last or fact.asked or not fact.trusted:
            continue
        last = fact.place.row
        for row in last.chain():
            if id(row) in seen:
                break  # and so are those around it
            seen.add(id(row))
            # What a call was made with says what its result is about, and is no name that the results have.
            if not row.of_call:
                yield row.names


def _arguments(meanings: Mapping[str, ToolMeaning]) -> Iterator[str]:
    return (kind_of_argument(argument) for meaning in meanings.values() for argument in meaning.names)


def _known_values(meanings: Mapping[str, ToolMeaning]) -> Iterator[Kinds]:
    for meaning in meanings.values():
        for argument, values in meaning.names.items():
            kind = kind_of_argument(argument)
            for value, called in values.items():
                yield {kind: frozenset({plain_name(value), *map(plain_name, called)})}


def _as_one(one: frozenset[str] | None, other: frozenset[str]) -> frozenset[str] | None:
    """Two sets of names that are of one thing, as a longer name has the other: Mr Bell's Ford Transit, Ford Transit."""
    pairs = product(one or (), other)
    return one | other if one and any(f" {a} " in f" {b} " or f" {b} " in f" {a} " for a, b in pairs) else None


class DatedRows:
    """The dates that the rows of a list have in one field, where they differ: what a date may be said for."""

    def __init__(self, rows: Mapping[str, Date]) -> None:
        self.count = len(rows)
        self._shapes = {_shape(date) for date in rows.values()}
        self._by_date: dict[Date, set[str]] = defaultdict(set)
        for name, date in rows.items():
            # An answer may say less of a date than the row has.
            year, month, day = ((part, None) if part is not None else (None,) for part in date)
            for less in product(year, month, day):
                self._by_date[less].add(name)

    def fits(self, said: Date) -> frozenset[str]:
        """The rows that a date is said of, by how they have it written."""
        return frozenset(self._by_date.get(said, ()))

    def keeps_as_said(self, said: Date) -> bool:
        """Whether the field keeps days where a day is said, and months where a month is."""
        return self._shapes == {_shape(said)}


def _shape(date: Date) -> tuple[bool, bool]:
    return date[1] is not None, date[2] is not None


def dated_rows(facts: Sequence[Fact]) -> dict[str, DatedRows]:
    """By field: the dates that the rows of a list have there, where they differ."""
    found: dict[str, dict[str, Date]] = defaultdict(dict)
    dated = [
        fact
        for fact in facts_of(facts, "date")
        if any(fact.date) and not fact.prose and not fact.echo and not fact.asked
    ]
    places = {id(fact.place) for fact in dated}
    texts = facts_of(facts, "text") if dated else ()
    text = {id(fact.place): fact.text for fact in texts if id(fact.place) in places}
    for fact in dated:
        name = fact.place.name
        if name in fact.place.row.names:
            written = plain_name(text.get(id(fact.place), ""))
            if written in fact.place.row.names[name]:
                found[name][written] = fact.date
    return {kind: DatedRows(rows) for kind, rows in found.items() if len(rows) > 1}


def is_name(name: str) -> bool:
    """Whether it is more than a figure or a letter: V1 is a name, and 2h is none."""
    letters = any(char.isalpha() for char in name)
    return letters and (len(name) >= _LEAST_LETTERS or (name[0].isalpha() and name[-1].isdigit()))
