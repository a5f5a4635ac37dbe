"""Damage, closures, and what to repair with a budget."""

from __future__ import annotations

from datetime import date
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_ranger.fires import Fires
from interlock_ranger.records import DamageKind, DamagePoint, Trail, TrailStatus
from interlock_ranger.trails.closure import Advice, Season, evaluate_trail, season_of
from interlock_ranger.trails.damage import damage_type
from interlock_ranger.trails.priority import select_best, select_greedily
from ranger_parts import Call, FireFolder, problem

LINE = {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}


def damage_point(kind: str, severity: int, milepost: float = 1.0) -> DamagePoint:
    return DamagePoint(
        damage_id="x",
        milepost=milepost,
        type=DamageKind(kind),
        severity=severity,
        longitude=0.0,
        latitude=0.0,
        estimated_cost_usd=1000,
        work_type="REPAIR",
        crew_days=1,
    )


points = st.builds(
    damage_point,
    st.sampled_from([kind.value for kind in DamageKind]),
    st.integers(1, 5),
    st.floats(0, 5),
)


def trail(*damage: DamagePoint, status: str = "OPEN", trail_class: int = 3) -> Trail:
    return Trail(
        trail_id="t-1",
        name="T",
        trail_class=trail_class,
        miles=5.0,
        current_status=TrailStatus(status),
        jurisdiction="",
        annual_visits=100,
        line=LINE,
        damage_points=damage,
    )


def rank(advice: Advice) -> int:
    return list(Advice).index(advice)


@pytest.mark.parametrize(
    ("severity", "kind"), [(1, "TYPE_I"), (2, "TYPE_I"), (3, "TYPE_II"), (4, "TYPE_III"), (5, "TYPE_IV")]
)
def test_damage_types(severity: int, kind: str) -> None:
    assert damage_type(severity).value == kind


async def test_the_damage_of_cedar_creek_as_the_earlier_system_reported_it(call: Call) -> None:
    found = (await call("classify_damage", fire_id="cedar-creek-2022")).value
    assert {item["damage_type"]: (item["points"], item["cost_usd"]) for item in found["by_type"]} == {
        "TYPE_I": (4, 10_800),
        "TYPE_II": (4, 47_000),
        "TYPE_III": (3, 91_000),
        "TYPE_IV": (4, 298_000),
    }
    assert found["cost_usd"] == 446_800
    assert sum(item["cost_usd"] for item in found["trails"]) == 446_800
    assert found["by_kind"]["BRIDGE_FAILURE"] == 2


async def test_points_of_the_caller_are_checked_and_classed(call: Call) -> None:
    point = {"type": "BRIDGE_FAILURE", "severity": 5, "milepost": 2.0, "estimated_cost_usd": 9000, "crew_days": 3}
    found = await call("classify_damage", trail_id="hanan-147", damage_points=[point])
    assert found.value["cost_usd"] == 9000
    assert found.value["trails"][0]["worst"] == "TYPE_IV"
    beyond = await call("classify_damage", trail_id="hanan-147", damage_points=[{**point, "milepost": 99.0}])
    assert "7.1 miles long" in problem(beyond).message
    which = await call("classify_damage", fire_id="bootleg-2021", damage_points=[point])
    assert "name it with trail_id" in problem(which).message


def test_closure_risk_by_hand() -> None:
    """Class 3, one bridge failure of severity 5, summer: 0.40 (100 (0.7 1 + 0.3 5/15)) + 0.25 0 + 0.25 100 + 0.10 50."""
    found = evaluate_trail(trail(damage_point("BRIDGE_FAILURE", 5)), Season.SUMMER)
    assert found.damage == pytest.approx(80.0)
    assert found.risk_score == pytest.approx(0.40 * 80 + 0.25 * 100 + 0.10 * 50)
    assert found.by_score is Advice.RESTRICTED
    assert found.advice is Advice.CLOSED  # severity 5 keeps it closed, whatever the score
    assert evaluate_trail(trail(), Season.SUMMER).risk_score == pytest.approx(5.0)
    assert evaluate_trail(trail(), Season.WINTER).risk_score == pytest.approx(25.0)


async def test_it_never_recommends_opening_what_its_own_data_shows_unsafe(call: Call) -> None:
    """The earlier system opened Charlton Lake, which is closed and has hazard trees of severity 3."""
    found = (await call("evaluate_closure", trail_id="charlton-lake-3578", season="summer")).value["trails"][0]
    assert found["by_score"] == "OPEN_CAUTION"
    assert found["advice"] == "CLOSED"
    assert {floor["rule"] for floor in found["floors"]} == {"trails.floor-hazard-trees", "trails.floor-status"}
    assert "hazard trees" in found["reason"]


@given(st.lists(points, max_size=6), points, st.sampled_from(Season), st.sampled_from(["OPEN", "RESTRICTED", "CLOSED"]))
def test_more_damage_is_never_more_open(
    damage: list[DamagePoint], more: DamagePoint, season: Season, status: str
) -> None:
    before = evaluate_trail(trail(*damage, status=status), season)
    after = evaluate_trail(trail(*damage, more, status=status), season)
    assert after.risk_score >= before.risk_score - 1e-9
    assert rank(after.advice) >= rank(before.advice)


