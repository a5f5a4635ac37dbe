"""A file without a record: every tool and every section of a briefing says so in words, and computes nothing of it."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from interlock import Runtime
from interlock_ranger.app import build_app
from interlock_ranger.briefing.compose import SECTIONS, Briefing, compose_briefing
from interlock_ranger.briefing.events import build_events
from interlock_ranger.briefing.exports import write_exports
from interlock_ranger.briefing.page import render_page
from interlock_ranger.briefing.terminal import print_briefing
from interlock_ranger.fires import Fires
from ranger_parts import TODAY, FireFolder, problem

FIRE = "cedar-creek-2022"
NOW = "2026-11-15T08:00:00+00:00"


@pytest.fixture
def folder(tmp_path: Path) -> FireFolder:
    return FireFolder(tmp_path / "data")


def clear(folder: FireFolder, *names: str) -> None:
    """Files with no record in them."""
    for name in names:
        if name.endswith(".csv"):
            (folder.path / name).write_text(folder.text(name).splitlines()[0] + "\n", encoding="utf-8")
        else:
            folder.edit(name, partial(_empty, key=Path(name).stem))


def _empty(document: Any, key: str) -> Any:
    return {**document, key: []}


def set_wilderness(document: Any) -> None:
    for stand in document["stands"]:
        stand["designation"] = "wilderness"


async def test_each_tool_says_which_records_are_missing(folder: FireFolder) -> None:
    clear(folder, "trees.csv")
    async with folder.open() as call:
        for tool in ("estimate_volume", "assess_salvage", "recommend_methodology"):
            found = await call(tool, fire_id=FIRE)
            assert found.status == "no_data"
            assert "Cedar Creek has plots on file, but no tree of any of them" in problem(found).message
    clear(folder, "plots.csv", "trails.json")
    async with folder.open() as call:
        for tool in ("estimate_volume", "assess_salvage", "recommend_methodology"):
            found = await call(tool, fire_id=FIRE)
            assert found.status == "no_data"
            assert "Cedar Creek has no plots on file, so nothing is known about the timber" in problem(found).message
            part = await call(tool, stand_id="north-fork")
            assert "has no plots on file in North Fork stand" in problem(part).message
        for tool, more in (("classify_damage", {}), ("evaluate_closure", {}), ("prioritize_trails", {"budget_usd": 5})):
            found = await call(tool, fire_id=FIRE, **more)
            assert found.status == "no_data"
            assert "Cedar Creek has no trails on file" in problem(found).message


async def test_no_acres_are_no_harvest_to_decide_on(folder: FireFolder) -> None:
    harvest: dict[str, Any] = {"action": "salvage_harvest", "acres": 0.0}
    async with folder.open() as call:
        for whole in ({}, {"fire_id": FIRE}):
            assert (
                "of 0 acres cannot be decided on; give its acres"
                in problem(await call("decide_pathway", **harvest, **whole)).message
            )
        repair = await call("decide_pathway", fire_id=FIRE, action="trail_repair", acres=0.0)
        assert repair.ok
        assert "0 acres" not in repair.said
    folder.edit("stands.json", set_wilderness)
    folder.edit("trails.json", lambda d: [trail.update(damage_points=[]) for trail in d["trails"]] and d)
    async with folder.open() as call:
        found = await call("decide_pathway", fire_id=FIRE, **harvest)
        assert found.status == "no_data"
        assert "has no stands outside of wilderness and roadless areas on file" in problem(found).message
        repair = await call("decide_pathway", fire_id=FIRE, action="trail_repair", acres=0.0)
        assert repair.status == "no_data"
        assert "has no damage of trails on file, so there is no trail repair" in problem(repair).message
        damage = await call("classify_damage", fire_id=FIRE)
        assert damage.said.endswith("Cedar Creek: no damage is on file for any of 5 trails")


async def test_a_briefing_has_no_empty_section_and_no_finding_made_of_nothing(
    folder: FireFolder, tmp_path: Path
) -> None:
    clear(folder, "stands.json", "plots.csv", "trees.csv", "trails.json")
    briefing = await _compose(folder)
    assert briefing.turn.verified
    screen = io.StringIO()
    print_briefing(Console(file=screen, width=300), briefing)
    shown, page = screen.getvalue(), render_page(briefing)
    for words in (
        "Cedar Creek has no trails on file",
        "Cedar Creek has no stands on file, so nothing is known about its timber",
        "Cedar Creek has no stands on file, so there is no salvage harvest to decide on",
        "Cedar Creek has no trails on file, so there is no trail repair to decide on",
    ):
        for text in (shown, page, briefing.turn.answer):
            assert words in text
    for text in (shown, page, briefing.turn.answer):
        for nonsense in ("0 of 0", "worst: ", "on 0 acres", " 0 acres", "on 0 trails", "onfidence 0.0"):
            assert nonsense not in text
    lines = [line.strip() for line in shown.splitlines()]
    for section in SECTIONS:
        assert lines[lines.index(section) + 1] not in ("", *SECTIONS), section
    assert briefing.confidence is not None
    assert briefing.confidence > 0.5
    events = build_events(briefing, NOW)
    assert events[0].content.summary.endswith(
        "nothing on file for classify_damage, evaluate_closure, estimate_volume, assess_salvage, decide_pathway"
    )
    assert len(events) == 1 + len(briefing.results)
    assert all(file.exists() for file in write_exports(briefing, tmp_path / "out", NOW))


async def _compose(folder: FireFolder) -> Briefing:
    fires = Fires(folder.path.parent)
    app = build_app(fires, today=lambda: TODAY)
    async with Runtime.open("memory://", policy=app.policy or "", tools=app.tools) as runtime:
        return await compose_briefing(runtime, app, fires.by_id[FIRE], TODAY, "winter")
