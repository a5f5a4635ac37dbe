"""A fire from its folder: every file read and checked, files against each other, and nothing left out in silence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import shapely
from shapely.geometry import Point, shape

from interlock.errors import InvalidInput
from interlock_ranger.evidence import Today, today_utc
from interlock_ranger.intake.agreement import find_future_days, find_laxer_stands, find_oversized_stands
from interlock_ranger.intake.cruise_tables import FLAGS, read_plots, read_trees
from interlock_ranger.intake.documents import parse_document
from interlock_ranger.intake.fire_json import (
    Checked,
    KnownFacts,
    read_facts,
    read_known_facts,
    read_sectors,
    read_stands,
    read_trails,
)
from interlock_ranger.intake.problems import InputProblem, RefusedFire, find_duplicates, show_value
from interlock_ranger.intake.rasters import RASTERS, NbrRaster, read_nbr
from interlock_ranger.intake.shapes import join_parts, read_areas
from interlock_ranger.intake.sizes import find_wrong_sectors, find_wrong_totals, find_wrong_trails
from interlock_ranger.intake.text import decode_table, file_digest
from interlock_ranger.records import Facts, Fire

T = TypeVar("T")
FILES = ("fire.json", "perimeter.geojson", "sectors.geojson", "trails.json", "stands.json", "plots.csv", "trees.csv")
_TABLES = ("plots.csv", "trees.csv")
_FAR_DEG = 2.0
"""What lies further from the perimeter than this, over a hundred miles, is of another fire or in other coordinates."""


class Files:
    """The files of one folder, each read once, with whatever is wrong said under its name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Of every file, not only of those that there must be: that a fire has rasters is known by their digests.
        self.digests = {file.name: file_digest(file) for file in sorted(folder.iterdir()) if file.is_file()}
        self.unreadable: dict[str, InputProblem] = {}
        self._documents: dict[str, Any] = {}
        for name in FILES:
            if name not in self.digests:
                self.unreadable[name] = InputProblem(file=name, way_out="is missing; put it into the folder")
        alone = [name for name in RASTERS if name in self.digests]
        if len(alone) == 1:
            absent = next(name for name in RASTERS if name not in self.digests)
            way_out = f"is there alone; dNBR needs {' and '.join(RASTERS)}, or neither"
            self.unreadable[absent] = InputProblem(file=alone[0], way_out=way_out)

    def read(self, name: str, parse: Callable[[Any], T], otherwise: T) -> T:
        """A file, parsed; tables as text, the others as JSON. What cannot be read is kept as a problem."""
        if name in self.unreadable:
            return otherwise
        try:
            raw = (self.folder / name).read_bytes()
            if name in _TABLES:
                return parse(decode_table(raw, name).text)
            if name not in self._documents:
                self._documents[name] = parse_document(raw, name)
            return parse(self._documents[name])
        except (InvalidInput, msgspec.MsgspecError, ValueError, TypeError, shapely.errors.ShapelyError) as error:
            self.unreadable.setdefault(name, InputProblem(file=name, way_out=f"cannot be read: {error}"))
            return otherwise

    def raster(self, name: str) -> NbrRaster | None:
        try:
            return read_nbr(self.folder / name)
        except InvalidInput as error:
            self.unreadable.setdefault(name, InputProblem(file=name, way_out=f"cannot be read: {error}"))
            return None


