"""What a question says and a call would leave out: then the call answers something else than was asked."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from interlock.answers.constrained.recognisers.figures import in_figures
from interlock.answers.constrained.tables import bound
from interlock.answers.grounding import Vocabulary
from interlock.answers.grounding.claims import NO_UNIT, Claim, Units
from interlock.models.messages import ToolCard
from interlock.tools import normalize
from interlock.values import Json, shorten

_STEM = 4
_DIGITS = frozenset("0123456789$€£.-")
_DATA = re.compile(r"\{[^{}]*:|\[\s*\[")
"""Structured data inside a question."""


def unused_values(
    card: ToolCard, offered: Sequence[ToolCard], text: str, given: Mapping[str, Sequence[Json]], vocabulary: Vocabulary
) -> tuple[str, ...]:
    """Figures and dates of a question that a call would leave out."""
    # A matrix or an object inside a question ({"a": 1}, [[1, 2]]) can be given by no span of words.
    if _DATA.search(text):
        return ("the data in brackets",)
    text = in_figures(text, vocabulary)
    names = [name for other in offered for name in _names(other.parameters)]
    # Of all tools on offer: a figure in miles tells something even where the tool that was chosen has no miles.
    units = NO_UNIT.union(*(vocabulary.units.in_name(name) for name in names))
    taken, bounds = _Taken(given), _Spans([found.span() for found in bound().finditer(text)])
    left = [
        shorten(claim.text)
        for claim in vocabulary.claims(text)
        if _tells(claim, bounds, units) and not taken.holds(claim)
    ]
    there = normalize(text).split()
    for value in _inner_values(card.parameters):  # "bull trout", where only a list of objects could say it
        words = normalize(value).split()
        if len(words) > 1 and all(any(w.startswith(word[:_STEM]) for w in there) for word in words):
            left.append(value.replace("_", " "))
    return tuple(left)


def _names(schema: Mapping[str, Json]) -> list[str]:
    """The names of all fields of a schema, those of what it is made of too."""
    inner = [part for part in schema.get("$defs", {}).values() if isinstance(part, dict)]
    return [name for part in (schema, *inner) for name in part.get("properties", {})]


def _tells(claim: Claim, bounds: _Spans, units: Units) -> bool:
    """Whether leaving it out would change the question: a whole date, a figure with a unit or one that bounds."""
    if claim.kind == "date":
        return None not in claim.date
    telling = bool(claim.units & units) or "." in claim.text or bounds.touch(claim)
    return claim.number is not None and telling and claim.text[:1] in _DIGITS


class _Spans:
    """Places of a text, in order."""

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        self._spans = spans
        self._starts = [start for start, _ in spans]

    def touch(self, claim: Claim) -> bool:
        """Whether a claim begins or ends in one of them."""
        begins, ends = bisect_right(self._starts, claim.start) - 1, bisect_left(self._starts, claim.end) - 1
        return (begins >= 0 and claim.start < self._spans[begins][1]) or (
            ends >= 0 and claim.end <= self._spans[ends][1]
        )


class _Taken:
    """The values that a call would be made with."""

    def __init__(self, given: Mapping[str, Sequence[Json]]) -> None:
        values = [item for several in given.values() for item in several]
        self._figures = {item for item in values if isinstance(item, int | float)}
        self._texts = frozenset(item for item in values if isinstance(item, str))
        self._together = "\0".join(self._texts)

    def holds(self, claim: Claim) -> bool:
        """Whether a claim is among them."""
        iso = "-".join(f"{part:02d}" for part in claim.date if part is not None)
        if claim.text in self._together or (claim.kind == "date" and iso in self._texts):
            return True
        return claim.number is not None and float(claim.number) in self._figures


def _inner_values(schema: Mapping[str, Json]) -> list[str]:
    """Closed values of what arguments are made of: those that no argument takes by itself."""
    defined = {name: part for name, part in schema.get("$defs", {}).items() if isinstance(part, dict)}
    objects = [part for part in defined.values() if part.get("type") == "object"]
    named = {str(inner.get("$ref", "")).rpartition("/")[2] for part in objects for inner in part["properties"].values()}
    return [value for name in named & set(defined) for value in defined[name].get("enum", ()) if isinstance(value, str)]
