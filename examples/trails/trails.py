"""Six tools of a ranger district, for the demonstration: every one of them is an ordinary function."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from interlock import Context, Limits, Result, RetryRule, Tool, tool
from interlock.errors import NotFound, Unavailable
from interlock.resources import Documents

TrailId = Annotated[str, Field(pattern=r"^[a-z-]+-\d{4}$", description="district id, for example waldo-lake-3536")]


class Season(StrEnum):
    """When the trail is looked at."""

    summer = "summer"
    winter = "winter"


class Damage(BaseModel):
    """What was found on a trail."""

    trail_id: str
    damage_class: int = Field(ge=0, le=4)
    downed_trees_per_mile: float


_SURVEY = {
    "waldo-lake-3536": Damage(trail_id="waldo-lake-3536", damage_class=3, downed_trees_per_mile=41.5),
    "shale-ridge-3567": Damage(trail_id="shale-ridge-3567", damage_class=1, downed_trees_per_mile=6.0),
}
_REPORTS = [f"field report {n:02d}: {trail}" for n, trail in enumerate(sorted(_SURVEY) * 20, 1)]


@tool(effect="read", timeout_s=5, capabilities={"trails:read"}, trust="trusted")  # the district's own survey
async def classify_damage(trail_id: TrailId, season: Season = Season.summer) -> Result[Damage]:
    """Damage class of a trail, from the last survey."""
    found = _SURVEY.get(trail_id)
    if found is None:
        raise NotFound(f"no survey of {trail_id}", hints=tuple(_SURVEY))
    return Result(
        value=found,
        summary=f"{trail_id}: class {found.damage_class}, {found.downed_trees_per_mile} downed trees a mile ({season})",
        sources=("survey 2022-10",),
    )


@tool(effect="read", timeout_s=2)
def search_reports(query: str, top_k: int = 5) -> list[str]:
    """Field reports that mention the words."""
    return [report for report in _REPORTS if query.lower() in report][:top_k]


@tool(effect="read", timeout_s=0.3, retry=RetryRule(max_attempts=1))
async def weather_history(station: str) -> dict[str, float]:
    """Daily precipitation from an archive that never answers."""
    await asyncio.sleep(30)
    return {station: 0.0}


@tool(
    effect="read",
    timeout_s=2,
    retry=RetryRule(max_attempts=4, base_s=0.05),
    limits=Limits(cost_usd=0.002),
    outsiders={"unburned", "low", "moderate", "high"},  # by somebody else's service
)
async def burn_severity(fire: str, context: Context) -> dict[str, float]:
    """Burned share by severity class, from a service that is unavailable twice before it answers."""
    if context.attempt < 3:
        raise Unavailable(f"the imagery service is restarting (asked about {fire})")
    return {"unburned": 0.18, "low": 0.31, "moderate": 0.33, "high": 0.18}


@tool(effect="read", redact={"phone"})
async def crew_contact(crew: str, phone: str) -> str:
    """Whether a crew leader can be reached under a number."""
    return f"{crew} answers at {phone}"


CLOSURES = Documents(f"sqlite:///{Path(__file__).parent / 'closures.db'}", "closures")


@tool(
    effect="write",
    key="{trail_id}",
    resource=CLOSURES,
    simulate=lambda _state, arguments: {"closed": arguments["closed"], "reason": arguments["reason"]},
)
async def set_closure(trail_id: TrailId, closed: bool, reason: str, context: Context) -> bool:
    """Close or open a trail."""
    await CLOSURES.write(trail_id, {"closed": closed, "reason": reason}, context)
    return closed


TOOLS: list[Tool] = [classify_damage, search_reports, weather_history, burn_severity, crew_contact, set_closure]