def read_fire(folder: Path, today: Today = today_utc) -> Fire:
    """A fire from its folder; one with a value that cannot be right is refused, with all of them."""
    files, nothing = Files(folder), Checked((), ())
    facts = files.read("fire.json", read_facts, nothing)
    known = files.read("fire.json", read_known_facts, KnownFacts())
    perimeter = files.read("perimeter.geojson", lambda text: join_parts([a.geometry for a in read_areas(text)]), None)
    parts = _Parts(
        sectors=files.read("sectors.geojson", read_sectors, nothing),
        trails=files.read("trails.json", read_trails, nothing),
        stands=files.read("stands.json", read_stands, nothing),
        # Before the plots, each of which holds the trees that were tallied on it.
        trees=(trees := files.read("trees.csv", read_trees, nothing)),
        plots=files.read("plots.csv", lambda text: read_plots(text, trees.records), nothing),
    )
    found = [problem for checked in (facts, *parts.all()) for problem in checked.problems]
    found += _find_wrong_labels(files, known.synthetic, {"plots.csv": parts.plots, "trees.csv": parts.trees})
    found += _find_repeated(parts)
    found += _find_unknown(parts, files.unreadable)
    found += _find_unknown_dates(files, known)
    if perimeter is not None:
        found += _find_far(perimeter, parts, known)
    found += _find_wrong_sizes(parts, perimeter, known, plots_known="plots.csv" not in files.unreadable)
    found += find_laxer_stands(parts.sectors.sound, parts.stands.sound)
    found += find_future_days(known.days, parts.plots.sound, today())
    own: Facts | None = facts.records[0] if facts.records else None
    found = [*files.unreadable.values(), *found]
    if found or own is None:
        raise RefusedFire(folder.name, found)
    return Fire(
        facts=own,
        folder=folder,
        digests=files.digests,
        perimeter=perimeter,
        sectors={sector.sector_id: sector for sector in parts.sectors.records},
        trails={trail.trail_id: trail for trail in parts.trails.records},
        stands={stand.stand_id: stand for stand in parts.stands.records},
        plots={plot.plot_id: plot for plot in parts.plots.records},
    )


