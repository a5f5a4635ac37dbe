"""How much timber there is: per-acre means of plots, stand totals, and how sure they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Annotated

from pydantic import Field

from interlock import Result
from interlock.errors import InvalidInput, NotFound
from interlock_ranger.evidence import (
    Confidence,
    DataSource,
    Evidence,
    Finding,
    Part,
    Recommendation,
    Step,
    Today,
    build_result,
    compute_confidence,
)
from interlock_ranger.intake.cruise_tables import DBH_IN, HEIGHT_FT
from interlock_ranger.records import Access, Designation, Fire, Plot, PlotType, Region, Species, Stand, Terrain, Tree
from interlock_ranger.timber.cruise import StandCruise, check_on_file, cruise_stands, expand_plot, list_uncruised
from interlock_ranger.timber.sampling import SampledPart, estimate_mean, plots_needed, precision, precision_of_sum
from interlock_ranger.timber.species import NAMES, equation_number
from interlock_ranger.timber.volume import LogRule

NAMED = 8
"""So many stands are named in the summary."""
_UNDATED = date(1970, 1, 1)
"""The caller's plots have no date, and none is needed: they are no source on file."""


class TreeInput(Part):
    """A tree that the caller measured."""

    species: Species
    dbh_in: Annotated[float, Field(ge=DBH_IN[0], le=DBH_IN[1])]
    height_ft: Annotated[float, Field(ge=HEIGHT_FT[0], le=HEIGHT_FT[1])]
    defect_pct: Annotated[float, Field(ge=0, le=100)]


class PlotInput(Part):
    """A plot that the caller measured: variable with a basal area factor, or fixed with its acres; perhaps empty."""

    plot_id: str
    baf: Annotated[float, Field(gt=0, le=200)] | None = None
    plot_acres: Annotated[float, Field(gt=0, le=5)] | None = None
    trees: list[TreeInput]


class SpeciesVolume(Part):
    species: Species
    name: str
    net_mbf_per_acre: float
    pct_of_net: float
    rule: str


class StandVolume(Part):
    stand_id: str
    name: str
    acres: float | None
    plots: int
    trees_tallied: int
    basal_area_ft2_per_acre: float
    gross_mbf_per_acre: float
    net_mbf_per_acre: float
    cubic_ft_per_acre: float
    standard_error_mbf_per_acre: float | None
    sampling_error_pct: float | None
    total_net_mbf: float | None
    total_low_mbf: float | None
    total_high_mbf: float | None
    plots_needed: int | None
    species: tuple[SpeciesVolume, ...]
    rule: str = "timber.expansion"


class VolumeEstimate(Finding):
    fire_id: str | None
    name: str
    log_rule: LogRule
    plot_id: str | None
    target_error_pct: float
    plots: int
    trees_tallied: int
    acres: float | None
    total_net_mbf: float | None
    total_error_pct: float | None
    stands: tuple[StandVolume, ...]
    not_cruised: tuple[str, ...]
    """Stands without a plot; they are in no figure."""


