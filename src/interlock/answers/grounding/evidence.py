"""What an answer may rest on: every value in the results, with the record, the path, and what it is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from interlock.answers.grounding.claims import NO_UNIT, Units
from interlock.answers.grounding.meaning import NO_MEANING, ToolMeaning
from interlock.answers.grounding.recognisers.times import times_in
from interlock.answers.grounding.rows import NOWHERE, Row, kind_of_argument, names_of, plain_name, varying_fields
from interlock.answers.grounding.value_path import ValuePath
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.answers.grounding.words import Meanings
from interlock.values import Json, Value

_SEGMENT = re.compile(r"[.\[\]]")
# The unit is a whole run of letters: "24h" is hours, but the "d" of "3drops" is not days.
_DIGITS = re.compile(r"(?P<digits>\d{1,12})[_ -]?(?P<unit>[A-Za-z]+(?![A-Za-z]))?")
_UNIT_KEYS = ("unit", "units", "currency")
"""So much of a key is shown in a path: every fact below it has the key in its own."""
_A_NUMBER = 8
"""What a number counts for, in characters."""


class Source(Value, frozen=True):
    """One thing that was given to the turn: a result, the user's words, a record or chunk that was handed in."""

    id: str
    """`record 12`, `question`, or the id of a chunk."""
    value: Json
    apart: tuple[str, ...] = ()
    """Parts of an object that prove nothing: what a model said is in an error message, too."""
    echo: bool = False
    """The user's own words: they may be repeated, but prove nothing."""
    tool: str = ""
    """Which tool's result it is, where it is one."""
    about: Json = None
    """The arguments of the call: they prove nothing, but say what the result is about."""
    asked: bool = False
    """What a call asked for: an answer may say what was looked for or tried, and rest nothing else on it."""
    trusted: bool = True
    """False where the text is somebody else's: what it says may be repeated as theirs."""
    stale: tuple[str, ...] = ()
    """Fields that a later change of the turn has made untrue; `*`: all of them."""
    stale_names: tuple[str, ...] = ()
    """Of which things, by their plain names; of all if there are none."""
    stale_paths: frozenset[str] = frozenset()
    """Single values that a later change has made untrue, by their paths."""
    at_us: int = 0
    """When it was recorded, for one of an earlier turn: an answer that rests on it says so."""


class Fact(Value, frozen=True):
    """One value somewhere in a source."""

    source: str
    place: ValuePath
    number: Decimal | None = None
    units: Units = NO_UNIT
    money: Units = NO_UNIT
    """The currency that stands beside it, if it is an amount of money."""
    share: bool = False
    date: tuple[int | None, int | None, int | None] = (None, None, None)
    text: str = ""
    truth: bool | None = None
    echo: bool = False
    minutes: int | None = None
    counted: bool = False
    """Not written there: the length of a list."""
    label: bool = False
    """Part of a name, not a value."""
    words: Meanings = frozenset()
    """What the names of its field and of the list it is in stand for."""
    own: Meanings = frozenset()
    """What the name of its field alone stands for."""
    around: Meanings = frozenset()
    """What the names of the objects stand for that it is in."""
    described: Meanings = frozenset()
    """What the words stand for with which its author describes the field."""
    asked: bool = False
    trusted: bool = True
    stale: bool = False
    prose: bool = False
    """Found within a longer text."""


class Evidence(Value, frozen=True):
    """The facts of all sources, in the order in which they were read."""

    facts: tuple[Fact, ...] = ()
    cut: bool = False
    """Not everything was read: the sources are longer than the limit."""


def read_evidence(
    sources: Iterable[Source], vocabulary: Vocabulary, max_chars: int, meanings: Mapping[str, ToolMeaning] | None = None
) -> Evidence:
    """Every number, date, truth and text in the sources, numbers inside texts too; no more than so many characters.

    What is beyond the limit supports nothing, so an answer that rests on it is held back.
    """
    reader = _Reader(vocabulary, max_chars, meanings or {})
    found = [fact for source in sources for fact in reader.read(source)]
    return Evidence(tuple(found), reader.cut)


