"""How badly a fire burned: sectors by their pixels, or by readings that the caller brings."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from interlock import Result
from interlock.errors import InvalidInput
from interlock_ranger.burn.pixels import OUTSIDE, RASTERS, pixels
from interlock_ranger.burn.severity import (
    SCALE_RULES,
    Erosion,
    Scale,
    Severity,
    cuts,
    erosion,
    severities,
    severity,
    slope_deg_of,
    slope_pct_of,
)
from interlock_ranger.evidence import (
    Confidence,
    DataSource,
    Finding,
    Part,
    Recommendation,
    Step,
    Today,
    confidence,
    finding,
)
from interlock_ranger.fires import Fire

SHOWN = 3
NAMED = 8
LISTED = 60
_ORDER = tuple(Severity)
Bounds = tuple[float, float, float, float]
"""Where regrowth ends, and low, moderate and high begin."""


class Reading(Part):
    """A sector that the caller measured: dNBR, acres, and its slope in one unit or the other."""

    sector_id: str
    dnbr: Annotated[float, Field(ge=-2, le=2)]
    acres: Annotated[float, Field(gt=0)]
    slope_pct: Annotated[float, Field(ge=0, le=500)] | None = None
    slope_deg: Annotated[float, Field(ge=0, lt=90)] | None = None


class SectorFound(Part):
    """How one sector burned."""

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


class Severities(Finding):
    """How badly a fire burned."""

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
    sectors: tuple[SectorFound, ...]
    """Those that come first, at most 60 of them."""


class Land(msgspec.Struct, frozen=True):
    """A sector before it is classed."""

    sector_id: str
    name: str
    acres: float
    mean: float
    slope_pct: float | None
    concern: str
    share: NDArray[np.float64]
    """Which part of it lies in each class."""
    mosaic: bool = True
    """Whether the shares come from pixels, and not from one mean."""


class Basis(msgspec.Struct, frozen=True):
    """What the classes rest on."""

    how: str
    seen: Step
    sources: tuple[DataSource, ...]
    trust: Confidence


def assessed(
    fire: Fire, only: str | None, scale: Scale, given: list[Reading] | None, today: Today
) -> Result[Severities]:
    """The assessment of a fire."""
    if given is not None and only is not None:
        raise InvalidInput("give sector_id for what is on file, or sectors of your own, not both")
    bounds = cuts(scale, fire.facts.analyst_thresholds)
    if given is not None:
        lands, basis = _read(fire, given, bounds, today)
    else:
        rasters = all(name in fire.digests for name in RASTERS)
        lands, basis = (_on_file if rasters else _of_table)(fire, only, bounds, today)
    found = tuple(_classed(land, scale, bounds) for land in lands)
    acres = sum(land.acres for land in lands)
    shares = np.sum([land.share * land.acres for land in lands], axis=0)
    pct = {name: round(100 * float(part) / acres, 1) for name, part in zip(_ORDER, shares, strict=True)}
    ranked = sorted(found, key=lambda s: (not s.priority, s.erosion_risk is not Erosion.CRITICAL, -s.acres))
    first = [s for s in ranked if s.priority]
    value = {
        "fire_id": fire.id,
        "name": fire.facts.name,
        "scale": scale,
        "measured_from": basis.how,
        "acres": acres,
        "high_acres": round(float(shares[_ORDER.index(Severity.HIGH)])),
        **{f"{name.value}_pct": share for name, share in pct.items()},
        "mean_dnbr": round(sum(land.mean * land.acres for land in lands) / acres, 3),
        "priority_sectors": tuple(s.sector_id for s in first[:LISTED]),
        "sector_count": len(found),
        "sectors": tuple(ranked[:LISTED]),
        "reasoning": (basis.seen, *_steps(scale, bounds)),
        "recommendations": _advice(first),
    }
    return finding(Severities, _said(value, ranked, only), value, basis.sources, basis.trust)


def _of_table(fire: Fire, only: str | None, bounds: Bounds, today: Today) -> tuple[list[Land], Basis]:
    """Sectors by the means in their table, for a fire without rasters."""
    chosen = [sector for sector in fire.sectors.values() if only in (None, sector.sector_id)]
    shares = np.eye(len(_ORDER))
    lands = [
        Land(
            sector.sector_id,
            sector.name,
            sector.acres,
            sector.dnbr_mean,
            sector.slope_pct,
            sector.concern,
            shares[_ORDER.index(severity(sector.dnbr_mean, bounds))],
            mosaic=False,
        )
        for sector in chosen
    ]
    sources = (fire.source("sectors.geojson", fire.facts.imagery.post_date),)
    step = Step(rule="burn.dnbr", said="no rasters are on file: means of the sector table, which hide the mosaic")
    return lands, Basis("sector table", step, sources, confidence(today(), sources, len(lands), 2 * len(lands)))


def _on_file(fire: Fire, only: str | None, bounds: Bounds, today: Today) -> tuple[list[Land], Basis]:
    seen = pixels(fire)
    within = seen.sector != OUTSIDE
    inside = seen.known & within
    counts = np.zeros((len(fire.sectors), len(_ORDER)))
    np.add.at(counts, (seen.sector[inside], severities(seen.dnbr, bounds)[inside]), 1)
    sums = np.bincount(seen.sector[inside], seen.dnbr[inside], len(fire.sectors))
    lands = []
    for sector, row, total in zip(fire.sectors.values(), counts, sums, strict=True):
        size = row.sum()
        if only in (None, sector.sector_id) and size:
            lands.append(
                Land(
                    sector.sector_id,
                    sector.name,
                    sector.acres,
                    float(total / size),
                    sector.slope_pct,
                    sector.concern,
                    row / size,
                )
            )
    dates = fire.facts.imagery
    how = f"{dates.sensor}, {dates.pre_date.isoformat()} and {dates.post_date.isoformat()}"
    share = 100 * inside.sum() / max(1, within.sum())
    sources = tuple(fire.source(name, dates.post_date) for name in (*RASTERS, "sectors.geojson"))
    step = Step(
        rule="burn.dnbr", said=f"dNBR of {how}; {share:.0f} % of the pixels inside can be seen, shares are of those"
    )
    return lands, Basis(how, step, sources, confidence(today(), sources, int(inside.sum()), int(within.sum())))


def _read(fire: Fire, given: list[Reading], bounds: Bounds, today: Today) -> tuple[list[Land], Basis]:
    if not given:
        raise InvalidInput("sectors is empty; leave it out to use those on file, or give at least one reading")
    lands = []
    for reading in given:
        if reading.slope_pct is not None and reading.slope_deg is not None:
            raise InvalidInput(f"{reading.sector_id}: give slope_pct or slope_deg, not both")
        slope = reading.slope_pct if reading.slope_deg is None else slope_pct_of(reading.slope_deg)
        share = np.eye(len(_ORDER))[_ORDER.index(severity(reading.dnbr, bounds))]
        lands.append(Land(reading.sector_id, "", reading.acres, reading.dnbr, slope, "", share, mosaic=False))
    sources = (fire.source("fire.json", fire.facts.imagery.post_date),)
    step = Step(rule="burn.dnbr", said=f"{len(given)} readings of the caller; a mean hides the mosaic within a sector")
    present = len(given) + sum(land.slope_pct is not None for land in lands)
    return lands, Basis("readings of the caller", step, sources, confidence(today(), sources, present, 2 * len(given)))


def _classed(land: Land, scale: Scale, bounds: Bounds) -> SectorFound:
    grade = severity(land.mean, bounds)
    risk = erosion(grade, land.slope_pct)
    part = {name: round(100 * float(share), 1) for name, share in zip(_ORDER, land.share, strict=True)}
    return SectorFound(
        sector_id=land.sector_id,
        name=land.name,
        acres=land.acres,
        dnbr_mean=round(land.mean, 3),
        severity=grade,
        high_pct=part[Severity.HIGH] if land.mosaic else None,
        moderate_pct=part[Severity.MODERATE] if land.mosaic else None,
        slope_pct=None if land.slope_pct is None else round(land.slope_pct, 1),
        slope_deg=None if land.slope_pct is None else round(slope_deg_of(land.slope_pct), 1),
        erosion_risk=risk,
        priority=grade is Severity.HIGH or risk is Erosion.CRITICAL or part[Severity.HIGH] >= 50,
        concern=land.concern,
        rule=SCALE_RULES[scale],
    )


def _steps(scale: Scale, bounds: Bounds) -> tuple[Step, ...]:
    said = f"{scale.value} scale: low from {bounds[1]:g}, moderate from {bounds[2]:g}, high from {bounds[3]:g}"
    return (
        Step(rule=SCALE_RULES[scale], said=said),
        Step(rule="burn.erosion", said="erosion risk by class and slope in percent"),
        Step(rule="burn.not-soil", said="vegetation burn severity; not soil burn severity until checked in the field"),
    )


def _advice(first: list[SectorFound]) -> tuple[Recommendation, ...]:
    advice = [
        Recommendation(
            rule="burn.priority",
            text=f"treat {s.sector_id} ({s.name}) first: {s.severity} severity, erosion risk {s.erosion_risk}",
        )
        for s in first[:SHOWN]
    ]
    field = Recommendation(rule="burn.not-soil", text="validate soil burn severity in the field before treatments")
    return (*advice, field)


def _high(s: SectorFound) -> str:
    return "" if s.high_pct is None else f"{s.high_pct} % of it high, "


def _said(value: dict[str, Any], found: list[SectorFound], only: str | None) -> str:
    if only is not None and found:
        s = found[0]
        return (
            f"{value['name']}, sector {s.sector_id} ({s.name}): {s.acres:,.0f} acres, mean dNBR {s.dnbr_mean},"
            f" {s.severity} severity by its mean ({value['scale']} scale), {_high(s)}erosion risk"
            f" {s.erosion_risk.value} on slopes of {s.slope_pct} %; concern: {s.concern}"
        )
    names = [s.sector_id for s in found if s.priority]
    first = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "") or "none"
    grown = f", {value['regrowth_pct']} % regrowth" if value["regrowth_pct"] else ""
    return (
        f"{value['name']}: {value['acres']:,.0f} acres, mean dNBR {value['mean_dnbr']}; {value['high_pct']} % burned at"
        f" high severity ({value['high_acres']:,.0f} acres), {value['moderate_pct']} % moderate,"
        f" {value['low_pct']} % low, {value['unburned_pct']} % unburned{grown} ({value['scale']} scale);"
        f" sectors that come first: {first}"
    )
