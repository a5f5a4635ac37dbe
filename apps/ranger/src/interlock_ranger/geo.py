"""Measures on the globe: the ellipsoid, and what a mile and an acre are."""

from __future__ import annotations

from typing import Any

from pyproj import Geod
from shapely.geometry import MultiPolygon
from shapely.geometry.polygon import orient

GEOD = Geod(ellps="WGS84")
ACRE_M2 = 4046.8564224
"""The international acre; the survey acre differs by four parts in a million."""
MILE_M = 1609.344


def measure_acres(area: Any) -> float:
    """The area of a polygon, or of several, on the ellipsoid; holes do not count."""
    # pyproj takes the sign of an area from the direction of its ring.
    oriented = MultiPolygon([orient(part) for part in getattr(area, "geoms", (area,))])
    return abs(float(GEOD.geometry_area_perimeter(oriented)[0])) / ACRE_M2


def measure_miles(line: Any) -> float:
    """The length of a line on the ellipsoid."""
    return float(GEOD.geometry_length(line)) / MILE_M
