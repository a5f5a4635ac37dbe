"""One source read: a fact for each value, name and count in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any

from interlock.answers.grounding.claims import NO_UNIT, Units
from interlock.answers.grounding.evidence import Fact, Source
from interlock.answers.grounding.fact_maker import FactMaker
from interlock.answers.grounding.meaning import NO_MEANING, ToolMeaning
from interlock.answers.grounding.plain_rows import A_NUMBER, PlainRows, units_beside, units_of
from interlock.answers.grounding.rows import (
    NOWHERE,
    NamesOfRows,
    Row,
    kind_of_argument,
    names_of,
    plain_name,
    varying_fields,
)
from interlock.answers.grounding.text_reader import TextReader
from interlock.answers.grounding.value_path import Column, FieldWords, ValuePath
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.values import Json, Value

_SEGMENT = re.compile(r"[.\[\]]")
# The unit is a whole run of letters: "24h" is hours, but the "d" of "3drops" is not days.
_DIGITS = re.compile(r"(?P<digits>\d{1,12})[_ -]?(?P<unit>[A-Za-z]+(?![A-Za-z]))?")
_INFINITE = float("inf")
_AT_ONCE = 500
"""So many rows of a table are read at once: where one of them is no plain row, the others are read one by one."""


class SourceReading(Value, frozen=True):
    """What was read in one source, apart from whether a later change has made it untrue."""

    facts: tuple[Fact, ...]
    keys: tuple[tuple[str, int, int], ...]
    """The keys of its objects, and the span of the facts that are about the key itself: of several sources that have a
    key only the first says so."""
    taken: int
    """How many characters it has."""
    cut: bool
    """Not everything was read."""


def read_source(
    source: Source, vocabulary: Vocabulary, max_chars: int, meaning: ToolMeaning = NO_MEANING
) -> SourceReading:
    """Every number, date, truth and text in a source, numbers inside texts too; no more than so many characters."""
    reader = _Reader(source, vocabulary, max_chars, meaning)
    reader.read()
    return SourceReading(tuple(reader.facts), tuple(reader.keys), max_chars - reader.left, reader.cut)


class _Reader:
    """Walks a source, and notes a fact for each value, name and count in it."""

    def __init__(self, source: Source, vocabulary: Vocabulary, max_chars: int, meaning: ToolMeaning) -> None:
        self._vocabulary, self._units = vocabulary, vocabulary.units
        self._source, self._meaning = source, meaning
        self._texts = TextReader(vocabulary)
        self._make = FactMaker(source)
        self._rows = PlainRows(self._make, self._units, self._texts, self._words)
        self._seen: set[object] = set()
        """What was noted of the object that is being read."""
        self._known_keys: set[str] = set()
        self.left, self.cut = max_chars, max_chars < 0
        self.facts: list[Fact] = []
        self.keys: list[tuple[str, int, int]] = []

    def read(self) -> None:
        """All of it. Its id is a fact too: an answer may refer to "record 12"."""
        top = ValuePath(None, "", Column(None, "", "$", NO_UNIT), "$", self._row_of_call())
        self.facts.append(Fact(self._source.id, top, text=self._source.id))
        self._walk(_proof(self._source), top, NO_UNIT)

    def _row_of_call(self) -> Row:
        about = self._source.about
        if not isinstance(about, dict):
            return Row(NOWHERE, {}, of_call=True)
        names: dict[str, frozenset[str]] = {}
        for argument, value in about.items():
            if isinstance(value, str) and value:
                called = self._meaning.names.get(argument, {}).get(value, ())
                names[kind_of_argument(argument)] = frozenset({plain_name(value), *map(plain_name, called)})
        return Row(NOWHERE, names, of_call=True)

    def _takes(self, characters: int) -> bool:
        """Whether so much more may be read."""
        self.left -= characters
        self.cut = self.cut or self.left < 0
        return not self.cut

    def _walk(self, value: Json, place: ValuePath, units: Units) -> None:
        if value is None or self.cut:
            return
        if isinstance(value, str):
            self._text(value, place)
        # Before numbers: a truth is an int in Python, and would count as the figure 1.
        elif isinstance(value, bool):
            self._note(place, ("truth", value), truth=value)
        elif isinstance(value, int | float):
            self._number(value, place, units)
        elif isinstance(value, dict):
            self._object(value, place, units)
        elif isinstance(value, list | tuple):
            self._list(value, place, units)

    def _note(self, place: ValuePath, what: tuple[object, ...], **details: Any) -> None:
        """A fact, unless one was noted that supports the same."""
        if self._is_new((place.name, *what)):
            words = place.field.words or self._words(place.field)
            self.facts.append(self._make.of_finding(place, words, details))

    def _keep(self, facts: Iterable[Fact | None]) -> None:
        self.facts += [fact for fact in facts if fact is not None]

    def _is_new(self, key: tuple[object, ...]) -> bool:
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _words(self, field: Column) -> FieldWords:
        """What the field's own name says, and what the names around it and its tool say beside that."""
        table = self._vocabulary.words
        own, described = table.in_name(field.name), self._meaning.words_of(field.key, table)
        around = frozenset[str]().union(*(table.in_name(name) for name in field.names()))
        words = own | described | around | self._meaning.words(table)
        field.words = (own, described, around, words)
        return field.words

    def _number(self, value: float, place: ValuePath, units: Units) -> None:
        if not self._takes(A_NUMBER) or value != value or abs(value) == _INFINITE:
            return
        field, (said, soft) = place.field, units_of(place.field, units, self._units)
        if field.share is None:
            field.share = self._units.is_share(field.name)
        # As it is written: 1 and 1.0 are equal, and only one of them is section 1.
        written = repr(value)
        if self._is_new((place.name, "number", written, said, soft)):
            words = field.words or self._words(field)
            kind = (said, soft, field.share)
            self._keep(self._make.of_numbers((place,), words, (Decimal(written),), kind))

    def _text(self, value: str, place: ValuePath) -> None:
        text = value if len(value) <= self.left else _whole_sentences(value, self.left)
        self._takes(len(value))
        if not text:
            return
        if self._is_new((place.name, "text", text)):
            words = place.field.words or self._words(place.field)
            self._keep(self._make.of_texts((place,), words, (text,)))
        for what, details in self._texts.read(text, place.field.units):
            self._note(place, what, **details)

    def _list(self, value: Sequence[Json], place: ValuePath, units: Units) -> None:
        self._count(place, len(value))
        single = False
        for (key, item), count in _alike(value).items():
            if count > 1 or not single:  # that each is one of a kind is noted once
                single = single or count == 1
                self._count(place, count, key, item)
        names = NamesOfRows(place.column, varying_fields(value))
        for first, end in _runs(value):
            if end - first > 1 and self._plain_rows(value[first:end], first, place, names, units):
                continue
            for number in range(first, end):
                item = value[number]
                if self.cut:
                    return
                if isinstance(item, dict):
                    self._inside(item, place.item(number, Row(place.row, names.find(item))), units)
                else:
                    self._walk(item, place.item(number, place.row), units)

    def _plain_rows(
        self, rows: Sequence[Mapping[str, Json]], first: int, place: ValuePath, names: NamesOfRows, units: Units
    ) -> bool:
        """Rows with the same keys, from a place of the list on; False if there is more to them than their values."""
        numbered = enumerate(names.find_all(rows), start=first)
        places = [place.item(number, Row(place.row, called)) for number, called in numbered]
        plain = self._rows.read(rows, places, units, self.left)
        if plain is not None:
            self.facts += plain[0]
            self.left = plain[1]
        return plain is not None

    def _inside(self, value: Mapping[str, Json], place: ValuePath, units: Units) -> None:
        """An object that is a thing of its own: that a value is the same in another says nothing against it here."""
        around, self._seen = self._seen, set()
        self._object(value, place, units)
        self._seen = around

    def _count(self, place: ValuePath, count: int, key: str = "", item: Json = None) -> None:
        # Two may be locked, and two others lit; that each of them is one of a kind says nothing.
        what = ("counted", count, key, item) if key and count > 1 else ("counted", count)
        if ("length", *what) not in self._seen:
            there = place.length(f"[{key}={item}]") if item is not None else place.length()
            self._note(there, what, number=Decimal(count), counted=True)

    def _object(self, value: Mapping[str, Json], place: ValuePath, units: Units) -> None:
        inside = units_beside(value, units, self._units)
        table = _is_table(value)
        if table:
            self._count(place, len(value))
        names = None if place.ends_in_bracket else names_of(value, place.column)
        if names:
            around, self._seen = self._seen, set()
            self._fields(value, place.inside(Row(place.row, names)), inside, table=table)
            self._seen = around
        else:
            self._fields(value, place, inside, table=table)

    def _fields(self, value: Mapping[str, Json], place: ValuePath, units: Units, *, table: bool) -> None:
        fields, row = place.field.keys, place.row
        for key, item in value.items():
            name = str(key)
            if not self._takes(len(name)):
                return
            field = fields.get(name) or place.field.of_key(name, self._units_in(name))
            there = ValuePath(place, field.step, field, field.name, row)
            if name not in self._known_keys:
                self._key(there, name)
            kind = type(item)
            if kind is str:
                self._text(item, there)
            elif kind is int or kind is float:
                self._number(item, there, units)
            elif table and isinstance(item, dict):
                names = {**names_of(item, place.column), f"{place.column}.{{}}": frozenset({plain_name(name)})}
                self._inside(item, there.inside(Row(row, names)), units)
            else:
                self._walk(item, there, units)

    def _units_in(self, key: str) -> Units:
        """The units that a key speaks of itself."""
        said = self._meaning.unit_of(key)
        found = self._units.of_field(said) if said else NO_UNIT
        parts = (self._units.in_name(part) for part in reversed(_SEGMENT.split(key)))
        return found or next((units for units in parts if units), NO_UNIT)

    def _key(self, place: ValuePath, key: str) -> None:
        """What a key says itself: words, dates, and figures such as those in `p95_ms` and `planted_2022`."""
        self._known_keys.add(key)
        first = len(self.facts)
        self.facts.append(Fact(self._source.id, place, text=key, echo=self._source.echo))
        if any(char.isdigit() for char in key) or self._vocabulary.number_words.in_name(key):
            for claim in self._vocabulary.claims(key):
                if claim.kind == "date":
                    self._note(place, ("date", claim.date), date=claim.date)
            self._digits(place, key)
        self.keys.append((key, first, len(self.facts)))

    def _digits(self, place: ValuePath, name: str) -> None:
        """The figures inside a name (`over_52_weeks`, `restored_24h`): they support one that is said as a label."""
        if name.isdecimal() and name.isascii():  # a key that is a figure: {"5000": "15:41"}
            self._note(place, ("figure", name), number=Decimal(name))
        for match in _DIGITS.finditer(name):
            unit = match["unit"] or ""
            number = Decimal(match["digits"]) * (1000 if unit.lower() == "k" else 1)
            units = self._units.of_field(unit)
            self._note(place, ("label", str(number), units), number=number, units=units, label=True)
        for spelled in self._vocabulary.number_words.in_name(name):
            self._note(place, ("label", str(spelled)), number=Decimal(spelled), label=True)


