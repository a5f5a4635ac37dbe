"""The Trail Assessor's tools."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from interlock import Result, Tool, tool
from interlock_ranger.evidence import Today
from interlock_ranger.fires import Fires
from interlock_ranger.trails.closure import Closures, Season, evaluate_closures
from interlock_ranger.trails.damage import DamageAssessment, DamagePointInput, assess_damage
from interlock_ranger.trails.location import near_names, trail_names
from interlock_ranger.trails.priority import Priorities, prioritize_repairs

_SEASONS = {
    "summer": ("June", "July", "August"),
    "fall": ("autumn", "September", "October", "November", "hunting season", "elk season", "Thanksgiving"),
    "winter": ("December", "January", "February", "snow season", "Christmas", "New Year"),
    "spring": ("March", "April", "May", "snowmelt"),
}
SEASONS = {
    name: (*others, *(f"{how} {name}" for how in ("this", "next", "early", "late", "mid", "coming")))
    for name, others in _SEASONS.items()
}


def build_trail_tools(fires: Fires, today: Today) -> tuple[Tool, ...]:
    known = {"fire_id": fires.names(), "trail_id": trail_names(fires), "near": near_names(fires)}

    @tool(effect="read", known_values=known)
    def classify_damage(
        fire_id: str | None = None,
        trail_id: str | None = None,
        near: str | None = None,
        damage_points: list[DamagePointInput] | None = None,
    ) -> Result[DamageAssessment]:
        """What is broken along a trail, near a place, or on all trails of a fire: points, classes, cost, crew days.

        `damage_points`: your own points for one trail instead of those on file.
        """
        fire, ids = fires.find(fire_id, trail=trail_id, place=near)
        return assess_damage(fire, ids["trail"], ids["place"], damage_points, today)

    @tool(effect="read", known_values={**known, "season": SEASONS})
    def evaluate_closure(
        fire_id: str | None = None,
        trail_id: str | None = None,
        near: str | None = None,
        season: Season | None = None,
    ) -> Result[Closures]:
        """Whether trails should be open, restricted or closed in a season, and why: risk, hazard trees, current status.

        Without a season, that of today's date is used, and said.
        """
        fire, ids = fires.find(fire_id, trail=trail_id, place=near)
        return evaluate_closures(fire, ids["trail"], ids["place"], season, today)

    @tool(effect="read", known_values={"fire_id": fires.names()})
    def prioritize_trails(budget_usd: Annotated[int, Field(gt=0)], fire_id: str | None = None) -> Result[Priorities]:
        """Which trails of a fire to repair with a budget in dollars: the set that serves the most visits a year."""
        return prioritize_repairs(fires.find(fire_id).fire, budget_usd, today)

    return classify_damage, evaluate_closure, prioritize_trails
