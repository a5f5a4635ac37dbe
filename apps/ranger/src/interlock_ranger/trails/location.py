"""Which trails a question is about: one by name, those near a place, or all of a fire."""

from __future__ import annotations

import re
from collections.abc import Callable

from shapely.geometry import shape

from interlock.errors import NotFound
from interlock_ranger.fires import Fires
from interlock_ranger.geo import GEOD, MILE_M
from interlock_ranger.part_names import PartKind
from interlock_ranger.records import Fire, Place, Trail

_ARGUMENT_WORDS = 4
"""A text of so few words is an argument, not a question."""
# "near Waldo Lake", "close to the Waldo Lake"; not "the Waldo Lake trail", where the place is only part of a name.
_NEAR = re.compile(r"\b(?:near|around|close to|next to|in the vicinity of|about)\s+(?:the\s+)?", re.I)
"""What stands before the name of a place that something is near to."""


def near_names(fires: Fires) -> Callable[[str], dict[str, tuple[str, ...]]]:
    """Places that a text says something is near to."""

    def find_places(text: str) -> dict[str, tuple[str, ...]]:
        places = fires.part_names(PartKind.PLACE)
        # The argument `near` alone ("Waldo Lake") is matched by the same function, and has no word that says near.
        if len(text.split()) <= _ARGUMENT_WORDS:
            return places
        return {key: names for key, names in places.items() if any(_is_near(text, name) for name in names)}

    return find_places


def trail_names(fires: Fires) -> Callable[[str], dict[str, tuple[str, ...]]]:
    """Trails, but not those that only share their name with a place that something is near to."""

    def find_trails(text: str) -> dict[str, tuple[str, ...]]:
        trails = fires.part_names(PartKind.TRAIL)
        places = fires.part_names(PartKind.PLACE).values()
        if not any(_is_near(text, name) for names in places for name in names):
            return trails
        # "Trails near Waldo Lake" is not about the Waldo Lake Trail; one whose whole name is said is still meant.
        return {key: names for key, names in trails.items() if any(n.lower() in text.lower() for n in names)}

    return find_trails


def _is_near(text: str, name: str) -> bool:
    return any(text[found.end() :].lower().startswith(name.lower()) for found in _NEAR.finditer(text))


def select_trails(fire: Fire, trail_id: str | None, near: str | None) -> tuple[Trail, ...]:
    """The trail that is named, those near a place, or all of the fire."""
    if trail_id is not None:
        trail = fire.trails[trail_id]
        # Both may come out of one question: that they do not go together is said, instead of dropping one of them.
        if near is not None and distance_mi(fire.facts.places[near], trail) > fire.facts.places[near].radius_mi:
            raise NotFound(f"{trail.name} is not near {fire.facts.places[near].name}")
        return (trail,)
    trails = tuple(fire.trails.values())
    if not trails:
        raise NotFound(f"{fire.facts.name} has no trails on file")
    if near is None:
        return trails
    place = fire.facts.places[near]
    found = tuple(trail for trail in trails if distance_mi(place, trail) <= place.radius_mi)
    if not found:
        raise NotFound(f"no trail of {fire.facts.name} lies within {place.radius_mi:g} miles of {place.name}")
    return found


def distance_mi(place: Place, trail: Trail) -> float:
    """How far a trail stays from a place at the least, along the ground."""
    points = shape(trail.line).coords
    count = len(points)
    # To the points of the line and not to its segments: pyproj measures geodesics between positions only.
    _, _, metres = GEOD.inv(
        [place.longitude] * count, [place.latitude] * count, [p[0] for p in points], [p[1] for p in points]
    )
    return float(min(metres)) / MILE_M


def describe_place(fire: Fire, near: str | None) -> str:
    """The place, for a sentence; nothing if none was named."""
    return f" near {fire.facts.places[near].name}" if near is not None else ""
