"""Values that may be put together: the columns of tables, and the rows of them that have something in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from decimal import Decimal
from itertools import islice

from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.rows import STATES, kind_of_argument, plain_name
from interlock.answers.grounding.terms import RowGroup, Term
from interlock.answers.grounding.words import Meanings, WordTable

_MOST_ROWS = 500
_MOST_GROUPS = 60
_MOST_SHARED = 2_000
_LONGEST_VALUE = 60


class Groups:
    """The columns of the results, and their parts."""

    def __init__(self, values: Sequence[tuple[Fact, Term]], facts: Sequence[Fact], words: WordTable) -> None:
        self._words = words
        self._shared: list[RowGroup] | None = None
        self._of_word: dict[str, list[int]] = defaultdict(list)
        """By what a word stands for: the places of the parts whose rows have a value in common with it."""
        self._totals: dict[int, Decimal] = {}
        self._lists: dict[str, list[RowGroup]] = {}
        self.columns: dict[str, list[Term]] = defaultdict(list)
        """By its path: the values of a field in all rows, as they are now."""
        for fact, term in values:
            if not fact.stale:
                self.columns[term.column].append(term)
        self._facts = facts

    def find(self, sentence: Meanings, *, telling: bool = False) -> Iterator[RowGroup]:
        """Columns, and the parts of them whose rows have a value in common that the sentence speaks of.

        `telling`: the figure is one that no part would hit by chance, so that nothing need be said of it.
        """
        for column, terms in self.columns.items():
            if 2 <= len(terms) <= _MOST_ROWS:
                yield RowGroup(column, terms, named=False)
                yield from self._lists_of(column, terms)
        parts = self._parts()
        named = {number for word in sentence for number in self._of_word.get(word, ())}
        for number in range(len(parts)) if telling else sorted(named):
            group = parts[number]
            yield RowGroup(group.what, group.terms, named=number in named, field=group.field, value=group.value)

    def _lists_of(self, column: str, terms: list[Term]) -> list[RowGroup]:
        """The same field in the lists of several things: the nights of one room, and those of another."""
        if column not in self._lists:
            by_thing: dict[int, list[Term]] = defaultdict(list)
            for term in terms:
                by_thing[id(term.row.parent)].append(term)
            several = [some for some in by_thing.values() if len(some) > 1] if len(by_thing) > 1 else []
            self._lists[column] = [RowGroup(column, some, named=False) for some in several[:_MOST_GROUPS]]
        return self._lists[column]

    def total(self, group: RowGroup) -> Decimal:
        """The sum of one of them, added up once."""
        key = id(group.terms)  # they are kept here
        if key not in self._totals:
            self._totals[key] = sum((term.number for term in group.terms), Decimal(0))
        return self._totals[key]

    def _parts(self) -> Sequence[RowGroup]:
        """The parts of columns whose rows have a value in common; found once."""
        if self._shared is None:
            columns = [terms for terms in self.columns.values() if 2 <= len(terms) <= _MOST_ROWS]
            texts = self._find_texts({id(term.row) for terms in columns for term in terms})
            found = list(islice((one for terms in columns for one in self._parts_of(terms, texts)), _MOST_SHARED))
            for number, (_group, words) in enumerate(found):
                for word in words:
                    self._of_word[word].append(number)
            self._shared = [group for group, _words in found]
        return self._shared

    def _find_texts(self, rows: Set[int]) -> dict[int, list[Fact]]:
        """By row: its texts, and what is true or false of it."""
        texts: dict[int, list[Fact]] = defaultdict(list)
        for fact in facts_of(self._facts, "text", "truth") if rows else ():
            is_key = fact.is_key  # the name of a field is a text of its own
            if fact.trusted and not fact.echo and not is_key and id(fact.place.row) in rows:
                texts[id(fact.place.row)].append(fact)
        return texts

    def _parts_of(self, terms: list[Term], texts: Mapping[int, list[Fact]]) -> Iterator[tuple[RowGroup, Meanings]]:
        groups: dict[tuple[str, str], list[Term]] = defaultdict(list)
        for term in terms:
            for text in texts.get(id(term.row), ()):
                value = text.place.name if text.truth is not None else text.text
                if text.truth is not False and len(value) <= _LONGEST_VALUE:
                    groups[(text.place.name, value)].append(term)
        for (name, value), some in list(groups.items())[:_MOST_GROUPS]:
            if len(some) < len(terms):
                what = f"{terms[0].column} where {name} is {value}"
                group = RowGroup(what, some, named=False, field=kind_of_argument(name), value=plain_name(value))
                yield group, self._words.in_name(value)
                if name in STATES and len(terms) - len(some) > 1:
                    mine = {id(term) for term in some}
                    rest = [term for term in terms if id(term) not in mine]
                    what = f"{terms[0].column} where {name} is not {value}"
                    yield RowGroup(what, rest, named=False), frozenset()
