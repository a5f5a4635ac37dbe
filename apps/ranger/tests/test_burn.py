"""Burn severity, MTBS classes, erosion, boundaries."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Runtime
from interlock_ranger.app import DATA, build_app
from interlock_ranger.burn.boundary import (
    GeoPolygon,
    area_difference_pct,
    build_shape,
    find_area_issue,
    find_ring_issues,
    find_shape_issues,
    measure,
)
from interlock_ranger.burn.pixels import read_pixels
from interlock_ranger.burn.severity import (
    Erosion,
    Scale,
    Severity,
    classify_mtbs,
    classify_severity,
    degrees_to_percent,
    erosion_risk,
    percent_to_degrees,
    thresholds_of,
)
from interlock_ranger.fires import Fires
from interlock_ranger.records import Thresholds
from ranger_parts import TODAY, Call, problem

ANALYST = Thresholds(increased_greenness=-0.15, low=0.09, moderate=0.25, high=0.60)
GENERIC = thresholds_of(Scale.GENERIC, ANALYST)


@pytest.mark.parametrize(
    ("dnbr", "expected"),
    [  # Key & Benson 2006: .10, .27, .66; a bound belongs to the class above
        (-0.2, "regrowth"),
        (0.0999, "unburned"),
        (0.10, "low"),
        (0.2699, "low"),
        (0.27, "moderate"),
        (0.45, "moderate"),  # the earlier system called this unburned, as it read another key
        (0.6599, "moderate"),
        (0.66, "high"),
    ],
)
def test_generic_breakpoints(dnbr: float, expected: str) -> None:
    assert classify_severity(dnbr, GENERIC).value == expected


def test_analyst_thresholds_are_the_fires_own() -> None:
    assert classify_severity(0.62, GENERIC) is Severity.MODERATE
    assert classify_severity(0.62, thresholds_of(Scale.ANALYST, ANALYST)) is Severity.HIGH


@given(st.floats(-2, 2), st.floats(-2, 2))
def test_more_change_is_never_less_severe(a: float, b: float) -> None:
    low, high = sorted((a, b))
    order = list(Severity)
    assert order.index(classify_severity(low, GENERIC)) <= order.index(classify_severity(high, GENERIC))


@pytest.mark.parametrize(
    ("grade", "slope_pct", "expected"),
    [
        (Severity.HIGH, 30, Erosion.CRITICAL),
        (Severity.HIGH, 15, Erosion.HIGH),
        (Severity.HIGH, 14.9, Erosion.MODERATE),
        (Severity.MODERATE, 30, Erosion.HIGH),
        (Severity.MODERATE, 15, Erosion.MODERATE),
        (Severity.MODERATE, 5, Erosion.LOW),
        (Severity.LOW, 80, Erosion.LOW),
        (Severity.HIGH, None, Erosion.UNKNOWN),
    ],
)
def test_erosion_by_class_and_slope_in_percent(grade: Severity, slope_pct: float | None, expected: Erosion) -> None:
    assert erosion_risk(grade, slope_pct) is expected


@given(st.sampled_from([Severity.MODERATE, Severity.HIGH]), st.floats(0, 300), st.floats(0, 300))
def test_steeper_is_never_safer(grade: Severity, a: float, b: float) -> None:
    low, high = sorted((a, b))
    order = list(Erosion)
    assert order.index(erosion_risk(grade, low)) <= order.index(erosion_risk(grade, high))


def test_percent_and_degrees_are_kept_apart() -> None:
    assert degrees_to_percent(45) == pytest.approx(100)  # a slope of 45 degrees rises as far as it runs
    assert percent_to_degrees(30) == pytest.approx(16.699, abs=0.001)
    assert percent_to_degrees(degrees_to_percent(20)) == pytest.approx(20)


async def test_a_slope_in_degrees_gives_the_erosion_of_its_percent(call: Call) -> None:
    given_ = {"sector_id": "x", "dnbr": 0.7, "acres": 10.0}
    steep = await call("assess_severity", fire_id="bootleg-2021", sectors=[{**given_, "slope_deg": 20.0}])
    flat = await call("assess_severity", fire_id="bootleg-2021", sectors=[{**given_, "slope_pct": 20.0}])
    assert steep.value["sectors"][0]["erosion_risk"] == "critical"  # 20 degrees are 36.4 percent
    assert steep.value["sectors"][0]["slope_pct"] == pytest.approx(36.4)
    assert flat.value["sectors"][0]["erosion_risk"] == "high"
    both = await call(
        "assess_severity", fire_id="bootleg-2021", sectors=[{**given_, "slope_deg": 20.0, "slope_pct": 9.0}]
    )
    assert both.status == "failed"
    assert "not both" in problem(both).message


def test_dnbr_is_the_difference_of_two_rasters_by_hand(fires: Fires) -> None:
    import rasterio

    fire = fires.by_id["cedar-creek-2022"]
    with rasterio.open(fire.folder / "nbr_pre.tif") as pre, rasterio.open(fire.folder / "nbr_post.tif") as post:
        a, b = int(pre.read(1)[30, 40]), int(post.read(1)[30, 40])
    assert read_pixels(fire).dnbr[30, 40] == pytest.approx((a - b) / 1000)


def test_mtbs_has_six_classes() -> None:
    values = np.array([-0.2, 0.0, 0.1, 0.3, 0.7, 0.7])
    known = np.array([True, True, True, True, True, False])
    assert classify_mtbs(values, known, ANALYST).tolist() == [5, 1, 2, 3, 4, 6]


async def test_the_classes_of_a_fire_add_up(call: Call) -> None:
    found = await call("classify_mtbs", fire_id="cedar-creek-2022")
    assert sum(item["pct"] for item in found.value["classes"]) == pytest.approx(100, abs=0.3)
    assert sum(item["acres"] for item in found.value["classes"]) == pytest.approx(127_311, abs=4)
    assert {item["mtbs_class"] for item in found.value["classes"]} == {1, 2, 3, 4, 5, 6}
    severity_ = await call("assess_severity", fire_id="cedar-creek-2022")
    parts = ("high_pct", "moderate_pct", "low_pct", "unburned_pct", "regrowth_pct")
    assert sum(severity_.value[name] for name in parts) == pytest.approx(100, abs=0.3)
    assert severity_.value["acres"] == 127_311


async def test_a_sector_shows_its_mosaic_and_not_only_its_mean(call: Call) -> None:
    found = await call("assess_severity", sector_id="SW-1")
    (sector,) = found.value["sectors"]
    assert sector["severity"] == "high"
    assert 0 < sector["moderate_pct"] < sector["high_pct"] < 100
    assert found.value["fire_id"] == "cedar-creek-2022"  # the sector says which fire


async def test_every_finding_names_rules_sources_and_a_computed_confidence(call: Call) -> None:
    found = await call("assess_severity", fire_id="cedar-creek-2022")
    evidence = found.value["evidence"]
    assert {step["rule"] for step in evidence["reasoning"]} >= {"burn.dnbr", "burn.key-benson", "burn.not-soil"}
    assert all(len(source["sha256"]) == 64 and source["synthetic"] for source in evidence["data_sources"])
    trust = evidence["confidence"]
    assert trust["score"] == pytest.approx(trust["completeness"] * trust["freshness"], abs=0.006)
    assert found.confidence == trust["score"]
    assert "SYNTHETIC" in found.said
    assert all("SYNTHETIC" in source for source in found.sources)


# A square degree at the equator: 12,308.8 km2 (GeographicLib planimeter), 3,041,560 acres.
SQUARE = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 0.0]]


def polygon(*rings: list[list[float]]) -> GeoPolygon:
    return GeoPolygon(type="Polygon", coordinates=list(rings))


def test_area_is_measured_on_the_ellipsoid() -> None:
    size = measure(build_shape(polygon(SQUARE)))
    assert size.area_acres == pytest.approx(3_041_560, rel=2e-5)
    assert size.perimeter_miles == pytest.approx(443_770 / 1609.344, rel=2e-3)


@pytest.mark.parametrize(
    ("ring", "code"),
    [
        ([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]], "INSUFFICIENT_POINTS"),
        ([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], "NOT_CLOSED"),
        ([[0.0, 0.0], [200.0, 0.0], [1.0, 1.0], [0.0, 0.0]], "INVALID_COORDINATES"),
        ([[0.0], [1.0, 0.0], [1.0, 1.0], [0.0]], "INVALID_COORDINATES"),
    ],
)
def test_what_is_wrong_with_a_ring_is_named(ring: list[list[float]], code: str) -> None:
    assert code in {issue.code for issue in find_ring_issues(polygon(ring))}


def test_crossings_are_errors_and_holes_are_told() -> None:
    bow = [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    assert {issue.code for issue in find_shape_issues(build_shape(polygon(bow)))} == {"SELF_INTERSECTION"}
    hole = [[0.2, 0.2], [0.4, 0.2], [0.4, 0.4], [0.2, 0.4], [0.2, 0.2]]
    holed = build_shape(polygon(SQUARE, hole))
    (issue,) = find_shape_issues(holed)
    assert (issue.code, issue.severity) == ("HOLES", "info")
    whole = measure(build_shape(polygon(SQUARE))).area_acres
    assert measure(holed).area_acres == pytest.approx(whole * 0.96, rel=1e-3)


@given(st.floats(1, 1e6), st.floats(1, 1e6), st.floats(0.1, 50))
def test_the_tolerance_decides(drawn: float, reported: float, tolerance: float) -> None:
    off, issue = area_difference_pct(drawn, reported), find_area_issue(drawn, reported, tolerance)
    assert (issue is None) == (abs(drawn - reported) <= reported * tolerance / 100 or math.isclose(abs(off), tolerance))


async def test_the_perimeters_on_file_are_valid(call: Call) -> None:
    for fire, acres in (("cedar-creek-2022", 127_311), ("bootleg-2021", 413_717)):
        found = await call("validate_boundary", fire_id=fire)
        assert found.value["verdict"] == "VALID"
        assert found.value["measured"]["area_acres"] == pytest.approx(acres, rel=1e-4)
        assert found.value["sector_acres"] == acres


async def test_a_boundary_of_the_caller_is_checked_against_the_reported_acres(call: Call) -> None:
    ring = [[p[0] - 122, p[1] + 43] for p in SQUARE]
    found = await call(
        "validate_boundary", fire_id="cedar-creek-2022", geometry={"type": "Polygon", "coordinates": [ring]}
    )
    assert found.value["verdict"] == "WARNING"
    assert [issue["code"] for issue in found.value["issues"]] == ["AREA_MISMATCH"]
    broken = await call(
        "validate_boundary", fire_id="cedar-creek-2022", geometry={"type": "Polygon", "coordinates": [ring[:-1]]}
    )
    assert broken.value["verdict"] == "INVALID"
    assert broken.value["measured"] is None
    nonsense = await call("validate_boundary", fire_id="cedar-creek-2022", geometry={"type": "Circle"})
    assert nonsense.status == "denied"
    assert "geometry" in problem(nonsense).message


async def test_a_fire_without_rasters_is_assessed_from_its_table(tmp_path: Path) -> None:
    shutil.copytree(DATA / "cedar-creek-2022", tmp_path / "cedar-creek-2022", ignore=shutil.ignore_patterns("*.tif"))
    app = build_app(tmp_path, today=lambda: TODAY)
    async with Runtime.open("memory://", policy=app.policy or "", tools=app.tools) as runtime:
        whole = await runtime.call("assess_severity", {"fire_id": "cedar-creek-2022"}, actor="operator")
        sector = await runtime.call("assess_severity", {"sector_id": "SW-1"}, actor="operator")
        classes = await runtime.call("classify_mtbs", {"fire_id": "cedar-creek-2022"}, actor="operator")
        triage = await runtime.call("portfolio_triage", {}, actor="operator")
    assert whole.value["measured_from"] == "sector table"
    assert whole.value["acres"] == 127_311
    assert whole.value["evidence"]["confidence"]["completeness"] == 0.5
    assert sector.value["sectors"][0]["severity"] == "high"
    assert sector.value["sectors"][0]["high_pct"] is None
    assert "None" not in sector.said
    assert classes.status == "no_data"
    assert triage.value["evidence"]["confidence"]["completeness"] == 0.5
