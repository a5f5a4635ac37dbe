"""What is broken along trails, how badly, and what repairing it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import msgspec
from pydantic import Field

from interlock import Result
from interlock.errors import InvalidInput
from interlock_ranger.evidence import (
    Evidence,
    Finding,
    Part,
    Recommendation,
    Step,
    Today,
    build_result,
    compute_confidence,
)
from interlock_ranger.records import DamageKind, DamagePoint, Fire, Trail, TrailStatus
from interlock_ranger.rules import get_rule
from interlock_ranger.trails.location import describe_place, select_trails

LISTED = 60
"""So many trails a result has at the most."""
WITH_POINTS = 25
"""Up to so many trails, every point is listed too."""
NAMED_ZONES = 8
WORST_SEVERITY = 5
"""Severity runs from 1 to this."""


class DamageType(StrEnum):
    """The house classes, by severity."""

    TYPE_I = "TYPE_I"
    TYPE_II = "TYPE_II"
    TYPE_III = "TYPE_III"
    TYPE_IV = "TYPE_IV"


STRUCTURES = (DamageKind.BRIDGE_FAILURE, DamageKind.CULVERT_DAMAGE, DamageKind.PUNCHEON_FAILURE)


class DamagePointInput(Part):
    """A damage point that the caller brings."""

    type: DamageKind
    severity: Annotated[int, Field(ge=1, le=5)]
    milepost: Annotated[float, Field(ge=0)]
    estimated_cost_usd: Annotated[int, Field(ge=0)]
    crew_days: Annotated[int, Field(ge=0)] | None = None


class ClassifiedPoint(Part):
    damage_id: str
    milepost: float
    type: DamageKind
    severity: int
    damage_type: DamageType
    estimated_cost_usd: int
    crew_days: int | None


class TrailDamage(Part):
    trail_id: str
    name: str
    miles: float
    current_status: TrailStatus
    points: int
    worst: DamageType | None
    worst_severity: int
    mean_severity: float
    hazard_zone: bool
    structures: int
    cost_usd: int
    crew_days: int | None
    """None if it is not known of every point."""
    damage_points: tuple[ClassifiedPoint, ...]
    rule: str = "trails.damage-types"


class DamageTypeTotal(Part):
    """All points of one class."""

    damage_type: DamageType
    points: int
    cost_usd: int


class DamageAssessment(Finding):
    fire_id: str
    name: str
    trail_count: int
    points: int
    cost_usd: int
    crew_days: int | None
    by_type: tuple[DamageTypeTotal, ...]
    by_kind: dict[str, int]
    trails: tuple[TrailDamage, ...]
    """The worst first, at most 60."""


def damage_type(severity: int) -> DamageType:
    """The class of a severity: 1 and 2 are both the lightest."""
    return tuple(DamageType)[max(0, severity - 2)]


def assess_damage(
    fire: Fire, trail_id: str | None, near: str | None, given: list[DamagePointInput] | None, today: Today
) -> Result[DamageAssessment]:
    """The damage of the trails that are meant; `given` replaces the points on file of one trail."""
    trails = select_trails(fire, trail_id, near)
    if given is not None:
        trails = (_replace_points(trails, given),)
    with_points = len(trails) <= WITH_POINTS
    found = sorted(
        (_assess_trail(trail, with_points) for trail in trails), key=lambda t: (-t.worst_severity, -t.cost_usd)
    )
    points = [point for trail in trails for point in trail.damage_points]
    sources = (fire.source("trails.json"),)
    surveyed = sum(bool(trail.damage_points) for trail in trails)
    classified = f"{len(points)} points of {len(trails)} trails classed by severity"
    evidence = Evidence(
        reasoning=(
            Step(rule="trails.damage-types", text=classified),
            Step(rule="trails.hazard-zone", text=_describe_zones(found)),
        ),
        recommendations=tuple(
            Recommendation(rule="trails.damage-types", text=f"{t.name}: plan {t.worst} work, ${t.cost_usd:,} in all")
            for t in found[:3]
            if t.worst in (DamageType.TYPE_III, DamageType.TYPE_IV)
        ),
        confidence=compute_confidence(today(), sources, surveyed, len(trails)),
        data_sources=sources,
    )
    assessment = DamageAssessment(
        fire_id=fire.id,
        name=fire.facts.name,
        trail_count=len(trails),
        points=len(points),
        cost_usd=sum(trail.cost_usd for trail in trails),
        crew_days=sum_crew_days(points),
        by_type=tuple(_total_by_type(kind, points) for kind in DamageType),
        by_kind=dict(sorted(Counter(point.type for point in points).items())),
        trails=tuple(found[:LISTED]),
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    where = describe_place(fire, near)
    summary = _summarise_trail(found[0], where) if len(found) == 1 else _summarise_trails(assessment, where)
    return build_result(assessment, summary + (" (points of the caller)" if given is not None else ""))


def _replace_points(trails: Sequence[Trail], given: list[DamagePointInput]) -> Trail:
    if len(trails) != 1:
        raise InvalidInput("damage_points belong to one trail: name it with trail_id")
    if not given:
        raise InvalidInput("damage_points is empty; leave it out to use those on file")
    trail = trails[0]
    beyond = [point.milepost for point in given if point.milepost > trail.miles]
    if beyond:
        raise InvalidInput(f"{trail.name} is {trail.miles} miles long; there is no milepost {beyond[0]:g}")
    points = tuple(
        DamagePoint(
            damage_id=f"given-{n}",
            milepost=point.milepost,
            type=point.type,
            severity=point.severity,
            # The caller's points have no position. No result shows one, and maps are drawn from the points on file.
            longitude=0.0,
            latitude=0.0,
            estimated_cost_usd=point.estimated_cost_usd,
            work_type="",
            crew_days=point.crew_days,
        )
        for n, point in enumerate(given, 1)
    )
    return msgspec.structs.replace(trail, damage_points=points)


def _assess_trail(trail: Trail, with_points: bool) -> TrailDamage:
    points = trail.damage_points
    worst = max((point.severity for point in points), default=0)
    mean = sum(point.severity for point in points) / len(points) if points else 0.0
    zone = get_rule("trails.hazard-zone").values
    listed = sorted(points, key=lambda point: point.milepost) if with_points else ()
    return TrailDamage(
        trail_id=trail.trail_id,
        name=trail.name,
        miles=trail.miles,
        current_status=trail.current_status,
        points=len(points),
        worst=damage_type(worst) if points else None,
        worst_severity=worst,
        mean_severity=round(mean, 2),
        # Counted, not averaged: a mean of severities fell when small damage was added (docs/design/ranger.md).
        hazard_zone=sum(point.severity >= zone["severity"] for point in points) >= zone["points"],
        structures=sum(point.type in STRUCTURES for point in points),
        cost_usd=trail.cost_usd,
        crew_days=sum_crew_days(points),
        damage_points=tuple(_classify_point(point) for point in listed),
    )


def sum_crew_days(points: Sequence[DamagePoint]) -> int | None:
    """Crew days of all points; None if those of one are not known."""
    days = [point.crew_days for point in points]
    # A total that leaves one point out would pass for an estimate of the whole.
    return None if None in days else sum(day for day in days if day is not None)


def _classify_point(point: DamagePoint) -> ClassifiedPoint:
    return ClassifiedPoint(
        damage_id=point.damage_id,
        milepost=point.milepost,
        type=point.type,
        severity=point.severity,
        damage_type=damage_type(point.severity),
        estimated_cost_usd=point.estimated_cost_usd,
        crew_days=point.crew_days,
    )


def _total_by_type(kind: DamageType, points: Sequence[DamagePoint]) -> DamageTypeTotal:
    own = [point for point in points if damage_type(point.severity) is kind]
    return DamageTypeTotal(damage_type=kind, points=len(own), cost_usd=sum(point.estimated_cost_usd for point in own))


def _describe_zones(found: Sequence[TrailDamage]) -> str:
    names = [trail.name for trail in found if trail.hazard_zone]
    more = f" and {len(names) - NAMED_ZONES} more" if len(names) > NAMED_ZONES else ""
    return f"hazard zones: {', '.join(names[:NAMED_ZONES]) or 'none'}{more}"


def _describe_effort(cost_usd: int, crew_days: int | None) -> str:
    return f"${cost_usd:,}" + ("" if crew_days is None else f" and {crew_days} crew days") + " to repair"


def _summarise_trail(t: TrailDamage, where: str) -> str:
    points = ", ".join(
        f"{p.type.value.replace('_', ' ').lower()} at mile {p.milepost} (severity {p.severity},"
        f" ${p.estimated_cost_usd:,})"
        for p in t.damage_points
    )
    worst = f", worst {t.worst.value}" if t.worst is not None else ""
    only = f" (the only one{where})" if where else ""
    return (
        f"{t.name}{only}: {t.points} damage point{'s' * (t.points != 1)}{worst},"
        f" {_describe_effort(t.cost_usd, t.crew_days)};"
        f" {points or 'no damage on file'}"
    )


def _summarise_trails(found: DamageAssessment, where: str) -> str:
    if not found.points:
        return f"{found.name}{where}: no damage is on file for any of {found.trail_count} trails"
    types = ", ".join(f"{t.damage_type.value} {t.points} (${t.cost_usd:,})" for t in reversed(found.by_type))
    kinds = ", ".join(f"{name.replace('_', ' ').lower()} {count}" for name, count in found.by_kind.items())
    worst = ", ".join(f"{t.name} ${t.cost_usd:,}" for t in found.trails[:3])
    return (
        f"{found.name}{where}: {found.points} damage points on {found.trail_count} trails,"
        f" {_describe_effort(found.cost_usd, found.crew_days)}; {types}; {kinds}; worst: {worst}"
    )
