"""Fires as they are on file: one folder for each, one schema for all, every file with its digest."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import shapely
from shapely.geometry import shape

from interlock.errors import Ambiguous, ConfigError, NotFound
from interlock_ranger.evidence import DataSource

T = TypeVar("T")
FILES = ("fire.json", "perimeter.geojson", "sectors.geojson", "trails.json", "stands.json", "plots.csv", "trees.csv")


class Imagery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The two scenes that burn severity is measured between."""

    pre_date: date
    post_date: date
    sensor: str


class Thresholds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the classes of dNBR begin; below `increased_greenness` a place is greener than before the fire."""

    increased_greenness: float
    low: float
    moderate: float
    high: float


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Somewhere people speak of, and how far around it is near."""

    name: str
    longitude: float
    latitude: float
    radius_mi: float


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands in fire.json."""

    synthetic: bool
    note: str
    fire_id: str
    name: str
    year: int
    state: str
    forests: tuple[str, ...]
    phase: str
    ignition_date: date
    containment_date: date
    containment_pct: int
    survey_date: date
    cruise_date: date
    imagery: Imagery
    analyst_thresholds: Thresholds
    reported_acres: int
    places: dict[str, Place] = {}


class Sector(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a fire."""

    sector_id: str
    name: str
    acres: int
    dnbr_mean: float
    slope_pct: float
    concern: str
    designation: str
    geometry: Any


class DamagePoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that is broken along a trail."""

    damage_id: str
    milepost: float
    type: str
    severity: int
    longitude: float
    latitude: float
    estimated_cost_usd: int
    work_type: str
    crew_days: int | None


class Trail(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A trail with its damage."""

    trail_id: str
    name: str
    trail_class: int
    miles: float
    current_status: str
    jurisdiction: str
    annual_visits: int
    line: dict[str, Any]
    damage_points: tuple[DamagePoint, ...]

    @property
    def cost_usd(self) -> int:
        """What repairing all of it is estimated to cost."""
        return sum(point.estimated_cost_usd for point in self.damage_points)


