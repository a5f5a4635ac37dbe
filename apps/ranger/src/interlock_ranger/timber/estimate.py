"""How much timber there is: per-acre means of plots, stand totals, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from typing import Annotated

from pydantic import Field

from interlock import Result
from interlock.errors import InvalidInput, NotFound
from interlock_ranger.evidence import Finding, Part, Recommendation, Step, Today, confidence, finding
from interlock_ranger.fires import Fire, Plot, Stand, Tree
from interlock_ranger.timber.cruise import Cruised, acre, cruise
from interlock_ranger.timber.sampling import plots_needed, spread
from interlock_ranger.timber.species import NAMES, Species, equation
from interlock_ranger.timber.volume import LogRule

_EPOCH = date(1970, 1, 1)


class TreeGiven(Part):
    """A tree that the caller measured."""

    species: Species
    dbh_in: Annotated[float, Field(ge=1, le=120)]
    height_ft: Annotated[float, Field(ge=10, le=400)]
    defect_pct: Annotated[float, Field(ge=0, le=100)]


class PlotGiven(Part):
    """A plot that the caller measured: variable with a basal area factor, or fixed with its acres; perhaps empty."""

    plot_id: str
    baf: Annotated[float, Field(gt=0, le=200)] | None = None
    plot_acres: Annotated[float, Field(gt=0, le=5)] | None = None
    trees: list[TreeGiven]


class OfSpecies(Part):
    """The share of one species."""

    species: Species
    name: str
    net_mbf_per_acre: float
    pct_of_net: float
    rule: str


class StandVolume(Part):
    """The timber of one stand."""

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
    species: tuple[OfSpecies, ...]
    rule: str = "timber.expansion"


class Volumes(Finding):
    """How much timber there is."""

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


def estimated(
    fire: Fire, stand_id: str | None, plot_id: str | None, log_rule: LogRule, target_error_pct: float, today: Today
) -> Result[Volumes]:
    """The volume of one stand, one plot, or all stands of a fire."""
    stands = _stands(fire, stand_id, plot_id)
    cruised = cruise(fire, stands, log_rule, plot_id)
    if not cruised:
        raise NotFound(f"{fire.facts.name} has no plots on file there")
    found = tuple(_stand(item, target_error_pct, whole=plot_id is None) for item in cruised)
    plots = [plot for plot in fire.plots.values() if plot.plot_id in {a.plot_id for c in cruised for a in c.acres}]
    sources = tuple(fire.source(name, min(p.measured_on for p in plots)) for name in ("trees.csv", "plots.csv"))
    value = _value(fire, log_rule, target_error_pct, found, cruised) | {"plot_id": plot_id}
    tallied = sum(bool(plot.trees) for plot in plots)
    sampled = sum(item.plots_needed is not None for item in found)
    trust = confidence(today(), sources, tallied + sampled, len(plots) + len(found))
    return finding(Volumes, _said(value, found), value, sources, trust)


def of_given(
    given: list[PlotGiven], region: str, log_rule: LogRule, target_error_pct: float, today: Today
) -> Result[Volumes]:
    """The volume an acre that the caller's plots show; there is no stand, so there is no total."""
    if not given or not any(plot.trees for plot in given):
        raise InvalidInput("the plots hold no tree; give at least one, or leave plots out to use those on file")
    plots = [_plot(item) for item in given]
    stand = Stand("given", "plots of the caller", 0.0, "", "", "", region, "")
    acres = tuple(acre(plot, region, log_rule) for plot in plots)
    cruised = Cruised(stand, acres, spread([item.total.net_bf for item in acres]))
    found = (_stand(cruised, target_error_pct, whole=False),)
    value = _value(None, log_rule, target_error_pct, found, (cruised,)) | {"plot_id": None}
    trust = confidence(today(), (), 1 + (len(plots) > 1), 2)
    return finding(Volumes, _said(value, found), value, (), trust)


def _plot(given: PlotGiven) -> Plot:
    if (given.baf is None) == (given.plot_acres is None):
        raise InvalidInput(f"plot {given.plot_id}: give baf (variable radius) or plot_acres (fixed), one of them")
    trees = tuple(
        Tree(given.plot_id, tree.species, tree.dbh_in, tree.height_ft, True, tree.defect_pct) for tree in given.trees
    )
    kind = "variable" if given.baf is not None else "fixed"
    return Plot(given.plot_id, "given", kind, given.baf, given.plot_acres, 0.0, _EPOCH, trees)


def _stands(fire: Fire, stand_id: str | None, plot_id: str | None) -> Sequence[Stand]:
    if plot_id is not None:
        plot = fire.plots[plot_id]
        if stand_id not in (None, plot.stand_id):
            raise NotFound(f"plot {plot_id} lies in stand {plot.stand_id}, not in {stand_id}")
        return (fire.stands[plot.stand_id],)
    return (fire.stands[stand_id],) if stand_id is not None else tuple(fire.stands.values())


