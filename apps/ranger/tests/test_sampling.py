"""Plots, expansion, limiting distance, sampling error: what a cruise may claim."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_ranger.fires import Fires
from interlock_ranger.records import Plot, PlotType, Region, Species, Tree
from interlock_ranger.timber.cruise import expand_plot
from interlock_ranger.timber.sampling import (
    estimate_mean,
    limiting_distance_ft,
    plot_radius_factor,
    plot_radius_ft,
    plots_needed,
    t_value,
    trees_per_acre,
)
from interlock_ranger.timber.volume import LogRule
from ranger_parts import Call, problem

TREE: dict[str, Any] = {"species": "PSME", "dbh_in": 20.0, "height_ft": 110.0, "defect_pct": 0.0}
PLOTS: dict[str, Any] = {"plot_id": "a", "trees": [TREE]}


@pytest.mark.parametrize(
    ("dbh", "baf", "feet"),
    [(12, 20, 23.33), (20, 40, 27.5), (12, 10, 33.0), (20, 10, 55.0), (20, 20, 38.9), (20, 30, 31.8)],
)  # 2.75 DBH / sqrt(BAF / 10); published tables (John Bell & Associates; FSH 2409.12 35.22a)
def test_limiting_distances(dbh: float, baf: float, feet: float) -> None:
    assert limiting_distance_ft(dbh, baf) == pytest.approx(feet, abs=0.05)


def test_plot_geometry() -> None:
    assert plot_radius_factor(10) == pytest.approx(2.75, abs=1e-3)
    assert plot_radius_factor(20) == pytest.approx(1.9445, abs=1e-4)
    assert plot_radius_ft(1 / 5) == pytest.approx(52.66, abs=0.01)
    assert plot_radius_ft(1 / 20) == pytest.approx(26.33, abs=0.01)  # the earlier system said 24
    assert limiting_distance_ft(12, 20, 40) == pytest.approx(25.13, abs=0.01)  # along a slope of 40 percent
    assert plot_radius_ft(1 / 5, 50) == pytest.approx(55.7, abs=0.05)  # FSVeg CSE, 1/5 acre at 50 percent


def test_a_tallied_tree_covers_its_basal_area_factor() -> None:
    assert trees_per_acre(12, 20) == pytest.approx(25.4648, abs=1e-4)
    assert trees_per_acre(20, 40) * math.pi / 4 * (20 / 12) ** 2 == pytest.approx(40, rel=1e-6)


def test_means_and_errors_by_hand() -> None:
    found = estimate_mean([160, 120, 200, 140, 180, 100, 220, 160])
    assert found.mean == 160
    assert found.cv_pct == pytest.approx(25)
    assert found.standard_error == pytest.approx(14.14214, abs=1e-5)
    assert found.error_pct == pytest.approx(20.9005, abs=1e-4)
    assert t_value(8) == pytest.approx(2.364624, abs=1e-6)
    assert estimate_mean([5]).error_pct is None  # one plot cannot tell
    assert estimate_mean([0, 0]).cv_pct is None


@pytest.mark.parametrize(("cv", "error", "plots"), [(50, 10, 99), (30, 15, 18)])
def test_plots_that_an_error_needs(cv: float, error: float, plots: int) -> None:
    """Freese 1962: n = (t CV / E)², with t of n - 1, until it stands still."""
    assert plots_needed(cv, error) == plots


@given(st.floats(1, 150), st.floats(2, 60))
def test_so_many_plots_are_enough_and_one_less_is_not_far_off(cv: float, error: float) -> None:
    n = plots_needed(cv, error)
    assert t_value(n) * cv / math.sqrt(n) <= error + 1e-9
    assert plots_needed(cv, error * 1.1) <= n
    assert plots_needed(cv * 1.1, error) >= n


async def test_the_basal_area_factor_really_matters(call: Call) -> None:
    """The earlier system took `baf` and never used it."""
    made = {}
    for baf in (10.0, 20.0, 40.0):
        found = await call("estimate_volume", region="east", plots=[{**PLOTS, "baf": baf}])
        made[baf] = found.value["stands"][0]["gross_mbf_per_acre"]
    assert made[20.0] == pytest.approx(2 * made[10.0], abs=0.02)
    assert made[40.0] == pytest.approx(4 * made[10.0], abs=0.03)
    assert made[20.0] == pytest.approx(459 * 9.16732 / 1000, abs=0.01)  # one tree of 459 bf, 9.167 of them an acre


async def test_fixed_plots_expand_by_their_area(call: Call) -> None:
    found = await call("estimate_volume", region="east", plots=[{**PLOTS, "plot_acres": 0.2}])
    assert found.value["stands"][0]["gross_mbf_per_acre"] == pytest.approx(459 * 5 / 1000, abs=0.01)


async def test_stand_totals_are_means_times_acres(call: Call, fires: Fires) -> None:
    """The earlier system summed the volumes per acre of all plots and called it a total."""
    found = (await call("estimate_volume", stand_id="north-fork")).value["stands"][0]
    fire = fires.by_id["cedar-creek-2022"]
    acres = [
        expand_plot(p, Region.WEST, LogRule.SCRIBNER).total.net_bf
        for p in fire.plots.values()
        if p.stand_id == "north-fork"
    ]
    mean = sum(acres) / len(acres) / 1000
    assert found["net_mbf_per_acre"] == pytest.approx(mean, abs=0.01)
    assert found["total_net_mbf"] == pytest.approx(mean * 3200, rel=1e-3)
    assert found["total_low_mbf"] < found["total_net_mbf"] < found["total_high_mbf"]
    assert found["plots_needed"] > found["plots"]
    whole = (await call("estimate_volume", fire_id="cedar-creek-2022")).value
    assert whole["total_net_mbf"] == pytest.approx(sum(s["total_net_mbf"] for s in whole["stands"]), abs=1)


async def test_species_shares_are_shares_of_volume_and_add_up(call: Call) -> None:
    for stand in (await call("estimate_volume", fire_id="bootleg-2021")).value["stands"]:
        assert sum(kind["pct_of_net"] for kind in stand["species"]) == pytest.approx(100, abs=0.3)


def test_an_empty_plot_is_an_acre_without_trees() -> None:
    empty = Plot(
        plot_id="e",
        stand_id="s",
        plot_type=PlotType.VARIABLE,
        baf=20.0,
        plot_acres=None,
        slope_pct=0.0,
        measured_on=date(2024, 1, 1),
        trees=(),
    )
    assert expand_plot(empty, Region.WEST, LogRule.SCRIBNER).total.net_bf == 0
    tree = Tree(plot_id="f", species=Species.PSME, dbh_in=20, height_ft=110, dead=True, defect_pct=0)
    full = msgspec.structs.replace(
        empty, plot_id="f", plot_type=PlotType.FIXED, baf=None, plot_acres=0.2, trees=(tree,)
    )
    assert expand_plot(full, Region.WEST, LogRule.SCRIBNER).total.trees == 5


async def test_no_tree_at_all_is_refused_and_not_a_confident_zero(call: Call) -> None:
    """The earlier system gave 0.0 MBF at a confidence of .88."""
    for plots in ([], [{"plot_id": "a", "baf": 20.0, "trees": []}]):
        found = await call("estimate_volume", region="west", plots=plots)
        assert found.status == "failed"
        assert "no tree" in problem(found).message
    both = await call("estimate_volume", region="west", plots=[{**PLOTS, "baf": 20.0, "plot_acres": 0.2}])
    assert "one of them" in problem(both).message
    where = await call("estimate_volume", plots=[{**PLOTS, "baf": 20.0}])
    assert "west or east" in problem(where).message
    strange = {**TREE, "species": "XXXX"}
    refused = await call("estimate_volume", region="west", plots=[{"plot_id": "a", "baf": 20.0, "trees": [strange]}])
    assert refused.status == "denied"


async def test_the_design_follows_the_objective(call: Call) -> None:
    volume = (await call("recommend_methodology", stand_id="north-fork", target_error_pct=15.0)).value["stands"][0]
    stocking = (
        await call("recommend_methodology", stand_id="north-fork", objective="stocking", target_error_pct=15.0)
    ).value["stands"][0]
    assert volume["plot_type"] == "variable"
    assert volume["baf"] in (5, 10, 15, 20, 30, 40, 60)
    assert 4 <= volume["basal_area_ft2_per_acre"] / volume["baf"] <= 8  # trees a point
    assert volume["plots"] == plots_needed(40.65, 15)
    assert stocking["plot_type"] == "fixed"
    assert stocking["plot_radius_ft"] == pytest.approx(52.7)
    assert stocking["cv_pct"] != volume["cv_pct"]  # of trees, not of board feet
    assert volume["limiting_distance_on_slope_ft"] > volume["limiting_distance_ft"]
