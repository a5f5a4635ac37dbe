"""Rows of results: of the one that a sentence names, whether something was done to it or not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from interlock.answers.statements.lexicon import Lexicon
from interlock.values import Json

_TOKEN = re.compile(r"[\w\-]+")
_MOST_ROWS = 2_000
_LONGEST_NAME = 60


class _Row(NamedTuple):
    """One object of a result: the words of its names, what was done to it, and what was not."""

    names: frozenset[str]
    done: frozenset[str]
    undone: frozenset[str]


class Rows:
    """The objects of results that say of themselves what was done to them."""

    def __init__(self, values: Iterable[Json], words: Lexicon) -> None:
        self._words = words
        found = objects_of(values)
        states = _states(found, words)
        rows = [_row(item, states, words) for item in found]
        self._rows = [row for row in rows if row.names or row.done or row.undone]
        flags = [key.split("_") for item in found for key, value in item.items() if value is False]
        self._undone = [
            (frozenset(map(words.verbs.stem, of)), words.verbs.stem(last)) for *of, last in flags if of and last
        ]

    def denies(self, stem: str, said: Sequence[str]) -> bool:
        """Whether a flag says that it was not done to what a sentence speaks of: `luggage_moved: false`."""
        spoken = {self._words.verbs.stem(word) for word in said}
        return any(own == stem and of <= spoken for of, own in self._undone)

    def tell(self, stem: str, said: Sequence[str]) -> bool | None:
        """Whether it was done to the row that a sentence names; None where the results do not say.

        A sentence names the row of which it has the most words, where no other has as many. Where it names none, and it
        was done to all of which the results say anything, it was done.
        """
        telling = [row for row in self._rows if stem in row.done or stem in row.undone]
        if not telling:
            return None
        spoken = frozenset(said)
        scores = [len(row.names & spoken) for row in telling]
        best = max(scores)
        first = telling[scores.index(best)]
        if best == 0 and all(stem in row.done for row in telling) and not any(row.names & spoken for row in self._rows):
            return True
        if len(telling) > 1 and (best == 0 or scores.count(best) > 1):
            return None
        if len(telling) == 1 and best == 0 and len(self._rows) > 1 and "it" not in spoken:
            return None
        return stem in first.done


def objects_of(values: Iterable[Json]) -> list[Mapping[str, Json]]:
    """Every object of results, those that stand in others too."""
    found: list[Mapping[str, Json]] = []
    waiting = list(values)
    while waiting and len(found) < _MOST_ROWS:
        item = waiting.pop(0) if len(waiting) < _MOST_ROWS else waiting.pop()
        if isinstance(item, dict):
            found.append(item)
            waiting += [value for value in item.values() if isinstance(value, dict | list | tuple)]
        elif isinstance(item, list | tuple):
            waiting += item
    return found


def _states(rows: Iterable[Mapping[str, Json]], words: Lexicon) -> dict[str, set[str]]:
    """For each field, the deeds that its values in all rows speak of: paid, open, refunded."""
    found: dict[str, set[str]] = {}
    for row in rows:
        for key, value in row.items():
            if isinstance(value, str) and words.verbs.is_past(value.lower()):
                found.setdefault(key, set()).add(words.verbs.stem(value.lower()))
    return found


def _row(item: Mapping[str, Json], states: Mapping[str, set[str]], words: Lexicon) -> _Row:
    names, done, undone = set[str](), set[str](), set[str]()
    for key, value in item.items():
        field = key.lower().rpartition("_")[2]
        if isinstance(value, bool) and words.verbs.is_past(field):
            (done if value else undone).add(words.verbs.stem(field))
        elif isinstance(value, str) and key in states:
            own = words.verbs.stem(value.lower())
            done |= {own}
            undone |= states[key] - {own}
        elif isinstance(value, str) and len(value) <= _LONGEST_NAME:
            names |= {token for token in _TOKEN.findall(value.lower()) if len(token) > 2}
    return _Row(frozenset(names), frozenset(done), frozenset(undone - done))
