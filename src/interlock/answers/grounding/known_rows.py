"""What all facts of a turn hold by row and by source: worked out once, and asked by each claim of a draft."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from msgspec.structs import replace

from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.rows import kind_of_argument
from interlock.answers.grounding.words import Meanings, WordTable


class KnownFields:
    """The figures of each row, and the units that the results know."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.rows: dict[tuple[str, int], list[Fact]] = defaultdict(list)
        units: set[frozenset[str]] = set()
        for fact in facts_of(facts, "number", "time", "date"):
            self.rows[(fact.source, id(fact.place.row))].append(fact)
            if not fact.echo and (fact.units or fact.money):
                units.update((fact.units, fact.money))
        self.units = frozenset[str]().union(*units)
        self.asked = " ".join(fact.text for fact in facts_of(facts, "text") if fact.echo)
        """The words of the user."""


def texts_of_rows(facts: Sequence[Fact]) -> set[tuple[int, str]]:
    """All texts, each with its row."""
    return {(id(fact.place.row), fact.text) for fact in facts_of(facts, "text")}


def texts_of_sources(facts: Sequence[Fact], most: int) -> dict[str, str]:
    """By source: so much of its texts, one behind another."""
    texts: dict[str, list[str]] = defaultdict(list)
    lengths: dict[str, int] = defaultdict(int)
    for fact in facts_of(facts, "text"):
        if lengths[fact.source] <= most:
            texts[fact.source].append(fact.text)
            lengths[fact.source] += len(fact.text) + 1
    return {source: " ".join(some)[:most] for source, some in texts.items()}


class SourceWords:
    """What the texts of each source speak of, as far as it was asked."""

    def __init__(self, facts: Sequence[Fact], words: WordTable, most: int) -> None:
        self._texts, self._words = texts_of_sources(facts, most), words
        self._found: dict[str, Meanings] = {}

    def of(self, source: str) -> Meanings:
        """What those of one source speak of."""
        found = self._found.get(source)
        if found is None:
            found = self._found[source] = self._words.in_name(self._texts.get(source, ""))
        return found


def largest_count(facts: Sequence[Fact]) -> Decimal:
    """Of as many things as this the results speak: the longest list, or the sources themselves."""
    counts = [fact.number for fact in facts_of(facts, "number") if fact.counted and fact.number is not None]
    return max([*counts, Decimal(len({fact.source for fact in facts}))])


def first_dated(facts: Sequence[Fact], most: int) -> list[Fact]:
    """The first facts that are a day of a year; where all results are of one year, a day without one is of that."""
    dated = facts_of(facts, "date")
    years = {fact.date[0] for fact in dated if fact.date[0] is not None and not fact.echo}
    year = years.pop() if len(years) == 1 else None
    whole = (fact if all(fact.date) else replace(fact, date=(year, *fact.date[1:])) for fact in dated)
    return [fact for fact in whole if all(fact.date)][:most]


def old_words(facts: Sequence[Fact]) -> Meanings:
    """What the fields are called of which the results hold an older value."""
    return frozenset[str]().union(*(fact.own for fact in facts_of(facts, "stale") if fact.number is not None))


def fields_now(facts: Sequence[Fact]) -> frozenset[str]:
    """The fields that hold a figure which no change has replaced."""
    known = (fact for fact in facts_of(facts, "number") if not (fact.stale or fact.echo or fact.asked))
    return frozenset(fact.place.name for fact in known)


def replaced_names(facts: Sequence[Fact]) -> dict[int, frozenset[str]]:
    """By row: the kinds of its names that a later change has replaced. It is still of what it is called otherwise."""
    found: dict[int, set[str]] = defaultdict(set)
    for fact in facts_of(facts, "stale"):
        if fact.text:
            found[id(fact.place.row)].add(kind_of_argument(fact.place.name))
    return {row: frozenset(kinds) for row, kinds in found.items()}


def mixed_figures(facts: Sequence[Fact]) -> list[str]:
    """The fields that are nothing in some rows of a list and something in others."""
    found: dict[str, tuple[str, set[bool]]] = {}
    for fact in facts_of(facts, "number"):
        usable = not (fact.stale or fact.counted or fact.label or fact.prose or fact.echo or fact.asked)
        if usable and "[]" in fact.place.column:
            found.setdefault(fact.place.column, (fact.place.name, set()))[1].add(bool(fact.number))
    return [name for name, some in found.values() if len(some) > 1]


def mixed_flags(facts: Sequence[Fact]) -> list[Meanings]:
    """What the flags are called that are set in some rows of a list and not in others."""
    found: dict[str, tuple[Meanings, set[bool]]] = {}
    for fact in facts_of(facts, "truth"):
        if fact.truth is not None and not fact.stale:
            found.setdefault(fact.place.column, (fact.own, set()))[1].add(fact.truth)
    return [own for own, truths in found.values() if len(truths) > 1]
