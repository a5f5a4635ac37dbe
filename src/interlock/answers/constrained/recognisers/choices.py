"""Closed values: which of an enum's words a question says, and does not deny."""

from __future__ import annotations

import re
from collections.abc import Sequence

from interlock.answers.constrained.tables import negation
from interlock.tools import normalize
from interlock.values import Json


def find_choices(values: Sequence[Json], text: str) -> tuple[Json, ...]:
    """The values that a text says."""
    words = f" {normalize(text)} "
    said = (value for value in values if isinstance(value, str) and f" {normalize(value)} " in words)
    return tuple(value for value in said if not is_negated(words, normalize(value)))


def is_negated(words: str, name: str) -> bool:
    """Whether every mention is after a "not": what is not meant."""
    places = [found.start() + 1 for found in re.finditer(f" {re.escape(name)} ", words)]
    # One mention that is not denied is enough: "not the north trail of the north side".
    return bool(places) and all(negation().search(words[:place]) for place in places)
