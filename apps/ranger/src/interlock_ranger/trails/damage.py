"""What is broken along trails, how badly, and what repairing it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from interlock import Result
from interlock.errors import InvalidInput
from interlock_ranger.evidence import Finding, Part, Recommendation, Step, Today, confidence, finding
from interlock_ranger.fires import DamagePoint, Fire, Trail
from interlock_ranger.rules import rule
from interlock_ranger.trails.where import chosen, where_said

LISTED = 60
WITH_POINTS = 25
"""Up to so many trails, every point is listed too."""


class DamageType(StrEnum):
    """The house classes."""

    TYPE_I = "TYPE_I"
    TYPE_II = "TYPE_II"
    TYPE_III = "TYPE_III"
    TYPE_IV = "TYPE_IV"


class Kind(StrEnum):
    """What broke."""

    BRIDGE_FAILURE = "BRIDGE_FAILURE"
    DEBRIS_FLOW = "DEBRIS_FLOW"
    HAZARD_TREES = "HAZARD_TREES"
    TREAD_EROSION = "TREAD_EROSION"
    SIGNAGE = "SIGNAGE"
    CULVERT_DAMAGE = "CULVERT_DAMAGE"
    PUNCHEON_FAILURE = "PUNCHEON_FAILURE"


STRUCTURES = (Kind.BRIDGE_FAILURE, Kind.CULVERT_DAMAGE, Kind.PUNCHEON_FAILURE)


class PointGiven(Part):
    """A damage point that the caller brings."""

    type: Kind
    severity: Annotated[int, Field(ge=1, le=5)]
    milepost: Annotated[float, Field(ge=0)]
    estimated_cost_usd: Annotated[int, Field(ge=0)]
    crew_days: Annotated[int, Field(ge=0)] | None = None


class PointFound(Part):
    """A damage point with its class."""

    damage_id: str
    milepost: float
    type: Kind
    severity: int
    damage_type: DamageType
    estimated_cost_usd: int
    crew_days: int | None


class TrailDamage(Part):
    """The damage of one trail."""

    trail_id: str
    name: str
    miles: float
    current_status: str
    points: int
    worst: DamageType | None
    worst_severity: int
    mean_severity: float
    hazard_zone: bool
    structures: int
    cost_usd: int
    crew_days: int | None
    """None if it is not known of every point."""
    listed: tuple[PointFound, ...]
    rule: str = "trails.damage-types"


class OfType(Part):
    """All points of one class."""

    damage_type: DamageType
    points: int
    cost_usd: int


class Damage(Finding):
    """What is broken."""

    fire_id: str
    name: str
    trail_count: int
    points: int
    cost_usd: int
    crew_days: int | None
    by_type: tuple[OfType, ...]
    by_kind: dict[str, int]
    trails: tuple[TrailDamage, ...]
    """The worst first, at most 60."""


def type_of(severity: int) -> DamageType:
    """The class of a severity from 1 to 5."""
    return tuple(DamageType)[max(0, severity - 2)]


def classed(
    fire: Fire, trail_id: str | None, near: str | None, given: list[PointGiven] | None, today: Today
) -> Result[Damage]:
    """The damage of the trails that are meant."""
    trails = chosen(fire, trail_id, near)
    if given is not None:
        trails = (_with(trails, given),)
    listed = len(trails) <= WITH_POINTS
    found = sorted((_trail(trail, listed) for trail in trails), key=lambda t: (-t.worst_severity, -t.cost_usd))
    points = [point for trail in trails for point in trail.damage_points]
    sources = (fire.source("trails.json", fire.facts.survey_date),)
    value = {
        "fire_id": fire.id,
        "name": fire.facts.name,
        "trail_count": len(trails),
        "points": len(points),
        "cost_usd": sum(trail.cost_usd for trail in trails),
        "crew_days": _crew_days(points),
        "by_type": tuple(_of_type(kind, points) for kind in DamageType),
        "by_kind": dict(sorted(Counter(point.type for point in points).items())),
        "trails": tuple(found[:LISTED]),
        "reasoning": (
            Step(rule="trails.damage-types", said=f"{len(points)} points of {len(trails)} trails classed by severity"),
            Step(rule="trails.hazard-zone", said=_zones(found)),
        ),
        "recommendations": tuple(
            Recommendation(rule="trails.damage-types", text=f"{t.name}: plan {t.worst} work, ${t.cost_usd:,} in all")
            for t in found[:3]
            if t.worst in (DamageType.TYPE_III, DamageType.TYPE_IV)
        ),
    }
    surveyed = sum(bool(trail.damage_points) for trail in trails)
    trust = confidence(today(), sources, surveyed, len(trails))
    whose = " (points of the caller)" if given is not None else ""
    return finding(Damage, _said(fire, near, value, found) + whose, value, sources, trust)


def _with(trails: Sequence[Trail], given: list[PointGiven]) -> Trail:
    if len(trails) != 1:
        raise InvalidInput("damage_points belong to one trail: name it with trail_id")
    if not given:
        raise InvalidInput("damage_points is empty; leave it out to use those on file")
    trail = trails[0]
    beyond = [point.milepost for point in given if point.milepost > trail.miles]
    if beyond:
        raise InvalidInput(f"{trail.name} is {trail.miles} miles long; there is no milepost {beyond[0]:g}")
    points = tuple(
        DamagePoint(f"given-{n}", p.milepost, p.type, p.severity, 0.0, 0.0, p.estimated_cost_usd, "", p.crew_days)
        for n, p in enumerate(given, 1)
    )
    return Trail(
        trail.trail_id,
        trail.name,
        trail.trail_class,
        trail.miles,
        trail.current_status,
        trail.jurisdiction,
        trail.annual_visits,
        trail.line,
        points,
    )


def _trail(trail: Trail, listed: bool) -> TrailDamage:
    points = trail.damage_points
    worst = max((point.severity for point in points), default=0)
    mean = sum(point.severity for point in points) / len(points) if points else 0.0
    zone = rule("trails.hazard-zone").values
    return TrailDamage(
        trail_id=trail.trail_id,
        name=trail.name,
        miles=trail.miles,
        current_status=trail.current_status,
        points=len(points),
        worst=type_of(worst) if points else None,
        worst_severity=worst,
        mean_severity=round(mean, 2),
        hazard_zone=sum(point.severity >= zone["severity"] for point in points) >= zone["points"],
        structures=sum(point.type in STRUCTURES for point in points),
        cost_usd=trail.cost_usd,
        crew_days=_crew_days(points),
        listed=tuple(_point(point) for point in sorted(points, key=lambda p: p.milepost)) if listed else (),
    )


def _crew_days(points: Sequence[DamagePoint]) -> int | None:
    days = [point.crew_days for point in points]
    return None if None in days else sum(day for day in days if day is not None)


def _effort(cost_usd: int, crew_days: int | None) -> str:
    return f"${cost_usd:,}" + ("" if crew_days is None else f" and {crew_days} crew days") + " to repair"


def _point(point: DamagePoint) -> PointFound:
    return PointFound(
        damage_id=point.damage_id,
        milepost=point.milepost,
        type=Kind(point.type),
        severity=point.severity,
        damage_type=type_of(point.severity),
        estimated_cost_usd=point.estimated_cost_usd,
        crew_days=point.crew_days,
    )


def _of_type(kind: DamageType, points: Sequence[DamagePoint]) -> OfType:
    own = [point for point in points if type_of(point.severity) is kind]
    return OfType(damage_type=kind, points=len(own), cost_usd=sum(point.estimated_cost_usd for point in own))


def _zones(found: Sequence[TrailDamage]) -> str:
    names = [trail.name for trail in found if trail.hazard_zone]
    return f"hazard zones: {', '.join(names[:8]) or 'none'}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _said(fire: Fire, near: str | None, value: dict[str, Any], found: Sequence[TrailDamage]) -> str:
    if len(found) == 1:
        t = found[0]
        parts = ", ".join(
            f"{p.type.value.replace('_', ' ').lower()} at mile {p.milepost} (severity {p.severity},"
            f" ${p.estimated_cost_usd:,})"
            for p in t.listed
        )
        worst = f", worst {t.worst.value}" if t.worst is not None else ""
        where = where_said(fire, near) and f" (the only one{where_said(fire, near)})"
        return (
            f"{t.name}{where}: {t.points} damage point{'s' * (t.points != 1)}{worst},"
            f" {_effort(t.cost_usd, t.crew_days)};"
            f" {parts or 'no damage on file'}"
        )
    types: tuple[OfType, ...] = value["by_type"]
    split = ", ".join(f"{t.damage_type.value} {t.points} (${t.cost_usd:,})" for t in reversed(types))
    by_kind: dict[str, int] = value["by_kind"]
    kinds = ", ".join(f"{name.replace('_', ' ').lower()} {count}" for name, count in by_kind.items())
    worst_hit = ", ".join(f"{t.name} ${t.cost_usd:,}" for t in found[:3])
    return (
        f"{fire.facts.name}{where_said(fire, near)}: {value['points']} damage points on {value['trail_count']} trails,"
        f" {_effort(value['cost_usd'], value['crew_days'])}; {split}; {kinds}; worst: {worst_hit}"
    )
