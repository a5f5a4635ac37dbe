"""What may stand in a field, and what is said where something else does: file, place, field, value, what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from interlock.errors import ConfigError

LISTED = 20
"""So many different problems are told of a file, so that one file does not hide the next; the error holds them all."""
_PLACES = 10
"""So many rows with one and the same problem are named."""
_LONGEST_VALUE = 40


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """A number within bounds, both of which belong to it."""

    low: float
    high: float
    hint: str = ""
    whole: bool = False

    def admits(self, value: object) -> bool:
        # A bool is an int to Python, and true is no severity of 1. NaN compares as outside.
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return self.low <= value <= self.high and (not self.whole or float(value).is_integer())

    def describe(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        return f"give {kind} from {self.low:,g} to {self.high:,g}" + (f" ({self.hint})" if self.hint else "")


class OneOf(msgspec.Struct, frozen=True):
    """One of a closed set of words."""

    values: tuple[str, ...]

    def admits(self, value: object) -> bool:
        return isinstance(value, str) and value in self.values

    def describe(self) -> str:
        return f"give one of {', '.join(self.values)}" if any(self.values) else "leave it empty"


Allowed = Range | OneOf


def one_of(kind: type[StrEnum]) -> OneOf:
    return OneOf(tuple(item.value for item in kind))


class InputProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Something that cannot be taken as it stands."""

    file: str
    place: str = ""
    """Where in the file: a row, or a record by its id; empty if it is about the whole of it."""
    field: str = ""
    """Empty if it is about no value: something is missing, or cannot be read."""
    value: str = ""
    way_out: str


class RefusedFire(ConfigError):
    """A fire whose files hold what cannot be right; `problems` has every one of them."""

    def __init__(self, fire: str, problems: Sequence[InputProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"{fire} cannot be used:{_describe(problems)}")


def show_value(value: object) -> str:
    """A value for a sentence: short, on one line."""
    text = "".join(c if c.isprintable() else " " for c in str(value))
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def check_fields(
    file: str, place: str, record: Mapping[str, object], allowed: Mapping[str, Allowed]
) -> Iterator[InputProblem]:
    """The fields of a record that hold what is not allowed there; a field that is missing is not among them."""
    for field, limit in allowed.items():
        if field in record and not limit.admits(record[field]):
            yield InputProblem(
                file=file, place=place, field=field, value=show_value(record[field]), way_out=limit.describe()
            )


def keep_sound(record: Mapping[str, Any], place: str, found: Sequence[InputProblem]) -> Mapping[str, Any]:
    """The fields of a record that are right by themselves: they can be held against others, whatever else is wrong."""
    wrong = {problem.field for problem in found if problem.place == place}
    return {name: value for name, value in record.items() if name not in wrong} if wrong else record


def find_duplicates(file: str, field: str, ids: Iterable[str]) -> Iterator[InputProblem]:
    """Ids that come more than once; the second record would take the place of the first."""
    seen: set[str] = set()
    for number, name in enumerate(ids, 1):
        if name in seen:
            yield InputProblem(
                file=file,
                place=f"entry {number}",
                field=field,
                value=show_value(name),
                way_out="each may be there once only",
            )
        seen.add(name)


def parse_figure(cell: str) -> float | None:
    """A finite number of a cell, or nothing."""
    # Python reads 1_000 as a number; no cruiser writes one so.
    if "_" in cell:
        return None
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _describe(problems: Sequence[InputProblem]) -> str:
    """All problems of one kind in one line, with the places where they are, file by file."""
    places: dict[tuple[str, str, str, str], list[str]] = {}
    for item in problems:
        places.setdefault((item.file, item.field, item.value, item.way_out), []).append(item.place)
    of_files: dict[str, list[str]] = {}
    for (file, field, value, way_out), found in places.items():
        told = f"{file}{_join(found)} {f'{field} {value!r}; ' if field else ''}{way_out}"
        of_files.setdefault(file, []).append(told)
    return "".join(
        f"\n  {line}"
        for file, lines in of_files.items()
        for line in [*lines[:LISTED], *([f"{file}: and {len(lines) - LISTED} more"] if len(lines) > LISTED else [])]
    )


def _join(places: Sequence[str]) -> str:
    named = [place for place in places if place]
    more = f" and {len(named) - _PLACES} more" if len(named) > _PLACES else ""
    return f", {', '.join(named[:_PLACES])}{more}:" if named else ""
