"""Files of a fire held against each other and against the day: land, sizes of stands, and when things were measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta

from interlock_ranger.intake.problems import InputProblem
from interlock_ranger.intake.sizes import ACRES_PCT, Fields
from interlock_ranger.records import Designation

_STRICTEST_LAST = (Designation.NONE, Designation.ROADLESS, Designation.WILDERNESS)
_TOMORROW = timedelta(days=1)
"""What was measured today may be dated by a clock that is ahead of ours."""


def find_laxer_stands(sectors: Sequence[Fields], stands: Sequence[Fields]) -> Iterator[InputProblem]:
    """Stands that are said to be free of what their sector is set aside for: salvage would be decided on that."""
    land = {item["sector_id"]: item["designation"] for item in sectors if item.keys() >= {"sector_id", "designation"}}
    for stand in (item for item in stands if item.keys() >= {"sector_id", "designation"}):
        of_sector = land.get(stand["sector_id"], Designation.NONE)
        if _STRICTEST_LAST.index(stand["designation"]) < _STRICTEST_LAST.index(of_sector):
            yield InputProblem(
                file="stands.json",
                place=stand.get("stand_id", ""),
                field="designation",
                value=str(stand["designation"]),
                way_out=f"sectors.geojson calls its sector {stand['sector_id']} {of_sector}; say the same of the"
                " stand, or correct the sector",
            )


def find_oversized_stands(
    sectors: Sequence[Fields], stands: Sequence[Fields], plots: Sequence[Fields]
) -> Iterator[InputProblem]:
    """Stands that are larger than the sectors that they lie in: their own, and those of their plots."""
    acres = {sector["sector_id"]: sector["acres"] for sector in sectors if "sector_id" in sector}
    for stand in (item for item in stands if item.keys() >= {"stand_id", "sector_id", "acres"}):
        own = stand["sector_id"]
        around = {own, *(plot.get("sector_id", "") for plot in plots if plot["stand_id"] == stand["stand_id"])}
        room = sum(acres.get(sector, 0) for sector in around)
        if own in acres and stand["acres"] > room * (1 + ACRES_PCT / 100):
            yield InputProblem(
                file="stands.json",
                place=stand["stand_id"],
                field="acres",
                value=f"{stand['acres']:,.10g}",
                way_out=f"the sectors that it and its plots are in have {room:,}; correct the one that is wrong, or say"
                " with sector_id in plots.csv where else it lies",
            )


def find_future_days(days: Mapping[str, date], plots: Sequence[Fields], today: date) -> Iterator[InputProblem]:
    """Days that are yet to come: nothing can have been measured then."""
    said = [
        ("plots.csv", plot["plot_id"], "measured_on", date.fromisoformat(plot["measured_on"]))
        for plot in plots
        if "measured_on" in plot
    ]
    said += [("fire.json", "the fire", field, day) for field, day in days.items()]
    for file, place, field, day in said:
        if day > today + _TOMORROW:
            yield InputProblem(
                file=file, place=place, field=field, value=str(day), way_out=f"it is yet to come: today is {today}"
            )
