"""A cruise: plots with their trees expanded to an acre, stands from the means of their plots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from interlock.errors import InvalidInput, NotFound
from interlock_ranger.records import Fire, Plot, PlotType, Region, Species, Stand, Tree
from interlock_ranger.timber.sampling import SampleMean, estimate_mean, trees_per_acre
from interlock_ranger.timber.volume import BA_PER_IN2, LogRule, board_ft, cubic_ft, deduct_defect


class AcreVolume(msgspec.Struct, frozen=True, kw_only=True):
    """Timber on one acre."""

    trees: float = 0.0
    basal_area_ft2: float = 0.0
    gross_bf: float = 0.0
    net_bf: float = 0.0
    dead_net_bf: float = 0.0
    cubic_ft: float = 0.0


def sum_volumes(volumes: Iterable[AcreVolume]) -> AcreVolume:
    return _combine(volumes, 1)


def _combine(volumes: Iterable[AcreVolume], count: int) -> AcreVolume:
    """The sum of some volumes, divided by a count."""
    kept = tuple(volumes)
    return AcreVolume(
        **{name: sum(getattr(volume, name) for volume in kept) / count for name in AcreVolume.__struct_fields__}
    )


class ExpandedPlot(msgspec.Struct, frozen=True, kw_only=True):
    """What one plot says about an acre, by species."""

    plot_id: str
    tallied: int
    by_species: dict[Species, AcreVolume]
    total: AcreVolume


class StandCruise(msgspec.Struct, frozen=True, kw_only=True):
    """A stand as its plots show it."""

    stand: Stand
    plots: tuple[ExpandedPlot, ...]
    net_bf: SampleMean
    """Net board feet an acre."""
    dead_bf: SampleMean
    """Those of dead trees."""
    slope_pct: float = 0.0
    """The mean slope of its plots."""

    def mean(self, species: Species | None = None) -> AcreVolume:
        """The mean acre, of all species or of one."""
        # A plot without the species is an acre without it. Left out of the mean, it would make the stand too rich.
        own = [plot.total if species is None else plot.by_species.get(species, AcreVolume()) for plot in self.plots]
        return _combine(own, len(own))

    def species(self) -> tuple[Species, ...]:
        """Every species that was tallied, the most board feet first."""
        kinds = {kind for plot in self.plots for kind in plot.by_species}
        return tuple(sorted(kinds, key=lambda kind: -self.mean(kind).net_bf))


def expansion_factor(plot: Plot, tree: Tree) -> float:
    """Trees per acre that a tallied tree stands for."""
    if plot.plot_type == PlotType.VARIABLE:
        if not plot.baf:
            raise InvalidInput(f"plot {plot.plot_id}: a variable-radius plot needs its basal area factor")
        return trees_per_acre(tree.dbh_in, plot.baf)
    if not plot.plot_acres:
        raise InvalidInput(f"plot {plot.plot_id}: a fixed plot needs its area in acres")
    return 1 / plot.plot_acres


def expand_plot(plot: Plot, region: Region, log_rule: LogRule) -> ExpandedPlot:
    """A plot on an acre; one without trees is an acre without trees."""
    by_species: dict[Species, list[AcreVolume]] = {}
    for tree in plot.trees:
        by_species.setdefault(tree.species, []).append(_expand_tree(plot, tree, region, log_rule))
    summed = {species: sum_volumes(volumes) for species, volumes in by_species.items()}
    return ExpandedPlot(
        plot_id=plot.plot_id,
        tallied=len(plot.trees),
        by_species=summed,
        total=sum_volumes(summed.values()),
    )


def _expand_tree(plot: Plot, tree: Tree, region: Region, log_rule: LogRule) -> AcreVolume:
    factor = expansion_factor(plot, tree)
    gross = factor * board_ft(tree.species, tree.dbh_in, tree.height_ft, log_rule)
    net = deduct_defect(gross, tree.defect_pct)
    return AcreVolume(
        trees=factor,
        basal_area_ft2=factor * BA_PER_IN2 * tree.dbh_in**2,
        gross_bf=gross,
        net_bf=net,
        dead_net_bf=net if tree.dead else 0.0,
        cubic_ft=factor * cubic_ft(tree.species, region, tree.dbh_in, tree.height_ft),
    )


def list_uncruised(fire: Fire, stands: Sequence[Stand]) -> tuple[str, ...]:
    """The stands, by name, of which there is no plot: no total has them."""
    cruised = {plot.stand_id for plot in fire.plots.values()}
    return tuple(stand.name for stand in stands if stand.stand_id not in cruised)


def check_on_file(fire: Fire, stands: Sequence[Stand]) -> None:
    """Say what is missing where nothing is on file to measure: no timber is a finding, and no data is none."""
    name, ids = fire.facts.name, {stand.stand_id for stand in stands}
    if not fire.stands:
        raise NotFound(f"{name} has no stands on file, so nothing is known about its timber")
    if not any(plot.stand_id in ids for plot in fire.plots.values()):
        where = "" if len(stands) == len(fire.stands) else f" in {', '.join(stand.name for stand in stands)}"
        raise NotFound(f"{name} has no plots on file{where}, so nothing is known about the timber there")
    # On some plots there may be no tree; where none has one, it is the tally that is missing.
    if not any(plot.trees for plot in fire.plots.values()):
        raise NotFound(f"{name} has plots on file, but no tree of any of them, so nothing is known about its timber")


def cruise_stands(
    fire: Fire, stands: Sequence[Stand], log_rule: LogRule, plot_id: str | None = None
) -> tuple[StandCruise, ...]:
    """Stands that have plots, with all of them or with one alone."""
    found = []
    for stand in stands:
        plots = [p for p in fire.plots.values() if p.stand_id == stand.stand_id and plot_id in (None, p.plot_id)]
        # A stand that nobody has cruised is left out, and `list_uncruised` names it; as empty, it would lower a total.
        if plots:
            expanded = tuple(expand_plot(plot, stand.region, log_rule) for plot in plots)
            found.append(
                StandCruise(
                    stand=stand,
                    plots=expanded,
                    net_bf=estimate_mean([plot.total.net_bf for plot in expanded]),
                    dead_bf=estimate_mean([plot.total.dead_net_bf for plot in expanded]),
                    slope_pct=round(sum(plot.slope_pct for plot in plots) / len(plots), 1),
                )
            )
    return tuple(found)
