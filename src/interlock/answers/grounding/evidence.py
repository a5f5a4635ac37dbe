"""What an answer may rest on: every value in the results, with the record and the path where it stands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from interlock.answers.grounding.claims import NO_UNIT, Units
from interlock.answers.grounding.recognisers.times import times_in
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.values import Json, Value

# Of a longer text only the beginning counts as evidence: every recogniser goes over every character of it.
_LONGEST = 20_000
_SEGMENT = re.compile(r"[.\[\]]")
# The unit is a whole run of letters: "24h" is hours, but the "d" of "3drops" is not days.
_DIGITS = re.compile(r"(?P<digits>\d{1,12})[_ -]?(?P<unit>[A-Za-z]+(?![A-Za-z]))?")
_UNIT_KEYS = ("unit", "units", "currency")


class Source(Value, frozen=True):
    """One thing that was given to the turn: a result, the user's words, a record or chunk that was handed in."""

    id: str
    """`record 12`, `question`, or the id of a chunk."""
    value: Json
    apart: tuple[str, ...] = ()
    """Parts of an object that prove nothing: what a model said is in an error message, too."""
    echo: bool = False
    """The user's own words: they may be repeated, but prove nothing."""


class Fact(Value, frozen=True):
    """One value somewhere in a source."""

    source: str
    path: str
    number: Decimal | None = None
    units: Units = NO_UNIT
    money: Units = NO_UNIT
    """The currency that stands beside it, if it is an amount of money."""
    share: bool = False
    date: tuple[int | None, int | None, int | None] = (None, None, None)
    text: str = ""
    echo: bool = False
    minutes: int | None = None
    counted: bool = False
    """Not written there: the length of a list."""
    label: bool = False
    """Part of a name, not a value."""


def facts(sources: Iterable[Source], vocabulary: Vocabulary) -> tuple[Fact, ...]:
    """Every number, date and text in the sources; numbers inside texts too."""
    return tuple(fact for source in sources for fact in _Reader(source, vocabulary).walk(_proof(source), "$", NO_UNIT))


def _proof(source: Source) -> Json:
    if not source.apart or not isinstance(source.value, dict):
        return source.value
    return {key: value for key, value in source.value.items() if key not in source.apart}


class _Reader:
    """Walks one source, and gives a fact for each value, name and count in it."""

    def __init__(self, source: Source, vocabulary: Vocabulary) -> None:
        self._id, self._echo = source.id, source.echo
        self._vocabulary, self._units = vocabulary, vocabulary.units

    def walk(self, value: Json, path: str, units: Units) -> Iterator[Fact]:
        # Before numbers: a truth is an int in Python, and would count as the figure 1.
        if isinstance(value, bool) or value is None:
            return
        if isinstance(value, int | float):
            yield from self._number(value, path, units)
        elif isinstance(value, str):
            yield self._fact(path, text=value[:_LONGEST])
            yield from self._in_text(path, value[:_LONGEST])
        elif isinstance(value, list | tuple):
            yield from self._list(value, path, units)
        elif isinstance(value, dict):
            yield from self._object(value, path, units)

    def _fact(self, path: str, **details: Any) -> Fact:
        return Fact(self._id, path, echo=self._echo, **details)

    def _number(self, value: float, path: str, units: Units) -> Iterator[Fact]:
        if value != value or abs(value) == float("inf"):
            return
        soft = units if units <= self._units.currencies else NO_UNIT  # "currency": "EUR" beside counts and dates
        said = self._units_on(path) | (units - soft)
        share = self._units.is_share(path.rpartition(".")[2])
        yield self._fact(path, number=Decimal(repr(value)), units=said, money=soft, share=share)

    def _list(self, value: Sequence[Json], path: str, units: Units) -> Iterator[Fact]:
        yield self._fact(f"{path}.length", number=Decimal(len(value)), counted=True)
        for (key, item), count in _alike(value).items():
            yield self._fact(f"{path}[{key}={item}].length", number=Decimal(count), counted=True)
        for place, item in enumerate(value):
            yield from self.walk(item, f"{path}[{place}]", units)

    def _object(self, value: Mapping[str, Json], path: str, units: Units) -> Iterator[Fact]:
        named = [self._units.of_field(value[key]) for key in _UNIT_KEYS if isinstance(value.get(key), str)]
        if _is_table(value):
            yield self._fact(f"{path}.length", number=Decimal(len(value)), counted=True)
        for key, item in value.items():
            yield from self._key(f"{path}.{key}", str(key))
            yield from self.walk(item, f"{path}.{key}", NO_UNIT.union(*named) or units)

    def _key(self, path: str, key: str) -> Iterator[Fact]:
        """What a key says itself: words, dates, and figures such as those in `p95_ms` and `planted_2022`."""
        yield self._fact(path, text=key)
        for claim in self._vocabulary.claims(key):
            if claim.kind == "date":
                yield self._fact(path, date=claim.date)
        yield from self._digits(path, key)

    def _in_text(self, path: str, text: str) -> Iterator[Fact]:
        for claim in self._vocabulary.claims(text):
            if claim.number is not None:
                yield self._fact(path, number=claim.number, units=claim.units or self._units_on(path))
            elif claim.kind == "date":
                yield self._fact(path, date=claim.date)
                if claim.either:
                    year, month, day = claim.date
                    yield self._fact(path, date=(year, day, month))  # 8/9/2024 in a result may be said either way
            elif claim.kind == "identifier":
                yield from self._digits(path, claim.text)
        # Apart from the claims: there a timestamp is one date, which takes the time of the day with it.
        for minutes in times_in(text):
            yield self._fact(path, minutes=minutes)

    def _digits(self, path: str, name: str) -> Iterator[Fact]:
        """The figures inside a name (`over_52_weeks`, `restored_24h`): they support one that is said as a label."""
        if name.isdecimal() and name.isascii():  # a key that is a figure: {"5000": "15:41"}
            yield self._fact(path, number=Decimal(name))
        for match in _DIGITS.finditer(name):
            unit = match["unit"] or ""
            number = Decimal(match["digits"]) * (1000 if unit.lower() == "k" else 1)
            yield self._fact(path, number=number, units=self._units.of_field(unit), label=True)
        for spelled in self._vocabulary.number_words.in_name(name):
            yield self._fact(path, number=Decimal(spelled), label=True)

    def _units_on(self, path: str) -> Units:
        """The units that the names on a path speak of, the last one first: it says what the value is."""
        for name in reversed(_SEGMENT.split(path.removeprefix("$"))):
            found = self._units.in_name(name)
            if found:
                return found
        return NO_UNIT


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
