"""The six MTBS classes of a fire or a sector."""

from __future__ import annotations

import numpy as np

from interlock import Result
from interlock.errors import NotFound
from interlock_ranger.burn.assess import describe_unseen
from interlock_ranger.burn.pixels import OUTSIDE, read_pixels
from interlock_ranger.burn.severity import MTBS_MASK, MTBS_NAMES, classify_mtbs
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
from interlock_ranger.intake.rasters import RASTERS
from interlock_ranger.records import Fire, Thresholds


class MtbsClass(Part):
    mtbs_class: int
    name: str
    acres: float
    pct: float


class MtbsClassification(Finding):
    fire_id: str
    name: str
    sector_id: str | None
    acres: float
    pixels: int
    seen_pct: float
    dominant_class: int
    dominant_name: str
    classes: tuple[MtbsClass, ...]
    sensor: str


def classify_fire(fire: Fire, sector_id: str | None, today: Today) -> Result[MtbsClassification]:
    """Every pixel inside a fire, or a sector of it, in one of six classes."""
    pixels, facts = read_pixels(fire), fire.facts
    if sector_id is None:
        # Reported acres, spread by shares of pixels: pixels along the edge would not add up to what was reported.
        inside, acres, wanted = pixels.sector != OUTSIDE, facts.reported_acres, int(pixels.wanted.sum())
    else:
        number = list(fire.sectors).index(sector_id)
        inside, wanted = pixels.sector == number, int(pixels.wanted[number])
        acres = fire.sectors[sector_id].acres
    # Always the thresholds of this fire: in the practice of MTBS they are set scene by scene (rule burn.analyst).
    found = classify_mtbs(pixels.dnbr, pixels.known, facts.analyst_thresholds)[inside]
    # With minlength, a class without a pixel is a zero in its place and not missing; there is no class 0.
    counts = np.bincount(found, minlength=MTBS_MASK + 1)[1:]
    # Ground that the rasters do not reach is as little seen as that under clouds.
    counts[MTBS_MASK - 1] += wanted - counts.sum()
    seen = int(counts[: MTBS_MASK - 1].sum())
    if not seen:
        raise NotFound(describe_unseen(fire, sector_id))
    shares = counts / wanted
    classes = tuple(
        MtbsClass(mtbs_class=n, name=name, acres=round(float(share) * acres), pct=round(100 * float(share), 1))
        for (n, name), share in zip(MTBS_NAMES.items(), shares, strict=True)
    )
    dominant = max(classes[: MTBS_MASK - 1], key=lambda item: item.pct)  # what cannot be seen does not dominate
    sources = tuple(map(fire.source, (*RASTERS, "fire.json")))
    evidence = Evidence(
        reasoning=_reasoning(wanted, facts.analyst_thresholds),
        recommendations=(
            Recommendation(rule="burn.not-soil", text="validate in the field before use as soil burn severity"),
        ),
        confidence=compute_confidence(today(), sources[1:], seen, wanted),
        data_sources=sources,
    )
    classification = MtbsClassification(
        fire_id=fire.id,
        name=facts.name,
        sector_id=sector_id,
        acres=acres,
        pixels=wanted,
        seen_pct=round(100 * seen / wanted, 1),
        dominant_class=dominant.mtbs_class,
        dominant_name=dominant.name,
        classes=classes,
        sensor=facts.imagery.sensor,
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    return build_result(classification, _summarise(classification, dominant))


def _reasoning(pixel_count: int, thresholds: Thresholds) -> tuple[Step, ...]:
    text = (
        f"low from {thresholds.low:g}, moderate from {thresholds.moderate:g}, high from {thresholds.high:g},"
        f" increased greenness below {thresholds.increased_greenness:g}"
    )
    return (
        Step(rule="burn.dnbr", text=f"dNBR of {pixel_count:,} pixels"),
        Step(rule="burn.analyst", text=text),
        Step(rule="burn.mtbs", text="pixels without data are class 6, mask"),
    )


def _summarise(found: MtbsClassification, dominant: MtbsClass) -> str:
    where = found.name if found.sector_id is None else f"{found.name}, sector {found.sector_id}"
    classes = "; ".join(f"class {c.mtbs_class} ({c.name}) {c.pct} %, {c.acres:,.0f} acres" for c in found.classes)
    return (
        f"{where}: dominant MTBS class {dominant.mtbs_class} ({dominant.name}) on {dominant.pct} %"
        f" of {found.acres:,.0f} acres; {classes}"
    )
