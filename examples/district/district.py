"""A ranger district after a fire: five tools over small tables, and the agent that answers from them."""

from __future__ import annotations

import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Any

from interlock import Result, tool
from interlock.answers import Agent, App, Intent
from interlock.errors import NotFound

HERE = Path(__file__).parent
DATA: dict[str, Any] = tomllib.loads((HERE / "data.toml").read_text(encoding="utf-8"))
TRAILS: dict[str, dict[str, Any]] = DATA["trails"]
FIRES: dict[str, dict[str, Any]] = DATA["fires"]
PLOTS: dict[str, dict[str, Any]] = DATA["plots"]
SURVEY = "district survey 2022-10-20"

TRAIL_NAMES = {key: trail["name"] for key, trail in TRAILS.items()}
FIRE_NAMES = {
    key: (fire["name"], f"{fire['name']} fire", f"{fire['name']} {fire['year']}") for key, fire in FIRES.items()
}
SECTORS = {sector: f"sector {sector}" for fire in FIRES.values() for sector in fire["sectors"]}
PLOT_NAMES = {key: (f"plot {key}", key.split("-")[1].capitalize()) for key in PLOTS}


class Season(StrEnum):
    """When a trail is used."""

    summer = "summer"
    fall = "fall"
    winter = "winter"
    spring = "spring"


SEASONS: dict[str, tuple[str, ...]] = {"summer": (), "fall": ("autumn",), "winter": (), "spring": ()}
_SEASON_RISK = {Season.summer: 0, Season.fall: 10, Season.winter: 20, Season.spring: 15}


@tool(effect="read", trust="trusted", known_values={"trail_id": TRAIL_NAMES})
async def classify_damage(trail_id: str) -> Result[dict[str, Any]]:
    """What is broken along a trail: damage points by type, the worst class, and what the repair costs."""
    trail = TRAILS[trail_id]
    points = trail["damage"]
    value = {
        "trail_id": trail_id,
        "name": trail["name"],
        "miles": trail["miles"],
        "damage_points": len(points),
        "worst_class": max((point["class"] for point in points), default=0),
        "by_type": {kind: sum(p["type"] == kind for p in points) for kind in sorted({p["type"] for p in points})},
        "repair_cost_usd": sum(point["cost_usd"] for point in points),
    }
    said = f"{trail['name']}: {len(points)} damage points, worst class {value['worst_class']}"
    return Result(value=value, summary=said, sources=(SURVEY,))


@tool(effect="read", trust="trusted", known_values={"trail_id": TRAIL_NAMES, "season": SEASONS})
async def evaluate_closure(trail_id: str, season: Season = Season.summer) -> Result[dict[str, Any]]:
    """Whether a trail should be open, restricted or closed in a season, from damage and hazard trees."""
    trail = TRAILS[trail_id]
    worst = max((point["class"] for point in trail["damage"]), default=0)
    risk = min(100, worst * 15 + trail["hazard_trees_per_mile"] * 2 + _SEASON_RISK[season])
    advice = "closed" if risk >= 70 else "restricted" if risk >= 45 else "open"
    value = {
        "trail_id": trail_id,
        "name": trail["name"],
        "season": season.value,
        "risk_score": risk,
        "advice": advice,
        "hazard_trees_per_mile": trail["hazard_trees_per_mile"],
    }
    said = f"{trail['name']} in {season.value}: {advice}, risk score {risk}"
    return Result(value=value, summary=said, sources=(SURVEY,))


@tool(effect="read", trust="trusted")
async def prioritize_trails(budget_usd: int) -> Result[dict[str, Any]]:
    """Which trails to repair first with an amount of money: the most used for the least cost."""
    costs = {key: sum(point["cost_usd"] for point in trail["damage"]) for key, trail in TRAILS.items()}
    chosen: list[str] = []
    left = budget_usd
    for key in sorted(TRAILS, key=lambda name: -TRAILS[name]["visits"] / max(1, costs[name])):
        if costs[key] <= left and costs[key] > 0:
            chosen.append(key)
            left -= costs[key]
    value = {
        "budget_usd": budget_usd,
        "trails": [{"trail_id": key, "name": TRAILS[key]["name"], "cost_usd": costs[key]} for key in chosen],
        "spent_usd": budget_usd - left,
        "left_usd": left,
    }
    names = ", ".join(TRAILS[key]["name"] for key in chosen) or "none"
    return Result(value=value, summary=f"for ${budget_usd:,}: {names}", sources=(SURVEY,))


@tool(effect="read", trust="trusted", known_values={"fire_id": FIRE_NAMES, "sector": SECTORS})
async def assess_severity(fire_id: str, sector: str | None = None) -> Result[dict[str, Any]]:
    """How badly a fire burned, whole or in one sector: acres, share of high severity, mean dNBR."""
    fire = FIRES[fire_id]
    sectors = fire["sectors"]
    if sector is not None and sector not in sectors:
        raise NotFound(f"{fire['name']} has no sector {sector}", hints=tuple(sectors))
    chosen = {sector: sectors[sector]} if sector is not None else sectors
    acres = sum(part["acres"] for part in chosen.values())
    high = sum(part["acres"] for part in chosen.values() if part["dnbr"] >= 0.66)
    value = {
        "fire_id": fire_id,
        "name": fire["name"],
        "sector": sector,
        "acres": acres,
        "high_severity_acres": high,
        "high_severity_pct": round(100 * high / acres, 1),
        "mean_dnbr": round(sum(p["dnbr"] * p["acres"] for p in chosen.values()) / acres, 2),
    }
    where = fire["name"] if sector is None else f"{fire['name']}, sector {sector}"
    said = f"{where}: {acres:,} acres, {value['high_severity_pct']} % high severity"
    return Result(value=value, summary=said, sources=("Landsat dNBR 2022-11-02",))


@tool(effect="read", trust="trusted", known_values={"plot_id": PLOT_NAMES})
async def estimate_volume(plot_id: str) -> Result[dict[str, Any]]:
    """Timber in a plot: volume in MBF per acre, main species, dead share."""
    plot = PLOTS[plot_id]
    value = {"plot_id": plot_id, **plot}
    said = f"plot {plot_id}: {plot['mbf_per_acre']} MBF per acre, {plot['dead_pct']} % dead"
    return Result(value=value, summary=said, sources=("cruise 2023-06",))


TOOLS = (classify_damage, evaluate_closure, prioritize_trails, assess_severity, estimate_volume)
INTENTS = tuple(
    Intent(
        name=item["name"],
        requires=item["requires"],
        keywords=tuple(item["keywords"]),
        examples=tuple(item["examples"]),
    )
    for item in tomllib.loads((HERE / "intents.toml").read_text(encoding="utf-8"))["intent"]
)
AGENT = Agent(
    name="district-ranger",
    tools=tuple(item.name for item in TOOLS),
    intents=INTENTS,
    purpose="You are the data assistant of a ranger district that recovers from a wildfire.",
    deadline_s=120,
)
APP = App(
    name="district",
    agents=(AGENT,),
    tools=TOOLS,
    policy=HERE / "policy.toml",
    description="Trails, burn severity and timber of a district after a fire.",
)
