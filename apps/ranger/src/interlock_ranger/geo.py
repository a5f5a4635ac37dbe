"""Measures on the globe: the ellipsoid, and what a mile and an acre are."""

from __future__ import annotations

from pyproj import Geod

GEOD = Geod(ellps="WGS84")
ACRE_M2 = 4046.8564224
"""The international acre; the survey acre differs by four parts in a million."""
MILE_M = 1609.344
