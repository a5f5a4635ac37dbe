"""Directions: from what to what something was moved, held against the arguments of the call and the rows around it.

Both names are right in "moved 300 from savings to checking". Which of them comes first is told by the fields that hold
them (from_account, target, new_part), and by what a row said before the change and says since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from interlock.answers.grounding.rows import plain_name
from interlock.answers.grounding.superseded import is_code
from interlock.answers.statements.deeds import EffectStatement
from interlock.answers.statements.effect_calls import EffectCall
from interlock.answers.statements.touched import Objects
from interlock.answers.statements.verb_groups import Stance
from interlock.answers.statements.wording import Sentence
from interlock.values import Json, shorten

_SOURCES = frozenset({"from", "source", "old", "previous", "before", "origin", "sender", "former"})
_TARGETS = frozenset({"to", "target", "new", "into", "dest", "destination", "after", "recipient", "would", "receiver"})
_INTO = frozenset({"to", "into", "onto"})
_STOPS = frozenset(
    {",", ";", ":", "(", ")", "|", "—", "–", "and", "but", "for", "at", "on", "because", "so", "with", "as"}
)
_LONGEST = 8
_MOST_VALUES = 200

_CUES = frozenset({"from", "instead", "rather", "→"})

Words = tuple[str, ...]


def may_turn(sentence: Sentence) -> bool:
    """Whether a sentence says of anything what it went from, or what it is instead of."""
    return not _CUES.isdisjoint(sentence.words)


class _Sides(NamedTuple):
    """The names of what something was moved from, and of what it was moved to."""

    sources: frozenset[Words]
    targets: frozenset[Words]


class Directions:
    """The two sides of each call of a turn that has any."""

    def __init__(self, calls: Iterable[EffectCall], objects: Objects) -> None:
        found = [_sides_of(call, objects) for call in calls]
        self._sides = [sides for sides in found if sides.sources and sides.targets]

    def check(self, sentence: Sentence) -> EffectStatement | None:
        """A sentence that says the two sides of a call the other way round."""
        if not self._sides:
            return None
        for first, second in _pairs(sentence.words):
            if all(_is_turned(sides, first, second) for sides in self._sides):
                why = "the call was made the other way round"
                return EffectStatement(shorten(sentence.text, 300), Stance.DONE, agrees=False, why=why)
        return None


def _is_turned(sides: _Sides, first: Words, second: Words) -> bool:
    """Whether what is said to come first is only a target, or what comes second only a source, and neither is right."""
    from_source, from_target = _has(first, sides.sources), _has(first, sides.targets)
    to_source, to_target = _has(second, sides.sources), _has(second, sides.targets)
    right = (from_source and not from_target) or (to_target and not to_source)
    return not right and ((from_target and not from_source) or (to_source and not to_target))


def _has(said: Words, names: Iterable[Words]) -> bool:
    return any(
        said[at : at + len(name)] == name
        for name in names
        for at in range(len(said) - len(name) + 1)
        if said[at] == name[0]
    )


def _pairs(words: Sequence[str]) -> Iterator[tuple[Words, Words]]:
    """What a sentence says something went from, and to."""
    for at, word in enumerate(words):
        after = _until_stop(words[at + 1 : at + 1 + 2 * _LONGEST])
        if word == "from":
            cut = next((n for n, one in enumerate(after) if one in _INTO), None)
            if cut is not None:
                yield _plain(after[:cut]), _plain(after[cut + 1 :])
        elif word in _INTO and "from" in after:
            cut = after.index("from")
            yield _plain(after[cut + 1 :]), _plain(after[:cut])
        elif word in ("instead", "rather") and after[:1] in (("of",), ("than",)):
            before = _until_stop(tuple(reversed(words[max(0, at - _LONGEST) : at])))
            yield _plain(after[1:]), _plain(tuple(reversed(before)))
        elif word == "→" and at:
            before = _until_stop(tuple(reversed(words[max(0, at - _LONGEST) : at])))
            yield _plain(tuple(reversed(before))), _plain(after)


def _until_stop(words: Sequence[str]) -> Words:
    end = next((n for n, word in enumerate(words) if word in _STOPS), len(words))
    return tuple(words[:end])


def _plain(words: Sequence[str]) -> Words:
    return tuple(plain_name(" ".join(words)).split())


def _sides_of(call: EffectCall, objects: Objects) -> _Sides:
    sources, targets = set[str](), set[str]()
    rows = objects.of_call(call)
    made = [call.arguments, *(thing.values for thing in rows if thing.record in (0, call.effect.record))]
    for values in made:
        for key, value in _texts(values):
            parts = {*key.lower().split("_")}
            if parts & _SOURCES:
                sources |= objects.names_of(value) if is_code(value) else {value}
            elif parts & _TARGETS:
                targets |= objects.names_of(value) if is_code(value) else {value}
    before = [thing.values for thing in rows if 0 < thing.record < call.effect.record]
    new = {_field(key): value for values in made for key, value in _texts(values)}
    for values in before[:_MOST_VALUES]:
        for key, value in _texts(values):
            now = new.get(key)
            if now is not None and now != value:
                sources.add(value)
                targets.add(now)
    both = sources & targets
    return _Sides(_split(sources - both), _split(targets - both))


def _split(names: Iterable[str]) -> frozenset[Words]:
    """Names by their words; the words that one side has and the other has not would be too many to try."""
    return frozenset(tuple(name.split()) for name in names if name)


def _field(key: str) -> str:
    """`would_room` and `new_room` are the room."""
    first, _mark, rest = key.partition("_")
    return rest if first in ("would", "new", "to", "target") and rest else key


def _texts(values: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if (isinstance(value, str) and 0 < len(value) <= 60 and not value[:4].isdigit()) or _is_short_number(value):
            yield key, plain_name(str(value))


def _is_short_number(value: Json) -> bool:
    """A room or a gate that is written with digits alone; longer figures are amounts and days."""
    return isinstance(value, str) and value.isdecimal() and len(value) <= 4
