"""Figures that others are made from, and those that are made."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from interlock.answers.grounding.claims import Units
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.rows import NOWHERE, Row
from interlock.answers.grounding.value_path import ValuePath
from interlock.answers.grounding.words import Meanings

_HUNDREDTHS = frozenset({"cent"})


class Term:
    """A figure that others may be made from: a value of a result, or one that was made from such."""

    __slots__ = ("_made", "_place", "column", "described", "number", "own", "row", "source", "stale", "units")

    def __init__(self, fact: Fact) -> None:
        assert fact.number is not None
        self.number, self.units = fact.number, fact.units | fact.money if fact.money else fact.units
        if fact.money and _HUNDREDTHS & fact.units:  # 57440 cents beside "currency": "EUR" are 574.40 euros
            self.number, self.units = fact.number / 100, fact.money
        self.source, self.column = fact.source, fact.place.column
        self._made = ""
        self._place: ValuePath | None = fact.place
        self.row: Row = fact.place.row
        self.own: Meanings = fact.own
        self.described: Meanings = fact.described
        self.stale = fact.stale

    @property
    def path(self) -> str:
        """Where it stands, or how it was made; written out for the few that are shown."""
        return self._made if self._place is None else self._place.path

    @classmethod
    def from_others(cls, number: Decimal, units: Units, source: str, what: str) -> Term:
        """One that was made from others."""
        term = cls.__new__(cls)
        term.number, term.units, term.source, term.column = number, units, source, what
        term._made, term._place = what, None
        term.row, term.own, term.described, term.stale = NOWHERE, frozenset(), frozenset(), False
        return term

    @classmethod
    def total(cls, some: Sequence[Term], what: str) -> Term:
        """The sum of a column, or of a part of it."""
        term = cls.from_others(
            sum((one.number for one in some), Decimal(0)), some[0].units, some[0].source, f"the sum of {what}"
        )
        term.own, term.column = some[0].own, some[0].column
        return term


class Calculation:
    """A figure that was put together, and from what."""

    __slots__ = ("number", "terms", "units", "what")

    def __init__(self, number: Decimal, units: Units, what: str, terms: Sequence[Term]) -> None:
        self.number, self.units, self.what, self.terms = number, units, what, terms


class RowGroup:
    """A column of a table, or the rows of it that have a value in common."""

    __slots__ = ("field", "named", "terms", "value", "what")

    def __init__(self, what: str, terms: Sequence[Term], *, named: bool, field: str = "", value: str = "") -> None:
        self.what, self.terms, self.named = what, terms, named
        """`named`: the sentence speaks of what the rows have in common."""
        self.field, self.value = field, value
        """The kind of name and the plain name that the rows share; empty for a whole column."""