class _Reader:
    """Walks sources, and gives a fact for each value, name and count in them."""

    def __init__(self, vocabulary: Vocabulary, max_chars: int, meanings: Mapping[str, ToolMeaning]) -> None:
        self._vocabulary, self._units = vocabulary, vocabulary.units
        self._left = max_chars
        self.cut = False
        self._meanings = meanings
        self._seen: set[object] = set()
        self._key_units: dict[tuple[str, str], Units] = {}
        self._key_words: dict[tuple[str, str], tuple[Meanings, Meanings, Meanings, Meanings]] = {}
        self._source, self._meaning = Source("", None), NO_MEANING

    def read(self, source: Source) -> Iterator[Fact]:
        """The facts of one source. Its id is one too: an answer may refer to "record 12"."""
        self._source, self._meaning = source, self._meanings.get(source.tool, NO_MEANING)
        self._key_words.clear()
        top = ValuePath(None, "", "$", NO_UNIT, self._row_of_call())
        yield Fact(source.id, top, text=source.id)
        yield from self._walk(_proof(source), top, NO_UNIT)

    def _row_of_call(self) -> Row:
        about = self._source.about
        if not isinstance(about, dict):
            return Row(NOWHERE, self._source.id, {}, of_call=True)
        names: dict[str, frozenset[str]] = {}
        for argument, value in about.items():
            if isinstance(value, str) and value:
                kind = kind_of_argument(argument)
                called = self._meaning.names.get(argument, {}).get(value, ())
                names[kind] = frozenset({plain_name(value), *map(plain_name, called)})
        return Row(NOWHERE, self._source.id, names, of_call=True)

    def _takes(self, characters: int) -> bool:
        """Whether so much more may be read."""
        self._left -= characters
        self.cut = self.cut or self._left < 0
        return not self.cut

    def _is_new(self, *what: object) -> bool:
        """Whether nothing was read yet that supports the same."""
        key = (self._source.echo, *what)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _walk(self, value: Json, place: ValuePath, units: Units) -> Iterator[Fact]:
        if value is None or self.cut:
            return
        # Before numbers: a truth is an int in Python, and would count as the figure 1.
        if isinstance(value, bool):
            yield from self._fact(place, truth=value)
        elif isinstance(value, int | float):
            yield from self._number(value, place, units)
        elif isinstance(value, str):
            yield from self._text(value, place)
        elif isinstance(value, list | tuple):
            yield from self._list(value, place, units)
        elif isinstance(value, dict):
            yield from self._object(value, place, units)

    def _fact(self, place: ValuePath, **details: Any) -> Iterator[Fact]:
        # As it is written: 1 and 1.0 are equal, and only one of them is section 1.
        what = (str(d) if type(d) is Decimal else d for d in details.values())
        if self._is_new(id(place.row), place.name, *details, *what):
            own, described, around, words = self._words(place)
            source = self._source
            stale = bool(source.stale or source.stale_paths) and self._is_stale(place)
            yield Fact(
                source.id,
                place,
                echo=source.echo,
                own=own,
                described=described,
                around=around,
                words=words,
                asked=source.asked,
                trusted=source.trusted,
                stale=stale,
                **details,
            )

    def _is_stale(self, place: ValuePath) -> bool:
        source = self._source
        if "*" in source.stale or (source.stale_paths and place.path in source.stale_paths):
            return True
        names = {name for row in place.row.chain() for same in row.names.values() for name in same}
        return place.name in source.stale and (not source.stale_names or bool(names & set(source.stale_names)))

    def _words(self, place: ValuePath) -> tuple[Meanings, Meanings, Meanings, Meanings]:
        """What the field's own name says, and what the names around it and its tool say beside that."""
        key = (place.name, place.column)
        found = self._key_words.get(key)
        if found is None:
            table = self._vocabulary.words
            own, described = table.in_name(place.name), self._meaning.words_of(place.name, table)
            around = frozenset[str]().union(*(table.in_name(name) for name in place.names()))
            words = own | described | around | self._meaning.words(table)
            found = self._key_words[key] = (own, described, around, words)
        return found

    def _number(self, value: float, place: ValuePath, units: Units) -> Iterator[Fact]:
        if not self._takes(_A_NUMBER) or value != value or abs(value) == float("inf"):
            return
        soft = units if units <= self._units.currencies else NO_UNIT  # "currency": "EUR" beside counts and dates
        said = place.units | (units - soft)
        share = self._units.is_share(place.name)
        yield from self._fact(place, number=Decimal(repr(value)), units=said, money=soft, share=share)

    def _text(self, value: str, place: ValuePath) -> Iterator[Fact]:
        text = value if len(value) <= self._left else _whole_sentences(value, self._left)
        self._takes(len(value))
        if text:
            yield from self._fact(place, text=text)
            yield from self._in_text(place, text)

    def _list(self, value: Sequence[Json], place: ValuePath, units: Units) -> Iterator[Fact]:
        yield from self._count(place, len(value))
        for (key, item), count in _alike(value).items():
            yield from self._count(place, count, f"[{key}={item}]")
        varying = varying_fields(value)
        for number, item in enumerate(value):
            if self.cut:
                return
            there = place.item(number)
            if isinstance(item, dict):
                there = there.inside(Row(place.row, there.path, names_of(item, place.column, varying)))
            yield from self._walk(item, there, units)

    def _count(self, place: ValuePath, count: int, of: str = "") -> Iterator[Fact]:
        yield from self._fact(place.length(of), number=Decimal(count), counted=True)

    def _object(self, value: Mapping[str, Json], place: ValuePath, units: Units) -> Iterator[Fact]:
        named = [self._units.of_field(value[key]) for key in _UNIT_KEYS if isinstance(value.get(key), str)]
        inside = NO_UNIT.union(*named) or units
        table = _is_table(value)
        if table:
            yield from self._count(place, len(value))
        if not place.path.endswith("]"):
            names = names_of(value, place.column)
            if names:
                place = place.inside(Row(place.row, place.path, names))
        for key, item in value.items():
            name = str(key)
            if not self._takes(len(name)):
                return
            there = place.key(name, self._units_in(name))
            yield from self._key(there, name)
            if table and isinstance(item, dict):
                names = {**names_of(item, place.column), f"{place.column}.{{}}": frozenset({plain_name(name)})}
                there = there.inside(Row(place.row, there.path, names))
            yield from self._walk(item, there, inside)

    def _units_in(self, key: str) -> Units:
        """The units that a key speaks of itself; looked for once, however many rows have it."""
        known = (self._source.tool, key)
        found = self._key_units.get(known)
        if found is None:
            said = self._meaning.unit_of(key)
            parts = (self._units.in_name(part) for part in reversed(_SEGMENT.split(key)))
            found = self._units.of_field(said) if said else NO_UNIT
            found = self._key_units[known] = found or next((units for units in parts if units), NO_UNIT)
        return found

    def _key(self, place: ValuePath, key: str) -> Iterator[Fact]:
        """What a key says itself: words, dates, and figures such as those in `p95_ms` and `planted_2022`."""
        if not self._is_new("key", key):
            return
        yield Fact(self._source.id, place, text=key, echo=self._source.echo)
        if not any(char.isdigit() for char in key) and not self._vocabulary.number_words.in_name(key):
            return
        for claim in self._vocabulary.claims(key):
            if claim.kind == "date":
                yield from self._fact(place, date=claim.date)
        yield from self._digits(place, key)

    def _in_text(self, place: ValuePath, text: str) -> Iterator[Fact]:
        for claim in self._vocabulary.claims_in_evidence(text):
            prose = (claim.end - claim.start) * 2 < len(text)
            if claim.number is not None and claim.kind == "number":
                yield from self._fact(place, number=claim.number, units=claim.units or place.units, prose=prose)
            elif claim.kind == "date":
                yield from self._fact(place, date=claim.date, prose=prose)
                if claim.either:
                    year, month, day = claim.date
                    yield from self._fact(place, date=(year, day, month))  # 8/9/2024 in a result may be said either way
        # Apart from the claims: there a timestamp is one date, which takes the time of the day with it.
        for minutes in times_in(text) if ":" in text or "m" in text else ():
            yield from self._fact(place, minutes=minutes)

    def _digits(self, place: ValuePath, name: str) -> Iterator[Fact]:
        """The figures inside a name (`over_52_weeks`, `restored_24h`): they support one that is said as a label."""
        if name.isdecimal() and name.isascii():  # a key that is a figure: {"5000": "15:41"}
            yield from self._fact(place, number=Decimal(name))
        for match in _DIGITS.finditer(name):
            unit = match["unit"] or ""
            number = Decimal(match["digits"]) * (1000 if unit.lower() == "k" else 1)
            yield from self._fact(place, number=number, units=self._units.of_field(unit), label=True)
        for spelled in self._vocabulary.number_words.in_name(name):
            yield from self._fact(place, number=Decimal(spelled), label=True)


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
    kinds = {dict if isinstance(i, dict) else list if isinstance(i, list) else type(i) for i in value.values()}
    return len(value) > 1 and len(kinds) == 1 and kinds <= {dict, list, int, float}


def _alike(items: Sequence[Json]) -> Counter[tuple[str, Json]]:
    """How many items of a list are alike in something: two of them closed, three with a battery fault."""
    return Counter(
        (key, value)
        for item in items
        if isinstance(item, dict)
        for key, value in item.items()
        if isinstance(value, str | bool)
    )
