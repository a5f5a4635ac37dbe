"""Whether a fire's boundary, or one that the caller brings, can be used."""

from __future__ import annotations

import shapely

from interlock import Result
from interlock_ranger.burn.boundary import (
    GeoMultiPolygon,
    GeoPolygon,
    Issue,
    Measured,
    area_issue,
    made,
    measured,
    raw_issues,
    shape_issues,
)
from interlock_ranger.evidence import Finding, Recommendation, Step, Today, confidence, finding
from interlock_ranger.fires import Fire

_SLIVER_ACRES = 1.0


class Boundary(Finding):
    """Whether a boundary can be used."""

    fire_id: str
    name: str
    verdict: str
    checked: str
    reported_acres: int
    off_by_pct: float | None
    tolerance_pct: float
    measured: Measured | None
    sector_acres: int
    issues: tuple[Issue, ...]


def checked(
    fire: Fire, tolerance_pct: float, given: GeoPolygon | GeoMultiPolygon | None, today: Today
) -> Result[Boundary]:
    """Validity, size, and for the one on file also whether its sectors fill it."""
    facts = fire.facts
    issues = [] if given is None else raw_issues(given)
    off = size = None
    if not issues:
        drawn = fire.perimeter if given is None else made(given)
        issues += shape_issues(drawn)
    if not any(issue.severity == "error" for issue in issues):  # a shape that crosses itself has no area
        size = measured(drawn)
        off, mismatch = area_issue(size.area_acres, facts.reported_acres, tolerance_pct)
        issues += [] if mismatch is None else [mismatch]
        issues += _sectors(fire) if given is None else []
    worst = {issue.severity for issue in issues}
    verdict = "INVALID" if "error" in worst else "WARNING" if "warning" in worst else "VALID"
    what = "perimeter on file" if given is None else "geometry of the caller"
    sources = tuple(fire.source(name, facts.imagery.post_date) for name in ("perimeter.geojson", "sectors.geojson"))
    value = {
        "fire_id": fire.id,
        "name": facts.name,
        "verdict": verdict,
        "checked": what,
        "reported_acres": facts.reported_acres,
        "off_by_pct": off,
        "tolerance_pct": tolerance_pct,
        "measured": size,
        "sector_acres": sum(sector.acres for sector in fire.sectors.values()),
        "issues": tuple(issues),
        "reasoning": (
            Step(rule="burn.boundary", said=f"{what}: rings, crossings and holes checked"),
            Step(
                rule="burn.boundary", said=f"area on the ellipsoid against reported acres, within {tolerance_pct:g} %"
            ),
        ),
        "recommendations": tuple(Recommendation(rule="burn.boundary", text=_way_out(issue)) for issue in issues),
    }
    return finding(Boundary, _said(value, size), value, sources, confidence(today(), sources, 2 - (size is None), 2))


def _sectors(fire: Fire) -> list[Issue]:
    """Whether the sectors overlap, and whether they fill the perimeter."""
    shapes = [sector.geometry for sector in fire.sectors.values()]
    whole = shapely.union_all(shapes)
    summed = sum(measured(part).area_acres for part in shapes)
    joined, drawn = measured(whole).area_acres, measured(fire.perimeter).area_acres
    found = []
    if summed - joined > max(_SLIVER_ACRES, 0.001 * drawn):
        said = f"sectors overlap by {summed - joined:,.0f} acres"
        found.append(Issue(code="SECTOR_OVERLAP", severity="warning", said=said))
    if drawn - joined > max(_SLIVER_ACRES, 0.001 * drawn):
        said = f"sectors leave {drawn - joined:,.0f} acres of the perimeter uncovered"
        found.append(Issue(code="SECTOR_GAP", severity="warning", said=said))
    return found


def _way_out(issue: Issue) -> str:
    ways = {
        "NOT_CLOSED": "repeat the first position at the end of the ring",
        "SELF_INTERSECTION": "redraw the ring where it crosses itself",
        "INVALID_COORDINATES": "give longitude, then latitude, in degrees",
        "AREA_MISMATCH": "find out which is right: the drawn perimeter or the reported acres",
        "HOLES": "confirm that the holes are unburned islands",
    }
    return f"{issue.code}: {ways.get(issue.code, 'correct the geometry')}"


def _said(value: dict[str, object], size: Measured | None) -> str:
    issues: tuple[Issue, ...] = value["issues"]  # type: ignore[assignment]
    told = "; ".join(f"{issue.code}: {issue.said}" for issue in issues) or "no issue found"
    if size is None:
        return f"{value['name']}, {value['checked']}: {value['verdict']}; {told}"
    return (
        f"{value['name']}, {value['checked']}: {value['verdict']}; {size.area_acres:,.0f} acres drawn,"
        f" {value['reported_acres']:,} reported ({value['off_by_pct']:+} %, tolerance {value['tolerance_pct']:g} %),"
        f" perimeter {size.perimeter_miles:,.1f} miles; {told}"
    )
