"""What a question says and a call would leave out: then the call answers something else than was asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from interlock.answers.constrained.recognisers.figures import in_figures
from interlock.answers.constrained.tables import bound
from interlock.answers.grounding import Vocabulary
from interlock.answers.grounding.claims import NO_UNIT, Claim, Units
from interlock.models.messages import ToolCard
from interlock.tools import normalize
from interlock.values import Json

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
    values = [item for several in given.values() for item in several]
    left = [
        claim.text for claim in vocabulary.claims(text) if _tells(claim, text, units) and not _is_taken(claim, values)
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


def _tells(claim: Claim, text: str, units: Units) -> bool:
    """Whether leaving it out would change the question: a whole date, a figure with a unit or one that bounds."""
    if claim.kind == "date":
        return None not in claim.date
    bounds = any(
        found.start() <= claim.start < found.end() or found.start() < claim.end <= found.end()
        for found in bound().finditer(text)
    )
    telling = bool(claim.units & units) or "." in claim.text or bounds
    return claim.number is not None and telling and claim.text[:1] in _DIGITS


def _is_taken(claim: Claim, values: Sequence[Json]) -> bool:
    said = [item for item in values if isinstance(item, str)]
    iso = "-".join(f"{part:02d}" for part in claim.date if part is not None)
    if any(claim.text in item for item in said) or (claim.kind == "date" and iso in said):
        return True
    return claim.number is not None and any(
        float(claim.number) == item for item in values if isinstance(item, int | float)
    )


def _inner_values(schema: Mapping[str, Json]) -> list[str]:
    """Closed values of what arguments are made of: those that no argument takes by itself."""
    defined = {name: part for name, part in schema.get("$defs", {}).items() if isinstance(part, dict)}
    objects = [part for part in defined.values() if part.get("type") == "object"]
    named = {str(inner.get("$ref", "")).rpartition("/")[2] for part in objects for inner in part["properties"].values()}
    return [value for name in named & set(defined) for value in defined[name].get("enum", ()) if isinstance(value, str)]
