"""Which fire comes first: one formula, and how much it depends on its weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from interlock import Result
from interlock.errors import NotFound
from interlock_ranger.burn.assess import assess_burn
from interlock_ranger.burn.pixels import has_rasters
from interlock_ranger.burn.severity import Scale
from interlock_ranger.evidence import (
    DataSource,
    Evidence,
    Finding,
    Part,
    Recommendation,
    Step,
    Today,
    build_result,
    compute_confidence,
)
from interlock_ranger.intake.rasters import RASTERS
from interlock_ranger.records import Fire
from interlock_ranger.rules import get_rule

_SHIFT = 0.25
"""By how much a weight is changed to see whether the order holds."""
_RULE = "coordinator.triage"


class RankedFire(Part):
    rank: int
    fire_id: str
    name: str
    score: float
    severity: float
    size: float
    urgency: float
    acres: int
    high_pct: float
    phase: str
    rule: str = _RULE


class Triage(Finding):
    fires: tuple[RankedFire, ...]
    weights: dict[str, float]
    order_holds: bool
    sensitivity: tuple[str, ...]
    unranked: tuple[str, ...]
    """Fires whose severity could not be measured, with the reason."""


class MeasuredFire(msgspec.Struct, frozen=True, kw_only=True):
    """A fire with the parts of its score."""

    fire: Fire
    high_pct: float
    completeness: float
    parts: dict[str, float]


def weighted_score(parts: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Weighted mean of parts from 0 to 100."""
    # Divided by their sum: `_find_sensitivity` changes one weight, and then they do not add up to 1 any more.
    return sum(weights[name] * parts[name] for name in weights) / sum(weights.values())


def score_parts(acres: float, high_pct: float, phase: str) -> dict[str, float]:
    """Severity, size and urgency of a fire, each from 0 to 100 and never falling with acres or severity.

    Size is a logarithm: from 1,000 acres to 10,000 is as far as from there to 100,000.
    """
    values = get_rule(_RULE).values
    size = 100 * min(1.0, math.log10(max(1.0, acres)) / math.log10(values["largest_acres"]))
    return {"severity": min(100.0, high_pct), "size": size, "urgency": float(values["urgency"][phase])}


def rank_fires(fires: Sequence[Fire], today: Today) -> Result[Triage]:
    """All fires on file, the most urgent first."""
    weights: dict[str, float] = dict(get_rule(_RULE).values["weights"])
    measured, unranked = _measure_all(fires, today)
    ordered = _sort(measured, weights)
    ranked = tuple(_rank(place, item, weights) for place, item in enumerate(ordered, 1))
    sensitivity = _find_sensitivity(ordered, weights)
    sources = (
        *(item.fire.source("fire.json") for item in measured),
        *(_severity_source(item.fire) for item in measured),
    )
    firmness = "; ".join(sensitivity) or "the order holds with every weight a quarter up or down"
    evidence = Evidence(
        reasoning=(
            Step(rule=_RULE, text="weighted mean of severity, size and urgency, each from 0 to 100"),
            Step(rule=_RULE, text=firmness),
        ),
        recommendations=(Recommendation(rule=_RULE, text=f"attend to {ranked[0].name} first"),),
        confidence=compute_confidence(today(), sources, sum(m.completeness for m in measured), len(fires)),
        data_sources=sources,
    )
    triage = Triage(
        fires=ranked,
        weights=weights,
        order_holds=not sensitivity,
        sensitivity=sensitivity,
        unranked=unranked,
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    return build_result(triage, _summarise(triage))


def _measure_all(fires: Sequence[Fire], today: Today) -> tuple[list[MeasuredFire], tuple[str, ...]]:
    """The fires that can be compared, and why the others cannot; one that is not seen does not hide the rest."""
    measured, unranked = [], []
    for fire in fires:
        try:
            measured.append(_measure(fire, today))
        except NotFound as error:
            unranked.append(f"{fire.facts.name}: {error}")
    if not measured:
        raise NotFound("; ".join(unranked))
    return measured, tuple(unranked)


def _measure(fire: Fire, today: Today) -> MeasuredFire:
    # Fires are compared with each other here, so all are measured by one scale and none by its own analyst's.
    burn = assess_burn(fire, None, Scale.GENERIC, None, today).value
    assert burn is not None  # an assessment either has a value or raises
    return MeasuredFire(
        fire=fire,
        high_pct=burn.high_pct,
        completeness=burn.evidence.confidence.completeness,
        parts=score_parts(fire.facts.reported_acres, burn.high_pct, fire.facts.phase),
    )


def _severity_source(fire: Fire) -> DataSource:
    return fire.source(RASTERS[-1] if has_rasters(fire) else "sectors.geojson")


def _rank(place: int, item: MeasuredFire, weights: Mapping[str, float]) -> RankedFire:
    return RankedFire(
        rank=place,
        fire_id=item.fire.id,
        name=item.fire.facts.name,
        score=round(weighted_score(item.parts, weights), 1),
        **{name: round(part, 1) for name, part in item.parts.items()},
        acres=item.fire.facts.reported_acres,
        high_pct=item.high_pct,
        phase=item.fire.facts.phase,
    )


def _sort(measured: Sequence[MeasuredFire], weights: Mapping[str, float]) -> list[MeasuredFire]:
    """The highest score first; of equals, by id, so that the order is the same twice."""
    return sorted(measured, key=lambda item: (-weighted_score(item.parts, weights), item.fire.id))


def _find_sensitivity(ordered: list[MeasuredFire], weights: Mapping[str, float]) -> tuple[str, ...]:
    """What changes if one weight at a time is larger or smaller."""
    changes = []
    for name in weights:
        for factor in (1 - _SHIFT, 1 + _SHIFT):
            other = _sort(ordered, {**weights, name: weights[name] * factor})
            if [item.fire.id for item in other] != [item.fire.id for item in ordered]:
                first = other[0].fire.facts.name
                changes.append(f"with the weight of {name} times {factor:g}, {first} comes first")
    return tuple(changes)


def _summarise(triage: Triage) -> str:
    fires = "; ".join(
        f"{f.rank}. {f.name}, score {f.score} (severity {f.severity}, size {f.size}, urgency {f.urgency};"
        f" {f.acres:,} acres)"
        for f in triage.fires
    )
    holds = "the order holds if weights change by a quarter"
    if not triage.order_holds:
        holds = f"the order is sensitive: {triage.sensitivity[0]}"
    left_out = "".join(f"; not ranked: {reason}" for reason in triage.unranked)
    return f"Triage of {len(triage.fires)} fires: {fires}; {holds}{left_out}"
