"""Rows of a table that hold nothing but values: read field by field, as most of a large result is such rows.

Read as any other object each value costs a dozen calls. Of rows with the same keys all that is the same is found out
once for a field, and each distinct text is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import chain

from interlock.answers.grounding.claims import NO_UNIT, Units
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.fact_maker import FactMaker
from interlock.answers.grounding.text_reader import TextReader
from interlock.answers.grounding.units import UnitTable
from interlock.answers.grounding.value_path import Column, FieldWords, ValuePath
from interlock.values import Json

A_NUMBER = 8
"""What a number counts for, in characters."""
_UNIT_KEYS = frozenset({"unit", "units", "currency", "cur", "ccy"})
_INFINITE = float("inf")
_SCALARS: frozenset[type] = frozenset({str, bool, int, float, type(None)})
_NUMBERS: frozenset[type] = frozenset({int, float})
_Facts = Sequence[Fact | list[Fact] | None]
"""Row by row: the fact of a field, those that were found within its text, or nothing."""


class PlainRows:
    """Reads rows that follow one another and have the same keys."""

    def __init__(
        self, make: FactMaker, units: UnitTable, texts: TextReader, words_of: Callable[[Column], FieldWords]
    ) -> None:
        self._make, self._units, self._texts, self._words_of = make, units, texts, words_of

    def read(
        self, rows: Sequence[Mapping[str, Json]], places: Sequence[ValuePath], units: Units, left: int
    ) -> tuple[list[Fact], int] | None:
        """Their facts, and how many characters are left then; None if one of them is more than values, or is too long.

        No two values of a row can support the same, as each is in a field of its own.
        """
        fields, values = (
            _fields_apart(places[0].field, rows[0]),
            list(zip(*(row.values() for row in rows), strict=True)),
        )
        kinds = [set(map(type, column)) for column in values]
        # An object of nothing but figures is a list by another name.
        if not fields or {str} not in kinds or not all(kind <= _SCALARS for kind in kinds):
            return None
        left -= sum(map(len, rows[0])) * len(rows) + sum(map(_length, values, kinds))
        if left < 0 or any(len(set(values[n])) > 1 for n, key in enumerate(rows[0]) if key.lower() in _UNIT_KEYS):
            return None
        beside = units_beside(rows[0], units, self._units)
        found: list[_Facts] = []
        for field, column in zip(fields, values, strict=True):
            step, name = field.step, field.name
            there = [ValuePath(one, step, field, name, one.row) for one in places]
            found += self._read_column(column, there, beside)
        return _by_row(found), left

    def _read_column(self, values: Sequence[Json], places: Sequence[ValuePath], beside: Units) -> list[_Facts]:
        """The facts of one field, row by row: the values, and apart from them what was found within texts."""
        field, kinds = places[0].field, set(map(type, values))
        words = field.words or self._words_of(field)
        if kinds == {str}:
            return self._read_texts(values, places, words)
        if kinds <= _NUMBERS:
            return [self._read_numbers(values, places, words, beside)]
        found: list[_Facts] = []
        for kind in kinds:
            some = [n for n, value in enumerate(values) if type(value) is kind]
            for facts in self._read_kind(kind, [values[n] for n in some], [places[n] for n in some], words, beside):
                spread: list[Fact | list[Fact] | None] = [None] * len(values)
                for n, fact in zip(some, facts, strict=True):
                    spread[n] = fact
                found.append(spread)
        return found

    def _read_kind(
        self, kind: type, values: Sequence[Json], places: Sequence[ValuePath], words: FieldWords, beside: Units
    ) -> list[_Facts]:
        if kind is str:
            return self._read_texts(values, places, words)
        if kind is bool:
            truths = zip(places, values, strict=True)
            return [[self._make.of_finding(place, words, {"truth": value}) for place, value in truths]]
        return [] if kind is type(None) else [self._read_numbers(values, places, words, beside)]

    def _read_texts(self, texts: Sequence[str], places: Sequence[ValuePath], words: FieldWords) -> list[_Facts]:
        units = places[0].field.units
        known = self._texts.read_all(dict.fromkeys(texts), units)
        found: list[_Facts] = [self._make.of_texts(places, words, texts)]
        if known:
            made = self._make.of_finding
            found.append(
                [
                    [made(place, words, details) for _what, details in known[text]] if text in known else None
                    for place, text in zip(places, texts, strict=True)
                ]
            )
        return found

    def _read_numbers(
        self, values: Sequence[float], places: Sequence[ValuePath], words: FieldWords, beside: Units
    ) -> _Facts:
        field = places[0].field
        said, soft = units_of(field, beside, self._units)
        if field.share is None:
            field.share = self._units.is_share(field.name)
        # As it is written: 1 and 1.0 are equal, and only one of them is section 1.
        numbers = [None if value != value or abs(value) == _INFINITE else Decimal(repr(value)) for value in values]
        return self._make.of_numbers(places, words, numbers, (said, soft, field.share))


def _by_row(columns: Sequence[_Facts]) -> list[Fact]:
    """The facts of all fields of the first row, of the second, and so on."""
    found: list[Fact] = []
    for one in chain.from_iterable(zip(*columns, strict=True)):
        if type(one) is list:
            found += one
        elif one is not None:
            found.append(one)
    return found


def _fields_apart(column: Column, row: Mapping[str, Json]) -> list[Column]:
    """The fields of a row; none where one was not met before, which says more than its value, or two go by one name."""
    fields = [column.keys[key] for key in row if key in column.keys]
    return fields if len({field.name for field in fields}) == len(row) else []


def _length(values: Sequence[Json], kinds: set[type]) -> int:
    """How many characters the values of a field have."""
    if kinds == {str}:
        return sum(map(len, values))
    texts = (len(value) for value in values if type(value) is str)
    return sum(texts) + A_NUMBER * sum(type(value) in _NUMBERS for value in values)


def units_beside(value: Mapping[str, Json], around: Units, units: UnitTable) -> Units:
    """The units that an object says itself of its figures, or else those around it."""
    said = (text for key, text in value.items() if key.lower() in _UNIT_KEYS)
    named = [units.of_field(text) for text in said if isinstance(text, str)]
    return (NO_UNIT.union(*named) if named else NO_UNIT) or around


def units_of(field: Column, beside: Units, units: UnitTable) -> tuple[Units, Units]:
    """The units of a figure, and the currency beside it: "currency": "EUR" stands beside counts and dates, too."""
    if not beside:
        money = field.units & units.currencies
        # total_usd_cents: cents, and of which currency they are.
        return (field.units - money, money) if money and "cent" in field.units else (field.units, NO_UNIT)
    soft = beside if beside <= units.currencies else NO_UNIT
    return field.units | (beside - soft), soft
