"""The Cruising Assistant's tools."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import Field

from interlock import Result, Tool, tool
from interlock.errors import InvalidInput
from interlock_ranger.evidence import Today
from interlock_ranger.fires import Fires
from interlock_ranger.part_names import PartKind
from interlock_ranger.records import Region
from interlock_ranger.timber.csv_files import CsvFolders
from interlock_ranger.timber.csv_summary import CsvSummary, Filter, Shelf, summarise_file
from interlock_ranger.timber.estimate import PlotInput, VolumeEstimate, estimate_plots, estimate_stands
from interlock_ranger.timber.methodology import Methodology, Objective, recommend_design
from interlock_ranger.timber.salvage import SalvageAssessment, assess_stands
from interlock_ranger.timber.volume import LogRule

Percent = Annotated[float, Field(gt=0, le=100)]
LOG_RULES = {"scribner": (), "doyle": (), "international": ("international 1/4", "international quarter inch")}
OBJECTIVES = {"salvage": (), "volume": (), "stocking": ("stocking survey",), "research": ("permanent plots",)}


def build_timber_tools(fires: Fires, folders: Sequence[Path], today: Today) -> tuple[Tool, ...]:
    stands = {"fire_id": fires.names(), "stand_id": fires.part_names(PartKind.STAND)}
    known = {**stands, "plot_id": fires.part_names(PartKind.PLOT)}

    @tool(effect="read", known_values={**stands, "objective": OBJECTIVES})
    def recommend_methodology(
        fire_id: str | None = None,
        stand_id: str | None = None,
        objective: Objective = Objective.VOLUME,
        target_error_pct: Percent = 10.0,
    ) -> Result[Methodology]:
        """How to cruise a stand: plot type, basal area factor or plot size, limiting distance, plots for an error."""
        fire, ids = fires.find(fire_id, stand=stand_id)
        return recommend_design(fire, ids["stand"], objective, target_error_pct, today)

    @tool(effect="read", known_values={**known, "log_rule": LOG_RULES})
    def estimate_volume(
        fire_id: str | None = None,
        stand_id: str | None = None,
        plot_id: str | None = None,
        log_rule: LogRule = LogRule.SCRIBNER,
        target_error_pct: Percent = 10.0,
        plots: list[PlotInput] | None = None,
        region: Region | None = None,
    ) -> Result[VolumeEstimate]:
        """Timber volume of a plot, a stand or a fire: net MBF per acre and in total, by species, with sampling error.

        `plots`: your own plots instead of those on file; then `region` says which side of the Cascades they lie on.
        """
        if plots is not None:
            # Not guessed: the volume equations differ between the two sides.
            if region is None:
                raise InvalidInput("say with region on which side of the Cascades the plots lie: west or east")
            return estimate_plots(plots, region, log_rule, target_error_pct, today)
        fire, ids = fires.find(fire_id, stand=stand_id, plot=plot_id)
        return estimate_stands(fire, ids["stand"], ids["plot"], log_rule, target_error_pct, today)

    @tool(effect="read", known_values=stands)
    def assess_salvage(
        fire_id: str | None = None, stand_id: str | None = None, assessment_date: date | None = None
    ) -> Result[SalvageAssessment]:
        """Whether dead timber is worth salvaging: windows by species, deterioration, value, cost, what the law allows.

        Without a date, today is used, and said.
        """
        fire, ids = fires.find(fire_id, stand=stand_id)
        return assess_stands(fire, ids["stand"], assessment_date, today)

    return recommend_methodology, estimate_volume, assess_salvage, _csv_tool(fires, folders, today)


def _csv_tool(fires: Fires, folders: Sequence[Path], today: Today) -> Tool:
    files = CsvFolders(folders)
    shelf = Shelf(files, tuple(fires.by_id.values()))

    @tool(effect="read", known_values={"file": files.names(), "group_by": files.columns()}, trust="untrusted")
    def analyze_csv_data(
        file: str, group_by: str | None = None, filters: list[Filter] | None = None
    ) -> Result[CsvSummary]:
        """Summarise a CSV file of tree data: columns, groups, filters, cells out of range; only in allowed folders."""
        return summarise_file(shelf, file, group_by, filters or (), today)

    return analyze_csv_data
