"""Values that a change has moved without a word of it: a balance after a transfer, the sum over a list.

The result of a change seldom has the fields of the reads before it. Which of their values are old follows from how they
hang together: a level of the thing that an amount was taken from, a figure that with the amount gives one of the new
result, a total or a number of rows of a list in which a row was changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import islice
from typing import NamedTuple

from interlock.answers.grounding.field_names import snake_name
from interlock.answers.grounding.rows import plain_name
from interlock.answers.grounding.superseded import is_code
from interlock.answers.grounding.words import stem
from interlock.values import Json

_LEVELS = frozenset(
    map(
        stem,
        (
            "balance",
            "available",
            "left",
            "remaining",
            "total",
            "owed",
            "outstanding",
            "hand",
            "stock",
            "free",
            "used",
            "spent",
            "points",
            "credits",
            "vacancies",
            "vacant",
            "seats",
            "copies",
            "open",
            "due",
        ),
    )
)
"""What the names of fields say that hold how much there is of something at a time: changes move these."""
_STANDS = frozenset({"status", "state", "stage", "phase"})
_BOUNDS = frozenset(map(stem, ("limit", "max", "min", "minimum", "maximum", "point", "per", "rate", "pct", "percent")))
_MOST_OBJECTS, _MOST_PATHS = 2_000, 400
_LEAST = 2
_KEPT_KEY = 80


class ChangeMade(NamedTuple):
    """What is known of a change: the names of what it was made to, and the figures that went in and came out."""

    names: frozenset[str]
    moves: frozenset[Decimal]
    """Amounts and quantities among its arguments; settings of a field are none."""
    amounts: frozenset[Decimal]
    """All figures among its arguments."""
    gives: frozenset[Decimal]
    """The figures of its result."""
    is_bare: bool
    """Nothing was given but what it is made to: return a book, cancel a stay."""
    outcome: Mapping[str, Decimal | None]
    """The figures of its result by their fields; None for what is no figure."""
    settles: bool
    """Its result says how the thing stands since: a status, or when it was returned."""


class _Item(NamedTuple):
    value: Mapping[str, Json]
    path: str
    above: tuple[int, ...]
    """The objects around it, from the outside, by their places in the list of all."""


def read_change(arguments: Json, result: Json, fields: Iterable[str]) -> ChangeMade:
    """A change by its arguments and its result; `fields` are those of the read before it."""
    given = arguments if isinstance(arguments, dict) else {}
    known = frozenset(fields)
    outcome = {
        key: _number(value) for item in _objects(result) if item.path == "$.value" for key, value in item.value.items()
    }
    names = frozenset(plain_name(value) for value in given.values() if isinstance(value, str) and 0 < len(value) <= 80)
    numbers = {name: number for name, value in given.items() if (number := _number(value)) is not None}
    # What a field is set to, the result has under the same name, if it has it at all; two nights more give six.
    settings = {name for name in known if name not in outcome or outcome[name] == numbers.get(name)}
    moves = frozenset(number for name, number in numbers.items() if name not in settings)
    others = [value for value in given.values() if not isinstance(value, str)]
    is_bare = not others and all(map(is_code, names))
    settles = any(name in _STANDS or name.endswith("_at") for name in map(snake_name, outcome))
    return ChangeMade(names, moves, frozenset(numbers.values()), frozenset(_numbers(result)), is_bare, outcome, settles)


def find_moved(value: Json, about: Json, change: ChangeMade) -> frozenset[str]:
    """The paths of the values of a read that a later change has moved."""
    items = list(_objects(value))
    asked = _names(about) if isinstance(about, dict) else set()
    touched = [number for number, item in enumerate(items) if not change.names.isdisjoint(_names(item.value))]
    if not touched and items and not change.names.isdisjoint(asked):
        touched = [number for number, item in enumerate(items) if item.path in ("$", "$.value")]
    found: list[str] = []
    for number in touched:
        found += _moved_in(items[number], change)
        found += _counts_of(items[number]) if change.settles else ()
    for above in dict.fromkeys(number for one in touched for number in items[one].above):
        found += _sums_in(items[above], change)
        found += _outdone_in(items[above], change)
    return frozenset(found[:_MOST_PATHS])


def _moved_in(item: _Item, change: ChangeMade) -> Iterator[str]:
    """The values of a row that a change was made to, as far as it moved them."""
    for key, value in item.value.items():
        number = _number(value)
        if number is None or number in change.gives:
            continue
        words = {stem(part) for part in snake_name(key).replace("-", "_").split("_")}
        is_level = bool(words & _LEVELS) and not words & _BOUNDS and bool(change.moves or change.is_bare)
        goes_on = any({number + move, number - move} & change.gives for move in change.amounts if move)
        if is_level or goes_on:
            yield f"{item.path}.{key}"


def _outdone_in(item: _Item, change: ChangeMade) -> Iterator[str]:
    """The values around a changed row that the result has anew, or that with its amount give one of the result."""
    for key, value in item.value.items():
        number = _number(value)
        if number is None or number in change.gives:
            continue
        goes_on = any({number + move, number - move} & change.gives for move in change.amounts if move)
        if goes_on or change.outcome.get(key) is not None:
            yield f"{item.path}.{key}"


def _sums_in(item: _Item, change: ChangeMade) -> Iterator[str]:
    """The values around a list, one of whose rows was changed, that are a sum or the number of its rows."""
    for name, rows in item.value.items():
        if not isinstance(rows, list) or len(rows) < _LEAST:
            continue
        sums = {Decimal(len(rows))}
        columns = {key for row in rows if isinstance(row, dict) for key in row}
        for column in columns:
            numbers = [_number(row.get(column)) for row in rows if isinstance(row, dict)]
            known = [number for number in numbers if number is not None]
            sums |= {sum(known, Decimal(0))} if len(known) >= _LEAST else set()
        for key, value in item.value.items():
            number = _number(value)
            if key != name and number is not None and number in sums and number not in change.gives:
                yield f"{item.path}.{key}"


def _counts_of(item: _Item) -> Iterator[str]:
    """How many rows a list has, and how many that stand like this one did, once it stands otherwise."""
    where, mark, _place = item.path.rpartition("[")
    if mark:
        yield f"{where}.length"
        yield from (f"{where}[{key}={item.value[key]}].length" for key in item.value if snake_name(key) in _STANDS)


def _objects(value: Json) -> Iterator[_Item]:
    """The objects of a result with their paths, the outer ones first."""
    waiting: list[tuple[Json, str, tuple[int, ...]]] = [(value, "$", ())]
    count = 0
    while waiting and count < _MOST_OBJECTS:
        one, path, above = waiting.pop()
        if isinstance(one, dict):
            yield _Item(one, path, above)
            inside = (*above[-3:], count)
            count += 1
            waiting += [
                (item, f"{path}.{key}", inside)
                for key, item in one.items()
                if isinstance(item, dict | list) and len(str(key)) <= _KEPT_KEY
            ]
        elif isinstance(one, list):
            waiting += [(item, f"{path}[{number}]", above) for number, item in enumerate(one[:_MOST_OBJECTS])]


def _names(row: Mapping[str, Json]) -> set[str]:
    return {plain_name(str(value)) for value in row.values() if isinstance(value, str) and 0 < len(value) <= 80}


def _numbers(value: Json) -> Iterator[Decimal]:
    for item in _objects(value):
        for inner in item.value.values():
            number = _number(inner)
            if number is not None:
                yield number


def _number(value: Json) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) == float("inf"):
        return None
    return Decimal(repr(value)).normalize()


def paths_of(value: Json, names: frozenset[str]) -> frozenset[str]:
    """The paths of the fields of a result that have one of these names."""
    found = (f"{item.path}.{name}" for item in _objects(value) for name in item.value if name in names)
    return frozenset(islice(found, _MOST_PATHS))


def all_fields(value: Json) -> Iterator[str]:
    """The names of the fields of a result."""
    for item in _objects(value):
        yield from item.value
