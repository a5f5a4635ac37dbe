"""Sizes that files give, held against what they draw: sectors, trails, and the whole of a fire against its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shapely.geometry import shape

from interlock_ranger.geo import measure_acres, measure_miles
from interlock_ranger.intake.problems import InputProblem

ACRES_PCT = 10.0
"""So far acres may be off: reports are rounded, and outlines are redrawn after them."""
MILES_PCT = 25.0
"""So far miles may be off: a line that is drawn from a map leaves out bends that a wheel has measured."""
_ROUNDED_ACRES = 1.0
_ROUNDED_MILES = 0.1
"""What rounding adds to a size that is small itself."""


Fields = Mapping[str, Any]
"""Of a record, the fields that are right by themselves."""


def find_wrong_sectors(sectors: Sequence[Fields]) -> Iterator[InputProblem]:
    """Sectors whose acres are not those of their shape."""
    for sector in (item for item in sectors if item.keys() >= {"acres", "geometry"}):
        drawn = measure_acres(sector["geometry"])
        if not _fits(sector["acres"], drawn, ACRES_PCT, _ROUNDED_ACRES):
            yield InputProblem(
                file="sectors.geojson",
                place=sector.get("sector_id", ""),
                field="acres",
                value=f"{sector['acres']:,}",
                way_out=f"its shape has {drawn:,.0f}, and they may differ by {ACRES_PCT:g} %; correct the acres or the"
                " shape",
            )


def find_wrong_trails(trails: Sequence[Fields]) -> Iterator[InputProblem]:
    """Trails whose miles are not those of their line."""
    for trail in (item for item in trails if item.keys() >= {"miles", "line"}):
        drawn = measure_miles(shape(trail["line"]))
        if not _fits(trail["miles"], drawn, MILES_PCT, _ROUNDED_MILES):
            yield InputProblem(
                file="trails.json",
                place=trail.get("trail_id", ""),
                field="miles",
                value=f"{trail['miles']:,}",
                way_out=f"its line has {drawn:,.1f}, and they may differ by {MILES_PCT:g} %; correct the miles or the"
                " line",
            )


def find_wrong_totals(
    reported: float, perimeter: Any, sectors: Sequence[Fields], stands: Sequence[Fields]
) -> Iterator[InputProblem]:
    """Reported acres that neither the sectors nor the perimeter have, and stands that are larger than the fire."""
    total = sum(sector["acres"] for sector in sectors)
    # Sectors may leave ground out, which `validate_boundary` tells, if the perimeter shows that there is such ground.
    gap = total < reported and perimeter.is_valid and _fits(measure_acres(perimeter), reported, ACRES_PCT)
    if sectors and not gap and not _fits(total, reported, ACRES_PCT, _ROUNDED_ACRES):
        yield InputProblem(
            file="fire.json",
            place="the fire",
            field="reported_acres",
            value=f"{reported:,}",
            way_out=f"the sectors of sectors.geojson have {total:,} together, and they may differ by {ACRES_PCT:g} %;"
            " correct the one that is wrong",
        )
    timber = sum(stand.get("acres", 0) for stand in stands)
    largest = max(reported, total)
    if timber > largest and not _fits(timber, largest, ACRES_PCT, _ROUNDED_ACRES):
        yield InputProblem(
            file="stands.json",
            place="all stands",
            field="acres",
            value=f"{timber:,.10g}",
            way_out=f"together they are larger than the fire, of which {reported:,} are reported; correct the one that"
            " is wrong",
        )


def _fits(given: float, drawn: float, tolerance_pct: float, rounded: float = 0.0) -> bool:
    return abs(given - drawn) <= max(rounded, drawn * tolerance_pct / 100)
