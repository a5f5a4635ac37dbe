"""The briefing: four domains from one verified turn, as text, page and files that load."""

from __future__ import annotations

import csv
import io
import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
import shapely
from rich.console import Console
from shapely.geometry import shape

from interlock import Runtime
from interlock.answers import Agent, App, TurnOutcome
from interlock_ranger.agents import SPECIALISTS
from interlock_ranger.briefing.compose import Briefing, compose_briefing
from interlock_ranger.briefing.events import (
    AgentBriefingEvent,
    EventSeverity,
    EventType,
    build_events,
    grade_result,
)
from interlock_ranger.briefing.exports import to_csv, write_exports
from interlock_ranger.briefing.page import render_page
from interlock_ranger.briefing.terminal import print_briefing
from interlock_ranger.fires import Fires
from interlock_ranger.view.result_tables import LAYOUTS
from ranger_parts import TODAY, Composed, policy_text

NOW = "2026-11-15T08:00:00+00:00"


FIRES = ("cedar-creek-2022", "bootleg-2021")


@pytest.fixture(params=FIRES)
def briefing(request: pytest.FixtureRequest, composed: dict[str, Composed]) -> Briefing:
    return composed[request.param].briefing


@pytest.mark.parametrize("fire", FIRES)
def test_all_four_specialists_succeeded_and_every_figure_is_traced(fire: str, composed: dict[str, Composed]) -> None:
    briefing = composed[fire].briefing
    result = briefing.turn
    assert result.outcome is TurnOutcome.PASSED
    assert set(result.tools) == set(SPECIALISTS)
    assert len(result.claims) > 60
    assert all(claim.how != "unsupported" for claim in result.claims)
    assert [item.tool for item in briefing.results].count("decide_pathway") == 2
    assert {item.record for item in briefing.results} <= composed[fire].calls
    for title in ("Burn", "Trails", "Timber", "Compliance"):
        assert title in result.answer


async def test_a_specialist_that_fails_keeps_the_briefing_back(app: App, fires: Fires) -> None:
    from interlock.policy import parse_policy

    text = policy_text(app).replace('"estimate_volume", ', "")
    async with Runtime.open("memory://", policy=parse_policy(text, "policy.toml"), tools=app.tools) as runtime:
        found = await compose_briefing(runtime, app, fires.by_id["bootleg-2021"], TODAY)
    assert not found.turn.verified
    assert any("cruising_assistant" in failure for failure in found.failures)


