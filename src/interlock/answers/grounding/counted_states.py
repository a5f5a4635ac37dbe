"""How many rows of a list are as a sentence says: three of the four are not finished, half of the six are in arrears.

Rows are counted by a flag, by a state, or by a figure that is some or none. What is denied is so of the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import NamedTuple

from interlock.answers.grounding.binding import Bound, is_part_of, predicate_behind
from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.figure_states import is_some
from interlock.answers.grounding.rows import plain_name
from interlock.answers.grounding.surroundings import Surroundings
from interlock.answers.grounding.terms import Calculation
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.answers.grounding.words import Meanings, stem, words_in

_MOST_FACTS, _MOST_FIELDS, _LEAST_ROWS = 4_000, 60, 2
_LONGEST_STATE = 40


class PartOfRows(NamedTuple):
    """So many rows of a list are as it is said."""

    number: int
    rows: int
    where: str
    words: Meanings
    """What the list and the fields of its rows are called."""


class _List(NamedTuple):
    where: str
    rows: Mapping[int, list[Fact]]
    fields: list[tuple[str, dict[int, Fact]]]
    """Those that all rows have, each with its value in every row."""
    words: Meanings


def _read_list(where: str, rows: Mapping[int, list[Fact]]) -> _List:
    fields: dict[str, dict[int, Fact]] = defaultdict(dict)
    for row, facts in rows.items():
        for fact in facts:
            fields[fact.place.name].setdefault(row, fact)
    words = frozenset[str]().union(*(fact.words for known in fields.values() for fact in islice(known.values(), 1)))
    whole = ((name, known) for name, known in fields.items() if len(known) == len(rows))
    return _List(where, rows, list(islice(whole, _MOST_FIELDS)), words)


class CountedStates:
    """The lists of the results, and what their rows say of themselves."""

    def __init__(self, facts: Sequence[Fact], vocabulary: Vocabulary) -> None:
        self._table, self._words = vocabulary.states, vocabulary.words
        self._kinds = list(vocabulary.figure_kinds.values())
        lists: dict[str, dict[int, list[Fact]]] = defaultdict(lambda: defaultdict(list))
        usable = (fact for fact in facts if fact.trusted and not (fact.echo or fact.asked or fact.stale or fact.label))
        for fact in islice((one for one in usable if not one.counted and not one.prose), _MOST_FACTS):
            where = _list_of(fact)
            if where and fact.text != fact.place.name:
                lists[where][id(fact.place.row)].append(fact)
        self._lists = [_read_list(where, rows) for where, rows in lists.items() if len(rows) >= _LEAST_ROWS]

    def has_rows(self, count: Decimal) -> bool:
        """Whether a list has so many."""
        return any(len(one.rows) == count for one in self._lists)

    def find(self, predicate: str) -> Iterator[PartOfRows]:
        """The rows of which it is so what a part of a sentence says."""
        denied = self._table.denies(predicate)
        for one in self._lists:
            for name, known in one.fields:
                for count in self._counts(name, known, one.rows, predicate, denied=denied):
                    yield PartOfRows(count, len(one.rows), f"rows of {one.where} by {name}", one.words)

    def _counts(
        self, name: str, known: Mapping[int, Fact], rows: Mapping[int, list[Fact]], predicate: str, *, denied: bool
    ) -> Iterator[int]:
        facts = list(known.values())
        if all(fact.truth is not None for fact in facts):
            yield from self._flags(name, facts, predicate, denied=denied)
        elif all(fact.number is not None for fact in facts):
            own = frozenset(one for one in facts[0].own if not one.startswith("="))
            for kind in self._kinds:
                said = kind.says_some(predicate, denied=denied) if kind.is_field(own) else None
                if said is not None:
                    yield sum(is_some(fact, rows[row]) == said for row, fact in known.items())
        elif name.lower() in self._table.kinds and all(0 < len(fact.text) <= _LONGEST_STATE for fact in facts):
            yield from self._states([fact.text for fact in facts], predicate, denied=denied)

    def _flags(self, name: str, facts: Sequence[Fact], predicate: str, *, denied: bool) -> Iterator[int]:
        stems = frozenset(one for one in self._words.in_name(name) if not one.startswith("="))
        mine = stems - self._table.flag_words or stems
        spoken = {one for word, _place in words_in(predicate) for one in self._words.meanings(word)}
        if mine and mine <= spoken:
            yield sum(fact.truth is not denied for fact in facts)

    def _states(self, values: Sequence[str], predicate: str, *, denied: bool) -> Iterator[int]:
        plain = f" {plain_name(predicate)} "
        for value in dict.fromkeys(values):
            if f" {plain_name(value)} " in plain:
                yield sum((one == value) != denied for one in values)
        for said in set(self._table.opposite_words(predicate)):
            inside = [said in self._sides(value) for value in values]
            if any(inside):
                yield sum(one != denied for one in inside)

    def _sides(self, value: str) -> set[tuple[str, int]]:
        text = value.replace("_", " ")
        stems = {stem(word) for word, _place in words_in(text)}
        return {*self._table.sides_of(stems), *self._table.opposite_words(text)}


class CountsAsSaid:
    """The numbers of rows that an answer says something of."""

    def __init__(self, around: Surroundings, states: CountedStates) -> None:
        self._around, self._text, self._states = around, around.text, states

    def whole_of(self, claim: Claim) -> Claim | None:
        """The number of rows that a figure is said as a part of: three of the five."""
        whole = next((one for one in self._around.next_to(claim) if is_part_of(self._text, claim, one)), None)
        number = None if whole is None else whole.number
        return whole if number is not None and self._states.has_rows(number) else None

    def find(self, claim: Claim, bound: Bound) -> list[Calculation]:
        """How many rows are as the words behind a figure say, and for "half of the six" which part of them."""
        whole = self.whole_of(claim)
        if claim.number is None or claim.units or (whole is None and claim.kind == "ratio"):
            return []
        if any(is_part_of(self._text, one, claim) for one in self._around.next_to(claim)):
            return []  # what is said behind both is said of the part
        start = claim.end if whole is None else predicate_behind(self._text, whole) or whole.end
        return [
            Calculation(Decimal(part.number) / (part.rows if claim.kind == "ratio" else 1), frozenset(), part.where, ())
            for part in self._states.find(self._around.up_to_break(start))
            if (whole.number == part.rows if whole is not None else bound.noun & part.words)
        ]


def _list_of(fact: Fact) -> str:
    """The list that a fact is a field of a row of; nothing for what stands in none, or deeper in a row."""
    keyed = next((kind for kind in fact.place.row.names if kind.endswith(".{}")), "")
    if keyed:
        return keyed
    where, mark, field = fact.place.column.rpartition("[]")
    return where if mark and field.count(".") == 1 else ""
