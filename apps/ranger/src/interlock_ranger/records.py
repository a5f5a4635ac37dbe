"""What is on file about a fire, as frozen values; `intake` makes them of files and checks them on the way."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from interlock_ranger.evidence import DataSource


class Phase(StrEnum):
    """How far recovery has come."""

    ACTIVE = "active"
    BAER_ASSESSMENT = "baer_assessment"
    BAER_IMPLEMENTATION = "baer_implementation"
    IN_RESTORATION = "in_restoration"


class Designation(StrEnum):
    """What the land is set aside for."""

    NONE = "none"
    WILDERNESS = "wilderness"
    ROADLESS = "roadless"


class DamageKind(StrEnum):
    """What broke."""

    BRIDGE_FAILURE = "BRIDGE_FAILURE"
    DEBRIS_FLOW = "DEBRIS_FLOW"
    HAZARD_TREES = "HAZARD_TREES"
    TREAD_EROSION = "TREAD_EROSION"
    SIGNAGE = "SIGNAGE"
    CULVERT_DAMAGE = "CULVERT_DAMAGE"
    PUNCHEON_FAILURE = "PUNCHEON_FAILURE"


class TrailStatus(StrEnum):
    """What is in force on a trail now."""

    OPEN = "OPEN"
    OPEN_CAUTION = "OPEN_CAUTION"
    RESTRICTED = "RESTRICTED"
    CLOSED = "CLOSED"


class Access(StrEnum):
    """How a stand is reached."""

    ROAD = "road"
    TEMPORARY_ROAD = "temporary_road"
    NONE = "none"


class Terrain(StrEnum):
    FLAT = "flat"
    MODERATE = "moderate"
    STEEP = "steep"
    VERY_STEEP = "very_steep"


class Region(StrEnum):
    """The side of the Cascades, which decides the volume equations."""

    WEST = "west"
    EAST = "east"


class PlotType(StrEnum):
    VARIABLE = "variable"
    FIXED = "fixed"


class Species(StrEnum):
    """Species by their code."""

    PSME = "PSME"
    TSHE = "TSHE"
    THPL = "THPL"
    PIPO = "PIPO"
    PICO = "PICO"
    ABGR = "ABGR"
    ABCO = "ABCO"
    TSME = "TSME"
    ABLA = "ABLA"


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
    phase: Phase
    ignition_date: date
    containment_date: date
    containment_pct: int
    survey_date: date
    cruise_date: date
    imagery: Imagery
    analyst_thresholds: Thresholds
    reported_acres: int
    places: dict[str, Place] = {}
    file_dates: dict[str, date] = {}
    """When a file of this folder was made, by its name, where no other date here says it."""


class Sector(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a fire."""

    sector_id: str
    name: str
    acres: int
    dnbr_mean: float
    slope_pct: float
    concern: str
    designation: Designation
    geometry: Any


class DamagePoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that is broken along a trail."""

    damage_id: str
    milepost: float
    type: DamageKind
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
    current_status: TrailStatus
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
    access: Access
    terrain: Terrain
    region: Region
    designation: Designation


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """A tallied tree."""

    plot_id: str
    species: Species
    dbh_in: float
    height_ft: float
    dead: bool
    defect_pct: float


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """A sample point: of variable radius (a basal area factor) or of fixed area."""

    plot_id: str
    stand_id: str
    plot_type: PlotType
    baf: float | None
    plot_acres: float | None
    slope_pct: float
    measured_on: date
    trees: tuple[Tree, ...]
    sector_id: str = ""
    """Where it lies, if its file says so: a stand may reach into a second sector."""


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

    def source(self, file: str, dated: date | None = None) -> DataSource:
        """A file as a source: what exactly it holds, and its own date, unless only a younger part of it was used."""
        return DataSource(
            file=f"{self.id}/{file}",
            dated=dated or self.date_of(file),
            sha256=self.digests[file],
            synthetic=self.facts.synthetic,
        )

    def date_of(self, file: str) -> date:
        """When what a file holds was measured or drawn."""
        facts = self.facts
        if file in facts.file_dates:
            return facts.file_dates[file]
        measured = {
            "nbr_pre.tif": facts.imagery.pre_date,
            "nbr_post.tif": facts.imagery.post_date,
            # The means of sectors are those of the scene after the fire.
            "sectors.geojson": facts.imagery.post_date,
            # The last outline of a fire is that of the day on which it was contained.
            "perimeter.geojson": facts.containment_date,
            "trails.json": facts.survey_date,
            "stands.json": facts.cruise_date,
        }
        if file in ("plots.csv", "trees.csv"):
            # A cruise is as old as the oldest of its plots.
            return min((plot.measured_on for plot in self.plots.values()), default=facts.cruise_date)
        # fire.json and what else may lie there: nothing that tells of a day was written before it.
        latest = max(facts.containment_date, facts.survey_date, facts.cruise_date, facts.imagery.post_date)
        return measured.get(file, latest)
