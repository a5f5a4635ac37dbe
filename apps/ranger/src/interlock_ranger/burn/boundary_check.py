"""Whether a fire's boundary, or one that the caller brings, can be used."""

from __future__ import annotations

import shapely

from interlock import Result
from interlock_ranger.burn.boundary import (
    Extent,
    GeoMultiPolygon,
    GeoPolygon,
    Issue,
    area_difference_pct,
    build_shape,
    find_area_issue,
    find_ring_issues,
    find_shape_issues,
    measure,
)
from interlock_ranger.evidence import (
    Evidence,
    Finding,
    Recommendation,
    Step,
    Today,
    build_result,
    compute_confidence,
)
from interlock_ranger.records import Fire

_SLIVER_ACRES = 1.0
_SLIVER_SHARE = 0.001
"""Gaps and overlaps below both are what rounding of coordinates leaves."""
_REMEDIES = {
    "NOT_CLOSED": "repeat the first position at the end of the ring",
    "SELF_INTERSECTION": "redraw the ring where it crosses itself",
    "INVALID_COORDINATES": "give longitude, then latitude, in degrees",
    "AREA_MISMATCH": "find out which is right: the drawn perimeter or the reported acres",
    "HOLES": "confirm that the holes are unburned islands",
}


class BoundaryCheck(Finding):
    fire_id: str
    name: str
    verdict: str
    checked: str
    reported_acres: int
    off_by_pct: float | None
    tolerance_pct: float
    measured: Extent | None
    sector_acres: int
    issues: tuple[Issue, ...]


def check_boundary(
    fire: Fire, tolerance_pct: float, geometry: GeoPolygon | GeoMultiPolygon | None, today: Today
) -> Result[BoundaryCheck]:
    """Validity, size, and for the one on file also whether its sectors fill it."""
    facts, extent, off_pct = fire.facts, None, None
    # A perimeter on file became a shape when the fire was read, and has no raw rings left to look at.
    issues = [] if geometry is None else find_ring_issues(geometry)
    # No shape is made of wrong rings: shapely raises on some of them, and quietly closes others.
    if not issues:
        boundary = fire.perimeter if geometry is None else build_shape(geometry)
        issues = find_shape_issues(boundary)
    if not any(issue.severity == "error" for issue in issues):  # a shape that crosses itself has no area
        extent = measure(boundary)
        off_pct = round(area_difference_pct(extent.area_acres, facts.reported_acres), 2)
        mismatch = find_area_issue(extent.area_acres, facts.reported_acres, tolerance_pct)
        issues += [] if mismatch is None else [mismatch]
        # Sectors are cut from the perimeter on file; they need not fill a shape that somebody else brings.
        issues += _find_sector_issues(fire) if geometry is None else []
    checked = "perimeter on file" if geometry is None else "geometry of the caller"
    # What the caller drew is compared with the reported acres, and with nothing that was drawn on file.
    drawn = () if geometry is not None else ("perimeter.geojson", "sectors.geojson")
    sources = tuple(map(fire.source, (*drawn, "fire.json")))
    within = f"area on the ellipsoid against reported acres, within {tolerance_pct:g} %"
    evidence = Evidence(
        reasoning=(
            Step(rule="burn.boundary", text=f"{checked}: rings, crossings and holes checked"),
            Step(rule="burn.boundary", text=within),
        ),
        recommendations=tuple(Recommendation(rule="burn.boundary", text=_remedy(issue)) for issue in issues),
        confidence=compute_confidence(today(), sources, 2 - (extent is None), 2),
        data_sources=sources,
    )
    check = BoundaryCheck(
        fire_id=fire.id,
        name=facts.name,
        verdict=_verdict(issues),
        checked=checked,
        reported_acres=facts.reported_acres,
        off_by_pct=off_pct,
        tolerance_pct=tolerance_pct,
        measured=extent,
        sector_acres=sum(sector.acres for sector in fire.sectors.values()),
        issues=tuple(issues),
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    return build_result(check, _summarise(check))


def _verdict(issues: list[Issue]) -> str:
    severities = {issue.severity for issue in issues}
    if "error" in severities:
        return "INVALID"
    return "WARNING" if "warning" in severities else "VALID"


def _find_sector_issues(fire: Fire) -> list[Issue]:
    """Whether the sectors overlap, and whether they fill the perimeter."""
    shapes = [sector.geometry for sector in fire.sectors.values()]
    summed = sum(measure(part).area_acres for part in shapes)
    joined, drawn = measure(shapely.union_all(shapes)).area_acres, measure(fire.perimeter).area_acres
    sliver = max(_SLIVER_ACRES, _SLIVER_SHARE * drawn)
    issues = []
    # What the union has less than the sum is counted twice: no pair of sectors has to be intersected to know that.
    if summed - joined > sliver:
        message = f"sectors overlap by {summed - joined:,.0f} acres"
        issues.append(Issue(code="SECTOR_OVERLAP", severity="warning", message=message))
    if drawn - joined > sliver:
        message = f"sectors leave {drawn - joined:,.0f} acres of the perimeter uncovered"
        issues.append(Issue(code="SECTOR_GAP", severity="warning", message=message))
    return issues


def _remedy(issue: Issue) -> str:
    return f"{issue.code}: {_REMEDIES.get(issue.code, 'correct the geometry')}"


def _summarise(check: BoundaryCheck) -> str:
    issues = "; ".join(f"{issue.code}: {issue.message}" for issue in check.issues) or "no issue found"
    head = f"{check.name}, {check.checked}: {check.verdict}"
    if check.measured is None:
        return f"{head}; {issues}"
    parts = f" in {check.measured.parts} parts" if check.measured.parts > 1 else ""
    return (
        f"{head}; {check.measured.area_acres:,.0f} acres drawn{parts},"
        f" {check.reported_acres:,} reported ({check.off_by_pct:+} %, tolerance {check.tolerance_pct:g} %),"
        f" perimeter {check.measured.perimeter_miles:,.1f} miles; {issues}"
    )
