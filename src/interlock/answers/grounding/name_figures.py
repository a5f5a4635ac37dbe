"""Figures that are part of what a thing is called: the 36 of "Rope Walk 36" counts nothing and costs nothing."""

from __future__ import annotations

from interlock.answers.grounding.binding import Bound
from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.words import WordTable


def is_only_a_name(fact: Fact, claim: Claim, bound: Bound, words: WordTable) -> bool:
    """Whether a figure is said as an amount, and stands in the results as part of a name alone.

    Said in words, with a unit, or before a noun that the name does not have, it is no repetition of the name.
    """
    name = _name_around(fact)
    if not name:
        return False
    in_words = not any(char.isdigit() for char in claim.text)
    return in_words or bool(claim.units) or (bool(bound.noun) and not bound.noun & words.in_name(name))


def _name_around(fact: Fact) -> str:
    """The name of several words that a figure of a text stands in; empty if the text is more than a name."""
    if not fact.prose or fact.number is None or fact.units:
        return ""
    figure = f"{fact.number:f}"
    names = (name for same in fact.place.row.names.values() for name in same)
    return next((name for name in names if any(map(str.isalpha, name)) and figure in name.split()), "")
