"""Files of a fire held against each other and against the day: land, sizes of stands, and when things were measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from interlock_ranger.intake.problems import InputProblem
from interlock_ranger.intake.sizes import ACRES_PCT
from interlock_ranger.records import Designation, Facts, Plot, Sector, Stand

_STRICTEST_LAST = (Designation.NONE, Designation.ROADLESS, Designation.WILDERNESS)
_TOMORROW = timedelta(days=1)
"""What was measured today may be dated by a clock that is ahead of ours."""
_WHOLLY_CONTAINED = 100


def find_laxer_stands(sectors: Sequence[Sector], stands: Sequence[Stand]) -> Iterator[InputProblem]:
    """Stands that are said to be free of what their sector is set aside for: salvage would be decided on that."""
    land = {sector.sector_id: sector.designation for sector in sectors}
    for stand in stands:
        of_sector = land.get(stand.sector_id, Designation.NONE)
        if _STRICTEST_LAST.index(stand.designation) < _STRICTEST_LAST.index(of_sector):
            yield InputProblem(
                file="stands.json",
                place=stand.stand_id,
                field="designation",
                value=stand.designation.value,
                way_out=f"sectors.geojson calls its sector {stand.sector_id} {of_sector.value}; say the same of the"
                " stand, or correct the sector",
            )


def find_oversized_stands(
    sectors: Sequence[Sector], stands: Sequence[Stand], plots: Sequence[Plot]
) -> Iterator[InputProblem]:
    """Stands that are larger than the sectors that they lie in: their own, and those of their plots."""
    acres = {sector.sector_id: sector.acres for sector in sectors}
    for stand in stands:
        around = {stand.sector_id, *(plot.sector_id for plot in plots if plot.stand_id == stand.stand_id)}
        room = sum(acres.get(sector, 0) for sector in around)
        if stand.sector_id in acres and stand.acres > room * (1 + ACRES_PCT / 100):
            yield InputProblem(
                file="stands.json",
                place=stand.stand_id,
                field="acres",
                value=f"{stand.acres:,.10g}",
                way_out=f"the sectors that it and its plots are in have {room:,}; correct the one that is wrong, or say"
                " with sector_id in plots.csv where else it lies",
            )


def find_future_days(facts: Facts | None, plots: Sequence[Plot], today: date) -> Iterator[InputProblem]:
    """Days that are yet to come: nothing can have been measured then."""
    said = [("plots.csv", plot.plot_id, "measured_on", plot.measured_on) for plot in plots]
    if facts is not None:
        fields = {
            "ignition_date": facts.ignition_date,
            "survey_date": facts.survey_date,
            "cruise_date": facts.cruise_date,
            "imagery.pre_date": facts.imagery.pre_date,
            "imagery.post_date": facts.imagery.post_date,
            **{f"file_dates.{name}": day for name, day in facts.file_dates.items()},
            # Of a fire that still burns it is the day that is hoped for.
            **({"containment_date": facts.containment_date} if facts.containment_pct == _WHOLLY_CONTAINED else {}),
        }
        said += [("fire.json", "the fire", field, day) for field, day in fields.items()]
    for file, place, field, day in said:
        if day > today + _TOMORROW:
            yield InputProblem(
                file=file, place=place, field=field, value=str(day), way_out=f"it is yet to come: today is {today}"
            )
