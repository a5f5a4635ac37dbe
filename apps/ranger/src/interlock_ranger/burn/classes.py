"""The six MTBS classes of a fire or a sector."""

from __future__ import annotations

import numpy as np

from interlock import Result
from interlock_ranger.burn.pixels import OUTSIDE, RASTERS, pixels
from interlock_ranger.burn.severity import MTBS_NAMES, mtbs
from interlock_ranger.evidence import Finding, Part, Recommendation, Step, Today, confidence, finding
from interlock_ranger.fires import Fire

MASK = 6


class ClassFound(Part):
    """One MTBS class."""

    mtbs_class: int
    name: str
    acres: float
    pct: float


class Mtbs(Finding):
    """The six classes."""

    fire_id: str
    name: str
    sector_id: str | None
    acres: float
    pixels: int
    dominant_class: int
    dominant_name: str
    classes: tuple[ClassFound, ...]
    sensor: str


def classified(fire: Fire, only: str | None, today: Today) -> Result[Mtbs]:
    """Every pixel inside in one of six classes."""
    seen, facts = pixels(fire), fire.facts
    within = seen.sector != OUTSIDE if only is None else seen.sector == list(fire.sectors).index(only)
    acres = facts.reported_acres if only is None else fire.sectors[only].acres
    classes = mtbs(seen.dnbr, seen.known, facts.analyst_thresholds)[within]
    counts = np.bincount(classes, minlength=MASK + 1)[1:]
    share = counts / max(1, counts.sum())
    found = tuple(
        ClassFound(mtbs_class=n, name=name, acres=round(float(part) * acres), pct=round(100 * float(part), 1))
        for (n, name), part in zip(MTBS_NAMES.items(), share, strict=True)
    )
    main = max(found[: MASK - 1], key=lambda item: item.pct)
    bounds = facts.analyst_thresholds
    where = facts.name if only is None else f"{facts.name}, sector {only}"
    sources = tuple(fire.source(name, facts.imagery.post_date) for name in (*RASTERS, "fire.json"))
    value = {
        "fire_id": fire.id,
        "name": facts.name,
        "sector_id": only,
        "acres": acres,
        "pixels": int(counts.sum()),
        "dominant_class": main.mtbs_class,
        "dominant_name": main.name,
        "classes": found,
        "sensor": facts.imagery.sensor,
        "reasoning": (
            Step(rule="burn.dnbr", said=f"dNBR of {int(counts.sum()):,} pixels"),
            Step(
                rule="burn.analyst",
                said=f"low from {bounds.low:g}, moderate from {bounds.moderate:g}, high from {bounds.high:g},"
                f" increased greenness below {bounds.increased_greenness:g}",
            ),
            Step(rule="burn.mtbs", said="pixels without data are class 6, mask"),
        ),
        "recommendations": (
            Recommendation(rule="burn.not-soil", text="validate in the field before use as soil burn severity"),
        ),
    }
    listed = "; ".join(f"class {item.mtbs_class} ({item.name}) {item.pct} %, {item.acres:,.0f} acres" for item in found)
    said = (
        f"{where}: dominant MTBS class {main.mtbs_class} ({main.name}) on {main.pct} % of {acres:,.0f} acres; {listed}"
    )
    seen_here = int(counts[: MASK - 1].sum())
    return finding(Mtbs, said, value, sources, confidence(today(), sources, seen_here, int(counts.sum())))
