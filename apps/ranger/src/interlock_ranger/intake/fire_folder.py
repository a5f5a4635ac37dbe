"""A fire from its folder: every file read and checked, files against each other, and nothing left out in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import shapely
from shapely.geometry import Point, shape

from interlock.errors import ConfigError, InvalidInput
from interlock_ranger.intake.cruise_tables import FLAGS, read_plots, read_trees
from interlock_ranger.intake.fire_json import Checked, read_facts, read_sectors, read_stands, read_trails
from interlock_ranger.intake.problems import InputProblem, RefusedFire, find_duplicates, shown
from interlock_ranger.intake.rasters import RASTERS, NbrRaster, read_nbr
from interlock_ranger.intake.shapes import join_parts, read_areas
from interlock_ranger.intake.text import decode_json, decode_table, file_digest
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
        missing = [name for name in FILES if name not in self.digests]
        if missing:
            raise ConfigError(f"{folder.name}: {', '.join(missing)} is missing")
        alone = [name for name in RASTERS if name in self.digests]
        if len(alone) == 1:
            raise ConfigError(
                f"{folder.name}: {alone[0]} is there alone; dNBR needs {' and '.join(RASTERS)}, or neither"
            )

    def read(self, name: str, parse: Callable[[Any], T]) -> T:
        """A file, parsed; tables as text, the others as JSON."""
        raw = (self.folder / name).read_bytes()
        try:
            if name in _TABLES:
                return parse(decode_table(raw, name).text)
            return parse(msgspec.json.decode(decode_json(raw, name)))
        except (InvalidInput, msgspec.MsgspecError, ValueError, TypeError, shapely.errors.ShapelyError) as error:
            raise ConfigError(f"{self.folder.name}/{name} cannot be read: {error}") from None

    def raster(self, name: str) -> NbrRaster:
        try:
            return read_nbr(self.folder / name)
        except InvalidInput as error:
            raise ConfigError(f"{self.folder.name}/{name} cannot be read: {error}") from None


def read_fire(folder: Path) -> Fire:
    """A fire from its folder; one with a value that cannot be right is refused, with all of them."""
    files = Files(folder)
    facts = _accept(folder.name, files.read("fire.json", read_facts))[0]
    perimeter = files.read("perimeter.geojson", lambda text: join_parts([a.geometry for a in read_areas(text)]))
    sectors = files.read("sectors.geojson", read_sectors)
    trails = files.read("trails.json", read_trails)
    stands = files.read("stands.json", read_stands)
    # Before the plots, each of which holds the trees that were tallied on it.
    trees = files.read("trees.csv", read_trees)
    plots = files.read("plots.csv", lambda text: read_plots(text, trees.records))
    found = [problem for checked in (sectors, trails, stands, trees, plots) for problem in checked.problems]
    found += _find_wrong_labels(files, facts, {"plots.csv": plots, "trees.csv": trees})
    # References and places only once all records are there: the parts of a refused record would seem to be missing.
    if not found:
        fire = Fire(
            facts=facts,
            folder=folder,
            digests=files.digests,
            perimeter=perimeter,
            sectors={sector.sector_id: sector for sector in sectors.records},
            trails={trail.trail_id: trail for trail in trails.records},
            stands={stand.stand_id: stand for stand in stands.records},
            plots={plot.plot_id: plot for plot in plots.records},
        )
        found += _find_repeated(sectors, trails, stands, plots)
        found += _find_unknown(fire, trees)
        found += _find_far(fire)
    if found:
        raise RefusedFire(folder.name, found)
    return fire


def _accept(fire: str, checked: Checked) -> Sequence[Any]:
    if checked.problems:
        raise RefusedFire(fire, checked.problems)
    return checked.records


def _find_repeated(sectors: Checked, trails: Checked, stands: Checked, plots: Checked) -> Iterator[InputProblem]:
    yield from find_duplicates("sectors.geojson", "sector_id", (item.sector_id for item in sectors.records))
    yield from find_duplicates("trails.json", "trail_id", (item.trail_id for item in trails.records))
    points = (point.damage_id for trail in trails.records for point in trail.damage_points)
    yield from find_duplicates("trails.json", "damage_id", points)
    yield from find_duplicates("stands.json", "stand_id", (item.stand_id for item in stands.records))
    yield from find_duplicates("plots.csv", "plot_id", (item.plot_id for item in plots.records))


def _find_unknown(fire: Fire, trees: Checked) -> Iterator[InputProblem]:
    """Records that belong to something which is not on file: they would be in no total."""
    tallied = [(tree.plot_id, place) for tree, place in zip(trees.records, trees.places, strict=True)]
    for file, name, own, known, where in (
        ("trees.csv", "plot_id", tallied, fire.plots, "plots.csv"),
        ("plots.csv", "stand_id", [(p.stand_id, p.plot_id) for p in fire.plots.values()], fire.stands, "stands.json"),
        (
            "stands.json",
            "sector_id",
            [(stand.sector_id, stand.stand_id) for stand in fire.stands.values()],
            fire.sectors,
            "sectors.geojson",
        ),
    ):
        for value, place in own:
            if value not in known:
                way_out = f"{where} has no such; add it there, or correct it here"
                yield InputProblem(file=file, place=place, field=name, value=shown(value), way_out=way_out)


def _find_far(fire: Fire) -> Iterator[InputProblem]:
    """What lies nowhere near the perimeter: wrong coordinates put it on no map and in no neighbourhood."""
    lines = [("trails.json", f"trail {key}", shape(trail.line)) for key, trail in fire.trails.items()]
    points = [
        ("trails.json", f"damage point {point.damage_id}", Point(point.longitude, point.latitude))
        for trail in fire.trails.values()
        for point in trail.damage_points
    ]
    areas = [("sectors.geojson", f"sector {key}", sector.geometry) for key, sector in fire.sectors.items()]
    places = [
        ("fire.json", f"place {key}", Point(place.longitude, place.latitude))
        for key, place in fire.facts.places.items()
    ]
    for file, place, geometry in (*areas, *lines, *points, *places):
        if fire.perimeter.distance(geometry) > _FAR_DEG:
            at = geometry.representative_point()
            yield InputProblem(
                file=file,
                place=place,
                field="position",
                value=f"{at.x:g}, {at.y:g}",
                way_out="it is over a hundred miles from the perimeter; give longitude, then latitude, in degrees",
            )


def _find_wrong_labels(files: Files, facts: Facts, tables: Mapping[str, Checked]) -> Iterator[InputProblem]:
    """Files that call synthetic what fire.json calls real, or the other way round."""
    labels: list[tuple[str, str, object]] = [
        (name, place, label) for name, table in tables.items() for place, label in table.labels
    ]
    for name in FILES[1:5]:
        labels += [(name, place, label) for place, label in files.read(name, _json_labels)]
    rasters = [files.raster(name) for name in RASTERS if name in files.digests]
    # Nothing is resampled: a difference of pixels means something only where both are the same piece of ground.
    if rasters and not rasters[0].lies_on(rasters[1]):
        raise ConfigError(f"{files.folder.name}: {' and '.join(RASTERS)} do not lie on one grid")
    labels += [
        (name, "its tag", raster.label)
        for name, raster in zip(RASTERS, rasters, strict=False)
        if raster.label is not None
    ]
    for file, place, label in labels:
        if FLAGS.get(str(label).casefold()) is not facts.synthetic:
            own = str(facts.synthetic).lower()
            way_out = f"fire.json says synthetic: {own}; say the same here, or keep the data of two fires apart"
            yield InputProblem(file=file, place=place, field="synthetic", value=shown(label), way_out=way_out)


def _json_labels(document: Any) -> list[tuple[str, object]]:
    """What a document says of itself, and its features of themselves."""
    labels: list[tuple[str, object]] = [("at its top", document["synthetic"])] if "synthetic" in document else []
    for number, feature in enumerate(document.get("features", ()), 1):
        properties = feature.get("properties") or {}
        if "synthetic" in properties:
            labels.append((f"feature {number}", properties["synthetic"]))
    return labels
