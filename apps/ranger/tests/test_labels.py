"""What is real is never called synthetic, what is synthetic never real, and every source has its own date."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from interlock import Runtime
from interlock_ranger.app import build_app
from interlock_ranger.briefing.compose import Briefing, compose_briefing
from interlock_ranger.briefing.events import build_events
from interlock_ranger.briefing.exports import write_exports
from interlock_ranger.briefing.page import render_page
from interlock_ranger.briefing.terminal import print_briefing
from interlock_ranger.fires import Fires
from ranger_parts import TODAY, Call, FireFolder


async def compose(folder: FireFolder) -> Briefing:
    fires = Fires(folder.path.parent)
    app = build_app(fires, today=lambda: TODAY)
    async with Runtime.open("memory://", policy=app.policy or "", tools=app.tools) as runtime:
        return await compose_briefing(runtime, app, fires.by_id["cedar-creek-2022"], TODAY, "winter")


@pytest.mark.parametrize("synthetic", [True, False])
async def test_a_label_goes_with_the_data_from_file_to_screen_to_export(tmp_path: Path, synthetic: bool) -> None:
    folder = FireFolder(tmp_path / "data")
    folder.drop_labels(synthetic=synthetic)
    briefing = await compose(folder)
    assert briefing.turn.verified
    screen = io.StringIO()
    print_briefing(Console(file=screen, width=200), briefing)
    exported = [file.read_text(encoding="utf-8") for file in write_exports(briefing, tmp_path / "out", "now")]
    events = "".join(event.model_dump_json() for event in build_events(briefing, "now"))
    for text in (screen.getvalue(), render_page(briefing), events, briefing.turn.answer):
        assert ("SYNTHETIC" in text) == synthetic
    assert ('"synthetic": true' in "".join(exported)) == synthetic
    assert ('"synthetic": false' in "".join(exported)) != synthetic


async def test_a_table_of_a_real_fire_is_real(tmp_path: Path) -> None:
    """Its folder was once enough to call a file synthetic."""
    folder = FireFolder(tmp_path / "data")
    folder.drop_labels(synthetic=False)
    async with folder.open() as call:
        found = await call("analyze_csv_data", file="cedar-creek-2022/trees.csv")
    assert found.value["synthetic"] is False
    assert "SYNTHETIC" not in found.said


def test_no_agent_is_told_that_all_data_is_synthetic(tmp_path: Path) -> None:
    folder = FireFolder(tmp_path / "data")
    folder.drop_labels(synthetic=False)
    for agent in build_app(folder.path.parent, today=lambda: TODAY).agents:
        assert "The data is synthetic" not in " ".join(agent.rules)
        assert any("where its result says so, and only there" in rule for rule in agent.rules)


async def test_a_decision_about_a_synthetic_fire_is_labelled_and_one_about_none_is_not(call: Call) -> None:
    about = await call("decide_pathway", action="trail_repair", acres=0.0, fire_id="bootleg-2021")
    assert about.value["synthetic"] is True
    assert about.said.startswith("SYNTHETIC DATA. DRAFT.")
    plain = await call("decide_pathway", action="trail_repair", acres=0.0)
    assert plain.value["synthetic"] is False
    assert about.confidence == plain.confidence


async def test_readings_of_the_caller_are_the_callers(call: Call) -> None:
    readings = [{"sector_id": "x", "dnbr": 0.7, "acres": 10.0, "slope_pct": 20.0}]
    own = await call("assess_severity", fire_id="cedar-creek-2022", sectors=readings)
    assert own.value["synthetic"] is False
    assert "SYNTHETIC" not in own.said
    assert own.confidence == 1.0
    mixed = await call("assess_severity", fire_id="cedar-creek-2022", sectors=readings, scale="analyst")
    assert mixed.value["synthetic"] is True  # the thresholds are those of a synthetic fire
    twice = await call("assess_severity", fire_id="cedar-creek-2022", sectors=readings * 2)
    assert twice.status == "failed"


async def test_every_file_is_cited_with_its_own_date(call: Call) -> None:
    wanted = {
        "nbr_pre.tif": "2022-07-20",
        "nbr_post.tif": "2023-07-10",
        "sectors.geojson": "2023-07-10",
        "perimeter.geojson": "2022-11-21",
        "trails.json": "2023-06-14",
        "stands.json": "2023-07-20",
        "plots.csv": "2023-07-11",
        "trees.csv": "2023-07-11",
        "fire.json": "2023-07-20",
    }
    seen: dict[str, set[str]] = {}
    for tool in (
        "assess_severity", "classify_mtbs", "validate_boundary", "classify_damage", "evaluate_closure",
        "estimate_volume", "assess_salvage", "recommend_methodology",
    ):  # fmt: skip
        for source in (await call(tool, fire_id="cedar-creek-2022")).value["evidence"]["data_sources"]:
            seen.setdefault(source["file"].rpartition("/")[2], set()).add(source["dated"])
    assert seen == {file: {day} for file, day in wanted.items()}


async def test_a_date_that_the_fire_states_for_a_file_is_its_date(tmp_path: Path) -> None:
    folder = FireFolder(tmp_path / "data")
    folder.edit("fire.json", lambda facts: facts.update(file_dates={"perimeter.geojson": "2022-10-30"}))
    async with folder.open() as call:
        found = await call("validate_boundary", fire_id="cedar-creek-2022")
    dated = {s["file"].rpartition("/")[2]: s["dated"] for s in found.value["evidence"]["data_sources"]}
    assert dated["perimeter.geojson"] == "2022-10-30"