def estimate_stands(
    fire: Fire, stand_id: str | None, plot_id: str | None, log_rule: LogRule, target_error_pct: float, today: Today
) -> Result[VolumeEstimate]:
    """The volume of one stand, one plot, or all stands of a fire."""
    selected = _select_stands(fire, stand_id, plot_id)
    check_on_file(fire, selected)
    cruised = cruise_stands(fire, selected, log_rule, plot_id)
    stands = tuple(_estimate_stand(item, target_error_pct, whole=plot_id is None) for item in cruised)
    used = {plot.plot_id for item in cruised for plot in item.plots}
    plots = [plot for plot in fire.plots.values() if plot.plot_id in used]
    # Dated by the oldest plot that was used: a cruise is as fresh as its oldest part.
    measured_on = min(plot.measured_on for plot in plots)
    # A plot by itself is not multiplied by the acres of its stand.
    acres_from = () if plot_id is not None else (fire.source("stands.json"),)
    sources = (*(fire.source(name, measured_on) for name in ("trees.csv", "plots.csv")), *acres_from)
    tallied = sum(bool(plot.trees) for plot in plots)
    sampled = sum(item.plots_needed is not None for item in stands)
    # Complete is a cruise with trees on every plot, and enough plots in every stand to tell its error.
    present, wanted = tallied + sampled, len(plots) + len(selected)
    confidence = compute_confidence(today(), sources, present, wanted, _precision(cruised, whole=plot_id is None))
    evidence = _evidence(stands, log_rule, target_error_pct, sources, confidence)
    estimate = VolumeEstimate(
        fire_id=fire.id,
        name=fire.facts.name,
        log_rule=log_rule,
        plot_id=plot_id,
        target_error_pct=target_error_pct,
        plots=sum(item.plots for item in stands),
        trees_tallied=sum(item.trees_tallied for item in stands),
        acres=sum(item.acres for item in stands if item.acres is not None) or None,
        total_net_mbf=_sum_totals(stands),
        total_error_pct=_total_error_pct(stands),
        stands=stands,
        not_cruised=list_uncruised(fire, selected),
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    return build_result(estimate, _summarise(estimate))


def estimate_plots(
    given: list[PlotInput], region: Region, log_rule: LogRule, target_error_pct: float, today: Today
) -> Result[VolumeEstimate]:
    """The volume an acre that the caller's plots show; there is no stand, so there is no total."""
    if not given or not any(plot.trees for plot in given):
        raise InvalidInput("the plots hold no tree; give at least one, or leave plots out to use those on file")
    twice = [name for name, count in Counter(plot.plot_id for plot in given).items() if count > 1]
    if twice:
        raise InvalidInput(f"plots has {', '.join(twice)} more than once; give each plot its own plot_id")
    plots = tuple(expand_plot(_plot_of(item), region, log_rule) for item in given)
    # A stand only to carry the region: with whole=False its acres are not read.
    stand = Stand(
        stand_id="given", name="plots of the caller", acres=0.0, sector_id="", access=Access.NONE, terrain=Terrain.FLAT,
        region=region, designation=Designation.NONE,
    )  # fmt: skip
    net_bf = estimate_mean([plot.total.net_bf for plot in plots])
    cruised = StandCruise(stand=stand, plots=plots, net_bf=net_bf, dead_bf=net_bf)
    stands = (_estimate_stand(cruised, target_error_pct, whole=False),)
    # One plot alone shows no variation, and stands for nothing beside itself.
    error_pct = cruised.net_bf.error_pct
    sure = 1.0 if error_pct is None else precision(error_pct)
    confidence = compute_confidence(today(), (), 1 + (len(plots) > 1), 2, sure)
    evidence = _evidence(stands, log_rule, target_error_pct, (), confidence)
    estimate = VolumeEstimate(
        fire_id=None,
        name="given",
        log_rule=log_rule,
        plot_id=None,
        target_error_pct=target_error_pct,
        plots=stands[0].plots,
        trees_tallied=stands[0].trees_tallied,
        acres=None,
        total_net_mbf=None,
        total_error_pct=None,
        stands=stands,
        not_cruised=(),
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    return build_result(estimate, _summarise(estimate))


def _precision(cruised: Sequence[StandCruise], *, whole: bool) -> float:
    """That of the total; a plot by itself is not extrapolated to anything."""
    if not whole:
        return 1.0
    return precision_of_sum(
        [SampledPart(total=item.mean().net_bf * item.stand.acres, error_pct=item.net_bf.error_pct) for item in cruised]
    )


def _plot_of(given: PlotInput) -> Plot:
    if (given.baf is None) == (given.plot_acres is None):
        raise InvalidInput(f"plot {given.plot_id}: give baf (variable radius) or plot_acres (fixed), one of them")
    trees = tuple(
        Tree(
            plot_id=given.plot_id,
            species=tree.species,
            dbh_in=tree.dbh_in,
            height_ft=tree.height_ft,
            # Not asked of the caller: only salvage and its cruise design read it, and those know plots on file alone.
            dead=True,
            defect_pct=tree.defect_pct,
        )
        for tree in given.trees
    )
    return Plot(
        plot_id=given.plot_id,
        stand_id="given",
        plot_type=PlotType.VARIABLE if given.baf is not None else PlotType.FIXED,
        baf=given.baf,
        plot_acres=given.plot_acres,
        slope_pct=0.0,
        measured_on=_UNDATED,
        trees=trees,
    )


def _select_stands(fire: Fire, stand_id: str | None, plot_id: str | None) -> Sequence[Stand]:
    if plot_id is not None:
        plot = fire.plots[plot_id]
        if stand_id not in (None, plot.stand_id):
            raise NotFound(f"plot {plot_id} lies in stand {plot.stand_id}, not in {stand_id}")
        return (fire.stands[plot.stand_id],)
    return (fire.stands[stand_id],) if stand_id is not None else tuple(fire.stands.values())


def _estimate_stand(item: StandCruise, target_error_pct: float, *, whole: bool) -> StandVolume:
    """A stand's volume; totals only if the plots stand for the `whole` of it."""
    mean, net_bf = item.mean(), item.net_bf
    total = mean.net_bf * item.stand.acres / 1000 if whole else None
    off = total * net_bf.error_pct / 100 if total is not None and net_bf.error_pct is not None else None
    return StandVolume(
        stand_id=item.stand.stand_id,
        name=item.stand.name,
        acres=item.stand.acres if whole else None,
        plots=len(item.plots),
        trees_tallied=sum(plot.tallied for plot in item.plots),
        basal_area_ft2_per_acre=round(mean.basal_area_ft2, 1),
        gross_mbf_per_acre=round(mean.gross_bf / 1000, 2),
        net_mbf_per_acre=round(mean.net_bf / 1000, 2),
        cubic_ft_per_acre=round(mean.cubic_ft),
        standard_error_mbf_per_acre=None if net_bf.standard_error is None else round(net_bf.standard_error / 1000, 2),
        sampling_error_pct=None if net_bf.error_pct is None else round(net_bf.error_pct, 1),
        total_net_mbf=None if total is None else round(total),
        # Few plots can have an error above 100 %, but there is no negative timber.
        total_low_mbf=None if total is None or off is None else round(max(0.0, total - off)),
        total_high_mbf=None if total is None or off is None else round(total + off),
        plots_needed=None if net_bf.cv_pct is None else plots_needed(net_bf.cv_pct, target_error_pct),
        species=tuple(_estimate_species(item, species) for species in item.species()),
    )


def _estimate_species(item: StandCruise, species: Species) -> SpeciesVolume:
    own, whole = item.mean(species).net_bf, item.mean().net_bf
    return SpeciesVolume(
        species=species,
        name=NAMES[species],
        net_mbf_per_acre=round(own / 1000, 2),
        pct_of_net=round(100 * own / whole, 1) if whole else 0.0,
        rule=f"timber.cvts-{equation_number(species, item.stand.region)}",
    )


def _sum_totals(stands: Sequence[StandVolume]) -> float | None:
    totals = [item.total_net_mbf for item in stands if item.total_net_mbf is not None]
    return round(sum(totals)) if totals else None


def _total_error_pct(stands: Sequence[StandVolume]) -> float | None:
    """Of independent stands, half intervals add in quadrature; unknown if that of one stand is."""
    total = _sum_totals(stands)
    if not total or any(item.standard_error_mbf_per_acre is None for item in stands):
        return None
    halves = [(item.total_high_mbf or 0) - (item.total_net_mbf or 0) for item in stands]
    return round(100 * math.sqrt(sum(half**2 for half in halves)) / total, 1)


def _evidence(
    stands: Sequence[StandVolume],
    log_rule: LogRule,
    target_error_pct: float,
    sources: tuple[DataSource, ...],
    confidence: Confidence,
) -> Evidence:
    short = [item for item in stands if item.plots_needed is not None and item.plots_needed > item.plots]
    return Evidence(
        reasoning=(
            Step(rule="timber.expansion", text="each tallied tree expanded to an acre by its plot's factor"),
            Step(rule="timber.behre", text="stems bucked into 16-ft logs to a 6-inch top by form class"),
            Step(rule=f"timber.{log_rule.value}", text=f"logs scaled by the {log_rule.value} rule"),
            Step(rule="timber.defect", text="defect as the cruiser saw it is taken off"),
            Step(rule="timber.sampling-error", text="totals are per-acre means times acres; error at 95 %"),
        ),
        recommendations=tuple(
            Recommendation(
                rule="timber.sampling-error",
                text=f"{item.name}: {item.plots_needed} plots for an error of {target_error_pct:g} %;"
                f" {item.plots} are there",
            )
            for item in short
        ),
        confidence=confidence,
        data_sources=sources,
    )


def _summarise(estimate: VolumeEstimate) -> str:
    if len(estimate.stands) == 1 and not estimate.not_cruised:
        return _summarise_stand(estimate, estimate.stands[0])
    stands = "; ".join(
        f"{s.name} {s.net_mbf_per_acre} MBF per acre, {s.total_net_mbf or 0:,.0f} MBF ({_describe_error(s)})"
        for s in estimate.stands[:NAMED]
    )
    error = f" (sampling error {estimate.total_error_pct} %)" if estimate.total_error_pct is not None else ""
    left_out = f"; not in the total, as they have no plot: {', '.join(estimate.not_cruised)}"
    left_out = left_out if estimate.not_cruised else ""
    return (
        f"{estimate.name}: {estimate.total_net_mbf or 0:,.0f} MBF net, {estimate.log_rule.value.capitalize()},"
        f" on {estimate.acres:,.0f} acres{error}; {stands}{left_out}"
    )


def _describe_error(stand: StandVolume) -> str:
    if stand.sampling_error_pct is None:
        return f"error not known from {stand.plots} plot{'s' * (stand.plots != 1)}"
    return f"error {stand.sampling_error_pct} %"


def _summarise_stand(estimate: VolumeEstimate, s: StandVolume) -> str:
    species = ", ".join(f"{kind.name} {kind.pct_of_net} %" for kind in s.species[:3])
    where = f"{estimate.name}, " + (f"plot {estimate.plot_id}" if estimate.plot_id else s.name)
    total = f", {s.total_net_mbf:,.0f} MBF on {s.acres:,.0f} acres" if s.total_net_mbf is not None else ""
    error = f" (sampling error {s.sampling_error_pct} % from {s.plots} plots)" if s.sampling_error_pct else ""
    log_rule = estimate.log_rule.value.capitalize()
    return f"{where}: {s.net_mbf_per_acre} MBF net per acre, {log_rule}{total}{error}; {species}"
