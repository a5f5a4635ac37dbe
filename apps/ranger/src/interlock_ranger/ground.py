"""Measures on the ground: the ellipsoid, and what a mile and an acre are."""

from __future__ import annotations

from pyproj import Geod

GEOD = Geod(ellps="WGS84")
ACRE_M2 = 4046.8564224
MILE_M = 1609.344