class Stand(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Timber that is treated as one."""

    stand_id: str
    name: str
    acres: float
    sector_id: str
    access: str
    terrain: str
    region: str
    designation: str


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """A tallied tree."""

    plot_id: str
    species: str
    dbh_in: float
    height_ft: float
    dead: bool
    defect_pct: float


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """A sample point: of variable radius (a basal area factor) or of fixed area."""

    plot_id: str
    stand_id: str
    plot_type: str
    baf: float | None
    plot_acres: float | None
    slope_pct: float
    measured_on: date
    trees: tuple[Tree, ...]


class Fire(msgspec.Struct, frozen=True, kw_only=True):
    """Everything on file about one fire."""

    facts: Facts
    folder: Path
    digests: dict[str, str]
    perimeter: Any
    sectors: dict[str, Sector]
    trails: dict[str, Trail]
    stands: dict[str, Stand]
    plots: dict[str, Plot]

    @property
    def id(self) -> str:
        return self.facts.fire_id

    def source(self, file: str, dated: date) -> DataSource:
        """A file as a source: when it was made, and what exactly it holds."""
        return DataSource(
            file=f"{self.id}/{file}", dated=dated, sha256=self.digests[file], synthetic=self.facts.synthetic
        )


class Fires:
    """The fires of a folder, read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        found = sorted(path.parent for path in folder.glob("*/fire.json"))
        if not found:
            raise ConfigError(f"{folder}: there is no fire here; a fire is a folder with {', '.join(FILES)}")
        self.by_id = {fire.id: fire for fire in map(read_fire, reversed(found))}

    def names(self) -> dict[str, tuple[str, ...]]:
        """Fires by id, with what they are called."""
        return {
            key: (f"{f.facts.name} {f.facts.year}", f"{f.facts.name} fire", f.facts.name, f"{f.facts.year} fire")
            for key, f in self.by_id.items()
        }

    def sector_names(self) -> dict[str, tuple[str, ...]]:
        """Sectors of all fires, with what they are called."""
        return {
            key: (s.name, f"sector {key}", *_short_forms(key), s.name.replace("Mountain", "Mtn"))
            for f in self.by_id.values()
            for key, s in f.sectors.items()
        }

    def trail_names(self) -> dict[str, tuple[str, ...]]:
        """Trails of all fires, with what they are called."""
        return {
            key: (
                t.name,
                f"trail {key.rpartition('-')[2]}",
                *((t.name.replace("Mountain", "Mtn"),) * ("Mountain" in t.name)),
            )
            for f in self.by_id.values()
            for key, t in f.trails.items()
        }

    def place_names(self) -> dict[str, str]:
        """Places of all fires."""
        return {key: place.name for f in self.by_id.values() for key, place in f.facts.places.items()}

    def stand_names(self) -> dict[str, str]:
        """Stands of all fires."""
        return {key: stand.name for f in self.by_id.values() for key, stand in f.stands.items()}

    def plot_names(self) -> dict[str, str]:
        """Plots of all fires."""
        return {key: f"plot {key}" for f in self.by_id.values() for key in f.plots}

    def find(self, fire_id: str | None, **parts: str | None) -> Fire:
        """The fire that is named, or that a named part of one belongs to; several fit: somebody has to say which."""
        # Looked up even if the fire is named: that a part is of another fire is told, and not passed over.
        owner_of = {kind: self._find_owner(kind, part) for kind, part in parts.items() if part is not None}
        if fire_id is not None:
            fire = self._get(fire_id)
            for kind, owner in owner_of.items():
                if owner.id != fire.id:
                    raise NotFound(f"{fire.facts.name} has no {kind} {parts[kind]!r}; it is of {owner.facts.name}")
            return fire
        owners = {owner.id: owner for owner in owner_of.values()}
        if len(owners) == 1:
            return next(iter(owners.values()))
        if len(self.by_id) == 1 and not owners:
            return next(iter(self.by_id.values()))
        names = " or ".join(f"{fire.facts.name} ({key})" for key, fire in (owners or self.by_id).items())
        raise Ambiguous(f"which fire is meant: {names}?", hints=tuple(owners or self.by_id))

    def _get(self, fire_id: str) -> Fire:
        if fire_id not in self.by_id:
            raise NotFound(f"there is no fire {fire_id!r} on file", hints=tuple(self.by_id))
        return self.by_id[fire_id]

    def _find_owner(self, kind: str, part: str) -> Fire:
        for fire in self.by_id.values():
            if part in _part_ids(fire, kind):
                return fire
        known = tuple(name for fire in self.by_id.values() for name in _part_ids(fire, kind))
        raise NotFound(f"there is no {kind} {part!r} on file", hints=known[:6])


def _short_forms(sector_id: str) -> tuple[str, ...]:
    """B-04 as people write it: B-4, B4, B04."""
    letters, _, digits = sector_id.rpartition("-")
    plain = digits.lstrip("0")
    return (f"{letters}-{plain}", f"{letters}{plain}", f"{letters}{digits}") if letters and plain else ()


def _part_ids(fire: Fire, kind: str) -> Sequence[str]:
    ids: dict[str, Sequence[str]] = {
        "sector": tuple(fire.sectors),
        "trail": tuple(fire.trails),
        "stand": tuple(fire.stands),
        "plot": tuple(fire.plots),
        "place": tuple(fire.facts.places),
    }
    return ids[kind]


def read_fire(folder: Path) -> Fire:
    """A fire from its folder; whatever is wrong with a file is said with its name."""
    # Of every file, not only of those that there must be: that a fire has rasters is known by their digests.
    digests = {file.name: file_digest(file) for file in sorted(folder.iterdir()) if file.is_file()}
    missing = [name for name in FILES if name not in digests]
    if missing:
        raise ConfigError(f"{folder.name}: {', '.join(missing)} is missing")
    facts = _read(folder / "fire.json", lambda text: msgspec.json.decode(text, type=Facts))
    # Before the plots, each of which holds the trees that were tallied on it.
    trees = _read(folder / "trees.csv", lambda text: tuple(_parse_trees(text)))
    plots = _read(folder / "plots.csv", lambda text: tuple(_parse_plots(text, trees)))
    trails = _read(folder / "trails.json", lambda text: _parse_list(text, "trails", Trail))
    stands = _read(folder / "stands.json", lambda text: _parse_list(text, "stands", Stand))
    sectors = _read(folder / "sectors.geojson", lambda text: [_parse_sector(f) for f in _features(text)])
    return Fire(
        facts=facts,
        folder=folder,
        digests=digests,
        perimeter=_read(folder / "perimeter.geojson", lambda text: shape(_features(text)[0]["geometry"])),
        sectors={sector.sector_id: sector for sector in sectors},
        trails={trail.trail_id: trail for trail in trails},
        stands={stand.stand_id: stand for stand in stands},
        plots={plot.plot_id: plot for plot in plots},
    )


def file_digest(file: Path) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _read(file: Path, parse: Callable[[str], T]) -> T:
    try:
        return parse(file.read_text(encoding="utf-8"))
    except (
        ValueError,
        KeyError,
        IndexError,
        TypeError,
        AttributeError,
        msgspec.MsgspecError,
        shapely.errors.ShapelyError,
    ) as error:
        raise ConfigError(f"{file.parent.name}/{file.name} cannot be read: {error}") from None


def _features(text: str) -> list[dict[str, Any]]:
    features: list[dict[str, Any]] = msgspec.json.decode(text)["features"]
    return features


def _parse_list(text: str, key: str, kind: type[T]) -> list[T]:
    return [msgspec.convert(item, kind) for item in msgspec.json.decode(text)[key]]


def _parse_sector(feature: dict[str, Any]) -> Sector:
    return msgspec.convert({**feature["properties"], "geometry": shape(feature["geometry"])}, Sector)


def _parse_trees(text: str) -> Iterator[Tree]:
    for row in csv.DictReader(text.splitlines()):
        yield Tree(
            plot_id=row["plot_id"],
            species=row["species"],
            dbh_in=float(row["dbh_in"]),
            height_ft=float(row["height_ft"]),
            dead=row["dead"] == "yes",
            defect_pct=float(row["defect_pct"]),
        )


def _parse_plots(text: str, trees: Sequence[Tree]) -> Iterator[Plot]:
    tallied: dict[str, list[Tree]] = {}
    for tree in trees:
        tallied.setdefault(tree.plot_id, []).append(tree)
    for row in csv.DictReader(text.splitlines()):
        yield Plot(
            plot_id=row["plot_id"],
            stand_id=row["stand_id"],
            plot_type=row["plot_type"],
            baf=float(row["baf"]) if row["baf"] else None,
            plot_acres=float(row["plot_acres"]) if row["plot_acres"] else None,
            slope_pct=float(row["slope_pct"]),
            measured_on=date.fromisoformat(row["measured_on"]),
            trees=tuple(tallied.get(row["plot_id"], ())),
        )
