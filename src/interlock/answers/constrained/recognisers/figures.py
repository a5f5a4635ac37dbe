"""Figures for arguments: those of the argument's own unit; "240 acres" are no miles."""

from __future__ import annotations

import re

from interlock.answers.constrained.tables import table
from interlock.answers.grounding import Vocabulary
from interlock.answers.grounding.claims import Claim, Units
from interlock.tools import normalize
from interlock.values import Json

_STEM = 4  # "orders" for `order_count`, "closing" for `close_date`


def figures_for(
    name: str, kind: str, text: str, vocabulary: Vocabulary, *, alone: bool, required: bool
) -> tuple[Json, ...]:
    """The figures that an argument can mean: of its unit, if its name has one.

    One that may be left out is filled only where its unit belongs to no other argument, or its own words are there.
    """
    wanted = vocabulary.units.in_name(name)
    words = [word for word in normalize(name).split() if not vocabulary.units.in_name(word)]
    there = normalize(text).split()
    named = bool(words) and all(any(w.startswith(word[:_STEM]) for w in there) for word in words)
    if not (alone or named):
        return ()
    said = [claim for claim in vocabulary.claims(in_figures(text, vocabulary)) if claim.number is not None]
    # Where one figure has the unit, those without any are not for this argument: "240 acres in 3 units".
    exact = any(claim.units & wanted for claim in said)
    fits = [claim for claim in said if _fits(claim, wanted, exact=exact, otherwise=required or named)]
    found = [_as_number(claim, kind) for claim in fits]
    return tuple(value for value in found if value is not None)


def _fits(claim: Claim, wanted: Units, *, exact: bool, otherwise: bool) -> bool:
    return bool(claim.units & wanted) if exact or (claim.units and wanted) else otherwise


def _as_number(claim: Claim, kind: str) -> Json:
    assert claim.number is not None
    if kind == "number":
        return float(claim.number)
    return int(claim.number) if claim.number == claim.number.to_integral_value() else None


def in_figures(text: str, vocabulary: Vocabulary) -> str:
    """Half a mile is 0.5 mile."""
    parts: dict[str, str] = table()["parts"]
    pattern = rf"\b(?:a\s+|one\s+)?({'|'.join(parts)})(?:\s+of)?\s+(?:an?\s+)?(per cent|[\w%]+)"

    def in_figure(match: re.Match[str]) -> str:
        return f"{parts[match[1].lower()]} {match[2]}" if vocabulary.units.of(match[2]) else match[0]

    return re.sub(pattern, in_figure, text, flags=re.I)
