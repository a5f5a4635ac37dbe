"""What all facts of a turn hold by row and by source: worked out once, and asked by each claim of a draft."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.words import Meanings

_NO_DATE = (None, None, None)


class KnownFields:
    """The figures and the texts of each row, and the units that the results know."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.rows: dict[tuple[str, int], list[Fact]] = defaultdict(list)
        self.texts: set[tuple[int, str]] = set()
        """By row."""
        units: set[str] = set()
        asked: list[str] = []
        for fact in facts:
            if fact.text:
                self.texts.add((id(fact.place.row), fact.text))
                if fact.echo:
                    asked.append(fact.text)
            if fact.number is not None or fact.minutes is not None or fact.date != _NO_DATE:
                self.rows[(fact.source, id(fact.place.row))].append(fact)
                if not fact.echo and (fact.units or fact.money):
                    units |= fact.units
                    units |= fact.money
        self.units = frozenset(units)
        self.asked = " ".join(asked)
        """The words of the user."""


def texts_of_sources(facts: Sequence[Fact], most: int) -> dict[str, str]:
    """By source: so much of its texts, one behind another."""
    texts: dict[str, list[str]] = defaultdict(list)
    lengths: dict[str, int] = defaultdict(int)
    for fact in facts:
        if fact.text and lengths[fact.source] <= most:
            texts[fact.source].append(fact.text)
            lengths[fact.source] += len(fact.text) + 1
    return {source: " ".join(some)[:most] for source, some in texts.items()}


def largest_count(facts: Sequence[Fact]) -> Decimal:
    """Of as many things as this the results speak: the longest list, or the sources themselves."""
    counts = [fact.number for fact in facts if fact.counted and fact.number is not None]
    return max([*counts, Decimal(len({fact.source for fact in facts}))])


def first_dated(facts: Sequence[Fact], most: int) -> list[Fact]:
    """The first facts that are a day of a year."""
    return [fact for fact in facts if all(fact.date)][:most]


def old_words(facts: Sequence[Fact]) -> Meanings:
    """What the fields are called of which the results hold an older value."""
    return frozenset[str]().union(*(fact.own for fact in facts if fact.stale and fact.number is not None))


def mixed_flags(facts: Sequence[Fact]) -> list[Meanings]:
    """What the flags are called that are set in some rows of a list and not in others."""
    found: dict[str, tuple[Meanings, set[bool]]] = {}
    for fact in facts:
        if fact.truth is not None and not fact.stale:
            found.setdefault(fact.place.column, (fact.own, set()))[1].add(fact.truth)
    return [own for own, truths in found.values() if len(truths) > 1]