@given(st.lists(points, max_size=6), st.sampled_from(Season))
def test_hazard_trees_status_and_failures_are_respected(damage: list[DamagePoint], season: Season) -> None:
    closed = evaluate_trail(trail(*damage, status="CLOSED"), season)
    if any(point.severity >= 3 for point in damage):
        assert closed.advice is Advice.CLOSED
    for status in ("OPEN", "CLOSED"):
        advice = evaluate_trail(trail(*damage, status=status), season).advice
        trees = max((p.severity for p in damage if p.type == "HAZARD_TREES"), default=0)
        if trees >= 4 or any(point.severity == 5 for point in damage):
            assert advice is Advice.CLOSED
        elif trees == 3:
            assert rank(advice) >= rank(Advice.RESTRICTED)


@given(st.lists(points, max_size=6))
def test_seasons_are_ordered(damage: list[DamagePoint]) -> None:
    scores = [
        evaluate_trail(trail(*damage), s).risk_score for s in (Season.SUMMER, Season.FALL, Season.SPRING, Season.WINTER)
    ]
    assert scores == sorted(scores)


def test_the_season_of_a_day() -> None:
    days = [date(2026, 1, 5), date(2026, 3, 1), date(2026, 7, 4), date(2026, 11, 15), date(2026, 12, 1)]
    assert [season_of(day).value for day in days] == ["winter", "spring", "summer", "fall", "winter"]


async def test_a_season_that_nobody_named_is_said(call: Call) -> None:
    found = (await call("evaluate_closure", trail_id="hanan-147")).value
    assert found["season"] == "fall"
    assert found["season_from"] == "of 2026-11-15, as none was named"
    wrong = await call("evaluate_closure", trail_id="hanan-147", season="monsoon")
    assert wrong.status in ("denied", "no_data")


async def test_near_a_place_is_measured_on_the_ground(call: Call) -> None:
    found = (await call("evaluate_closure", near="Waldo Lake", season="winter")).value
    assert {item["name"] for item in found["trails"]} == {"Waldo Lake Trail", "Bobby Lake Trail", "Charlton Lake Trail"}
    assert found["closed_count"] == 3


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 50)), max_size=9), st.integers(0, 200))
def test_the_selection_is_the_best_of_all(items: list[tuple[int, int]], budget: int) -> None:
    costs, gains = [c for c, _ in items], [g for _, g in items]
    best = max(
        (sum(gains[n] for n in some) for k in range(len(items) + 1) for some in combinations(range(len(items)), k)
         if sum(costs[n] for n in some) <= budget), default=0,
    )  # fmt: skip
    chosen = select_best(costs, gains, budget)
    assert sum(costs[n] for n in chosen) <= budget
    assert sum(gains[n] for n in chosen) == best
    assert sum(gains[n] for n in select_greedily(costs, gains, budget)) <= best


def test_greed_is_not_always_best() -> None:
    """The best ratio first leaves no room for the better pair."""
    assert sum([60, 100, 120][n] for n in select_best([10, 20, 30], [60, 100, 120], 50)) == 220
    assert sum([60, 100, 120][n] for n in select_greedily([10, 20, 30], [60, 100, 120], 50)) == 160


async def test_priorities_of_cedar_creek_by_hand(call: Call) -> None:
    """Waldo 128,200 + Charlton 13,600 + Timpanogas 14,200 serve 12,400 + 3,600 + 1,900 visits; no set does better."""
    found = (await call("prioritize_trails", fire_id="cedar-creek-2022", budget_usd=200_000)).value
    assert {c["trail_id"] for c in found["trails"]} == {"waldo-lake-3536", "charlton-lake-3578", "timpanogas-3527"}
    assert (found["spent_usd"], found["left_usd"], found["annual_visits"]) == (156_000, 44_000, 17_900)
    assert found["spent_usd"] + found["left_usd"] == 200_000
    assert "Charlton Lake Trail" in found["quick_wins"]
    none = await call("prioritize_trails", fire_id="cedar-creek-2022", budget_usd=100)
    assert none.value["chosen_count"] == 0
    assert "the cheapest costs more" in none.said
    refused = await call("prioritize_trails", fire_id="cedar-creek-2022", budget_usd=0)
    assert refused.status == "denied"


def test_no_trail_is_changed_by_looking_at_it(fires: Fires) -> None:
    before = msgspec.json.encode(fires.by_id["bootleg-2021"].trails)
    evaluate_trail(fires.by_id["bootleg-2021"].trails["hanan-147"], Season.WINTER)
    assert msgspec.json.encode(fires.by_id["bootleg-2021"].trails) == before


async def test_crew_days_that_nobody_knows_are_not_none_and_make_no_quick_win(tmp_path: Path) -> None:
    folder = FireFolder(tmp_path / "data")
    budget = {"fire_id": "cedar-creek-2022", "budget_usd": 20_000}
    async with folder.open() as call:
        before = (await call("prioritize_trails", **budget)).value
    name = before["quick_wins"][0]

    def forget(document: Any) -> None:
        (trail,) = (trail for trail in document["trails"] if trail["name"] == name)
        trail["damage_points"][0]["crew_days"] = None

    folder.edit("trails.json", forget)
    async with folder.open() as call:
        after = (await call("prioritize_trails", **budget)).value
    (own,) = (trail for trail in (*after["trails"], *after["not_chosen"]) if trail["name"] == name)
    assert own["crew_days"] is None
    assert own["quick_win"] is False
    assert name not in after["quick_wins"]
    assert after["crew_days_unknown"] == [name]
    assert any(f"crew days are not known of {name}" in step["text"] for step in after["evidence"]["reasoning"])
