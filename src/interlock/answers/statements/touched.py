"""The rows of results that a call was made to, by the ids that both have, and what other rows say in the same fields.

"Your visit to Dr. Lind is cancelled" names nothing that the call was given. That the row with its id has another
doctor, and that some other row has this one, says that it was another visit.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from interlock.answers.grounding.rows import plain_name
from interlock.answers.grounding.superseded import is_code
from interlock.answers.statements.effect_calls import EffectCall
from interlock.tools import Tool
from interlock.values import Json

_MOST_ROWS, _MOST_NAMES, _MOST_TOUCHED = 2_000, 400, 50
_LONGEST, _MOST_WORDS, _SHORTEST, _TWO_NAMES = 60, 6, 3, 2
DATE = re.compile(r"^\d{4}-(\d\d)-(\d\d)")
MONTHS = [
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


Words = tuple[str, ...]


class Thing(NamedTuple):
    """One object of a result."""

    values: Mapping[str, Json]
    names: Mapping[str, str]
    """Its short texts, by field, as they are compared."""
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
        self._lists: list[list[Thing]] = []
        self._called: dict[str, set[str]] = defaultdict(set)
        """By id: what it is called, as far as tools know and rows say."""
        self._by_tools: list[tuple[str, str]] = []
        for record, result in results:
            self._add(record, result)
        for tool in tools:
            for known in tool.known_values.values():
                if isinstance(known, Mapping):
                    self._add_known(known)

    def _add_known(self, known: Mapping[Any, Any]) -> None:
        """Names that a tool knows: all of each, and what stands before its first comma."""
        for value, names in islice(known.items(), _MOST_NAMES):
            same = (names,) if isinstance(names, str) else names
            parts = {plain_name(part) for name in same for part in (str(name), str(name).partition(",")[0])}
            self._called[plain_name(str(value))] |= parts
            self._by_tools += [(plain_name(str(value)), part) for part in parts]

    def _add(self, record: int, result: Json) -> None:
        waiting: list[tuple[Json, tuple[int, ...], int]] = [(result, (), -1)]
        while waiting and len(self.all) < _MOST_ROWS:
            value, above, siblings = waiting.pop()
            if isinstance(value, dict):
                names = {key: plain_name(str(text)) for key, text in value.items() if _is_name(text)}
                self.all.append(Thing(value, names, record, above, siblings))
                if siblings >= 0:
                    self._lists[siblings].append(self.all[-1])
                own = {name for key, name in names.items() if key in ("name", "title", "label")}
                for name in names.values() if own else ():
                    self._called[name] |= own if is_code(name) else set()
                inside = (*above[-3:], len(self.all) - 1)
                waiting += [(item, inside, -1) for item in value.values() if isinstance(item, dict | list)]
            elif isinstance(value, list):
                self._lists.append([])
                rows = [item for item in value[:_MOST_ROWS] if isinstance(item, dict)]
                waiting += [(item, above, len(self._lists) - 1) for item in reversed(rows)]

    def of_call(self, call: EffectCall) -> list[Thing]:
        """The objects that a call was made to: they have an id that it was given, and none of that kind beside it."""
        given = {key: plain_name(value) for key, value in call.arguments.items() if isinstance(value, str)}
        codes = {key: value for key, value in given.items() if is_code(value)}
        # What a thing is called, where the names of the arguments say so: a room that it is moved to is none.
        ids = {value for key, value in codes.items() if _ID.search(key)} or {*codes.values()}
        found = []
        for thing in self.all if ids else ():
            other = any(key in thing.names and thing.names[key] != codes[key] for key in codes if _ID.search(key))
            # By its name, where it stands alone: of the rows of a list many may be of the same person.
            called = thing.siblings < 0 and any(thing.names.get(key) in self.names_of(codes[key]) for key in codes)
            if not other and (called or not ids.isdisjoint(thing.names.values())):
                found.append(thing)
        return found

    def changed_codes(self, records: Sequence[int]) -> frozenset[str]:
        """The codes of things that read otherwise after one of these records than they did before it."""
        found, last = set[str](), dict[tuple[str, tuple[str, ...]], Thing]()
        for thing in sorted((one for one in self.all if one.record), key=lambda one: one.record):
            for code in filter(is_code, thing.names.values()):
                old = last.get((code, (*thing.values,)))
                if old is not None and old.values != thing.values:
                    found |= {code} if any(old.record < one < thing.record for one in records) else set()
                last[code, (*thing.values,)] = thing
        return frozenset(found)

    def rows_beside(self, thing: Thing) -> list[Thing]:
        """The objects of the list that an object is in, in their order."""
        return self._lists[thing.siblings] if thing.siblings >= 0 else []

    def known_names(self) -> Iterator[tuple[str, str]]:
        """The ids that tools know, each with a name."""
        return iter(self._by_tools)

    def around(self, thing: Thing) -> list[Thing]:
        """An object with those that it stands in."""
        return [thing, *(self.all[number] for number in thing.above)]

    def names_of(self, value: str) -> set[str]:
        """What goes by an id: names that tools know, and names in rows that have the id as their own."""
        return {value, *self._called.get(value, ())}


def _is_name(value: Json) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST


class TouchedRows:
    """Of one call: what the rows say that it was made to, and what else other rows say in the same fields."""

    def __init__(self, call: EffectCall, objects: Objects, context: Iterable[str]) -> None:
        self._objects, self.rows = objects, objects.of_call(call)[:_MOST_TOUCHED]
        around = [thing for row in self.rows for thing in objects.around(row)]
        given = {key: plain_name(value) for key, value in call.arguments.items() if isinstance(value, str)}
        mine: dict[str, set[str]] = defaultdict(set)
        for names in (given, *(thing.names for thing in around)):
            for key, name in names.items():
                mine[key] |= objects.names_of(name) if is_code(name) else {name}
        self._known = {word for names in mine.values() for name in names for word in name.split()} | {*context}
        self._foreign: dict[str, dict[Words, str]] = defaultdict(dict)
        """By their first word: names that only rows have to which the call was not made."""
        self._days: set[tuple[int, int]] = set()
        if self.rows:
            # What the call has returned is of the call: the day on which it was sent.
            returned = [thing for thing in objects.all if thing.record == call.effect.record]
            own_days = {day for row in (*around, *returned) for day in _days(row.values)} | {*_days(call.arguments)}
            self._read_others(mine, {id(thing) for thing in around}, own_days)

    def _read_others(self, mine: Mapping[str, set[str]], touched: set[int], own_days: set[tuple[int, int]]) -> None:
        for thing in self._objects.all:
            if id(thing) not in touched:
                self._add_foreign(thing, mine)
                self._days |= {*_days(thing.values)} - own_days
        own = set[str]().union(*mine.values())
        for value, name in self._objects.known_names():
            words = tuple(name.split())
            if words and value not in own and not self._known.issuperset(words):
                self._keep(words, name, capital=len(words) == 1)
                for word in words if len(words) == _TWO_NAMES else ():  # the first or the last name of somebody
                    if word not in self._known and len(word) >= _SHORTEST:
                        self._keep((word,), name, capital=True)

    def _add_foreign(self, thing: Thing, mine: Mapping[str, set[str]]) -> None:
        for key, name in thing.names.items():
            written, words = str(thing.values[key]), tuple(name.split())
            if key not in mine or key in _STATES or key in _NO_NAME or name in mine[key]:
                continue
            if not words or len(words) > _MOST_WORDS or DATE.match(written) or name.isdigit():
                continue
            if not self._known.issuperset(words):
                self._keep(words, name, capital=False)
                for word in words:  # "Lindqvist" of "Dr. Lindqvist": said with a capital, it is the name
                    if word not in self._known and len(word) >= _SHORTEST and word.capitalize() in written:
                        self._keep((word,), name, capital=len(words) > 1)

    def _keep(self, words: Words, name: str, *, capital: bool) -> None:
        """`capital`: only where it is written with one, as the word has other meanings."""
        self._foreign[words[0]].setdefault((words[0].capitalize(),) if capital else words, name)

    def other_in(self, clause: Sequence[str], text: str) -> str | None:
        """A name or day in a clause that only rows have to which the call was not made."""
        tokens = plain_name(" ".join(clause)).split()
        for at, token in enumerate(tokens):
            for words, name in self._foreign.get(token, {}).items():
                plain = tuple(word.lower() for word in words)
                said = tuple(tokens[at : at + len(words)]) == plain and (words == plain or words[0] in text)
                if said and not _APART & {*tokens[max(0, at - 3) : at]}:
                    return name
        day = next((day for day in days_in(tokens) if day in self._days), None)
        return None if day is None else f"{day[1]} {MONTHS[day[0] - 1].capitalize()}"

    def names_own(self, clause: Sequence[str]) -> bool:
        """Whether a clause names something that only rows have to which the call was made."""
        foreign = {word.lower() for named in self._foreign.values() for words in named for word in words}
        return bool(({*plain_name(" ".join(clause)).split()} & self._known) - foreign - _SMALL)

    def is_ordinal(self, clause: Sequence[str]) -> bool | None:
        """Whether "the second fee" is the one that the call was made to; None where that cannot be told."""
        at = next((n for n, word in enumerate(clause) if word in _ORDINALS and _is_of_list(clause, n)), None)
        for row in self.rows if at is not None else ():
            rows = _meant(self._objects.rows_beside(row), clause)
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
    words = [{word for name in row.names.values() for word in name.split()} for row in rows]
    every = set[str]().union(*words)
    said = {word for word in clause if word in every and len(word) >= _SHORTEST} - _SMALL
    return [row for row, own in zip(rows, words, strict=True) if said <= own] if said else list(rows)


def _stamps(values: Mapping[str, Json]) -> Iterator[str]:
    return (value for value in values.values() if isinstance(value, str) and DATE.match(value))


def _days(values: Mapping[str, Json]) -> Iterator[tuple[int, int]]:
    for value in _stamps(values):
        match = DATE.match(value)
        if match is not None:
            yield int(match[1]), int(match[2])


def days_in(tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The days that words name, as month and day: "4 april", "april 4th", "the 4th of april"."""
    for at, word in enumerate(tokens):
        month = next((n for n, name in enumerate(MONTHS, 1) if word in (name, name[:3]) or word == f"{name[:4]}"), 0)
        if not month:
            continue
        before = tokens[at - 2] if at > 1 and tokens[at - 1] == "of" else tokens[at - 1] if at else ""
        for near in (before, tokens[at + 1] if at + 1 < len(tokens) else ""):
            digits = near[:-2] if near.endswith(_DAY_ENDS) else near
            if digits.isdecimal() and digits.isascii() and 1 <= int(digits) <= 31:
                yield month, int(digits)
                break
