"""Should a trail be open in a season? Risk from the data, and floors that keep advice no more open than the data."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from enum import StrEnum

from interlock import Result
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
from interlock_ranger.trails.damage import STRUCTURES, WORST_SEVERITY
from interlock_ranger.trails.location import describe_place, select_trails

LISTED = 60
"""So many trails a result has at the most."""
EXPLAINED = 10
"""For so many trails the evidence says one by one what held them closed."""
NAMED = 8
"""So many trails of each kind are named in the summary."""
_DEVELOPED_CLASS = 5
"""The highest class of trail: fully developed. Class 1 is the most remote."""
_RESTRICTING_TREES, _CLOSING_TREES = 3, 4
"""From which severity hazard trees restrict a trail, and close it."""
_UNREPAIRED = 3
"""Damage from this severity on keeps a trail as closed as it is now."""


class Season(StrEnum):
    """When a trail is used."""

    SUMMER = "summer"
    FALL = "fall"
    WINTER = "winter"
    SPRING = "spring"


class Advice(StrEnum):
    """From the most open to the least."""

    OPEN = "OPEN"
    OPEN_CAUTION = "OPEN_CAUTION"
    RESTRICTED = "RESTRICTED"
    CLOSED = "CLOSED"


class Floor(Part):
    """A reason why advice may not be more open."""

    rule: str
    at_least: Advice
    reason: str


class TrailClosure(Part):
    trail_id: str
    name: str
    current_status: TrailStatus
    advice: Advice
    risk_score: float
    by_score: Advice
    damage: float
    hazard_trees: float
    structures: float
    remoteness: float
    season_adds: float
    reason: str
    floors: tuple[Floor, ...]
    rule: str = "trails.closure-risk"


class Closures(Finding):
    fire_id: str
    name: str
    season: Season
    season_from: str
    near: str | None
    trail_count: int
    closed_count: int
    trails: tuple[TrailClosure, ...]
    """The riskiest first, at most 60."""
    draft: str


def season_of(day: date) -> Season:
    """The meteorological season: winter begins with December."""
    # Modulo 12, December becomes month 0, and with January and February the first quarter.
    return (Season.WINTER, Season.SPRING, Season.SUMMER, Season.FALL)[day.month % 12 // 3]


def evaluate_closures(
    fire: Fire, trail_id: str | None, near: str | None, season: Season | None, today: Today
) -> Result[Closures]:
    """The advice for every trail that is meant; without a season, for that of today."""
    now = season or season_of(today())
    season_from = "named" if season is not None else f"of {today().isoformat()}, as none was named"
    trails = select_trails(fire, trail_id, near)
    # Advice before score: a floor can close a trail whose score is low.
    found = sorted((evaluate_trail(trail, now) for trail in trails), key=lambda c: (-_rank(c.advice), -c.risk_score))
    closed = [c for c in found if c.advice is Advice.CLOSED]
    sources = (fire.source("trails.json"),)
    # Without points a trail may be sound, or nobody has walked it: the file does not tell, which lowers confidence.
    surveyed = sum(bool(trail.damage_points) for trail in trails)
    evidence = Evidence(
        reasoning=_reasoning(found, now, season_from),
        recommendations=(
            *(
                Recommendation(rule=_deciding_rule(c), text=f"keep {c.name} closed: {c.reason}")
                for c in closed[:EXPLAINED]
            ),
            Recommendation(rule="trails.draft", text="the responsible official decides"),
        ),
        confidence=compute_confidence(today(), sources, surveyed, len(trails)),
        data_sources=sources,
    )
    closures = Closures(
        fire_id=fire.id,
        name=fire.facts.name,
        season=now,
        season_from=season_from,
        near=near,
        trail_count=len(found),
        closed_count=len(closed),
        trails=tuple(found[:LISTED]),
        draft="Draft for the responsible official; it opens and closes nothing.",
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    said_season = now.value if season is not None else f"{now.value} (today's season)"
    if len(found) == 1:
        return build_result(closures, _summarise_trail(found[0], said_season))
    where = f"{fire.facts.name}{describe_place(fire, near)}, {said_season}"
    return build_result(closures, f"{where}: {_summarise_trails(found)}")


def evaluate_trail(trail: Trail, season: Season) -> TrailClosure:
    """The advice for one trail: what the score says, raised to what the floors demand."""
    points = trail.damage_points
    weights, season_adds = get_rule("trails.closure-risk").values, get_rule("trails.season").values[season.value]
    parts = {
        "damage": _damage_score(points),
        "hazard_trees": _worst_score(points, (DamageKind.HAZARD_TREES,)),
        "structures": _worst_score(points, STRUCTURES),
        "remoteness": 100 * (_DEVELOPED_CLASS - trail.trail_class) / (_DEVELOPED_CLASS - 1),
    }
    # The weights alone reach 100, and the season comes on top of them.
    score = min(100.0, sum(weights[name] * part for name, part in parts.items()) + season_adds)
    by_score = _advice_for(score)
    floors = _find_floors(trail)
    advice = max((by_score, *(floor.at_least for floor in floors)), key=_rank)
    return TrailClosure(
        trail_id=trail.trail_id,
        name=trail.name,
        current_status=trail.current_status,
        advice=advice,
        risk_score=round(score, 1),
        by_score=by_score,
        **{name: round(part, 1) for name, part in parts.items()},
        season_adds=season_adds,
        reason=_explain(points, floors, advice, by_score),
        floors=floors,
    )


def _reasoning(found: Sequence[TrailClosure], season: Season, season_from: str) -> tuple[Step, ...]:
    weights, season_adds = get_rule("trails.closure-risk").values, get_rule("trails.season").values[season.value]
    limits = f"closed from {weights['closed']}, restricted from {weights['restricted']}"
    return (
        Step(rule="trails.closure-risk", text=f"risk of {len(found)}; {limits}"),
        Step(rule="trails.season", text=f"{season.value} ({season_from}) adds {season_adds}"),
        *(Step(rule=floor.rule, text=f"{c.name}: {floor.reason}") for c in found[:EXPLAINED] for floor in c.floors),
    )


def _damage_score(points: Sequence[DamagePoint]) -> float:
    """The worst point, and how much there is: unlike a mean, it never falls when damage is added."""
    values = get_rule("trails.closure-risk").values
    worst = max((point.severity for point in points), default=0) / WORST_SEVERITY
    # Capped, so that the term stays a share however many points there are.
    extent = min(1.0, sum(point.severity for point in points) / values["extent_full"])
    return float(100 * (values["worst_share"] * worst + (1 - values["worst_share"]) * extent))


def _worst_score(points: Sequence[DamagePoint], kinds: Sequence[DamageKind]) -> float:
    return 100 * max((point.severity for point in points if point.type in kinds), default=0) / WORST_SEVERITY


def _advice_for(score: float) -> Advice:
    limits = get_rule("trails.closure-risk").values
    reached: int = sum(score >= limits[name] for name in ("caution", "restricted", "closed"))
    return tuple(Advice)[reached]


def _find_floors(trail: Trail) -> tuple[Floor, ...]:
    floors = []
    trees = max((p.severity for p in trail.damage_points if p.type == DamageKind.HAZARD_TREES), default=0)
    worst = max((p.severity for p in trail.damage_points), default=0)
    if trees >= _RESTRICTING_TREES:
        least = Advice.CLOSED if trees >= _CLOSING_TREES else Advice.RESTRICTED
        reason = f"hazard trees of severity {trees}"
        floors.append(Floor(rule="trails.floor-hazard-trees", at_least=least, reason=reason))
    if worst >= WORST_SEVERITY:
        reason = f"damage of severity {worst}"
        floors.append(Floor(rule="trails.floor-failure", at_least=Advice.CLOSED, reason=reason))
    # A recommendation does not lift a closure order (rule trails.floor-status). An open trail has no order to keep.
    status = {TrailStatus.CLOSED: Advice.CLOSED, TrailStatus.RESTRICTED: Advice.RESTRICTED}.get(trail.current_status)
    if status is not None and worst >= _UNREPAIRED:
        reason = f"{trail.current_status.lower()} now, with damage of severity {worst} unrepaired"
        floors.append(Floor(rule="trails.floor-status", at_least=status, reason=reason))
    return tuple(floors)


def _explain(points: Sequence[DamagePoint], floors: Sequence[Floor], advice: Advice, by_score: Advice) -> str:
    worst = sorted(points, key=lambda point: -point.severity)[:2]
    damage = " and ".join(
        f"{p.type.replace('_', ' ').lower()} of severity {p.severity} at mile {p.milepost}" for p in worst
    )
    # Where the score alone says as much, naming a floor would explain nothing.
    holding = [floor.reason for floor in floors if floor.at_least is advice] if advice is not by_score else []
    return "; ".join([damage or "no damage on file", *([f"held by: {' and '.join(holding)}"] if holding else [])])


def _deciding_rule(found: TrailClosure) -> str:
    if found.advice is found.by_score:
        return found.rule
    return next(floor.rule for floor in found.floors if floor.at_least is found.advice)


def _rank(advice: Advice) -> int:
    return tuple(Advice).index(advice)


def _summarise_trail(c: TrailClosure, season: str) -> str:
    return f"{c.name} in {season}: {c.advice.value}, risk score {c.risk_score}, now {c.current_status}; {c.reason}"


def _summarise_trails(found: Sequence[TrailClosure]) -> str:
    closed = [c for c in found if c.advice is Advice.CLOSED]
    others = [c for c in found if c.advice is not Advice.CLOSED]
    names = "; ".join(f"{c.name} (risk {c.risk_score}: {c.reason})" for c in closed[:NAMED])
    rest = ", ".join(f"{c.name} {c.advice.value} (risk {c.risk_score}: {c.reason})" for c in others[:NAMED])
    # Of a trail that is open today nobody can say that it should stay closed.
    stay = "stay" if all(c.current_status is TrailStatus.CLOSED for c in closed) else "be"
    return (
        f"{len(closed)} of {len(found)} trails should {stay} closed"
        + (f": {names}" if names else "")
        + (f". Others: {rest}" if rest else "")
    )
