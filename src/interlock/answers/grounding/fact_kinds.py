"""Facts by what they hold: what asks for dates, or for what a change has made untrue, does not go over all texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from interlock.answers.grounding.evidence import NO_DATE, Fact, once

Kind = Literal["text", "number", "time", "date", "truth", "stale"]


def places_by_kind(facts: Sequence[Fact]) -> dict[Kind, list[int]]:
    """The places of the facts that hold a text, a number and so on; each holds one of them. Stale ones once more."""
    texts: list[int] = []
    numbers: list[int] = []
    found: dict[Kind, list[int]] = {"text": texts, "number": numbers, "time": [], "date": [], "truth": [], "stale": []}
    for place, fact in enumerate(facts):
        if fact.text:
            texts.append(place)
        elif fact.number is not None:
            numbers.append(place)
        elif fact.minutes is not None:
            found["time"].append(place)
        elif fact.date != NO_DATE:
            found["date"].append(place)
        elif fact.truth is not None:
            found["truth"].append(place)
        if fact.stale:
            found["stale"].append(place)
    return found


def places_of(facts: Sequence[Fact], *kinds: Kind) -> list[int]:
    """Where the facts stand that hold one of these, in the order in which they were read."""
    places = once(facts, places_by_kind)
    return places[kinds[0]] if len(kinds) == 1 else sorted(place for kind in kinds for place in places[kind])


def facts_of(facts: Sequence[Fact], *kinds: Kind) -> list[Fact]:
    """The facts that hold one of these, in the order in which they were read."""
    return [facts[place] for place in places_of(facts, *kinds)]
