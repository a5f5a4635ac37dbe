"""How to cruise a stand: which kind of plot, which factor or size, and how many."""

from __future__ import annotations

from enum import StrEnum

from interlock import Result
from interlock.errors import InvalidInput
from interlock_ranger.evidence import Finding, Part, Recommendation, Step, Today, confidence, finding
from interlock_ranger.fires import Fire
from interlock_ranger.rules import rule
from interlock_ranger.timber.cruise import Cruised, cruise
from interlock_ranger.timber.sampling import (
    Spread,
    limiting_distance_ft,
    plot_radius_factor,
    plot_radius_ft,
    plots_needed,
    spread,
)
from interlock_ranger.timber.volume import BA_PER_IN2, LogRule


class Objective(StrEnum):
    """What the cruise is for."""

    SALVAGE = "salvage"
    VOLUME = "volume"
    STOCKING = "stocking"
    RESEARCH = "research"


class PlotAdvice(Part):
    """The plot to use."""

    stand_id: str
    name: str
    plot_type: str
    baf: float | None
    plot_radius_factor_ft_per_in: float | None
    mean_dbh_in: float
    limiting_distance_ft: float | None
    slope_pct: float
    limiting_distance_on_slope_ft: float | None
    plot_acres: float | None
    plot_radius_ft: float | None
    basal_area_ft2_per_acre: float
    cv_pct: float | None
    plots: int | None
    plots_on_file: int
    rule: str


class Methodology(Finding):
    """How to cruise."""

    fire_id: str
    name: str
    objective: Objective
    target_error_pct: float
    stands: tuple[PlotAdvice, ...]


def recommended(
    fire: Fire, stand_id: str | None, objective: Objective, target_error_pct: float, today: Today
) -> Result[Methodology]:
    """The design for one stand or all, from what the plots on file show about its variation."""
    stands = (fire.stands[stand_id],) if stand_id is not None else tuple(fire.stands.values())
    cruised = cruise(fire, stands, LogRule.SCRIBNER)
    if not cruised:
        raise InvalidInput("there are no plots on file to learn the variation from; measure a few first")
    found = tuple(_advice(item, objective, target_error_pct) for item in cruised)
    sources = tuple(fire.source(name, fire.facts.cruise_date) for name in ("trees.csv", "plots.csv", "stands.json"))
    fixed = objective in (Objective.STOCKING, Objective.RESEARCH)
    kind = "fixed-radius plots count every tree alike" if fixed else "variable-radius plots favour large trees"
    value = {
        "fire_id": fire.id,
        "name": fire.facts.name,
        "objective": objective,
        "target_error_pct": target_error_pct,
        "stands": found,
        "reasoning": (
            Step(rule="timber.plot-size" if fixed else "timber.baf", said=f"{objective.value}: {kind}"),
            Step(
                rule="timber.limiting-distance",
                said="distances at the mean DBH, on level ground and on the stand's slope",
            ),
            Step(rule="timber.sampling-error", said=f"plots for an error of {target_error_pct:g} % at 95 %"),
        ),
        "recommendations": tuple(Recommendation(rule=item.rule, text=_text(item)) for item in found),
    }
    known = sum(item.plots is not None for item in found)
    said = f"{fire.facts.name}, {objective.value} cruise, target error {target_error_pct:g} %: " + "; ".join(
        map(_text, found[:8])
    )
    return finding(Methodology, said, value, sources, confidence(today(), sources, known, len(found)))


def _advice(item: Cruised, objective: Objective, target_error_pct: float) -> PlotAdvice:
    mean = item.mean()
    dbh = (mean.basal_area_ft2 / mean.trees / BA_PER_IN2) ** 0.5 if mean.trees else 0.0
    fixed = objective in (Objective.STOCKING, Objective.RESEARCH)
    baf = None if fixed else _baf(mean.basal_area_ft2)
    size = (0.05 if dbh < 8 else 0.1 if dbh < 14 else 0.2) if fixed else None
    sure, slope = _spread(item, objective), item.slope_pct
    return PlotAdvice(
        stand_id=item.stand.stand_id,
        name=item.stand.name,
        plot_type="fixed" if fixed else "variable",
        baf=baf,
        plot_radius_factor_ft_per_in=None if baf is None else round(plot_radius_factor(baf), 3),
        mean_dbh_in=round(dbh, 1),
        limiting_distance_ft=None if baf is None else round(limiting_distance_ft(dbh, baf), 1),
        slope_pct=slope,
        limiting_distance_on_slope_ft=None if baf is None else round(limiting_distance_ft(dbh, baf, slope), 1),
        plot_acres=size,
        plot_radius_ft=None if size is None else round(plot_radius_ft(size), 1),
        basal_area_ft2_per_acre=round(mean.basal_area_ft2, 1),
        cv_pct=None if sure.cv_pct is None else round(sure.cv_pct, 1),
        plots=None if sure.cv_pct is None else plots_needed(sure.cv_pct, target_error_pct),
        plots_on_file=len(item.acres),
        rule="timber.plot-size" if fixed else "timber.baf",
    )


def _spread(item: Cruised, objective: Objective) -> Spread:
    """What has to be known well: trees for stocking and research, dead timber for salvage, else timber."""
    if objective in (Objective.STOCKING, Objective.RESEARCH):
        return spread([acre.total.trees for acre in item.acres])
    if objective is Objective.SALVAGE:
        return spread([acre.total.dead_net_bf for acre in item.acres])
    return item.net_bf


def _baf(basal_area_ft2: float) -> float:
    values = rule("timber.baf").values
    wanted = basal_area_ft2 / values["trees"]
    return float(min(values["offered"], key=lambda baf: abs(baf - wanted)))


def _text(item: PlotAdvice) -> str:
    how = (
        f"variable-radius plots with BAF {item.baf:g} (limiting distance {item.limiting_distance_ft} ft at the mean DBH"
        f" of {item.mean_dbh_in} in on level ground, {item.limiting_distance_on_slope_ft} ft on a slope of"
        f" {item.slope_pct} %)"
        if item.baf is not None
        else f"fixed plots of {item.plot_acres} acre, radius {item.plot_radius_ft} ft"
    )
    many = f"{item.plots} plots (CV {item.cv_pct} %)" if item.plots is not None else "a pilot of two plots first"
    return f"{item.name}: {how}, {many}"
