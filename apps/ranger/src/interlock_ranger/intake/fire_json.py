"""The JSON and GeoJSON of a fire: facts, sectors, trails, stands; each record checked field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, TypeVar

import msgspec
import shapely
from shapely.validation import explain_validity

from interlock.errors import InvalidInput
from interlock_ranger.intake.problems import Allowed, InputProblem, Range, check_fields, keep_sound, one_of, show_value
from interlock_ranger.intake.shapes import read_line, read_projection, survey_areas
from interlock_ranger.records import (
    Access,
    DamageKind,
    DamagePoint,
    Designation,
    Facts,
    Imagery,
    Phase,
    Place,
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
_CHECKED_BY_PART: dict[str, type] = {
    "imagery": dict, "analyst_thresholds": dict, "places": dict, "file_dates": dict, "damage_points": list,
}  # fmt: skip
"""Fields whose parts tell their own problems: the first of these is not told again as that of the whole."""
_FIRE = "the fire"
_WHOLLY_CONTAINED = 100
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
    """The rows of a table, as many as there are in `sound`."""
    labels: tuple[tuple[str, str], ...] = ()
    """What the rows of a table say in their column `synthetic`, with their places."""
    ids: tuple[str, ...] = ()
    """Of every record, also of those that are wrong: what belongs to one of these is not without a place."""
    sound: tuple[Mapping[str, Any], ...] = ()
    """Of every record, also of those that are wrong, the fields that are right by themselves, as the file has them."""


class KnownFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What of fire.json can be held against other files and the day, whatever else is wrong with it."""

    synthetic: bool | None = None
    reported_acres: float | None = None
    days: Mapping[str, date] = {}
    places: Mapping[str, tuple[float, float]] = {}
    """Longitude and latitude, by id."""
    dated_files: tuple[str, ...] = ()


def read_facts(document: Any) -> Checked:
    """What fire.json says; where something is wrong, nothing."""
    file, raw = "fire.json", _as_record(document, "it")
    places = raw.get("places")
    thresholds = raw.get("analyst_thresholds")
    problems = [*check_fields(file, _FIRE, raw, _FACTS)]
    if isinstance(thresholds, dict):
        problems += check_fields(file, "analyst_thresholds", thresholds, dict.fromkeys(thresholds, _DNBR))
    for name, place in places.items() if isinstance(places, dict) else ():
        problems += _check_place(f"place {name}", place)
    problems += _check_file_dates(raw.get("file_dates"))
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


def read_known_facts(document: Any) -> KnownFacts:
    """The facts that are right by themselves."""
    raw = _as_record(document, "it")
    imagery, places, dates = (
        found if isinstance(found := raw.get(key), dict) else {} for key in ("imagery", "places", "file_dates")
    )
    # Of a fire that still burns it is the day that is hoped for.
    contained = ("containment_date",) if raw.get("containment_pct") == _WHOLLY_CONTAINED else ()
    said = {
        **{name: raw.get(name) for name in ("ignition_date", "survey_date", "cruise_date", *contained)},
        **{f"imagery.{name}": imagery.get(name) for name in ("pre_date", "post_date")},
        **{f"file_dates.{name}": day for name, day in dates.items()},
    }
    acres, synthetic = raw.get("reported_acres"), raw.get("synthetic")
    return KnownFacts(
        synthetic=synthetic if isinstance(synthetic, bool) else None,
        reported_acres=acres if _FACTS["reported_acres"].admits(acres) else None,
        days={name: day for name, value in said.items() if (day := _read_day(value)) is not None},
        places={
            key: (place["longitude"], place["latitude"])
            for key, place in places.items()
            if isinstance(place, dict) and _has_position(place)
        },
        dated_files=tuple(dates),
    )


def _has_position(record: Mapping[str, Any]) -> bool:
    return _LONGITUDE.admits(record.get("longitude")) and _LATITUDE.admits(record.get("latitude"))


def _check_place(where: str, place: Any) -> Iterator[InputProblem]:
    if not isinstance(place, dict):
        yield InputProblem(file="fire.json", place=where, way_out="is no JSON object")
        return
    found = [*check_fields("fire.json", where, place, _PLACE)]
    yield from found
    yield from _check_shape("fire.json", where, place, Place, found)


def _check_file_dates(dates: Any) -> Iterator[InputProblem]:
    for name, day in dates.items() if isinstance(dates, dict) else ():
        if _read_day(day) is None:
            yield InputProblem(
                file="fire.json",
                place="file_dates",
                field=show_value(name),
                value=show_value(day),
                way_out="give a date as YYYY-MM-DD",
            )


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
    file, sectors, problems, sound = "sectors.geojson", list[Sector](), list[InputProblem](), list[Mapping[str, Any]]()
    areas = survey_areas(document)
    problems += _find_foreign_members(file, document)
    for number, (properties, geometry, fault) in enumerate(areas, 1):
        place = _name_place(properties, "sector_id", number)
        found = [*check_fields(file, place, properties, _SECTOR)]
        if fault:
            found.append(InputProblem(file=file, place=place, way_out=fault))
        elif not geometry.is_valid:
            reason = explain_validity(geometry)
            found.append(
                InputProblem(file=file, place=place, field="geometry", value=reason, way_out="redraw it there")
            )
        # Its label is no part of a sector: it is held against that of the fire, with all others.
        own = {name: value for name, value in properties.items() if name != "synthetic"}
        _add({**own, "geometry": geometry}, Sector, file, place, found, sectors)
        sound.append(keep_sound(own if fault else {**own, "geometry": geometry}, place, found))
        problems += found
    return Checked(tuple(sectors), tuple(problems), ids=_list_ids(sound, "sector_id"), sound=tuple(sound))