class _Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of the files that hold records."""

    sectors: Checked
    trails: Checked
    stands: Checked
    trees: Checked
    plots: Checked

    def all(self) -> tuple[Checked, ...]:
        return self.sectors, self.trails, self.stands, self.trees, self.plots


def _find_repeated(parts: _Parts) -> Iterator[InputProblem]:
    yield from find_duplicates("sectors.geojson", "sector_id", parts.sectors.ids)
    yield from find_duplicates("trails.json", "trail_id", parts.trails.ids)
    points = (point for trail in parts.trails.sound for point in trail["damage_points"] if "damage_id" in point)
    yield from find_duplicates("trails.json", "damage_id", (point["damage_id"] for point in points))
    yield from find_duplicates("stands.json", "stand_id", parts.stands.ids)
    yield from find_duplicates("plots.csv", "plot_id", parts.plots.ids)


def _find_unknown(parts: _Parts, unreadable: Collection[str]) -> Iterator[InputProblem]:
    """Records that belong to something which is not on file: they would be in no total."""
    tallied = list(zip(parts.trees.sound, parts.trees.places, strict=True))
    plots = [(plot, plot["plot_id"]) for plot in parts.plots.sound if plot]
    stands = [(stand, stand.get("stand_id", "")) for stand in parts.stands.sound]
    # A plot may leave it to its stand.
    places = [(plot, place) for plot, place in plots if plot.get("sector_id")]
    for file, name, own, known, where in (
        ("trees.csv", "plot_id", tallied, parts.plots.ids, "plots.csv"),
        ("plots.csv", "stand_id", plots, parts.stands.ids, "stands.json"),
        ("plots.csv", "sector_id", places, parts.sectors.ids, "sectors.geojson"),
        ("stands.json", "sector_id", stands, parts.sectors.ids, "sectors.geojson"),
    ):
        there = frozenset(known)
        # Of a file that cannot be read nobody knows what is in it.
        for fields, place in own if where not in unreadable else ():
            if name in fields and fields[name] not in there:
                way_out = f"{where} has no such; add it there, or correct it here"
                yield InputProblem(file=file, place=place, field=name, value=show_value(fields[name]), way_out=way_out)


def _find_unknown_dates(files: Files, facts: KnownFacts) -> Iterator[InputProblem]:
    """Dates of files that are not there: a misspelled name would leave the date of the right one unsaid."""
    for name in facts.dated_files:
        if name not in files.digests:
            way_out = "there is no such file in the folder; correct its name, or take it out"
            yield InputProblem(
                file="fire.json", place="file_dates", field="file", value=show_value(name), way_out=way_out
            )


def _find_wrong_sizes(parts: _Parts, perimeter: Any, facts: KnownFacts, *, plots_known: bool) -> Iterator[InputProblem]:
    yield from find_wrong_trails(parts.trails.sound)
    sectors = tuple(find_wrong_sectors(parts.sectors.sound))
    yield from sectors
    # A sum is held against the whole only where each part is right: one mistake is told once.
    if sectors or not all(sector.keys() >= {"acres", "geometry"} for sector in parts.sectors.sound):
        return
    stands: tuple[InputProblem, ...] = ()
    # A plot says in which other sector its stand lies, too: without it a stand would be called too large.
    if plots_known and all("stand_id" in plot for plot in parts.plots.sound):
        stands = tuple(find_oversized_stands(parts.sectors.sound, parts.stands.sound, parts.plots.sound))
    yield from stands
    if facts.reported_acres is not None and perimeter is not None:
        right = () if stands else parts.stands.sound
        yield from find_wrong_totals(facts.reported_acres, perimeter, parts.sectors.sound, right)


def _find_far(perimeter: Any, parts: _Parts, facts: KnownFacts) -> Iterator[InputProblem]:
    """What lies nowhere near the perimeter: wrong coordinates put it on no map and in no neighbourhood."""
    trails = parts.trails.sound
    lines = [
        ("trails.json", f"trail {trail.get('trail_id')}", shape(trail["line"])) for trail in trails if "line" in trail
    ]
    points = [
        ("trails.json", f"damage point {point.get('damage_id')}", Point(point["longitude"], point["latitude"]))
        for trail in trails
        for point in trail["damage_points"]
        if point.keys() >= {"longitude", "latitude"}
    ]
    areas = [
        ("sectors.geojson", f"sector {item.get('sector_id')}", item["geometry"])
        for item in parts.sectors.sound
        if "geometry" in item
    ]
    places = [("fire.json", f"place {key}", Point(position)) for key, position in facts.places.items()]
    for file, place, geometry in (*areas, *lines, *points, *places):
        if perimeter.distance(geometry) > _FAR_DEG:
            at = geometry.representative_point()
            yield InputProblem(
                file=file,
                place=place,
                field="position",
                value=f"{at.x:g}, {at.y:g}",
                way_out="it is over a hundred miles from the perimeter; give longitude, then latitude, in degrees",
            )


def _find_wrong_labels(files: Files, synthetic: bool | None, tables: Mapping[str, Checked]) -> Iterator[InputProblem]:
    """Files that call synthetic what fire.json calls real, or the other way round; rasters that do not fit."""
    labels: list[tuple[str, str, object]] = [
        (name, place, label) for name, table in tables.items() for place, label in table.labels
    ]
    none: list[tuple[str, object]] = []
    # What cannot be read has said so already, and may be no object with a label at all.
    for name in (name for name in FILES[1:5] if name not in files.unreadable):
        labels += [(name, place, label) for place, label in files.read(name, _json_labels, none)]
    rasters = {name: raster for name in RASTERS if name in files.digests and (raster := files.raster(name)) is not None}
    # Nothing is resampled: a difference of pixels means something only where both are the same piece of ground.
    if len(rasters) == len(RASTERS) and not rasters[RASTERS[0]].lies_on(rasters[RASTERS[1]]):
        yield InputProblem(file=" and ".join(RASTERS), way_out="do not lie on one grid")
    labels += [(name, "its tag", raster.label) for name, raster in rasters.items() if raster.label is not None]
    # Where fire.json itself does not say it, that is told; there is nothing to hold a label against.
    for file, place, label in labels if synthetic is not None else ():
        if FLAGS.get(str(label).casefold()) is not synthetic:
            own = str(synthetic).lower()
            way_out = f"fire.json says synthetic: {own}; say the same here, or keep the data of two fires apart"
            yield InputProblem(file=file, place=place, field="synthetic", value=show_value(label), way_out=way_out)


def _json_labels(document: Any) -> list[tuple[str, object]]:
    """What a document says of itself, and its features of themselves."""
    labels: list[tuple[str, object]] = [("at its top", document["synthetic"])] if "synthetic" in document else []
    features = document.get("features", ())
    for number, feature in enumerate(features if isinstance(features, list) else (), 1):
        properties = feature.get("properties") if isinstance(feature, dict) else None
        if isinstance(properties, dict) and "synthetic" in properties:
            labels.append((f"feature {number}", properties["synthetic"]))
    return labels