def _stand(item: Cruised, target_error_pct: float, *, whole: bool) -> StandVolume:
    mean, sure = item.mean(), item.net_bf
    total = mean.net_bf * item.stand.acres / 1000 if whole else None
    off = total * sure.error_pct / 100 if total is not None and sure.error_pct is not None else None
    return StandVolume(
        stand_id=item.stand.stand_id,
        name=item.stand.name,
        acres=item.stand.acres if whole else None,
        plots=len(item.acres),
        trees_tallied=sum(acre.tallied for acre in item.acres),
        basal_area_ft2_per_acre=round(mean.basal_area_ft2, 1),
        gross_mbf_per_acre=round(mean.gross_bf / 1000, 2),
        net_mbf_per_acre=round(mean.net_bf / 1000, 2),
        cubic_ft_per_acre=round(mean.cubic_ft),
        standard_error_mbf_per_acre=None if sure.standard_error is None else round(sure.standard_error / 1000, 2),
        sampling_error_pct=None if sure.error_pct is None else round(sure.error_pct, 1),
        total_net_mbf=None if total is None else round(total),
        total_low_mbf=None if total is None or off is None else round(max(0.0, total - off)),
        total_high_mbf=None if total is None or off is None else round(total + off),
        plots_needed=None if sure.cv_pct is None else plots_needed(sure.cv_pct, target_error_pct),
        species=tuple(_species(item, kind) for kind in item.species()),
    )


def _species(item: Cruised, kind: Species) -> OfSpecies:
    own, all_ = item.mean(kind).net_bf, item.mean().net_bf
    return OfSpecies(
        species=kind,
        name=NAMES[kind],
        net_mbf_per_acre=round(own / 1000, 2),
        pct_of_net=round(100 * own / all_, 1) if all_ else 0.0,
        rule=f"timber.cvts-{equation(kind, item.stand.region)}",
    )


def _value(
    fire: Fire | None, log_rule: LogRule, target: float, found: Sequence[StandVolume], cruised: Sequence[Cruised]
) -> dict[str, object]:
    totals = [item.total_net_mbf for item in found if item.total_net_mbf is not None]
    total = round(sum(totals)) if totals else None
    errors = [c.net_bf.standard_error for c in cruised]
    off = None
    if total and all(error is not None for error in errors):
        parts = [
            (s.total_high_mbf or 0) - (s.total_net_mbf or 0) for s in found
        ]  # independent stands: their half intervals add in quadrature
        off = round(100 * math.sqrt(sum(part**2 for part in parts)) / total, 1)
    short = [item for item in found if item.plots_needed is not None and item.plots_needed > item.plots]
    return {
        "fire_id": None if fire is None else fire.id,
        "name": "given" if fire is None else fire.facts.name,
        "log_rule": log_rule,
        "target_error_pct": target,
        "plots": sum(item.plots for item in found),
        "trees_tallied": sum(item.trees_tallied for item in found),
        "acres": sum(item.acres for item in found if item.acres is not None) or None,
        "total_net_mbf": total,
        "total_error_pct": off,
        "stands": tuple(found),
        "reasoning": (
            Step(rule="timber.expansion", said="each tallied tree expanded to an acre by its plot's factor"),
            Step(rule="timber.behre", said="stems bucked into 16-ft logs to a 6-inch top by form class"),
            Step(rule=f"timber.{log_rule.value}", said=f"logs scaled by the {log_rule.value} rule"),
            Step(rule="timber.defect", said="defect as the cruiser saw it is taken off"),
            Step(rule="timber.sampling-error", said="totals are per-acre means times acres; error at 95 %"),
        ),
        "recommendations": tuple(
            Recommendation(
                rule="timber.sampling-error",
                text=f"{item.name}: {item.plots_needed} plots for an error of {target:g} %; {item.plots} are there",
            )
            for item in short
        ),
    }


def _said(value: dict[str, object], found: Sequence[StandVolume]) -> str:
    rule_name = str(value["log_rule"]).capitalize()
    if len(found) == 1:
        s = found[0]
        main = ", ".join(f"{kind.name} {kind.pct_of_net} %" for kind in s.species[:3])
        where = f"{value['name']}, " + (f"plot {value['plot_id']}" if value["plot_id"] else s.name)
        total = f", {s.total_net_mbf:,.0f} MBF on {s.acres:,.0f} acres" if s.total_net_mbf is not None else ""
        sure = f" (sampling error {s.sampling_error_pct} % from {s.plots} plots)" if s.sampling_error_pct else ""
        return f"{where}: {s.net_mbf_per_acre} MBF net per acre, {rule_name}{total}{sure}; {main}"
    parts = "; ".join(
        f"{s.name} {s.net_mbf_per_acre} MBF per acre, {s.total_net_mbf or 0:,.0f} MBF (error {s.sampling_error_pct} %)"
        for s in found[:8]
    )
    error = f" (sampling error {value['total_error_pct']} %)" if value["total_error_pct"] is not None else ""
    total_mbf = value["total_net_mbf"] or 0
    return f"{value['name']}: {total_mbf:,.0f} MBF net, {rule_name}, on {value['acres']:,.0f} acres{error}; {parts}"
