"""The rows of results that a call was made to, by the ids that both have, and what other rows say in the same fields.

"Your visit to Dr. Lind is cancelled" names nothing that the call was given. That the row with its id has another
doctor, and that some other row has this one, says that it was another visit.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from interlock.answers.grounding.rows import plain_name
from interlock.answers.grounding.superseded import is_code
from interlock.answers.statements.effect_calls import EffectCall
from interlock.tools import Tool
from interlock.values import Json

_MOST_ROWS, _MOST_NAMES = 2_000, 400
_LONGEST, _MOST_WORDS, _SHORTEST = 60, 6, 3
_DATE = re.compile(r"^\d{4}-(\d\d)-(\d\d)")
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_STATES = frozenset({"status", "state", "stage", "phase", "type", "kind", "mode", "channel", "currency", "unit"})
_NO_NAME = frozenset({"note", "notes", "comment", "message", "text", "reason", "summary"})
_APART = frozenset({"instead", "than", "not", "unlike", "except", "besides", "without", "but", "like", "from"})
_ID = re.compile(r"(?:^|_)(?:id|no|nr|number|ref|reference|code|key|sku)$", re.I)
_DAY_ENDS = ("st", "nd", "rd", "th")


class Thing(NamedTuple):
    """One object of a result."""

    values: Mapping[str, Json]
    record: int
    """In which record it stands; 0 if in none."""
    above: tuple[int, ...]
    """The objects around it, by their places among all."""
    siblings: int
    """The same for all objects of one list; -1 for one that is in none."""


class Objects:
    """Every object of the results of a turn."""

    def __init__(self, results: Iterable[tuple[int, Json]], tools: Iterable[Tool]) -> None:
        self.all: list[Thing] = []
        self._lists = 0
        for record, result in results:
            self._add(record, result)
        self._called: dict[str, set[str]] = defaultdict(set)
        """By id: what it is called, as far as tools know."""
        for tool in tools:
            for known in tool.known_values.values():
                if isinstance(known, Mapping):
                    for value, names in list(known.items())[:_MOST_NAMES]:
                        same = (names,) if isinstance(names, str) else names
                        parts = (part for name in same for part in (str(name), str(name).partition(",")[0]))
                        self._called[plain_name(str(value))] |= {*map(plain_name, parts)}

    def _add(self, record: int, result: Json) -> None:
        waiting: list[tuple[Json, tuple[int, ...], int]] = [(result, (), -1)]
        while waiting and len(self.all) < _MOST_ROWS:
            value, above, siblings = waiting.pop(0) if len(waiting) < _MOST_ROWS else waiting.pop()
            if isinstance(value, dict):
                self.all.append(Thing(value, record, above, siblings))
                inside = (*above[-3:], len(self.all) - 1)
                waiting += [(item, inside, -1) for item in value.values() if isinstance(item, dict | list)]
            elif isinstance(value, list):
                self._lists += 1
                waiting += [(item, above, self._lists) for item in value[:_MOST_ROWS] if isinstance(item, dict)]

    def of_call(self, call: EffectCall) -> list[Thing]:
        """The objects that a call was made to: they have an id that it was given, and none of that kind beside it."""
        given = {key: plain_name(value) for key, value in call.arguments.items() if isinstance(value, str)}
        codes = {key: value for key, value in given.items() if is_code(value)}
        # What a thing is called, where the names of the arguments say so: a room that it is moved to is none.
        ids = {value for key, value in codes.items() if _ID.search(key)} or {*codes.values()}
        found = []
        for thing in self.all if ids else ():
            own = {key: plain_name(value) for key, value in thing.values.items() if _is_name(value)}
            other = any(_ID.search(key) and key in codes and codes[key] != value for key, value in own.items())
            if not other and not ids.isdisjoint(own.values()):
                found.append(thing)
        return found

    def known_names(self) -> Iterator[tuple[str, str]]:
        """The ids that tools know, each with a name: all of it, and what stands before its first comma."""
        for value, names in self._called.items():
            yield from ((value, name) for name in names)

    def around(self, thing: Thing) -> list[Thing]:
        """An object with those that it stands in."""
        return [thing, *(self.all[number] for number in thing.above)]

    def names_of(self, value: str) -> set[str]:
        """What goes by an id: names that tools know, and names in rows that have the id as their own."""
        found = {value, *self._called.get(value, ())}
        for thing in self.all:
            if any(isinstance(own, str) and plain_name(own) == value for own in thing.values.values()):
                found |= {
                    plain_name(own)
                    for key, own in thing.values.items()
                    if key in ("name", "title", "label") and isinstance(own, str)
                }
        return found


def _is_name(value: Json) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST


class TouchedRows:
    """Of one call: what the rows say that it was made to, and what else other rows say in the same fields."""

    def __init__(self, call: EffectCall, things: Objects, context: Iterable[str]) -> None:
        self._things, self.rows = things, things.of_call(call)
        mine: dict[str, set[str]] = defaultdict(set)
        around = [thing for row in self.rows for thing in things.around(row)]
        for values in (call.arguments, *(thing.values for thing in around)):
            for key, value in values.items():
                if _is_name(value):
                    mine[key].add(plain_name(str(value)))
                    mine[key] |= things.names_of(plain_name(str(value))) if is_code(plain_name(str(value))) else set()
        self._known = {word for names in mine.values() for name in names for word in name.split()} | {*context}
        self._foreign: dict[tuple[str, ...], str] = {}
        """Names that only rows have to which the call was not made, by their words."""
        own_days = {day for row in around for day in _days(row.values)} | {*_days(call.arguments)}
        self._days: set[tuple[int, int]] = set()
        touched = {id(thing) for thing in around}
        for thing in things.all if self.rows else ():
            if id(thing) not in touched:
                self._add_foreign(thing, mine)
                self._days |= {*_days(thing.values)} - own_days

        for value, name in things.known_names() if self.rows else ():
            words = tuple(name.split())
            if not any(value in names for names in mine.values()) and not self._known.issuperset(words):
                self._foreign.setdefault(words if len(words) > 1 else (name.capitalize(),), name)

    def _add_foreign(self, thing: Thing, mine: Mapping[str, set[str]]) -> None:
        for key, value in thing.values.items():
            if key not in mine or key in _STATES or key in _NO_NAME or not _is_name(value):
                continue
            name = plain_name(str(value))
            words = tuple(name.split())
            if name in mine[key] or len(words) > _MOST_WORDS or _DATE.match(str(value)) or name.isdigit():
                continue
            if not self._known.issuperset(words):
                self._foreign[words] = name
                for word in words:  # "Lindqvist" of "Dr. Lindqvist": said with a capital, it is the name
                    if word not in self._known and len(word) >= _SHORTEST and f"{word.capitalize()}" in str(value):
                        self._foreign.setdefault((word.capitalize(),), name)

    def other_in(self, clause: Sequence[str], text: str) -> str | None:
        """A name or day in a clause that only rows have to which the call was not made."""
        spoken = " ".join(clause)
        tokens = plain_name(spoken).split()
        for at in range(len(tokens)):
            for words, name in self._foreign.items():
                if len(words) == 1 and words[0][:1].isupper():
                    said = tokens[at] == words[0].lower() and re.search(rf"\b{words[0]}\b", text) is not None
                else:
                    said = tuple(tokens[at : at + len(words)]) == words
                if said and not _APART & {*tokens[max(0, at - 3) : at]}:
                    return name
        day = next((day for day in days_in(tokens) if day in self._days), None)
        return None if day is None else f"{day[1]} {_MONTHS[day[0] - 1].capitalize()}"

    def names_own(self, clause: Sequence[str]) -> bool:
        """Whether a clause names something that only rows have to which the call was made."""
        foreign = {word for words in self._foreign for word in words}
        return bool(({*plain_name(" ".join(clause)).split()} & self._known) - foreign - _SMALL)

    def is_ordinal(self, clause: Sequence[str]) -> bool | None:
        """Whether "the second fee" is the one that the call was made to; None where that cannot be told."""
        at = next((n for n, word in enumerate(clause) if word in _ORDINALS and _is_of_list(clause, n)), None)
        for row in self.rows if at is not None else ():
            rows = [thing for thing in self._things.all if thing.siblings == row.siblings and row.siblings >= 0]
            rows = _meant(rows, clause)
            place = _ORDINALS[clause[at or 0]]
            if row not in rows or len(rows) < 2 or place >= len(rows):
                continue
            dated = [min(_stamps(thing.values), default="") for thing in rows]
            if all(dated) and dated != sorted(dated):
                return None  # first by its day, or the first in the list
            return rows[place] is row
        return None


_ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "last": -1, "latter": -1}
_LISTED = frozenset({"the", "your", "his", "her", "their", "our", "my", "this", "that"})
_SMALL = frozenset(
    {"the", "a", "an", "of", "for", "and", "to", "in", "on", "at", "by", "with", "is", "it", "all", "dr"}
)


def _is_of_list(clause: Sequence[str], at: int) -> bool:
    return at > 0 and clause[at - 1] in _LISTED and clause[at + 1 : at + 2] not in (("time",), ("week",), ("month",))


def _meant(rows: Sequence[Thing], clause: Sequence[str]) -> list[Thing]:
    """The rows of a list that a clause can mean: those that have the words which tell some of them apart."""
    words = [
        {word for value in row.values.values() if _is_name(value) for word in plain_name(str(value)).split()}
        for row in rows
    ]
    every = set[str]().union(*words)
    said = {word for word in clause if word in every and len(word) >= _SHORTEST} - _SMALL
    return [row for row, own in zip(rows, words, strict=True) if said <= own] if said else list(rows)


def _stamps(values: Mapping[str, Json]) -> Iterator[str]:
    return (value for value in values.values() if isinstance(value, str) and _DATE.match(value))


def _days(values: Mapping[str, Json]) -> Iterator[tuple[int, int]]:
    for value in _stamps(values):
        match = _DATE.match(value)
        if match is not None:
            yield int(match[1]), int(match[2])


def days_in(tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The days that words name, as month and day: "4 april", "april 4th", "the 4th of april"."""
    for at, word in enumerate(tokens):
        month = next((n for n, name in enumerate(_MONTHS, 1) if word in (name, name[:3]) or word == f"{name[:4]}"), 0)
        if not month:
            continue
        before = tokens[at - 2] if at > 1 and tokens[at - 1] == "of" else tokens[at - 1] if at else ""
        for near in (before, tokens[at + 1] if at + 1 < len(tokens) else ""):
            digits = near[:-2] if near.endswith(_DAY_ENDS) else near
            if digits.isdecimal() and digits.isascii() and 1 <= int(digits) <= 31:
                yield month, int(digits)
                break
