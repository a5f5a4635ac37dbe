"""How badly a fire burned: sectors by their pixels, by their table, or by readings that the caller brings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from interlock import Result
from interlock.errors import InvalidInput, NotFound
from interlock_ranger.burn.pixels import OUTSIDE, has_rasters, read_pixels
from interlock_ranger.burn.severity import (
    SCALE_RULES,
    SEVERITIES,
    Erosion,
    Scale,
    Severity,
    classify_pixels,
    classify_severity,
    degrees_to_percent,
    erosion_risk,
    percent_to_degrees,
    thresholds_of,
)
from interlock_ranger.evidence import (
    Confidence,
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
from interlock_ranger.records import Fire, Sector, Thresholds

RECOMMENDED = 3
"""So many sectors are recommended for treatment one by one."""
NAMED = 8
"""So many sectors are named in the summary."""
LISTED = 60
"""So many rows a result has at the most, so that it stays fit for a model to read."""
_PRIORITY_HIGH_PCT = 50


class Reading(Part):
    """A sector that the caller measured: dNBR, acres, and its slope in one unit or the other."""

    sector_id: str
    dnbr: Annotated[float, Field(ge=-2, le=2)]
    acres: Annotated[float, Field(gt=0)]
    slope_pct: Annotated[float, Field(ge=0, le=500)] | None = None
    slope_deg: Annotated[float, Field(ge=0, lt=90)] | None = None


class SectorSeverity(Part):
    sector_id: str
    name: str
    acres: float
    dnbr_mean: float
    severity: Severity
    high_pct: float | None
    moderate_pct: float | None
    slope_pct: float | None
    slope_deg: float | None
    erosion_risk: Erosion
    priority: bool
    concern: str
    rule: str


class BurnAssessment(Finding):
    fire_id: str
    name: str
    scale: Scale
    measured_from: str
    acres: float
    high_acres: float
    high_pct: float
    moderate_pct: float
    low_pct: float
    unburned_pct: float
    regrowth_pct: float
    mean_dnbr: float
    priority_sectors: tuple[str, ...]
    sector_count: int
    sectors: tuple[SectorSeverity, ...]
    """Those that come first, at most 60 of them."""
    unseen_sectors: tuple[str, ...]
    """Those of which no pixel could be seen; they are in none of the figures."""
    unseen_acres: float


class MeasuredSector(msgspec.Struct, frozen=True, kw_only=True):
    """A sector before it is classified."""

    sector_id: str
    acres: float
    dnbr_mean: float
    slope_pct: float | None
    shares: NDArray[np.float64]
    """Which part of it lies in each class of `SEVERITIES`."""
    name: str = ""
    concern: str = ""
    has_mosaic: bool = False
    """Whether the shares come from pixels, and not from one mean."""


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """The sectors of a fire, and what their figures rest on."""

    sectors: tuple[MeasuredSector, ...]
    measured_from: str
    step: Step
    sources: tuple[DataSource, ...]
    confidence: Confidence
    unseen: tuple[Sector, ...] = ()


def assess_burn(
    fire: Fire, sector_id: str | None, scale: Scale, readings: list[Reading] | None, today: Today
) -> Result[BurnAssessment]:
    if readings is not None and sector_id is not None:
        raise InvalidInput("give sector_id for what is on file, or sectors of your own, not both")
    thresholds = thresholds_of(scale, fire.facts.analyst_thresholds)
    if readings is not None:
        measured = _measure_readings(fire, readings, scale, thresholds, today)
    elif has_rasters(fire):
        measured = _measure_rasters(fire, sector_id, thresholds, today)
    else:
        measured = _measure_table(fire, sector_id, thresholds, today)
    sectors = [_classify(sector, scale, thresholds) for sector in measured.sectors]
    # Only the first of them are listed and recommended, so what has to be treated first must stand first.
    sectors.sort(key=lambda s: (not s.priority, s.erosion_risk is not Erosion.CRITICAL, -s.acres))
    acres = sum(sector.acres for sector in measured.sectors)
    # Weighted by the acres on file and not by pixels: a sector half under clouds covers as much ground as before.
    class_acres = np.sum([sector.shares * sector.acres for sector in measured.sectors], axis=0)
    pct = {name: round(100 * float(part) / acres, 1) for name, part in zip(SEVERITIES, class_acres, strict=True)}
    priority = [sector for sector in sectors if sector.priority]
    evidence = Evidence(
        reasoning=(measured.step, *_reasoning(scale, thresholds)),
        recommendations=_recommendations(priority),
        confidence=measured.confidence,
        data_sources=measured.sources,
    )
    assessment = BurnAssessment(
        fire_id=fire.id,
        name=fire.facts.name,
        scale=scale,
        measured_from=measured.measured_from,
        acres=acres,
        high_acres=round(float(class_acres[SEVERITIES.index(Severity.HIGH)])),
        **{f"{name.value}_pct": share for name, share in pct.items()},
        mean_dnbr=round(sum(sector.dnbr_mean * sector.acres for sector in measured.sectors) / acres, 3),
        priority_sectors=tuple(sector.sector_id for sector in priority[:LISTED]),
        sector_count=len(sectors),
        sectors=tuple(sectors[:LISTED]),
        unseen_sectors=tuple(sector.sector_id for sector in measured.unseen),
        unseen_acres=sum(sector.acres for sector in measured.unseen),
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    one_sector = sector_id is not None and bool(sectors)
    return build_result(
        assessment, _summarise_sector(assessment) if one_sector else _summarise_fire(assessment, len(priority))
    )


def _measure_table(fire: Fire, sector_id: str | None, thresholds: Thresholds, today: Today) -> Measurement:
    """Sectors by the means in their table, for a fire without rasters."""
    sectors = tuple(
        MeasuredSector(
            sector_id=sector.sector_id,
            name=sector.name,
            acres=sector.acres,
            dnbr_mean=sector.dnbr_mean,
            slope_pct=sector.slope_pct,
            concern=sector.concern,
            shares=_whole_share(sector.dnbr_mean, thresholds),
        )
        for sector in fire.sectors.values()
        if sector_id in (None, sector.sector_id)
    )
    sources = (fire.source("sectors.geojson"),)
    return Measurement(
        sectors=sectors,
        measured_from="sector table",
        step=Step(rule="burn.dnbr", text="no rasters are on file: means of the sector table, which hide the mosaic"),
        sources=sources,
        # Wanted are a mean and a mosaic of each sector; a table has the means alone.
        confidence=compute_confidence(today(), sources, len(sectors), 2 * len(sectors)),
    )


def _measure_rasters(fire: Fire, sector_id: str | None, thresholds: Thresholds, today: Today) -> Measurement:
    pixels = read_pixels(fire)
    seen = pixels.known & (pixels.sector != OUTSIDE)
    counts = np.zeros((len(fire.sectors), len(SEVERITIES)))
    # Not `counts[…] += 1`: numpy would count a pair of indices once, however often it comes.
    np.add.at(counts, (pixels.sector[seen], classify_pixels(pixels.dnbr, thresholds)[seen]), 1)
    sums = np.bincount(pixels.sector[seen], pixels.dnbr[seen], len(fire.sectors))
    asked = [sector_id in (None, name) for name in fire.sectors]
    sectors = tuple(
        MeasuredSector(
            sector_id=sector.sector_id,
            name=sector.name,
            acres=sector.acres,
            dnbr_mean=float(total / row.sum()),
            slope_pct=sector.slope_pct,
            concern=sector.concern,
            shares=row / row.sum(),
            has_mosaic=True,
        )
        for sector, row, total, is_asked in zip(fire.sectors.values(), counts, sums, asked, strict=True)
        # A sector of which no pixel can be seen has no mean: it is named as unseen, and not called unburned.
        if is_asked and row.sum()
    )
    if not sectors:
        raise NotFound(describe_unseen(fire, sector_id))
    # Of the sectors that were asked for, and of their ground: what lies beyond the rasters is not seen either.
    share = int(counts[asked].sum()), int(pixels.wanted[asked].sum())
    names = [name for name, is_asked in zip(fire.sectors, asked, strict=True) if is_asked]
    return _build_measurement(fire, sectors, names, share, today)


def _build_measurement(
    fire: Fire, sectors: tuple[MeasuredSector, ...], asked: Sequence[str], share: tuple[int, int], today: Today
) -> Measurement:
    """What was seen, with the sectors that were not; `share` is how many pixels of how many."""
    imagery, measured = fire.facts.imagery, {sector.sector_id for sector in sectors}
    scenes = f"{imagery.sensor}, {imagery.pre_date.isoformat()} and {imagery.post_date.isoformat()}"
    sources = tuple(map(fire.source, (*RASTERS, "sectors.geojson")))
    share_pct = 100 * share[0] / share[1]
    return Measurement(
        sectors=sectors,
        measured_from=scenes,
        step=Step(
            rule="burn.dnbr",
            text=f"dNBR of {scenes}; {share_pct:.0f} % of the pixels inside can be seen, shares are of those",
        ),
        sources=sources,
        # The scene before the fire is older by nature, and does not go out of date: the others do.
        confidence=compute_confidence(today(), sources[1:], *share),
        unseen=tuple(fire.sectors[name] for name in asked if name not in measured),
    )


def _measure_readings(
    fire: Fire, readings: list[Reading], scale: Scale, thresholds: Thresholds, today: Today
) -> Measurement:
    if not readings:
        raise InvalidInput("sectors is empty; leave it out to use those on file, or give at least one reading")
    twice = [name for name, count in Counter(reading.sector_id for reading in readings).items() if count > 1]
    if twice:
        raise InvalidInput(f"sectors has {', '.join(twice)} more than once; give one reading for each")
    sectors = tuple(
        MeasuredSector(
            sector_id=reading.sector_id,
            acres=reading.acres,
            dnbr_mean=reading.dnbr,
            slope_pct=_slope_pct(reading),
            shares=_whole_share(reading.dnbr, thresholds),
        )
        for reading in readings
    )
    # Readings are the caller's and no data of the fire; only the thresholds of its analyst would be.
    sources = (fire.source("fire.json"),) if scale is Scale.ANALYST else ()
    text = f"{len(readings)} readings of the caller; a mean hides the mosaic within a sector"
    # Wanted are dNBR and slope of each; without its slope a reading says nothing about erosion.
    present = len(readings) + sum(sector.slope_pct is not None for sector in sectors)
    return Measurement(
        sectors=sectors,
        measured_from="readings of the caller",
        step=Step(rule="burn.dnbr", text=text),
        sources=sources,
        confidence=compute_confidence(today(), sources, present, 2 * len(readings)),
    )


def _slope_pct(reading: Reading) -> float | None:
    if reading.slope_pct is not None and reading.slope_deg is not None:
        raise InvalidInput(f"{reading.sector_id}: give slope_pct or slope_deg, not both")
    return reading.slope_pct if reading.slope_deg is None else degrees_to_percent(reading.slope_deg)


def _whole_share(dnbr: float, thresholds: Thresholds) -> NDArray[np.float64]:
    """All of a sector in the class of its mean."""
    severity = classify_severity(dnbr, thresholds)
    return np.array([1.0 if name is severity else 0.0 for name in SEVERITIES])


def _classify(sector: MeasuredSector, scale: Scale, thresholds: Thresholds) -> SectorSeverity:
    severity = classify_severity(sector.dnbr_mean, thresholds)
    risk = erosion_risk(severity, sector.slope_pct)
    pct = {name: round(100 * float(share), 1) for name, share in zip(SEVERITIES, sector.shares, strict=True)}
    slope_pct = sector.slope_pct
    return SectorSeverity(
        sector_id=sector.sector_id,
        name=sector.name,
        acres=sector.acres,
        dnbr_mean=round(sector.dnbr_mean, 3),
        severity=severity,
        # From one mean a share could only be 0 or 100 %, which nobody has measured.
        high_pct=pct[Severity.HIGH] if sector.has_mosaic else None,
        moderate_pct=pct[Severity.MODERATE] if sector.has_mosaic else None,
        slope_pct=None if slope_pct is None else round(slope_pct, 1),
        slope_deg=None if slope_pct is None else round(percent_to_degrees(slope_pct), 1),
        erosion_risk=risk,
        # By its mosaic, too: a mean can hide that half of a sector burned at high severity (docs/design/ranger.md).
        priority=severity is Severity.HIGH or risk is Erosion.CRITICAL or pct[Severity.HIGH] >= _PRIORITY_HIGH_PCT,
        concern=sector.concern,
        rule=SCALE_RULES[scale],
    )


def _reasoning(scale: Scale, thresholds: Thresholds) -> tuple[Step, ...]:
    text = (
        f"{scale.value} scale: low from {thresholds.low:g}, moderate from {thresholds.moderate:g},"
        f" high from {thresholds.high:g}"
    )
    return (
        Step(rule=SCALE_RULES[scale], text=text),
        Step(rule="burn.erosion", text="erosion risk by class and slope in percent"),
        Step(rule="burn.not-soil", text="vegetation burn severity; not soil burn severity until checked in the field"),
    )


def _recommendations(priority: Sequence[SectorSeverity]) -> tuple[Recommendation, ...]:
    treat = [
        Recommendation(
            rule="burn.priority",
            text=f"treat {s.sector_id} ({s.name}) first: {s.severity} severity, erosion risk {s.erosion_risk}",
        )
        for s in priority[:RECOMMENDED]
    ]
    validate = Recommendation(rule="burn.not-soil", text="validate soil burn severity in the field before treatments")
    return (*treat, validate)


def _summarise_sector(assessment: BurnAssessment) -> str:
    s = assessment.sectors[0]
    high = "" if s.high_pct is None else f"{s.high_pct} % of it high, "
    return (
        f"{assessment.name}, sector {s.sector_id} ({s.name}): {s.acres:,.0f} acres, mean dNBR {s.dnbr_mean},"
        f" {s.severity} severity by its mean ({assessment.scale} scale), {high}erosion risk"
        f" {s.erosion_risk.value} on slopes of {s.slope_pct} %; concern: {s.concern}"
    )


def _summarise_fire(assessment: BurnAssessment, priority_count: int) -> str:
    a = assessment
    more = priority_count - NAMED
    first = ", ".join(a.priority_sectors[:NAMED]) + (f" and {more} more" if more > 0 else "") or "none"
    regrowth = f", {a.regrowth_pct} % regrowth" if a.regrowth_pct else ""
    return (
        f"{a.name}: {a.acres:,.0f} acres, mean dNBR {a.mean_dnbr}; {a.high_pct} % burned at"
        f" high severity ({a.high_acres:,.0f} acres), {a.moderate_pct} % moderate,"
        f" {a.low_pct} % low, {a.unburned_pct} % unburned{regrowth} ({a.scale} scale);"
        f" sectors that come first: {first}{_describe_left_out(a)}"
    )


def _describe_left_out(a: BurnAssessment) -> str:
    if not a.unseen_sectors:
        return ""
    more = len(a.unseen_sectors) - NAMED
    names = ", ".join(a.unseen_sectors[:NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"; not in these figures, as no pixel of them can be seen: {names} ({a.unseen_acres:,.0f} acres)"


def describe_unseen(fire: Fire, sector_id: str | None) -> str:
    """Why nothing can be said of a fire or a sector that has rasters."""
    where = fire.facts.name if sector_id is None else f"sector {sector_id} of {fire.facts.name}"
    return (
        f"no pixel of {where} can be seen in {' and '.join(RASTERS)}: it lies outside of them, or all is masked;"
        " bring scenes that show it, or take the rasters away to use the means of the sector table"
    )
