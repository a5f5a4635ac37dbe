"""Closed values: which of an enum's words a question says, and does not deny."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.answers.constrained.tables import negation
from interlock.tools import normalize
from interlock.values import Json

_BEFORE = 120
"""How many characters before a mention are looked at for a "not"."""


def find_choices(values: Sequence[Json], text: str) -> tuple[Json, ...]:
    """The values that a text says."""
    words = f" {normalize(text)} "
    said = (value for value in values if isinstance(value, str) and f" {normalize(value)} " in words)
    return tuple(value for value in said if not is_negated(words, normalize(value)))


def is_negated(words: str, name: str) -> bool:
    """Whether every mention is after a "not": what is not meant."""
    mention, place = f" {name} ", -1
    while (place := words.find(mention, place + 1)) >= 0:
        # One mention that is not denied is enough: "not the north gate of the north side".
        if negation().search(words[max(0, place - _BEFORE) : place + 1]) is None:
            return False
    return mention in words
