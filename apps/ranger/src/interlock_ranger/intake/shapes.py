"""Shapes of GeoJSON, brought to longitude and latitude on WGS 84; what cannot be is refused with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import shapely
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError
from shapely.geometry import LineString, MultiPolygon, Polygon, mapping, shape

from interlock.errors import InvalidInput

WGS84 = "EPSG:4326"
FEWEST_POSITIONS = 4
"""Of a ring: three corners, and the first again."""
_NAMED = 10
"""So many features that are no area are named in one sentence."""
_POLYGONS = ("Polygon", "MultiPolygon", "GeometryCollection")
_METRES = (
    "that looks like metres of a projection: save the file in WGS 84 (EPSG:4326), or name its projection in a"
    ' "crs" member'
)
_SWAPPED = "that looks like latitude first: GeoJSON has longitude first"


_EASTWARD = "that looks like longitudes counted eastward to 360: subtract 360 from those over 180"
_GUESSES: dict[str, Callable[[float, float], bool]] = {
    _SWAPPED: lambda x, y: -90 <= x <= 90 and -180 <= y <= 180,
    _EASTWARD: lambda x, y: 180 < x <= 360 and -90 <= y <= 90,
}


class MapFeature(NamedTuple):
    properties: dict[str, Any]
    geometry: Any
    fault: str = ""
    """Why there is no area; empty if there is one."""


def survey_areas(document: Any) -> tuple[MapFeature, ...]:
    """The features of a GeoJSON document: a collection, one feature, or a geometry alone; each with its own fault."""
    to_wgs84 = read_projection(document)
    features = _list_features(document)
    if not features:
        raise InvalidInput("there is no feature in it")
    return tuple(_survey_area(item, f"feature {n}", to_wgs84) for n, item in enumerate(features, 1))


def read_areas(document: Any) -> tuple[MapFeature, ...]:
    """The areas of a GeoJSON document, if each of its features is one."""
    found = survey_areas(document)
    faults = [item.fault for item in found if item.fault]
    if faults:
        more = f"; and {len(faults) - _NAMED} more" if len(faults) > _NAMED else ""
        raise InvalidInput("; ".join(faults[:_NAMED]) + more)
    return found


def _survey_area(item: Any, where: str, to_wgs84: Callable[..., Any] | None) -> MapFeature:
    properties: dict[str, Any] = {}
    try:
        properties, geometry, _ = _as_feature(item, where)
        return MapFeature(properties, _read_area(geometry, where, to_wgs84))
    except InvalidInput as error:
        return MapFeature(properties, None, str(error))
    except (ValueError, TypeError, shapely.errors.ShapelyError) as error:
        return MapFeature(properties, None, f"{where} has no shape that can be read: {error}")


def join_parts(areas: Sequence[Polygon | MultiPolygon]) -> Polygon | MultiPolygon:
    """One shape of all parts; where parts overlap, that ground counts once."""
    parts = [part for area in areas for part in getattr(area, "geoms", (area,))]
    if len(parts) == 1:
        return parts[0]
    # A part that crosses itself cannot be joined; it stays as it is for `validate_boundary` to find.
    return shapely.union_all(parts) if all(part.is_valid for part in parts) else MultiPolygon(parts)


def read_line(line: Any) -> dict[str, Any]:
    """A line as GeoJSON, without heights; pieces that meet become one."""
    if not isinstance(line, dict) or line.get("type") not in ("LineString", "MultiLineString"):
        raise InvalidInput("its line is no LineString")
    _check_degrees(_positions(line.get("coordinates")), "the line")
    found = shapely.force_2d(shape(line))
    if found.geom_type == "MultiLineString":
        found = shapely.line_merge(found)
    if not isinstance(found, LineString) or found.is_empty:
        raise InvalidInput("its line is in pieces that do not meet; make a trail of each, or join them")
    # As it stood, where nothing was changed: what is exported is what was brought.
    return line if line["type"] == "LineString" and not _has_heights(line) else mapping(found)


def read_projection(document: Any) -> Callable[..., Any] | None:
    """How positions of a document become longitude and latitude; nothing if that is what they are."""
    named = document.get("crs") if isinstance(document, dict) else None
    if named is None:
        return None
    try:
        crs = CRS.from_user_input(named["properties"]["name"])
        if crs.equals(CRS(WGS84), ignore_axis_order=True) or crs.equals(CRS("OGC:CRS84"), ignore_axis_order=True):
            return None
        # Not by guess: without the grids that NAD27 needs, a shape would come to lie a hundred metres off.
        return Transformer.from_crs(crs, WGS84, always_xy=True, allow_ballpark=False).transform
    except (ProjError, KeyError, TypeError):
        raise InvalidInput(f"its projection {named!r} cannot be read; save it in WGS 84 (EPSG:4326)") from None


def _list_features(document: Any) -> list[Any]:
    if not isinstance(document, dict):
        raise InvalidInput("it is no GeoJSON object")
    if document.get("type") == "FeatureCollection" or "features" in document:
        features = document.get("features")
        if not isinstance(features, list):
            raise InvalidInput("its features are no list")
        return features
    return [document]


def _as_feature(item: Any, where: str) -> MapFeature:
    if not isinstance(item, dict):
        raise InvalidInput(f"{where} is no object")
    if "geometry" in item or item.get("type") == "Feature":
        properties = item.get("properties") or {}
        if not isinstance(properties, dict):
            raise InvalidInput(f"the properties of {where} are no object")
        return MapFeature(properties, item.get("geometry"))
    return MapFeature({}, item if "coordinates" in item or "geometries" in item else None)


def _read_area(geometry: Any, where: str, to_wgs84: Callable[..., Any] | None) -> Polygon | MultiPolygon:
    if not isinstance(geometry, dict) or geometry.get("type") not in _POLYGONS:
        found = geometry.get("type") if isinstance(geometry, dict) else None
        raise InvalidInput(f"{where} is {found or 'without a geometry'}; an area is a Polygon or a MultiPolygon")
    if geometry["type"] == "GeometryCollection":
        return join_parts([_read_area(part, where, to_wgs84) for part in geometry.get("geometries", ())])
    rings = list(_rings(geometry))
    if not rings:
        raise InvalidInput(f"{where} is empty")
    for ring in rings:
        _check_ring(ring, where)
        if to_wgs84 is None:
            _check_degrees(iter(ring), where)
    area = shapely.force_2d(shape(geometry))
    if to_wgs84 is None:
        return area
    try:
        moved = shapely.transform(area, lambda x, y: to_wgs84(x, y, errcheck=True), interleaved=False)
    except ProjError:
        raise InvalidInput(f"{where} does not lie where its projection can be used") from None
    _check_degrees((tuple(position) for position in shapely.get_coordinates(moved)), where)
    return moved


def _rings(geometry: dict[str, Any]) -> Iterator[list[Any]]:
    polygons = [geometry.get("coordinates")] if geometry["type"] == "Polygon" else geometry.get("coordinates")
    for polygon in polygons or ():
        yield from polygon or ()


def _check_ring(ring: Sequence[Any], where: str) -> None:
    if len(ring) < FEWEST_POSITIONS:
        raise InvalidInput(f"a ring of {where} has {len(ring)} positions; a ring needs {FEWEST_POSITIONS}")
    # Shapely would close it without a word, and what is missing may be more than a point.
    if ring[0] != ring[-1]:
        raise InvalidInput(f"a ring of {where} does not end where it begins; repeat its first position at the end")


def _positions(coordinates: Any) -> Iterator[Sequence[Any]]:
    """Every position, however deep it lies."""
    if not isinstance(coordinates, list) or not coordinates:
        raise InvalidInput("it has no positions")
    if isinstance(coordinates[0], list):
        for item in coordinates:
            yield from _positions(item)
    else:
        yield coordinates


def _check_degrees(positions: Iterator[Sequence[Any]], where: str) -> None:
    for position in positions:
        numbers = [item for item in position if isinstance(item, int | float) and not isinstance(item, bool)]
        if len(numbers) != len(position) or len(numbers) not in (2, 3):
            raise InvalidInput(f"{where} has a position that is no longitude and latitude: {position!r}")
        x, y = numbers[:2]
        # Written so that NaN is outside.
        if not (-180 <= x <= 180 and -90 <= y <= 90):
            reason = next((why for why, fits in _GUESSES.items() if fits(x, y)), _METRES)
            raise InvalidInput(f"{where} has the position {x:g}, {y:g}, which is not in degrees; {reason}")


def _has_heights(line: dict[str, Any]) -> bool:
    return any(len(position) > 2 for position in _positions(line["coordinates"]))
