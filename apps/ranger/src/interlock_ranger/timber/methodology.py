"""How to cruise a stand: which kind of plot, which factor or size, and how many."""

from __future__ import annotations

from enum import StrEnum

from interlock import Result
from interlock_ranger.evidence import (
    Evidence,
    Finding,
    Part,
    Recommendation,
    Step,
    Today,
    build_result,
    compute_confidence,
)
from interlock_ranger.records import Fire
from interlock_ranger.rules import get_rule
from interlock_ranger.timber.cruise import StandCruise, check_on_file, cruise_stands, list_uncruised
from interlock_ranger.timber.sampling import (
    SampleMean,
    estimate_mean,
    limiting_distance_ft,
    plot_radius_factor,
    plot_radius_ft,
    plots_needed,
)
from interlock_ranger.timber.volume import BA_PER_IN2, LogRule

NAMED = 8
"""So many stands are named in the summary."""


class Objective(StrEnum):
    """What the cruise is for."""

    SALVAGE = "salvage"
    VOLUME = "volume"
    STOCKING = "stocking"
    RESEARCH = "research"


_FIXED_PLOTS = (Objective.STOCKING, Objective.RESEARCH)
"""Where trees are counted, and not their volume, every tree has to count alike."""


class PlotDesign(Part):
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
    fire_id: str
    name: str
    objective: Objective
    target_error_pct: float
    stands: tuple[PlotDesign, ...]
    not_cruised: tuple[str, ...]
    """Stands without a plot to learn from."""


def recommend_design(
    fire: Fire, stand_id: str | None, objective: Objective, target_error_pct: float, today: Today
) -> Result[Methodology]:
    """The design for one stand or all, from what the plots on file show about its variation."""
    stands = (fire.stands[stand_id],) if stand_id is not None else tuple(fire.stands.values())
    # What varies is learned from plots: without any there is nothing to design a cruise by.
    check_on_file(fire, stands)
    # Plots have to be compared by some rule; Scribner is the default of the other tools, too.
    cruised = cruise_stands(fire, stands, LogRule.SCRIBNER)
    designs = tuple(_design(item, objective, target_error_pct) for item in cruised)
    sources = tuple(map(fire.source, ("trees.csv", "plots.csv", "stands.json")))
    known, not_cruised = sum(item.plots is not None for item in designs), list_uncruised(fire, stands)
    evidence = Evidence(
        reasoning=_reasoning(objective, target_error_pct),
        recommendations=tuple(Recommendation(rule=item.rule, text=_describe(item)) for item in designs),
        confidence=compute_confidence(today(), sources, known, len(stands)),
        data_sources=sources,
    )
    methodology = Methodology(
        fire_id=fire.id,
        name=fire.facts.name,
        objective=objective,
        target_error_pct=target_error_pct,
        stands=designs,
        not_cruised=not_cruised,
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    head = f"{fire.facts.name}, {objective.value} cruise, target error {target_error_pct:g} %: "
    left_out = f"; without a plot, so measure a few first: {', '.join(not_cruised)}" if not_cruised else ""
    return build_result(methodology, head + "; ".join(map(_describe, designs[:NAMED])) + left_out)


def _reasoning(objective: Objective, target_error_pct: float) -> tuple[Step, ...]:
    fixed = objective in _FIXED_PLOTS
    kind = "fixed-radius plots count every tree alike" if fixed else "variable-radius plots favour large trees"
    distances = "distances at the mean DBH, on level ground and on the stand's slope"
    return (
        Step(rule="timber.plot-size" if fixed else "timber.baf", text=f"{objective.value}: {kind}"),
        Step(rule="timber.limiting-distance", text=distances),
        Step(rule="timber.sampling-error", text=f"plots for an error of {target_error_pct:g} % at 95 %"),
    )


def _design(item: StandCruise, objective: Objective, target_error_pct: float) -> PlotDesign:
    mean = item.mean()
    # The quadratic mean diameter: that of a tree of mean basal area.
    dbh = (mean.basal_area_ft2 / mean.trees / BA_PER_IN2) ** 0.5 if mean.trees else 0.0
    fixed = objective in _FIXED_PLOTS
    baf = None if fixed else _choose_baf(mean.basal_area_ft2)
    acres = _choose_plot_acres(dbh) if fixed else None
    spread, slope = _sample(item, objective), item.slope_pct
    return PlotDesign(
        stand_id=item.stand.stand_id,
        name=item.stand.name,
        plot_type="fixed" if fixed else "variable",
        baf=baf,
        plot_radius_factor_ft_per_in=None if baf is None else round(plot_radius_factor(baf), 3),
        mean_dbh_in=round(dbh, 1),
        limiting_distance_ft=None if baf is None else round(limiting_distance_ft(dbh, baf), 1),
        slope_pct=slope,
        limiting_distance_on_slope_ft=None if baf is None else round(limiting_distance_ft(dbh, baf, slope), 1),
        plot_acres=acres,
        plot_radius_ft=None if acres is None else round(plot_radius_ft(acres), 1),
        basal_area_ft2_per_acre=round(mean.basal_area_ft2, 1),
        cv_pct=None if spread.cv_pct is None else round(spread.cv_pct, 1),
        plots=None if spread.cv_pct is None else plots_needed(spread.cv_pct, target_error_pct),
        plots_on_file=len(item.plots),
        rule="timber.plot-size" if fixed else "timber.baf",
    )


def _sample(item: StandCruise, objective: Objective) -> SampleMean:
    """What has to be known well: trees for stocking and research, dead timber for salvage, else timber."""
    if objective in _FIXED_PLOTS:
        return estimate_mean([plot.total.trees for plot in item.plots])
    if objective is Objective.SALVAGE:
        return item.dead_bf
    return item.net_bf


def _choose_baf(basal_area_ft2: float) -> float:
    """The factor on offer that counts nearest to the wanted number of trees at a point."""
    values = get_rule("timber.baf").values
    wanted = basal_area_ft2 / values["trees"]
    return float(min(values["offered"], key=lambda baf: abs(baf - wanted)))


def _choose_plot_acres(dbh_in: float) -> float:
    """Larger plots for larger trees, so that a plot holds about as many."""
    # 8 and 14 inches are a house rule (timber.plot-size), not one of a handbook.
    if dbh_in < 8:
        return 0.05
    return 0.1 if dbh_in < 14 else 0.2


def _describe(item: PlotDesign) -> str:
    kind = (
        f"variable-radius plots with BAF {item.baf:g} (limiting distance {item.limiting_distance_ft} ft at the mean DBH"
        f" of {item.mean_dbh_in} in on level ground, {item.limiting_distance_on_slope_ft} ft on a slope of"
        f" {item.slope_pct} %)"
        if item.baf is not None
        else f"fixed plots of {item.plot_acres} acre, radius {item.plot_radius_ft} ft"
    )
    count = f"{item.plots} plots (CV {item.cv_pct} %)" if item.plots is not None else "a pilot of two plots first"
    return f"{item.name}: {kind}, {count}"