def _runs(items: Sequence[Json]) -> Iterator[tuple[int, int]]:
    """Where objects with the same keys follow one another, so many at once; any other item is one by itself.

    The first of them is by itself, too: what its keys say is read with it.
    """
    keys = [tuple(item) if type(item) is dict else None for item in items]
    at = 0
    for alike, group in groupby(keys):
        end = at + sum(1 for _one in group)
        yield at, at + 1
        for first in range(at + 1, end, _AT_ONCE if alike is not None else 1):
            yield first, min(end, first + _AT_ONCE) if alike is not None else first + 1
        at = end


def _proof(source: Source) -> Json:
    if not source.apart or not isinstance(source.value, dict):
        return source.value
    return {key: value for key, value in source.value.items() if key not in source.apart}


def _whole_sentences(text: str, at_most: int) -> str:
    """The beginning of a text, up to the end of a line or sentence: half of "1,234 million" is another figure."""
    if at_most <= 0:
        return ""
    return text[: max(text.rfind("\n", 0, at_most), text.rfind(". ", 0, at_most)) + 1]


def _is_table(value: Mapping[str, Json]) -> bool:
    """Whether an object is a list by another name: its values are all of one kind."""
    if len(value) < 2:
        return False
    first = None
    for item in value.values():
        kind = dict if isinstance(item, dict) else list if isinstance(item, list) else type(item)
        if first is None:
            first = kind
            if kind not in _OF_A_TABLE:
                return False
        elif kind is not first:
            return False
    return True


_OF_A_TABLE: frozenset[type] = frozenset({dict, list, int, float})


def _alike(items: Sequence[Json]) -> Counter[tuple[str, Json]]:
    """How many items of a list are alike in something: two of them closed, three with a battery fault or no change."""
    return Counter(
        pair
        for item in items
        if isinstance(item, dict)
        for pair in item.items()
        if isinstance(pair[1], (str, bool)) or (type(pair[1]) is int and pair[1] == 0)
    )