def read_trails(document: Any) -> Checked:
    if read_projection(document) is not None:
        raise InvalidInput("it is in another projection; give longitude and latitude in WGS 84 (EPSG:4326)")
    file, trails, problems, sound = "trails.json", list[Trail](), list[InputProblem](), list[Mapping[str, Any]]()
    listed = _list_records(document, "trails")
    problems += _find_foreign(file, "at its top", document, ("trails", "crs"))
    problems += _find_no_objects(file, listed)
    for number, raw in _only_objects(listed):
        place = _name_place(raw, "trail_id", number)
        wrong_points, points = _read_points(place, raw)
        found = [*check_fields(file, place, raw, _TRAIL), *wrong_points]
        line = None
        try:
            line = read_line(raw["line"]) if "line" in raw else None
        except (InvalidInput, ValueError, TypeError, shapely.errors.ShapelyError) as error:
            found.append(InputProblem(file=file, place=place, way_out=str(error)))
        _add(raw if line is None else {**raw, "line": line}, Trail, file, place, found, trails)
        known = {name: value for name, value in keep_sound(raw, place, found).items() if name != "line"}
        sound.append({**known, **({} if line is None else {"line": line}), "damage_points": points})
        problems += found
    return Checked(tuple(trails), tuple(problems), ids=_list_ids(sound, "trail_id"), sound=tuple(sound))


def _read_points(place: str, trail: Mapping[str, Any]) -> tuple[list[InputProblem], tuple[Mapping[str, Any], ...]]:
    """What is wrong with the damage points of a trail, and the fields of each that are right."""
    allowed, miles, points = dict(_POINT), trail.get("miles"), trail.get("damage_points")
    if _TRAIL["miles"].admits(miles) and isinstance(miles, int | float):
        allowed["milepost"] = Range(low=0, high=miles, hint="the length of the trail")
    problems, sound = list[InputProblem](), list[Mapping[str, Any]]()
    for number, point in enumerate(points if isinstance(points, list) else (), 1):
        where = f"damage point {number} of {place}"
        if not isinstance(point, dict):
            problems.append(InputProblem(file="trails.json", place=where, way_out="is no JSON object"))
            continue
        known = point.get("crew_days") is not None
        days: dict[str, Allowed] = {"crew_days": Range(low=0, high=100_000)} if known else {}
        found = [*check_fields("trails.json", where, point, {**allowed, **days})]
        found += [*_check_shape("trails.json", where, point, DamagePoint, found)]
        problems += found
        sound.append(keep_sound(point, where, found))
    return problems, tuple(sound)


def read_stands(document: Any) -> Checked:
    file, stands, problems, sound = "stands.json", list[Stand](), list[InputProblem](), list[Mapping[str, Any]]()
    listed = _list_records(document, "stands")
    problems += _find_foreign(file, "at its top", document, ("stands",))
    problems += _find_no_objects(file, listed)
    for number, raw in _only_objects(listed):
        place = _name_place(raw, "stand_id", number)
        found = [*check_fields(file, place, raw, _STAND)]
        _add(raw, Stand, file, place, found, stands)
        sound.append(keep_sound(raw, place, found))
        problems += found
    return Checked(tuple(stands), tuple(problems), ids=_list_ids(sound, "stand_id"), sound=tuple(sound))


def _find_foreign_members(file: str, document: Any) -> Iterator[InputProblem]:
    """What stands in a collection or beside the properties of a feature, where nobody reads it."""
    yield from _find_foreign(file, "at its top", document, _GEOJSON_MEMBERS)
    for number, feature in enumerate(document.get("features", ()), 1):
        yield from _find_foreign(file, f"feature {number}", feature, _GEOJSON_MEMBERS)


def _find_foreign(file: str, place: str, record: Any, known: Sequence[str]) -> Iterator[InputProblem]:
    for name in record if isinstance(record, dict) else ():
        if name not in (*known, "synthetic"):
            yield InputProblem(file=file, place=place, way_out=f"there is no field {show_value(name)}; take it out")


def _list_records(document: Any, key: str) -> list[Any]:
    listed = _as_record(document, "it").get(key)
    if not isinstance(listed, list):
        raise InvalidInput(f"it has no list of {key}")
    return listed


def _only_objects(listed: Sequence[Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The entries that are records, by their numbers in the whole list."""
    return ((number, item) for number, item in enumerate(listed, 1) if isinstance(item, dict))


def _find_no_objects(file: str, listed: Sequence[Any]) -> Iterator[InputProblem]:
    for number, item in enumerate(listed, 1):
        if not isinstance(item, dict):
            yield InputProblem(file=file, way_out=f"entry {number} is no JSON object")


def _as_record(item: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(item, dict):
        raise InvalidInput(f"{what} is no JSON object")
    return item


def _name_place(record: Mapping[str, Any], key: str, number: int) -> str:
    return str(record[key]) if isinstance(record.get(key), str) else f"entry {number}"


def _list_ids(sound: Sequence[Mapping[str, Any]], key: str) -> tuple[str, ...]:
    return tuple(record[key] for record in sound if isinstance(record.get(key), str))


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
    told = {problem.field for problem in found if problem.place == place}
    for name, field in fields.items():
        if name not in raw:
            if field.required:
                yield InputProblem(file=file, place=place, way_out=f"{name} is missing; add it")
        elif name not in told and not isinstance(raw[name], _CHECKED_BY_PART.get(name, ())):
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
