"""Salvage: windows, published losses, economics, and what the law allows."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_ranger.records import Access, Designation, Region, Species, Stand, Terrain
from interlock_ranger.timber.salvage import Product, cost_usd_per_mbf, product_after, volume_loss_pct
from interlock_ranger.timber.sampling import plots_needed, t_value
from ranger_parts import Call, FireFolder, problem


@pytest.mark.parametrize(
    ("species", "months", "expected"),
    [
        (Species.PSME, 18, Product.PREMIUM),
        (Species.PSME, 18.1, Product.COMMERCIAL),
        (Species.PSME, 48, Product.UTILITY),
        (Species.PSME, 48.1, Product.NONE),
        (Species.PIPO, 10, Product.COMMERCIAL),  # pine stains in its first year
        (Species.THPL, 90, Product.UTILITY),
    ],
)
def test_products_by_months(species: Species, months: float, expected: Product) -> None:
    assert product_after(species, months) is expected


@pytest.mark.parametrize(
    ("species", "months", "loss"),
    [
        (Species.PSME, 12, 1),  # Lowell & Cahill 1996, year 1
        (Species.PSME, 24, 8),  # Parry et al. 1996, year 2
        (Species.PSME, 18, 4.5),  # half way between
        (Species.ABGR, 12, 5),  # Lowell & Cahill 1996
        (Species.ABLA, 24, 60),  # Martinez et al. 2011
        (Species.ABLA, 6, 20),
        (Species.PSME, 90, 15),  # beyond what is published, the last figure stands
        (Species.TSHE, 12, None),  # nothing is published
    ],
)
def test_published_losses(species: Species, months: float, loss: float | None) -> None:
    assert volume_loss_pct(species, months) == loss


@given(st.sampled_from(Species), st.floats(0, 120), st.floats(0, 120))
def test_timber_never_gets_better(species: Species, a: float, b: float) -> None:
    early, late = sorted((a, b))
    order = list(Product)
    assert order.index(product_after(species, early)) <= order.index(product_after(species, late))
    first, second = volume_loss_pct(species, early), volume_loss_pct(species, late)
    assert first is None or second is None or first <= second


def test_costs_by_hand() -> None:
    stand = Stand(
        stand_id="s",
        name="S",
        acres=1,
        sector_id="x",
        access=Access.TEMPORARY_ROAD,
        terrain=Terrain.STEEP,
        region=Region.WEST,
        designation=Designation.NONE,
    )
    assert cost_usd_per_mbf(stand) == 330 + 30 + 85


async def test_economics_are_used(call: Call) -> None:
    """North Fork in September 2023: value less cost, by its own figures."""
    found = (await call("assess_salvage", stand_id="north-fork", assessment_date="2023-09-30")).value["stands"][0]
    worth = sum(
        k["dead_mbf_per_acre"] * (1 - (k["volume_loss_pct"] or 0) / 100) * k["price_usd_per_mbf"]
        for k in found["species"]
    )
    assert found["value_usd_per_acre"] == pytest.approx(worth, rel=0.001)
    assert found["net_usd_per_acre"] == pytest.approx(found["value_usd_per_acre"] - found["cost_usd_per_acre"], abs=1)
    assert found["viability"] == "VIABLE"


async def test_expired_windows_are_not_prioritised(call: Call) -> None:
    """The earlier system still recommended cutting years after the wood had gone."""
    found = (await call("assess_salvage", fire_id="bootleg-2021", assessment_date="2026-11-15")).value
    assert found["viable_count"] == 0
    assert {s["stand_id"]: s["viability"] for s in found["stands"]} == {
        "yamsay-flats": "NOT_VIABLE",
        "sycan-rim": "NOT_ALLOWED",
    }


async def test_wilderness_and_roadless_land_are_not_for_sale(call: Call) -> None:
    for stand, rule in (("high-divide", "land.wilderness"), ("sycan-rim", "land.roadless")):
        found = (await call("assess_salvage", stand_id=stand, assessment_date="2023-01-15")).value["stands"][0]
        assert (found["viability"], found["rule"]) == ("NOT_ALLOWED", rule)


async def test_the_day_is_the_clocks_unless_it_is_named(call: Call) -> None:
    today = (await call("assess_salvage", stand_id="north-fork")).value
    assert today["assessed_on"] == "2026-11-15"
    assert today["assessed_on_from"] == "today, as none was named"
    assert today["months_since_containment"] == pytest.approx(
        (date(2026, 11, 15) - date(2022, 11, 21)).days / 30.4375, abs=0.05
    )
    early = await call("assess_salvage", stand_id="north-fork", assessment_date="2022-01-01")
    assert "contained on 2022-11-21" in problem(early).message


@pytest.fixture
def folder(tmp_path: Path) -> FireFolder:
    return FireFolder(tmp_path / "data")


async def test_a_stand_without_dead_timber_is_not_said_to_be_too_late(folder: FireFolder) -> None:
    folder.replace("trees.csv", ",yes,", ",no,")
    async with folder.open() as call:
        found = (await call("assess_salvage", stand_id="north-fork", assessment_date="2023-09-30")).value["stands"][0]
    assert (found["viability"], found["reason"]) == ("NOT_VIABLE", "no dead timber was tallied on its plots")
    assert found["rule"] == "timber.salvage"


async def test_nobody_is_told_what_forbidden_timber_would_fetch(call: Call) -> None:
    found = (await call("assess_salvage", fire_id="bootleg-2021", assessment_date="2022-03-30")).value["stands"]
    assert {s["stand_id"]: s["net_usd"] is None for s in found} == {"yamsay-flats": False, "sycan-rim": True}


async def test_losses_are_said_as_they_were_used(call: Call) -> None:
    """Three years on, fir has lost its window, and of redcedar no loss is published."""
    found = (await call("assess_salvage", stand_id="salmon-creek", assessment_date="2024-06-30")).value
    (losses,) = [s["text"] for s in found["evidence"]["reasoning"] if s["rule"] == "timber.volume-loss"]
    assert "taken off for Douglas-fir, grand fir" in losses
    assert "none is published for western hemlock" in losses
    assert "the last published year stands for later ones: grand fir (year 1)" in losses
    late = (await call("assess_salvage", fire_id="bootleg-2021", assessment_date="2026-11-15")).value
    (none,) = [s["text"] for s in late["evidence"]["reasoning"] if s["rule"] == "timber.volume-loss"]
    assert none == "no loss of volume taken off"


def _keep(folder: FireFolder, *plots: str) -> None:
    """Of North Fork only these plots, with their trees."""
    gone = tuple(f"{name}," for name in ("47-ALPHA", "47-BRAVO", "47-GOLF", "47-HOTEL") if name not in plots)
    for file in ("plots.csv", "trees.csv"):
        kept = [line for line in folder.text(file).splitlines() if not line.startswith(gone)]
        (folder.path / file).write_text("\n".join(kept) + "\n", encoding="utf-8")


async def _assess_north_fork(folder: FireFolder, day: str = "2023-09-30") -> tuple[dict[str, Any], str]:
    async with folder.open() as call:
        found = await call("assess_salvage", stand_id="north-fork", assessment_date=day)
    return found.value["stands"][0], found.said


async def test_a_verdict_that_the_plots_cannot_carry_is_withheld(folder: FireFolder) -> None:
    _keep(folder, "47-ALPHA", "47-BRAVO")
    lines = folder.text("trees.csv").splitlines()
    few = [line for line in lines if not line.startswith("47-BRAVO,") or line.startswith("47-BRAVO,1,")]
    (folder.path / "trees.csv").write_text("\n".join(few) + "\n", encoding="utf-8")
    found, said = await _assess_north_fork(folder)
    error = found["sampling_error_pct"]
    assert error > 500  # two plots, of which one has nearly nothing
    assert (found["viability"], found["rule"], found["net_usd"]) == ("UNDECIDED", "timber.salvage-error", None)
    needed = plots_needed(error * math.sqrt(2) / t_value(2), 100)
    assert f" %, is not under 100 %; more plots are needed, {needed} or more" in found["reason"]
    assert "0 of 1 stand viable" in said
    assert found["reason"] in said
    gone, _ = await _assess_north_fork(folder, "2040-01-01")
    assert gone["viability"] == "NOT_VIABLE"  # its windows have ended, whatever stands there


async def test_one_plot_carries_no_verdict(folder: FireFolder) -> None:
    _keep(folder, "47-ALPHA")
    found, _ = await _assess_north_fork(folder)
    assert (found["viability"], found["sampling_error_pct"]) == ("UNDECIDED", None)
    assert "not known from one plot; more plots are needed" in found["reason"]
