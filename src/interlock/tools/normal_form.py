"""Arguments in one order and one spelling: what is equal to the contract is the same to whoever compares the arguments.

A set has no order of its own: it comes out of each process in another one, so it is shown sorted. A decimal number, a
moment or a time with its zone has many spellings: it is shown as it was written, as that is what the tool gets, and
compared by its value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Set
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from interlock.canonical import WHATEVER, Refusal, canonical
from interlock.values import Json

UNORDERED = ("set", "frozenset")
"""Types of Pydantic's core schema whose values have no order,"""
SPELLED = ("decimal", "datetime", "time")
"""and those whose equal values may be spelled differently."""
_LONGEST_WHOLE = 18
"""So many digits of a whole decimal number are written as a number; more would not fit."""

_ONE_SPELLING = frozenset({str, int, bool, type(None)})
"""What is written in one way only, so that it need not be looked at."""
_A_DAY = date(2000, 1, 2)
"""Any, to reckon with."""

Leaf = Callable[[Any, Json], Json]


def in_order(bound: Any, shown: Json) -> Json:
    """What is shown of validated arguments, with every set in one order; `Refusal` where a set cannot be followed."""
    return _walk(bound, shown, _as_shown)


def by_value(bound: Any, shown: Json) -> Json:
    """The same, with decimal numbers and moments in one spelling for each value: to be compared, not to be read."""
    return _walk(bound, shown, _put_values)


def same_numbers(value: Json) -> Json:
    """JSON in which a whole number is written in one way: 10.0 is 10, -0.0 is 0, and 1e22 is all its digits."""
    if type(value) is float:
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: item if type(item) in _ONE_SPELLING else same_numbers(item) for key, item in value.items()}
    return [same_numbers(item) for item in value] if isinstance(value, list | tuple) else value


def _walk(bound: Any, shown: Json, leaf: Leaf) -> Json:
    """Go through what the tool gets and what is shown of it side by side: only the first knows what was a set."""
    if getattr(type(bound), "__pydantic_root_model__", False):
        bound = bound.root
    if isinstance(shown, list):
        items = [_walk(one, other, leaf) for one, other in _side_by_side(bound, shown)]
        return sorted(items, key=lambda item: canonical(item, WHATEVER)) if isinstance(bound, Set) else items
    if isinstance(bound, Set):
        raise Refusal(
            "the tool's model writes a set in its own way, which has no one order; let it be written as a list"
        )
    if isinstance(shown, dict):
        return {name: _walk(inner, item, leaf) for name, inner, item in _fields(bound, shown, leaf)}
    return leaf(bound, shown)


def _side_by_side(bound: Any, shown: list[Json]) -> Iterable[tuple[Any, Json]]:
    if not isinstance(bound, Collection) or len(bound) != len(shown):
        return ((None, item) for item in shown)  # a type of its own, that shows itself as a list
    return zip(bound, shown, strict=True)


def _fields(bound: Any, shown: dict[str, Json], leaf: Leaf) -> Iterator[tuple[str, Any, Json]]:
    """The parts of an object: the name to write, what the tool gets, and what is shown of it."""
    described = getattr(type(bound), "model_fields", None)
    if described is not None:
        names = {field.serialization_alias or field.alias or name: name for name, field in described.items()}
        for key, item in shown.items():
            yield key, getattr(bound, names.get(key, key), None), item
        return
    if is_dataclass(bound):
        bound = {field.name: getattr(bound, field.name) for field in fields(bound)}
    if not isinstance(bound, dict) or len(bound) != len(shown):
        bound = dict.fromkeys(shown)
    for (key, inner), (name, item) in zip(bound.items(), shown.items(), strict=True):
        said = leaf(key, name)
        yield said if isinstance(said, str) else canonical(said).decode(), inner, item


def _as_shown(_bound: Any, shown: Json) -> Json:
    return shown


def _put_values(bound: Any, shown: Json) -> Json:
    if isinstance(bound, Decimal) and bound.is_finite():
        return _number(bound)
    if isinstance(bound, datetime) and bound.utcoffset() is not None:
        try:
            return bound.astimezone(UTC).isoformat()
        except OverflowError:  # at either end of what a calendar can say
            return shown
    if isinstance(bound, time):
        offset = bound.utcoffset()
        # As Python compares two of them: by how long after midnight UTC they are, or before it.
        return shown if offset is None else {"time": str(datetime.combine(_A_DAY, bound.replace(tzinfo=None)) - offset)}
    return shown


def _number(value: Decimal) -> Json:
    """A decimal number without the zeros that say nothing. By hand: `normalize` would round to 28 digits."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    written = "".join(map(str, digits))
    kept = written.rstrip("0")
    exponent += len(written) - len(kept)
    kept = kept.lstrip("0")
    if not kept:
        return 0
    if exponent >= 0 and len(kept) + exponent <= _LONGEST_WHOLE:
        return (-1) ** sign * int(kept) * 10**exponent
    return {"decimal": f"{'-' if sign else ''}{kept}E{exponent}"}
