"""What an answer may rest on: every value in the results, with the record and the path where it stands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal

from interlock.grounding.claims import claims, spelled_out, times_in
from interlock.grounding.units import CURRENCIES, NO_UNIT, Units, is_share, units_in_name, units_named
from interlock.values import Json, Value

_LONGEST = 20_000
_SEGMENT = re.compile(r"[.\[\]]")
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


def facts(sources: Iterable[Source]) -> tuple[Fact, ...]:
    """Every number, date and text in the sources; numbers inside texts too."""
    return tuple(fact for source in sources for fact in _walk(source, _proof(source), "$", NO_UNIT))


def _proof(source: Source) -> Json:
    if not source.apart or not isinstance(source.value, dict):
        return source.value
    return {key: value for key, value in source.value.items() if key not in source.apart}


def _walk(source: Source, value: Json, path: str, units: Units) -> Iterator[Fact]:
    name = path.rpartition(".")[2]
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        number = Decimal(repr(value)) if value == value and abs(value) != float("inf") else None
        if number is not None:
            said = _units_on(path)
            soft = units if units <= CURRENCIES else NO_UNIT  # "currency": "EUR" beside counts and dates
            said |= units - soft
            yield Fact(source.id, path, number=number, units=said, money=soft, share=is_share(name), echo=source.echo)
    elif isinstance(value, str):
        yield Fact(source.id, path, text=value[:_LONGEST], echo=source.echo)
        yield from _in_text(source, path, value[:_LONGEST])
    elif isinstance(value, list | tuple):
        yield Fact(source.id, f"{path}.length", number=Decimal(len(value)), echo=source.echo, counted=True)
        yield from _parts_of(source, value, path)
        for place, item in enumerate(value):
            yield from _walk(source, item, f"{path}[{place}]", units)
    elif isinstance(value, dict):
        beside = NO_UNIT.union(*(units_named(value[key]) for key in _UNIT_KEYS if isinstance(value.get(key), str)))
        if _is_table(value):
            yield Fact(source.id, f"{path}.length", number=Decimal(len(value)), echo=source.echo, counted=True)
        for key, item in value.items():
            yield from _named(source, f"{path}.{key}", str(key))
            yield from _walk(source, item, f"{path}.{key}", beside or units)


def _is_table(value: dict[str, Json]) -> bool:
    """Whether an object is a list by another name: its values are all of one kind."""
    kinds = {dict if isinstance(i, dict) else list if isinstance(i, list) else type(i) for i in value.values()}
    return len(value) > 1 and len(kinds) == 1 and kinds <= {dict, list, int, float}


def _parts_of(source: Source, items: list[Json] | tuple[Json, ...], path: str) -> Iterator[Fact]:
    """How many items of a list are alike in something: two of them closed, three with a battery fault."""
    counts = Counter(
        (key, value)
        for item in items
        if isinstance(item, dict)
        for key, value in item.items()
        if isinstance(value, str | bool)
    )
    for (key, value), count in counts.items():
        where = f"{path}[{key}={value}].length"
        yield Fact(source.id, where, number=Decimal(count), echo=source.echo, counted=True)


def _units_on(path: str) -> Units:
    """The units that the names on a path speak of, the last one first: it says what the value is."""
    for name in reversed(_SEGMENT.split(path.removeprefix("$"))):
        found = units_in_name(name)
        if found:
            return found
    return NO_UNIT


def _named(source: Source, path: str, key: str) -> Iterator[Fact]:
    """What a key says itself: words, dates, and figures such as those in `p95_ms` and `planted_2022`."""
    yield Fact(source.id, path, text=key, echo=source.echo)
    yield from (
        Fact(source.id, path, date=claim.date, echo=source.echo) for claim in claims(key) if claim.kind == "date"
    )
    yield from _digits(source, path, key)


def _in_text(source: Source, path: str, text: str) -> Iterator[Fact]:
    for claim in claims(text):
        if claim.number is not None:
            said = claim.units or _units_on(path)
            yield Fact(source.id, path, number=claim.number, units=said, echo=source.echo)
        elif claim.kind == "date":
            yield Fact(source.id, path, date=claim.date, echo=source.echo)
            if claim.either:
                year, month, day = claim.date
                yield Fact(source.id, path, date=(year, day, month), echo=source.echo)
        elif claim.kind == "identifier":
            yield from _digits(source, path, claim.text)
    for minutes in times_in(text):
        yield Fact(source.id, path, minutes=minutes, echo=source.echo)


def _digits(source: Source, path: str, name: str) -> Iterator[Fact]:
    """The figures inside a name (`over_52_weeks`, `restored_24h`): they support one that is said as a label."""
    if name.isdecimal() and name.isascii():  # a key that is a figure: {"5000": "15:41"}
        yield Fact(source.id, path, number=Decimal(name), echo=source.echo)
    for match in _DIGITS.finditer(name):
        unit = match["unit"] or ""
        number = Decimal(match["digits"]) * (1000 if unit.lower() == "k" else 1)
        yield Fact(source.id, path, number=number, units=units_named(unit), echo=source.echo, label=True)
    for spelled in spelled_out(name):
        yield Fact(source.id, path, number=Decimal(spelled), echo=source.echo, label=True)
