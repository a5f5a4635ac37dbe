"""Which fire comes first: one formula, and how much it depends on its weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

from interlock import Result
from interlock_ranger.burn.assess import assessed
from interlock_ranger.burn.severity import Scale
from interlock_ranger.evidence import Finding, Part, Recommendation, Step, Today, confidence, finding
from interlock_ranger.fires import Fire
from interlock_ranger.rules import rule

_SHIFT = 0.25
"""By how much a weight is changed to see whether the order holds."""


class Ranked(Part):
    """One fire in the order."""

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
    rule: str = "coordinator.triage"


class Triage(Finding):
    """The order of fires."""

    fires: tuple[Ranked, ...]
    weights: dict[str, float]
    order_holds: bool
    sensitivity: tuple[str, ...]


def score(parts: dict[str, float], weights: dict[str, float]) -> float:
    """Weighted mean of parts from 0 to 100."""
    return sum(weights[name] * parts[name] for name in weights) / sum(weights.values())


def parts_of(acres: float, high_pct: float, phase: str) -> dict[str, float]:
    """Severity, size and urgency of a fire, each from 0 to 100 and never falling with acres or severity."""
    values = rule("coordinator.triage").values
    size = 100 * min(1.0, math.log10(max(1.0, acres)) / math.log10(values["largest_acres"]))
    return {"severity": min(100.0, high_pct), "size": size, "urgency": float(values["urgency"].get(phase, 0.0))}


def triaged(fires: Sequence[Fire], today: Today) -> Result[Triage]:
    """All fires on file, the most urgent first."""
    weights: dict[str, float] = dict(rule("coordinator.triage").values["weights"])
    measured, seen = {}, []
    for fire in fires:
        found = assessed(fire, None, Scale.GENERIC, None, today).value
        assert found is not None
        seen.append(found.evidence.confidence.completeness)
        measured[fire.id] = (
            fire,
            found.high_pct,
            parts_of(fire.facts.reported_acres, found.high_pct, fire.facts.phase),
        )
    order = _order(measured, weights)
    ranked = tuple(_ranked(n, *measured[key], weights) for n, key in enumerate(order, 1))
    changes = _sensitivity(measured, weights, order)
    sources = tuple(fire.source("fire.json", fire.facts.imagery.post_date) for fire in fires)
    measured_on = [(fire, "nbr_post.tif" if "nbr_post.tif" in fire.digests else "sectors.geojson") for fire in fires]
    sources += tuple(fire.source(name, fire.facts.imagery.post_date) for fire, name in measured_on)
    value = {
        "fires": ranked,
        "weights": weights,
        "order_holds": not changes,
        "sensitivity": changes,
        "reasoning": (
            Step(rule="coordinator.triage", said="weighted mean of severity, size and urgency, each from 0 to 100"),
            Step(
                rule="coordinator.triage",
                said="; ".join(changes) or "the order holds with every weight a quarter up or down",
            ),
        ),
        "recommendations": (Recommendation(rule="coordinator.triage", text=f"attend to {ranked[0].name} first"),),
    }
    told = "; ".join(
        f"{r.rank}. {r.name}, score {r.score} (severity {r.severity}, size {r.size}, urgency {r.urgency};"
        f" {r.acres:,} acres)"
        for r in ranked
    )
    holds = "the order holds if weights change by a quarter" if not changes else f"the order is sensitive: {changes[0]}"
    return finding(
        Triage,
        f"Triage of {len(ranked)} fires: {told}; {holds}",
        value,
        sources,
        confidence(today(), sources, sum(seen), len(seen)),
    )


def _ranked(rank: int, fire: Fire, high_pct: float, parts: dict[str, float], weights: dict[str, float]) -> Ranked:
    return Ranked(
        rank=rank,
        fire_id=fire.id,
        name=fire.facts.name,
        score=round(score(parts, weights), 1),
        **{name: round(part, 1) for name, part in parts.items()},
        acres=fire.facts.reported_acres,
        high_pct=high_pct,
        phase=fire.facts.phase,
    )


def _order(measured: dict[str, tuple[Fire, float, dict[str, float]]], weights: dict[str, float]) -> list[str]:
    return sorted(measured, key=lambda key: (-score(measured[key][2], weights), key))


def _sensitivity(
    measured: dict[str, tuple[Fire, float, dict[str, float]]], weights: dict[str, float], order: list[str]
) -> tuple[str, ...]:
    found = []
    for name in weights:
        for factor in (1 - _SHIFT, 1 + _SHIFT):
            other = _order(measured, {**weights, name: weights[name] * factor})
            if other != order:
                first = measured[other[0]][0].facts.name
                found.append(f"with the weight of {name} times {factor:g}, {first} comes first")
    return tuple(found)
