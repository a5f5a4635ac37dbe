"""Flags, states and fields that an answer denies in other words: "still outstanding" of what is paid, "no contract".

What a field says is turned round in two ways without a "not" beside its name: by a word that means the opposite, and by
a "no" before the name of something that the row has.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice

from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.field_names import snake_name
from interlock.answers.grounding.rows import Row
from interlock.answers.grounding.state_words import NO, WITH, StateTable
from interlock.answers.grounding.words import WordTable, stem, words_in

_MOST_WORDS, _MOST_FACTS = 3, 2_000
_LONGEST_STATE = 40


class Opposites:
    """What rows say of themselves, by the words that would say the contrary."""

    def __init__(self, facts: Sequence[Fact], table: StateTable, words: WordTable) -> None:
        self._table, self._words = table, words
        self._sides: list[tuple[Row, str, int, str]] = []
        """A row, the pair of words that it is about (none for other states), its side, and the field."""
        self._present: dict[frozenset[str], list[Row]] = defaultdict(list)
        """By the words of a field: the rows that have something there."""
        self._absent: dict[frozenset[str], list[Row]] = defaultdict(list)
        """By the words of a field: the rows that say of it that there is none."""
        usable = (fact for fact in facts if fact.trusted and not (fact.echo or fact.asked or fact.stale))
        known = (fact for fact in usable if not fact.is_key)  # the name of a field is none of its values
        for fact in islice(known, _MOST_FACTS):
            self._add_side(fact)
            if not (fact.number == Decimal(0) or fact.truth is False or fact.counted or fact.label):
                for name in islice(fact.place.field.names(), 2):
                    self._present[self._stems(name)].append(fact.place.row)
            elif not fact.counted and not fact.label:
                self._absent[self._stems(fact.place.name)].append(fact.place.row)

    def _stems(self, name: str) -> frozenset[str]:
        return frozenset(one for one in self._words.in_name(name) if not one.startswith("="))

    def _add_side(self, fact: Fact) -> None:
        if fact.truth is not None:
            spoken, turned = (
                {stem(word) for word, _place in words_in(fact.place.name.replace("_", " "))},
                not fact.truth,
            )
        elif 0 < len(fact.text) <= _LONGEST_STATE and fact.place.name in self._table.kinds:
            self._add_state(fact)
            return
        else:
            return
        for pair, side in self._table.sides_of(spoken):
            self._sides.append((fact.place.row, pair, side ^ turned, fact.place.name))

    def _add_state(self, fact: Fact) -> None:
        """A state, in whatever way it is written: inProgress, in_progress. What is partly paid is outstanding, too."""
        text = snake_name(fact.text).replace("_", " ").replace("-", " ")
        words = {word.lower() for word, _place in words_in(text)}
        sides = set[tuple[str, int]]()
        if not words & self._table.partly:
            sides = {*self._table.sides_of({stem(word) for word in words}), *self._table.opposite_words(text)}
        for pair, side in sides or {("", 0)}:
            self._sides.append((fact.place.row, pair, side, fact.place.name))

    def find(self, text: str, bits: int, named: Callable[[], Sequence[Row] | None]) -> Iterator[str]:
        """What a part of a sentence turns round.

        `bits`: what may be in it. `named`: the rows of what it names, None if it names nothing.
        """
        said = list(self._table.opposite_words(text, bits)) if self._sides else []
        denied = self._table.denies(text, bits)
        lacking = self._find_known(text, NO, self._present) if bits & self._table.bit_of_no else []
        may_have = bits & self._table.bit_of_with and not denied
        having = self._find_known(text, WITH, self._absent) if may_have else []
        if not said and not lacking and not having:
            return
        rows = named()
        if said and not denied:
            yield from self._contrary(said, rows, of_all=self._table.is_of_all(text, 0))
        fitting = {id(row) for row in rows or ()}
        if any(id(row) in fitting for row in lacking):
            yield "the results have one"
        if any(id(row) in fitting for row in having):
            yield "the results have none"

    def _contrary(self, said: Sequence[tuple[str, int]], rows: Sequence[Row] | None, *, of_all: bool) -> Iterator[str]:
        fitting = None if rows is None else {id(row) for row in rows}
        for pair, side in said:
            here = [one for one in self._sides if fitting is None or id(one[0]) in fitting]
            mine = [one for one in here if one[1] == pair]
            wrong, fields = [one for one in mine if one[2] != side], {one[3] for one in mine}
            # Of things in other states besides, some may be as it is said.
            others = any(one[3] in fields for one in here if not one[1])
            if wrong and ((len(wrong) == len(mine) and not others) or (of_all and rows is None)):
                yield f"{wrong[0][3]} says the contrary"
                return

    def _find_known(self, text: str, before: re.Pattern[str], known: Mapping[frozenset[str], list[Row]]) -> list[Row]:
        """The rows that are known for what stands behind a "no" or a "with a"."""
        found: list[Row] = []
        for match in islice(before.finditer(text), 8):
            words = [word for word, _place in islice(words_in(text[match.end() : match.end() + 60]), _MOST_WORDS)]
            # Up to the first word that says nothing by itself: "no contract with them".
            count = next((n for n, word in enumerate(words) if not self._words.meanings(word)), len(words))
            first = next((n for n, word in enumerate(words) if word.lower() not in self._table.there), 0)
            # "No room assigned": what was done with it is no part of its name.
            bare = next((n for n, word in enumerate(words[:count]) if n > first and word.endswith("ed")), count)
            for end in {count, bare}:
                named = self._stems(" ".join(words[first:end]))
                found += known.get(named, ()) if named else ()
        return found