async def test_nothing_that_computes_for_seconds_runs_on_the_loop_of_the_calls(
    app: App, fires: Fires, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The specialists are learned (or what was learned is read) before the first call, and beside the event loop."""
    learned: list[tuple[str, int]] = []
    own = Agent.classifier

    def learn(agent: Agent) -> Any:
        learned.append((agent.name, threading.get_ident()))
        return own(agent)

    monkeypatch.setattr(Agent, "classifier", learn)
    found = await compose_briefing(runtime, app, fires.by_id["bootleg-2021"], TODAY)
    assert found.turn.verified
    assert sorted(name for name, _ in learned) == sorted(SPECIALISTS)  # each once
    assert threading.get_ident() not in [thread for _, thread in learned]


async def test_the_same_briefing_twice(app: App, fires: Fires, runtime: Runtime) -> None:
    first = await compose_briefing(runtime, app, fires.by_id["bootleg-2021"], TODAY, "summer")
    second = await compose_briefing(runtime, app, fires.by_id["bootleg-2021"], TODAY, "summer")
    assert first.turn.answer == second.turn.answer
    assert first.turn.turn != second.turn.turn


def test_the_page_is_whole_labelled_and_links_figures_to_records_and_rules(briefing: Briefing) -> None:
    text = render_page(briefing)
    assert "SYNTHETIC DATA" in text
    assert "DRAFT for the responsible official" in text
    assert text.count("<svg") >= 4
    assert "@page" in text
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", text)  # nothing is fetched from anywhere
    for item in briefing.results:
        assert f'id="record-{item.record}"' in text
        for source in item.value["evidence"]["data_sources"]:
            assert source["sha256"] in text
    for trail in briefing.fire.trails.values():
        assert trail.name in text
    assert text.count("<table>") == text.count("</table>")


def test_the_terminal_shows_it_all(briefing: Briefing) -> None:
    screen = io.StringIO()
    print_briefing(Console(file=screen, width=100), briefing)
    text = screen.getvalue()
    for word in (
        "SYNTHETIC DATA",
        "Burn",
        "Trails",
        "Timber",
        "Compliance",
        "map of",
        "sources:",
        "turn: interlock turns show",
    ):
        assert word in text
    assert "burn.key-benson" in text


def test_events_follow_the_schema_and_are_filled_from_records(briefing: Briefing) -> None:
    made = build_events(briefing, NOW)
    again = build_events(briefing, NOW)
    assert [event.event_id for event in made] == [event.event_id for event in again]
    head, *rest = made
    assert head.source_agent == "coordinator"
    assert {event.source_agent for event in rest} == set(SPECIALISTS)
    for event, item in zip(rest, briefing.results, strict=True):
        assert AgentBriefingEvent.model_validate_json(event.model_dump_json()).event_id == event.event_id
        assert event.schema_version == "1.1.0"
        assert event.parent_event_id == head.event_id
        assert event.correlation_id == briefing.turn.turn
        proof = event.proof_layer
        assert proof.confidence == item.confidence
        assert proof.citations[0].id == str(item.record)
        assert len(proof.reasoning_chain) == len(item.value["evidence"]["reasoning"])
        assert proof.confidence_ledger is not None
        assert {entry.source for entry in proof.confidence_ledger.inputs} == {
            source["file"] for source in item.value["evidence"]["data_sources"]
        }
    assert any(event.content.suggested_actions for event in rest)


def test_type_and_severity_come_from_values_and_not_from_words(briefing: Briefing) -> None:
    by_tool = {item.tool: grade_result(item) for item in briefing.results}
    assert by_tool["evaluate_closure"] == (EventType.ALERT, EventSeverity.WARNING)
    assert by_tool["validate_boundary"] == (EventType.STATUS_UPDATE, EventSeverity.INFO)
    assert by_tool["classify_mtbs"] == (EventType.INSIGHT, EventSeverity.INFO)
    assert by_tool["assess_severity"][0] is EventType.ALERT


def test_exports_load_and_say_what_they_are(briefing: Briefing, tmp_path: Path) -> None:
    files = {file.name: file for file in write_exports(briefing, tmp_path, NOW)}
    for name in ("sectors.geojson", "trails.geojson"):
        read = json.loads(files[name].read_text())
        assert read["type"] == "FeatureCollection"
        assert read["synthetic"] is True
        assert all(feature["properties"]["synthetic"] is True for feature in read["features"])
        shapes = [shape(feature["geometry"]) for feature in read["features"]]
        assert all(shapely.is_valid(item) for item in shapes)
    damage = list(csv.DictReader(files["damage.csv"].read_text().splitlines()))
    points = sum(len(trail.damage_points) for trail in briefing.fire.trails.values())
    assert len(damage) == points
    assert {row["synthetic"] for row in damage} == {"yes"}
    volume = list(csv.DictReader(files["volume.csv"].read_text().splitlines()))
    assert len(volume) == len(briefing.fire.stands)
    assert all(AgentBriefingEvent.model_validate(event) for event in json.loads(files["events.json"].read_text()))


def test_a_cell_cannot_become_a_formula() -> None:
    assert to_csv([{"a": "=cmd()", "b": -5, "c": "@x", "d": ""}]) == "a,b,c,d\n'=cmd(),-5,'@x,\n"
    assert to_csv([]) == ""


@pytest.mark.parametrize("width", [40, 80])
def test_a_narrow_terminal_breaks_no_word(briefing: Briefing, width: int) -> None:
    screen = io.StringIO()
    print_briefing(Console(file=screen, width=width), briefing)
    lines = screen.getvalue().splitlines()
    shown = {word for line in lines for word in line.split()}
    if width == 80:
        assert max(map(len, lines)) <= width
    for result in briefing.results:
        layout = LAYOUTS[result.tool]
        for row in result.value[layout.key]:
            assert row.get("rule", "burn.key-benson") in shown
            assert {word for word in str(row.get("name", "")).split() if len(word) <= 12} <= shown


def test_prose_folds_between_words_on_a_terminal_and_stays_whole_in_a_pipe(briefing: Briefing) -> None:
    pipe, terminal = io.StringIO(), io.StringIO()
    print_briefing(Console(file=pipe, width=80, soft_wrap=True), briefing)
    print_briefing(Console(file=terminal, width=80, soft_wrap=True, force_terminal=True, color_system=None), briefing)
    whole = " ".join(terminal.getvalue().split())
    for summary in (result.summary for result in briefing.results if len(result.summary) > 80):
        assert summary in pipe.getvalue().splitlines()
        assert summary not in terminal.getvalue().splitlines()
        assert summary in whole
