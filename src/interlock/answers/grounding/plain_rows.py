"""Rows of a table that hold nothing but values: what is the same for all of them is found out once.

Most of a large result is such rows. Read as any other object each value costs a dozen calls; here it costs one or two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

from interlock.answers.grounding.claims import NO_UNIT, Units
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.fact_maker import FactMaker
from interlock.answers.grounding.text_reader import TextReader
from interlock.answers.grounding.units import UnitTable
from interlock.answers.grounding.value_path import Column, FieldWords, ValuePath
from interlock.values import Json

A_NUMBER = 8
"""What a number counts for, in characters."""
_UNIT_KEYS = ("unit", "units", "currency")
_INFINITE = float("inf")
_OF_A_ROW: frozenset[type] = frozenset({str, bool, int, float, type(None)})
_OF_A_LIST: tuple[set[type], ...] = ({int}, {float})
"""An object of nothing but figures of one kind is a list by another name."""


class _Shape:
    """What rows with the same keys have in common."""

    __slots__ = ("chars", "fields", "says_units")

    def __init__(self, fields: Mapping[str, tuple[Column, FieldWords]]) -> None:
        self.chars = sum(map(len, fields))
        self.fields = tuple(fields.values())
        self.says_units = any(key in fields for key in _UNIT_KEYS)


class PlainRows:
    """Reads such rows, and says of others that they are none."""

    def __init__(
        self, make: FactMaker, units: UnitTable, texts: TextReader, words_of: Callable[[Column], FieldWords]
    ) -> None:
        self._make, self._units, self._texts, self._words_of = make, units, texts, words_of
        self._shapes: dict[tuple[Column, tuple[str, ...]], _Shape] = {}

    def read(
        self, value: Mapping[str, Json], place: ValuePath, units: Units, left: int
    ) -> tuple[list[Fact], int] | None:
        """The facts of a row, and how many characters are left then; None if it is no such row, or too long.

        No two of its values can support the same, as each is in a field of its own.
        """
        shape, kinds = self._find_shape(place.field, tuple(value)), set(map(type, value.values()))
        if shape is None or not kinds <= _OF_A_ROW or kinds in _OF_A_LIST:
            return None
        beside = units_beside(value, units, self._units) if shape.says_units else units
        left -= shape.chars
        found: list[Fact] = []
        for item, (field, words) in zip(value.values(), shape.fields, strict=True):
            kind = type(item)
            if kind is str:
                left -= len(item)
                if left < 0:
                    return None  # not a word of it is read
                if item:
                    self._add_text(item, ValuePath(place, field.step, field, field.name, place.row), words, found)
            elif kind is bool:
                there = ValuePath(place, field.step, field, field.name, place.row)
                found.append(self._make.of_finding(there, words, {"truth": item}))
            elif item is not None:
                left -= A_NUMBER
                there = ValuePath(place, field.step, field, field.name, place.row)
                self._add_number(item, there, words, beside, found)
        return (found, left) if left >= 0 else None

    def _find_shape(self, column: Column, keys: tuple[str, ...]) -> _Shape | None:
        """None where a field was not met before, which says more than its value, or where two go by the same name."""
        shape = self._shapes.get((column, keys))
        if shape is None:
            known = column.keys
            fields = {key: (known[key], self._words_of(known[key])) for key in keys if key in known}
            names = {field.name for field, _words in fields.values()}
            if not keys or len(names) < len(keys):
                return None
            shape = self._shapes[(column, keys)] = _Shape(fields)
        return shape

    def _add_text(self, text: str, there: ValuePath, words: FieldWords, found: list[Fact]) -> None:
        found.append(self._make.of_value(there, words, None, NO_UNIT, NO_UNIT, False, text))
        for _what, details in self._texts.read(text, there.field.units):
            found.append(self._make.of_finding(there, words, details))

    def _add_number(self, value: float, there: ValuePath, words: FieldWords, beside: Units, found: list[Fact]) -> None:
        if value != value or abs(value) == _INFINITE:
            return
        field = there.field
        said, soft = (field.units, NO_UNIT) if not beside else units_of(field, beside, self._units)
        if field.share is None:
            field.share = self._units.is_share(field.name)
        # As it is written: 1 and 1.0 are equal, and only one of them is section 1.
        found.append(self._make.of_value(there, words, Decimal(repr(value)), said, soft, field.share, ""))


def units_beside(value: Mapping[str, Json], around: Units, units: UnitTable) -> Units:
    """The units that an object says itself of its figures, or else those around it."""
    named = [units.of_field(value[key]) for key in _UNIT_KEYS if isinstance(value.get(key), str)]
    return (NO_UNIT.union(*named) if named else NO_UNIT) or around


def units_of(field: Column, beside: Units, units: UnitTable) -> tuple[Units, Units]:
    """The units of a figure, and the currency beside it: "currency": "EUR" stands beside counts and dates, too."""
    if not beside:
        return field.units, NO_UNIT
    soft = beside if beside <= units.currencies else NO_UNIT
    return field.units | (beside - soft), soft
