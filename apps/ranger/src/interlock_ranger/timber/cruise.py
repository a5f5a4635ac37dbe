"""A cruise: plots with their trees expanded to an acre, stands from the means of their plots."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from interlock.errors import InvalidInput
from interlock_ranger.fires import Fire, Plot, Stand, Tree
from interlock_ranger.timber.sampling import Spread, spread, trees_per_acre
from interlock_ranger.timber.species import Species
from interlock_ranger.timber.volume import BA_PER_IN2, LogRule, board_ft, cubic_ft, net


class Amount(msgspec.Struct, frozen=True):
    """Timber on one acre."""

    trees: float = 0.0
    basal_area_ft2: float = 0.0
    gross_bf: float = 0.0
    net_bf: float = 0.0
    dead_net_bf: float = 0.0
    cubic_ft: float = 0.0

    def plus(self, other: Amount) -> Amount:
        """The sum."""
        return Amount(
            *(a + b for a, b in zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True))
        )


class Acre(msgspec.Struct, frozen=True):
    """What one plot says about an acre, by species."""

    plot_id: str
    tallied: int
    by_species: dict[Species, Amount]

    @property
    def total(self) -> Amount:
        """All species."""
        whole = Amount()
        for amount in self.by_species.values():
            whole = whole.plus(amount)
        return whole


def expansion(plot: Plot, tree: Tree) -> float:
    """Trees per acre that a tallied tree stands for."""
    if plot.plot_type == "variable":
        if not plot.baf:
            raise InvalidInput(f"plot {plot.plot_id}: a variable-radius plot needs its basal area factor")
        return trees_per_acre(tree.dbh_in, plot.baf)
    if not plot.plot_acres:
        raise InvalidInput(f"plot {plot.plot_id}: a fixed plot needs its area in acres")
    return 1 / plot.plot_acres


def acre(plot: Plot, region: str, log_rule: LogRule) -> Acre:
    """A plot on an acre; one without trees is an acre without trees."""
    found: dict[Species, Amount] = {}
    for tree in plot.trees:
        kind = species_of(tree.species)
        factor = expansion(plot, tree)
        gross = factor * board_ft(kind, tree.dbh_in, tree.height_ft, log_rule)
        kept = net(gross, tree.defect_pct)
        one = Amount(
            trees=factor,
            basal_area_ft2=factor * BA_PER_IN2 * tree.dbh_in**2,
            gross_bf=gross,
            net_bf=kept,
            dead_net_bf=kept if tree.dead else 0.0,
            cubic_ft=factor * cubic_ft(kind, region, tree.dbh_in, tree.height_ft),
        )
        found[kind] = found.get(kind, Amount()).plus(one)
    return Acre(plot.plot_id, len(plot.trees), found)


def species_of(code: str) -> Species:
    """A species code; one that is not known is refused, never taken for another."""
    try:
        return Species(code)
    except ValueError:
        raise InvalidInput(f"species {code!r} is not known; use {', '.join(Species)}") from None


class Cruised(msgspec.Struct, frozen=True):
    """A stand as its plots show it."""

    stand: Stand
    acres: tuple[Acre, ...]
    net_bf: Spread
    """Net board feet an acre."""
    slope_pct: float = 0.0
    """The mean slope of its plots."""

    def mean(self, species: Species | None = None) -> Amount:
        """The mean acre, of all species or of one."""
        whole = Amount()
        for item in self.acres:
            whole = whole.plus(item.total if species is None else item.by_species.get(species, Amount()))
        return Amount(*(value / len(self.acres) for value in msgspec.structs.astuple(whole)))

    def species(self) -> tuple[Species, ...]:
        """Every species that was tallied, the most board feet first."""
        kinds = {kind for item in self.acres for kind in item.by_species}
        return tuple(sorted(kinds, key=lambda kind: -self.mean(kind).net_bf))


def cruise(fire: Fire, stands: Sequence[Stand], log_rule: LogRule, only: str | None = None) -> tuple[Cruised, ...]:
    """Stands with their plots; `only`: from one plot alone."""
    found = []
    for stand in stands:
        plots = [p for p in fire.plots.values() if p.stand_id == stand.stand_id and only in (None, p.plot_id)]
        if plots:
            acres = tuple(acre(plot, stand.region, log_rule) for plot in plots)
            slope = round(sum(plot.slope_pct for plot in plots) / len(plots), 1)
            found.append(Cruised(stand, acres, spread([item.total.net_bf for item in acres]), slope))
    return tuple(found)
