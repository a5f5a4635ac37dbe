"""Boundaries: is a shape valid, and does its size on the globe match what was reported?"""

from __future__ import annotations

from typing import Literal

import shapely
from shapely.geometry import MultiPolygon, Polygon, shape
from shapely.validation import explain_validity

from interlock_ranger.evidence import Part
from interlock_ranger.ground import ACRE_M2, GEOD, MILE_M

FEWEST_POINTS = 4
"""Of a ring: three corners, and the first again."""

Position = list[float]


class GeoPolygon(Part):
    """A polygon as GeoJSON has it: rings of longitude and latitude in degrees, the first outside, the others holes."""

    type: Literal["Polygon"]
    coordinates: list[list[Position]]


class GeoMultiPolygon(Part):
    """Several polygons."""

    type: Literal["MultiPolygon"]
    coordinates: list[list[list[Position]]]


class Issue(Part):
    """Something that is wrong with a boundary."""

    code: str
    severity: Literal["error", "warning", "info"]
    said: str


class Measured(Part):
    """A shape on the globe."""

    area_acres: float
    perimeter_miles: float
    parts: int
    holes: int


def raw_issues(given: GeoPolygon | GeoMultiPolygon) -> list[Issue]:
    """What is wrong before a shape can be made of it at all."""
    polygons = [given.coordinates] if isinstance(given, GeoPolygon) else given.coordinates
    rings = [ring for polygon in polygons for ring in polygon]
    found = []
    if not rings:
        found.append(Issue(code="MISSING_GEOMETRY", severity="error", said="there is no ring"))
    for number, ring in enumerate(rings, 1):
        if any(len(p) not in (2, 3) or not _on_globe(p) for p in ring):
            said = f"ring {number} has a position that is no longitude and latitude in degrees"
            found.append(Issue(code="INVALID_COORDINATES", severity="error", said=said))
        if len(ring) < FEWEST_POINTS:
            said = f"ring {number} has {len(ring)} positions; a ring needs {FEWEST_POINTS}"
            found.append(Issue(code="INSUFFICIENT_POINTS", severity="error", said=said))
        elif ring[0] != ring[-1]:
            said = f"ring {number} does not end where it begins"
            found.append(Issue(code="NOT_CLOSED", severity="error", said=said))
    return found


def _on_globe(position: Position) -> bool:
    return -180 <= position[0] <= 180 and -90 <= position[1] <= 90


def made(given: GeoPolygon | GeoMultiPolygon) -> Polygon | MultiPolygon:
    """The shape of positions that `raw_issues` found nothing wrong with."""
    polygons = [given.coordinates] if isinstance(given, GeoPolygon) else given.coordinates
    flat = [[[position[:2] for position in ring] for ring in polygon] for polygon in polygons]  # heights are dropped
    return shape({"type": "MultiPolygon", "coordinates": flat})


def shape_issues(drawn: Polygon | MultiPolygon) -> list[Issue]:
    """What is wrong with a shape: where it crosses itself, and that it has holes."""
    found = []
    if drawn.is_empty:
        return [Issue(code="MISSING_GEOMETRY", severity="error", said="the shape is empty")]
    if not drawn.is_valid:
        why = explain_validity(drawn)
        crosses = "intersection" in why.lower()
        found.append(Issue(code="SELF_INTERSECTION" if crosses else "INVALID_SHAPE", severity="error", said=why))
    holes = measured(drawn).holes
    if holes:
        said = f"{holes} hole{'s' if holes > 1 else ''} whose area is not counted"
        found.append(Issue(code="HOLES", severity="info", said=said))
    return found


def measured(drawn: Polygon | MultiPolygon) -> Measured:
    """Area and length on the ellipsoid."""
    polygons = list(drawn.geoms) if isinstance(drawn, MultiPolygon) else [drawn]
    oriented = shapely.geometry.MultiPolygon([shapely.geometry.polygon.orient(p) for p in polygons])
    area_m2, length_m = GEOD.geometry_area_perimeter(oriented)
    return Measured(
        area_acres=round(abs(area_m2) / ACRE_M2, 1),
        perimeter_miles=round(length_m / MILE_M, 2),
        parts=len(polygons),
        holes=sum(len(p.interiors) for p in polygons),
    )


def area_issue(area_acres: float, reported_acres: float, tolerance_pct: float) -> tuple[float, Issue | None]:
    """How far the drawn area is from the reported one, in percent of the reported, and the issue if it is too far."""
    off = 100 * (area_acres - reported_acres) / reported_acres
    if abs(off) <= tolerance_pct:
        return round(off, 2), None
    said = f"drawn {area_acres:,.0f} acres, reported {reported_acres:,.0f}: {off:+.1f} %, over {tolerance_pct:g} %"
    return round(off, 2), Issue(code="AREA_MISMATCH", severity="warning", said=said)
