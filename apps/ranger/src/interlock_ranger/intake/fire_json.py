"""The JSON and GeoJSON of a fire: facts, sectors, trails, stands; each record checked field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, TypeVar

import msgspec
from shapely.validation import explain_validity

from interlock.errors import InvalidInput
from interlock_ranger.intake.problems import Allowed, InputProblem, Range, check_fields, one_of, show_value
from interlock_ranger.intake.shapes import read_areas, read_line, read_projection
from interlock_ranger.records import (
    Access,
    DamageKind,
    DamagePoint,
    Designation,
    Facts,
    Imagery,
    Phase,
    Region,
    Sector,
    Stand,
    Terrain,
    Thresholds,
    Trail,
    TrailStatus,
)

T = TypeVar("T")
_SCALED = "dNBR is a difference of two NBR; divide thousandths by 1,000"
_DNBR = Range(low=-2, high=2, hint=_SCALED)
_LONGITUDE = Range(low=-180, high=180, hint="degrees, WGS 84")
_LATITUDE = Range(low=-90, high=90, hint="degrees, WGS 84")
_MOST_ACRES = 100_000_000
SLOPE_PCT = Range(low=0, high=500, hint="percent")
_FIRE = "the fire"
_IN_ORDER = (
    ("ignition_date", "containment_date"),
    ("imagery.pre_date", "ignition_date"),
    ("ignition_date", "imagery.post_date"),
    # The survey is of damage that the fire did.
    ("ignition_date", "survey_date"),
)
_GEOJSON_MEMBERS = (
    "type", "features", "properties", "geometry", "coordinates", "geometries", "id", "bbox", "crs", "name",
    "xy_coordinate_resolution",
)  # fmt: skip
"""Of GeoJSON itself, and what GIS programs write beside it; what a sector is stands in none of them but two."""
_FACTS: dict[str, Allowed] = {
    "phase": one_of(Phase),
    "year": Range(low=1800, high=2200, whole=True),
    "containment_pct": Range(low=0, high=100),
    "reported_acres": Range(low=1, high=_MOST_ACRES),
}
_PLACE: dict[str, Allowed] = {
    "longitude": _LONGITUDE,
    "latitude": _LATITUDE,
    "radius_mi": Range(low=0.01, high=500, hint="miles"),
}
_SECTOR: dict[str, Allowed] = {
    "acres": Range(low=1, high=_MOST_ACRES),
    "dnbr_mean": _DNBR,
    "slope_pct": SLOPE_PCT,
    "designation": one_of(Designation),
}
_TRAIL: dict[str, Allowed] = {
    "trail_class": Range(low=1, high=5, whole=True),
    "miles": Range(low=0.01, high=10_000),
    "current_status": one_of(TrailStatus),
    "annual_visits": Range(low=0, high=1_000_000_000),
}
_POINT: dict[str, Allowed] = {
    "type": one_of(DamageKind),
    "severity": Range(low=1, high=5, whole=True),
    "longitude": _LONGITUDE,
    "latitude": _LATITUDE,
    "estimated_cost_usd": Range(low=0, high=10_000_000_000),
}
_STAND: dict[str, Allowed] = {
    "acres": Range(low=0.01, high=_MOST_ACRES),
    "access": one_of(Access),
    "terrain": one_of(Terrain),
    "region": one_of(Region),
    "designation": one_of(Designation),
}


class Checked(msgspec.Struct, frozen=True):
    """What was read of a file, and what is wrong with it; of a record that is wrong nothing was made."""

    records: tuple[Any, ...]
    problems: tuple[InputProblem, ...]
    places: tuple[str, ...] = ()
    """The rows that the records of a table stand in."""
    labels: tuple[tuple[str, str], ...] = ()
    """What the rows of a table say in their column `synthetic`, with their places."""
    ids: tuple[str, ...] = ()
    """Of every record, also of those that are wrong: what belongs to one of these is not without a place."""


def read_facts(document: Any) -> Checked:
    """What fire.json says; where something is wrong, nothing."""
    file, raw = "fire.json", _as_record(document, "it")
    places = raw.get("places")
    thresholds = raw.get("analyst_thresholds")
    problems = [*check_fields(file, _FIRE, raw, _FACTS)]
    if isinstance(thresholds, dict):
        problems += check_fields(file, "analyst_thresholds", thresholds, dict.fromkeys(thresholds, _DNBR))
    for name, place in places.items() if isinstance(places, dict) else ():
        problems += check_fields(file, f"place {name}", _as_record(place, f"place {name}"), _PLACE)
    parts: tuple[tuple[str, type[Any]], ...] = (("imagery", Imagery), ("analyst_thresholds", Thresholds))
    for name, kind in parts:
        if isinstance(raw.get(name), dict):
            problems += [*_check_shape(file, name, raw[name], kind, problems)]
    problems += [*_check_shape(file, _FIRE, raw, Facts, problems)]
    problems += _find_disorder(raw)
    if problems:
        return Checked((), tuple(problems))
    facts, wrong = _convert(raw, Facts, file, _FIRE)
    return Checked(() if facts is None else (facts,), wrong)


def _find_disorder(raw: Mapping[str, Any]) -> Iterator[InputProblem]:
    """Dates and thresholds that cannot follow each other so, of those that can be read: the others are told as such."""
    imagery, limits = (raw[key] if isinstance(raw.get(key), dict) else {} for key in ("imagery", "analyst_thresholds"))
    days = {name: _read_day(raw.get(name)) for name in ("ignition_date", "containment_date", "survey_date")}
    days |= {f"imagery.{name}": _read_day(imagery.get(name)) for name in ("pre_date", "post_date")}
    bounds = {name: value for name in Thresholds.__struct_fields__ if _DNBR.admits(value := limits.get(name))}
    for earlier, first, later, second in (
        *((earlier, days[earlier], later, days[later]) for earlier, later in _IN_ORDER),
        *zip(bounds, bounds.values(), list(bounds)[1:], list(bounds.values())[1:], strict=False),
    ):
        if first is not None and second is not None and first > second:
            yield InputProblem(
                file="fire.json", place=later, field=earlier, value=str(first), way_out=f"it may not be after {second}"
            )
    ignited, year = days["ignition_date"], raw.get("year")
    if ignited is not None and _FACTS["year"].admits(year) and year != ignited.year:
        yield InputProblem(
            file="fire.json", place=_FIRE, field="year", value=show_value(year), way_out=f"it was ignited on {ignited}"
        )


def _read_day(value: object) -> date | None:
    try:
        return msgspec.convert(value, date)
    except msgspec.ValidationError:
        return None


def read_sectors(document: Any) -> Checked:
    file, sectors, problems, ids = "sectors.geojson", list[Sector](), list[InputProblem](), list[str]()
    areas = read_areas(document)
    problems += _find_foreign_members(file, document)
    for number, (properties, geometry) in enumerate(areas, 1):
        place = _name_place(properties, "sector_id", number)
        found = [*check_fields(file, place, properties, _SECTOR)]
        if not geometry.is_valid:
            reason = explain_validity(geometry)
            found.append(
                InputProblem(file=file, place=place, field="geometry", value=reason, way_out="redraw it there")
            )
        ids += _own_id(properties, "sector_id")
        # Its label is no part of a sector: it is held against that of the fire, with all others.
        own = {name: value for name, value in properties.items() if name != "synthetic"}
        _add({**own, "geometry": geometry}, Sector, file, place, found, sectors)
        problems += found
    return Checked(tuple(sectors), tuple(problems), ids=tuple(ids))


def read_trails(document: Any) -> Checked:
    if read_projection(document) is not None:
        raise InvalidInput("it is in another projection; give longitude and latitude in WGS 84 (EPSG:4326)")
    file, trails, problems, ids = "trails.json", list[Trail](), list[InputProblem](), list[str]()
    problems += _find_foreign(file, "at its top", document, ("trails", "crs"))
    for number, raw in enumerate(_list_records(document, "trails"), 1):
        place = _name_place(raw, "trail_id", number)
        found = [*check_fields(file, place, raw, _TRAIL), *_check_points(place, raw)]
        ids += _own_id(raw, "trail_id")
        try:
            raw = {**raw, "line": read_line(raw["line"])} if "line" in raw else raw
        except InvalidInput as error:
            found.append(InputProblem(file=file, place=place, way_out=str(error)))
        _add(raw, Trail, file, place, found, trails)
        problems += found
    return Checked(tuple(trails), tuple(problems), ids=tuple(ids))


def _check_points(place: str, trail: Mapping[str, Any]) -> Iterator[InputProblem]:
    allowed, miles, points = dict(_POINT), trail.get("miles"), trail.get("damage_points")
    if _TRAIL["miles"].admits(miles) and isinstance(miles, int | float):
        allowed["milepost"] = Range(low=0, high=miles, hint="the length of the trail")
    for number, point in enumerate(points if isinstance(points, list) else (), 1):
        where = f"damage point {number} of {place}"
        record = _as_record(point, where)
        known = record.get("crew_days") is not None
        days: dict[str, Allowed] = {"crew_days": Range(low=0, high=100_000)} if known else {}
        found = [*check_fields("trails.json", where, record, {**allowed, **days})]
        yield from found
        yield from _check_shape("trails.json", where, record, DamagePoint, found)


def read_stands(document: Any) -> Checked:
    file, stands, problems, ids = "stands.json", list[Stand](), list[InputProblem](), list[str]()
    problems += _find_foreign(file, "at its top", document, ("stands",))
    for number, raw in enumerate(_list_records(document, "stands"), 1):
        place = _name_place(raw, "stand_id", number)
        found = [*check_fields(file, place, raw, _STAND)]
        ids += _own_id(raw, "stand_id")
        _add(raw, Stand, file, place, found, stands)
        problems += found
    return Checked(tuple(stands), tuple(problems), ids=tuple(ids))


def _find_foreign_members(file: str, document: Any) -> Iterator[InputProblem]:
    """What stands in a collection or beside the properties of a feature, where nobody reads it."""
    yield from _find_foreign(file, "at its top", document, _GEOJSON_MEMBERS)
    for number, feature in enumerate(document.get("features", ()), 1):
        yield from _find_foreign(file, f"feature {number}", feature, _GEOJSON_MEMBERS)


def _find_foreign(file: str, place: str, record: Any, known: Sequence[str]) -> Iterator[InputProblem]:
    for name in record if isinstance(record, dict) else ():
        if name not in (*known, "synthetic"):
            yield InputProblem(file=file, place=place, way_out=f"there is no field {show_value(name)}; take it out")


def _list_records(document: Any, key: str) -> list[dict[str, Any]]:
    listed = _as_record(document, "it").get(key)
    if not isinstance(listed, list):
        raise InvalidInput(f"it has no list of {key}")
    return [dict(_as_record(item, f"entry {number}")) for number, item in enumerate(listed, 1)]


def _as_record(item: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(item, dict):
        raise InvalidInput(f"{what} is no JSON object")
    return item


def _name_place(record: Mapping[str, Any], key: str, number: int) -> str:
    return str(record[key]) if isinstance(record.get(key), str) else f"entry {number}"


def _own_id(record: Mapping[str, Any], key: str) -> list[str]:
    return [record[key]] if isinstance(record.get(key), str) else []


def _add(
    raw: Mapping[str, Any], kind: type[T], file: str, place: str, found: list[InputProblem], records: list[T]
) -> None:
    """Make the record, if nothing is wrong with it; else say everything that is."""
    found += [*_check_shape(file, place, raw, kind, found)]
    made, wrong = (None, ()) if found else _convert(raw, kind, file, place)
    found += wrong
    records += [] if made is None else [made]


def _check_shape(
    file: str, place: str, raw: Mapping[str, Any], kind: type[Any], found: Sequence[InputProblem] = ()
) -> Iterator[InputProblem]:
    """Every field that is missing, of another type, or unknown, but for what was found already."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    told = {problem.field for problem in found}
    # What is made of parts has told its own problems: its first one is not told again as that of the whole.
    inner = any(problem.place != place for problem in found)
    for name, field in fields.items():
        if name not in raw:
            if field.required:
                yield InputProblem(file=file, place=place, way_out=f"{name} is missing; add it")
        elif name not in told and not (inner and isinstance(raw[name], dict | list)):
            try:
                msgspec.convert(raw[name], field.type)
            except msgspec.ValidationError as error:
                yield InputProblem(file=file, place=place, field=name, value=show_value(raw[name]), way_out=str(error))
    for name in raw if kind.__struct_config__.forbid_unknown_fields else ():
        if name not in fields:
            yield InputProblem(file=file, place=place, way_out=f"there is no field {show_value(name)}; take it out")


def _convert(raw: Any, kind: type[T], file: str, place: str) -> tuple[T | None, tuple[InputProblem, ...]]:
    try:
        return msgspec.convert(raw, kind), ()
    except msgspec.ValidationError as error:
        return None, (InputProblem(file=file, place=place, way_out=str(error)),)
