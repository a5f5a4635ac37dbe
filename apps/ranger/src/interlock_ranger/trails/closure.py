"""Should a trail be open in a season? Risk from the data, and floors that keep advice no more open than the data."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from enum import StrEnum

from interlock import Result
from interlock_ranger.evidence import Finding, Part, Recommendation, Step, Today, confidence, finding
from interlock_ranger.fires import DamagePoint, Fire, Trail
from interlock_ranger.rules import rule
from interlock_ranger.trails.damage import STRUCTURES, Kind
from interlock_ranger.trails.where import chosen, where_said

LISTED = 60
_WORST = 5


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
    said: str


class Closure(Part):
    """The advice for one trail."""

    trail_id: str
    name: str
    current_status: str
    advice: Advice
    risk_score: float
    by_score: Advice
    damage: float
    hazard_trees: float
    structures: float
    remoteness: float
    season_adds: float
    because: str
    floors: tuple[Floor, ...]
    rule: str = "trails.closure-risk"


class Closures(Finding):
    """The advice for the trails that are meant."""

    fire_id: str
    name: str
    season: Season
    season_from: str
    near: str | None
    trail_count: int
    closed_count: int
    trails: tuple[Closure, ...]
    """The riskiest first, at most 60."""
    draft: str


def season_of(day: date) -> Season:
    """The meteorological season."""
    return (Season.WINTER, Season.SPRING, Season.SUMMER, Season.FALL)[day.month % 12 // 3]


def evaluated(
    fire: Fire, trail_id: str | None, near: str | None, season: Season | None, today: Today
) -> Result[Closures]:
    """The advice for every trail that is meant."""
    now = season or season_of(today())
    origin = "named" if season is not None else f"of {today().isoformat()}, as none was named"
    trails = chosen(fire, trail_id, near)
    found = sorted((closure(trail, now) for trail in trails), key=lambda c: (-_rank(c.advice), -c.risk_score))
    sources = (fire.source("trails.json", fire.facts.survey_date),)
    closed = [c for c in found if c.advice is Advice.CLOSED]
    weights = rule("trails.closure-risk").values
    value = {
        "fire_id": fire.id,
        "name": fire.facts.name,
        "season": now,
        "season_from": origin,
        "near": near,
        "trail_count": len(found),
        "closed_count": len(closed),
        "trails": tuple(found[:LISTED]),
        "draft": "Draft for the responsible official; it opens and closes nothing.",
        "reasoning": (
            Step(
                rule="trails.closure-risk",
                said=f"risk of {len(found)}; closed from {weights['closed']}, restricted from {weights['restricted']}",
            ),
            Step(rule="trails.season", said=f"{now.value} ({origin}) adds {rule('trails.season').values[now.value]}"),
            *(Step(rule=floor.rule, said=f"{c.name}: {floor.said}") for c in found[:10] for floor in c.floors),
        ),
        "recommendations": (
            *(Recommendation(rule=_reason(c), text=f"keep {c.name} closed: {c.because}") for c in closed[:10]),
            Recommendation(rule="trails.draft", text="the responsible official decides"),
        ),
    }
    surveyed = sum(bool(trail.damage_points) for trail in trails)
    return finding(
        Closures,
        _said(fire, near, now.value if season is not None else f"{now.value} (today's season)", found),
        value,
        sources,
        confidence(today(), sources, surveyed, len(trails)),
    )


def closure(trail: Trail, season: Season) -> Closure:
    """The advice for one trail: what the score says, raised to what the floors demand."""
    points = trail.damage_points
    weights, adds = rule("trails.closure-risk").values, rule("trails.season").values
    parts = {
        "damage": _damage(points),
        "hazard_trees": _worst_of(points, (Kind.HAZARD_TREES,)),
        "structures": _worst_of(points, STRUCTURES),
        "remoteness": 100 * (5 - trail.trail_class) / 4,
    }
    score = min(100.0, sum(weights[name] * part for name, part in parts.items()) + adds[season.value])
    by_score = _by_score(score)
    floors = tuple(_floors(trail))
    advice = max((by_score, *(floor.at_least for floor in floors)), key=_rank)
    return Closure(
        trail_id=trail.trail_id,
        name=trail.name,
        current_status=trail.current_status,
        advice=advice,
        risk_score=round(score, 1),
        by_score=by_score,
        **{name: round(part, 1) for name, part in parts.items()},
        season_adds=adds[season.value],
        because=_because(points, floors, advice, by_score),
        floors=floors,
    )


def _damage(points: Sequence[DamagePoint]) -> float:
    """The worst point, and how much there is: it never falls when damage is added."""
    values = rule("trails.closure-risk").values
    worst = max((point.severity for point in points), default=0) / _WORST
    extent = min(1.0, sum(point.severity for point in points) / values["extent_full"])
    return float(100 * (values["worst_share"] * worst + (1 - values["worst_share"]) * extent))


def _worst_of(points: Sequence[DamagePoint], kinds: Sequence[Kind]) -> float:
    return 100 * max((point.severity for point in points if point.type in kinds), default=0) / _WORST


def _by_score(score: float) -> Advice:
    limits = rule("trails.closure-risk").values
    over = int(score >= limits["caution"]) + int(score >= limits["restricted"]) + int(score >= limits["closed"])
    return tuple(Advice)[over]


def _floors(trail: Trail) -> list[Floor]:
    found = []
    trees = max((p.severity for p in trail.damage_points if p.type == Kind.HAZARD_TREES), default=0)
    worst = max((p.severity for p in trail.damage_points), default=0)
    if trees >= 3:
        least = Advice.CLOSED if trees >= 4 else Advice.RESTRICTED
        found.append(Floor(rule="trails.floor-hazard-trees", at_least=least, said=f"hazard trees of severity {trees}"))
    if worst >= _WORST:
        found.append(Floor(rule="trails.floor-failure", at_least=Advice.CLOSED, said=f"damage of severity {worst}"))
    status = {"CLOSED": Advice.CLOSED, "RESTRICTED": Advice.RESTRICTED}.get(trail.current_status)
    if status is not None and worst >= 3:
        said = f"{trail.current_status.lower()} now, with damage of severity {worst} unrepaired"
        found.append(Floor(rule="trails.floor-status", at_least=status, said=said))
    return found


def _because(points: Sequence[DamagePoint], floors: Sequence[Floor], advice: Advice, by_score: Advice) -> str:
    worst = sorted(points, key=lambda point: -point.severity)[:2]
    told = " and ".join(
        f"{p.type.replace('_', ' ').lower()} of severity {p.severity} at mile {p.milepost}" for p in worst
    )
    holds = [floor.said for floor in floors if floor.at_least is advice] if advice is not by_score else []
    return "; ".join([told or "no damage on file", *([f"held by: {' and '.join(holds)}"] if holds else [])])


def _reason(found: Closure) -> str:
    if found.advice is found.by_score:
        return found.rule
    return next(floor.rule for floor in found.floors if floor.at_least is found.advice)


def _rank(advice: Advice) -> int:
    return tuple(Advice).index(advice)


def _said(fire: Fire, near: str | None, season: str, found: Sequence[Closure]) -> str:
    if len(found) == 1:
        c = found[0]
        return f"{c.name} in {season}: {c.advice.value}, risk score {c.risk_score}, now {c.current_status}; {c.because}"
    closed = [c for c in found if c.advice is Advice.CLOSED]
    others = [c for c in found if c.advice is not Advice.CLOSED]
    told = "; ".join(f"{c.name} (risk {c.risk_score}: {c.because})" for c in closed[:8])
    rest = ", ".join(f"{c.name} {c.advice.value} (risk {c.risk_score}: {c.because})" for c in others[:8])
    stay = "stay" if all(c.current_status == Advice.CLOSED for c in closed) else "be"
    return (
        f"{fire.facts.name}{where_said(fire, near)}, {season}: {len(closed)} of {len(found)} trails"
        f" should {stay} closed" + (f": {told}" if told else "") + (f". Others: {rest}" if rest else "")
    )
