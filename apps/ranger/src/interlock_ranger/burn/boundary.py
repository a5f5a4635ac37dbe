"""Boundaries: is a shape valid, and does its size on the globe match what was reported?"""

from __future__ import annotations

from typing import Literal

from shapely.geometry import MultiPolygon, Polygon, shape
from shapely.validation import explain_validity

from interlock_ranger.evidence import Part
from interlock_ranger.geo import GEOD, MILE_M, measure_acres

FEWEST_POINTS = 4
"""Of a ring: three corners, and the first again."""

Position = list[float]


class GeoPolygon(Part):
    """A polygon as GeoJSON has it: rings of longitude and latitude in degrees, the first outside, the others holes."""

    type: Literal["Polygon"]
    coordinates: list[list[Position]]


class GeoMultiPolygon(Part):
    type: Literal["MultiPolygon"]
    coordinates: list[list[list[Position]]]


class Issue(Part):
    """Something that is wrong with a boundary."""

    code: str
    severity: Literal["error", "warning", "info"]
    message: str


class Extent(Part):
    """A shape as it is measured on the globe."""

    area_acres: float
    perimeter_miles: float
    parts: int
    holes: int


def find_ring_issues(geometry: GeoPolygon | GeoMultiPolygon) -> list[Issue]:
    """What is wrong before a shape can be made of it at all."""
    rings = [ring for polygon in _polygons(geometry) for ring in polygon]
    issues = []
    if not rings:
        issues.append(Issue(code="MISSING_GEOMETRY", severity="error", message="there is no ring"))
    for number, ring in enumerate(rings, 1):
        # Two numbers, or three with a height (RFC 7946). Length first: of one number there is no latitude to look at.
        if any(len(p) not in (2, 3) or not _is_on_globe(p) for p in ring):
            message = f"ring {number} has a position that is no longitude and latitude in degrees"
            issues.append(Issue(code="INVALID_COORDINATES", severity="error", message=message))
        if len(ring) < FEWEST_POINTS:
            message = f"ring {number} has {len(ring)} positions; a ring needs {FEWEST_POINTS}"
            issues.append(Issue(code="INSUFFICIENT_POINTS", severity="error", message=message))
        elif ring[0] != ring[-1]:
            message = f"ring {number} does not end where it begins"
            issues.append(Issue(code="NOT_CLOSED", severity="error", message=message))
    return issues


def build_shape(geometry: GeoPolygon | GeoMultiPolygon) -> Polygon | MultiPolygon:
    """The shape of positions that `find_ring_issues` found nothing wrong with; heights are dropped."""
    flat = [[[position[:2] for position in ring] for ring in polygon] for polygon in _polygons(geometry)]
    return shape({"type": "MultiPolygon", "coordinates": flat})


def find_shape_issues(boundary: Polygon | MultiPolygon) -> list[Issue]:
    """What is wrong with a shape: where it crosses itself, and that it has holes."""
    # GEOS calls an empty shape valid, so that has to be asked apart.
    if boundary.is_empty:
        return [Issue(code="MISSING_GEOMETRY", severity="error", message="the shape is empty")]
    issues = []
    if not boundary.is_valid:
        reason = explain_validity(boundary)  # GEOS says what is wrong in words only
        code = "SELF_INTERSECTION" if "intersection" in reason.lower() else "INVALID_SHAPE"
        issues.append(Issue(code=code, severity="error", message=reason))
    holes = measure(boundary).holes
    if holes:
        message = f"{holes} hole{'s' if holes > 1 else ''} whose area is not counted"
        issues.append(Issue(code="HOLES", severity="info", message=message))
    return issues


def measure(boundary: Polygon | MultiPolygon) -> Extent:
    """Area and length on the ellipsoid."""
    polygons = list(boundary.geoms) if isinstance(boundary, MultiPolygon) else [boundary]
    return Extent(
        area_acres=round(measure_acres(boundary), 1),
        perimeter_miles=round(GEOD.geometry_area_perimeter(MultiPolygon(polygons))[1] / MILE_M, 2),
        parts=len(polygons),
        holes=sum(len(p.interiors) for p in polygons),
    )


def area_difference_pct(area_acres: float, reported_acres: float) -> float:
    """How far the drawn area is from the reported one, in percent of the reported."""
    return 100 * (area_acres - reported_acres) / reported_acres


def find_area_issue(area_acres: float, reported_acres: float, tolerance_pct: float) -> Issue | None:
    off_pct = area_difference_pct(area_acres, reported_acres)
    if abs(off_pct) <= tolerance_pct:
        return None
    message = (
        f"drawn {area_acres:,.0f} acres, reported {reported_acres:,.0f}: {off_pct:+.1f} %, over {tolerance_pct:g} %"
    )
    # A warning and no error: the drawing may be right, and the report wrong.
    return Issue(code="AREA_MISMATCH", severity="warning", message=message)


def _polygons(geometry: GeoPolygon | GeoMultiPolygon) -> list[list[list[Position]]]:
    return [geometry.coordinates] if isinstance(geometry, GeoPolygon) else geometry.coordinates


def _is_on_globe(position: Position) -> bool:
    return -180 <= position[0] <= 180 and -90 <= position[1] <= 90
