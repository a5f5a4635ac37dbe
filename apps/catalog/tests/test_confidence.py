"""Confidence is earned: by what was measured, by what people decide, and never by what the autopilot did itself."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_testing import PRESS, Says, clean_families, fill_catalog, open_steps, prepare_home, read_catalog, run_all
from interlock.state import TicketState
from interlock_catalog.app import POLICY
from interlock_catalog.confidence import (
    CALIBRATION,
    Calibration,
    Tally,
    read_calibration,
    shipped_calibration,
    tally_decisions,
)
from interlock_catalog.evidence import LEFT, Evidence, find_accountable
from interlock_catalog.runner.records import RunRequest
from interlock_catalog.runner.steps import RunSteps
from interlock_catalog.runner.work_items import WorkItem
from interlock_catalog.settings import Loaded
from interlock_catalog.shadow_report import build_shadow_report

counts = st.integers(min_value=0, max_value=10_000)


@given(counts, counts)
def test_each_one_that_was_right_makes_surer_and_each_wrong_one_less_sure(right: int, wrong: int) -> None:
    seen = Tally(right, wrong)
    assert 0 <= seen.confidence <= 1
    assert (seen + Tally(1, 0)).confidence >= seen.confidence >= (seen + Tally(0, 1)).confidence
    assert Tally(right, right).confidence == 0.5


def test_a_rule_that_nobody_has_seen_has_a_confidence_of_one_half() -> None:
    rule = Evidence.parse
    bad = rule("checks:bad")
    calibration = Calibration({"checks:good": Tally(99, 0), bad.text: Tally(1, 9)})
    assert calibration.confidence_of(rule("checks:new")) == 0.5
    assert calibration.confidence_of(rule("checks:good"), bad) == calibration.confidence_of(bad) < 0.2
    assert Calibration(unseen=Tally(1000, 0)).confidence_of(rule("checks:new")) > 0.99


def test_where_a_model_had_a_hand_in_it_its_record_answers() -> None:
    checks, model = Evidence("checks", "missing"), Evidence("content", "missing", "m")
    assert find_accountable([checks, model, Evidence("record", "fields")]) == [model]
    assert find_accountable([checks, Evidence("checks", "orphan")]) == [checks, Evidence("checks", "orphan")]
    assert find_accountable([Evidence(LEFT, "missing"), Evidence(LEFT, "contract")]) == []


def test_a_record_is_written_and_read_back(tmp_path: Path) -> None:
    from calibrate import format_calibration

    calibration = Calibration({'odd:"name"@a b': Tally(1, 2), "checks:x": Tally(3, 4)})
    (tmp_path / "t.toml").write_text(format_calibration(calibration, "two lines\nof words"))
    assert read_calibration(tmp_path / "t.toml") == calibration


async def test_the_shipped_record_is_what_planted_faults_say(tmp_path: Path) -> None:
    """One of its plantings is measured again: nothing in it may be missing from the file, or better there."""
    from calibrate import SEEDS, tally_rules

    logging.disable(logging.CRITICAL)
    try:
        again = await tally_rules(None, SEEDS[0])
    finally:
        logging.disable(logging.NOTSET)
    shipped = {rule: seen for rule, seen in read_calibration(CALIBRATION).rules.items() if "@" not in rule}
    assert set(again) == set(shipped)
    for rule, seen in again.items():
        assert seen.right <= shipped[rule].right, rule
        assert seen.wrong <= shipped[rule].wrong, rule
        assert shipped[rule].right + shipped[rule].wrong <= 4 * (seen.right + seen.wrong), rule
    assert again[
        "verified:checks"
    ].wrong  # checks alone release drafts that a judge would not: the policy asks a person


def doubtful() -> dict[str, Any]:
    """Two drafts with nothing wrong."""
    docs = clean_families("bench-press")
    for key in [key for key in docs if key.startswith("exercise:")][:2]:
        docs[key]["status"] = "draft"
    return docs


async def approvals(steps: RunSteps, run: str) -> list[Any]:
    entries = steps.app.runtime.operations.journal(turn=f"{run}/bench-press")
    return [entry async for entry in entries if entry.op_type == "approve_exercise"]


@pytest.mark.parametrize("yes", [True, False])
async def test_people_make_a_models_record(tmp_path: Path, yes: bool) -> None:
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, doubtful())
    rule = "verified:judged@says"
    async with open_steps(loaded, Says(), Calibration({rule: Tally(7, 0)})) as steps:
        _run, results = await run_all(steps, RunRequest(run="r1", mode="apply", families=("bench-press",)))
        assert results["bench-press"].counts == {"parked": 2}
        asked = await approvals(steps, "r1")
        assert {entry.confidence for entry in asked} == {Tally(7, 0).confidence}
        for ticket in await steps.app.runtime.store.tickets(TicketState.OPEN):
            await steps.app.runtime.operations.decide(ticket.id, approve=yes, reason="looked at it")
        learned = await tally_decisions(steps.app.runtime)
        assert learned == {rule: Tally(2, 0) if yes else Tally(0, 2)}
        run, _results = await run_all(steps, RunRequest(run="r2", mode="apply", families=("bench-press",)))
        assert run.calibration is not None
        assert run.calibration.rules[rule] == Tally(7, 0) + learned[rule]
        again = await approvals(steps, "r2")
    wanted = (
        {("done", run.calibration.confidence_of(Evidence.parse(rule)))} if yes else set()
    )  # what a person has denied is not asked about again
    assert {(entry.status, entry.confidence) for entry in again} == wanted


async def test_withdrawn_taken_back_and_asked_twice_are_counted_as_what_they_are(tmp_path: Path) -> None:
    # Here the autopilot may say itself that it does not want something any more.
    policy = POLICY.read_text().replace("[review]\n", '[review]\nvouched = ["service"]\n')
    loaded = prepare_home(tmp_path / "home", policy=policy)
    await fill_catalog(loaded, doubtful())
    async with open_steps(loaded, Says()) as steps:
        runtime = steps.app.runtime
        await run_all(steps, RunRequest(run="r1", mode="apply", families=("bench-press",)))
        first, second = await runtime.store.tickets(TicketState.OPEN)
        await runtime.operations.decide(first.id, approve=False, by=first.asked_by, reason="withdrawn")
        assert await tally_decisions(runtime) == {}
        await runtime.operations.decide(second.id, approve=True)
        assert (await runtime.operations.resume(second.id)).ok
        assert await tally_decisions(runtime) == {"verified:judged@says": Tally(1, 0)}
        await runtime.operations.undo(run="r1")  # the one change that it made: the last word about it
        assert await tally_decisions(runtime) == {"verified:judged@says": Tally(0, 1)}


async def test_a_change_that_a_person_takes_back_speaks_against_its_rule_and_a_whole_run_does_not(
    tmp_path: Path,
) -> None:
    docs = clean_families("bench-press")
    exercises = [key for key in docs if key.startswith("exercise:")][:3]
    for key in exercises:
        docs[key]["category"] = "Compound"
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        operations = steps.app.runtime.operations
        await run_all(steps, RunRequest(run="r1", mode="apply", families=("bench-press",)))
        made = [entry async for entry in operations.journal(run="r1")]
        assert [entry.status for entry in made] == ["done"] * 3
        (rule,) = {text for entry in made for text in entry.evidence}
        assert await tally_decisions(steps.app.runtime) == {}
        await operations.undo(record=made[0].record)
        assert await tally_decisions(steps.app.runtime) == {rule: Tally(0, 1)}
        await operations.undo(run="r1")  # the other two: nobody says which of them was wrong
        assert await tally_decisions(steps.app.runtime) == {rule: Tally(0, 1)}
        again, _results = await run_all(steps, RunRequest(run="r2", mode="dry_run", families=("bench-press",)))
    assert again.calibration is not None
    assert again.calibration.rules[rule].wrong == shipped_calibration().rules.get(rule, Tally()).wrong + 1


async def test_what_is_made_again_after_an_undo_is_not_held_against_its_rule(tmp_path: Path) -> None:
    docs = clean_families("bench-press")
    docs[f"exercise:{PRESS}"]["category"] = "Compound"
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        operations = steps.app.runtime.operations
        await run_all(steps, RunRequest(run="r1", mode="apply", families=("bench-press",)))
        await operations.undo(run="r1")
        assert sum(tally.wrong for tally in (await tally_decisions(steps.app.runtime)).values()) == 1
        await operations.replay("r1")
        assert await tally_decisions(steps.app.runtime) == {}


async def test_a_model_cannot_write_its_own_record(tmp_path: Path) -> None:
    """Evidence that a model names is its own words: a tag with a judge's name is refused with the change."""
    docs = clean_families("bench-press")
    docs[f"exercise:{PRESS}"]["description"] = ""
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    text = (
        "The Bench Press with a barbell trains the chest, with the triceps and the front of the shoulders in support."
    )
    change = {
        "exercise_id": PRESS,
        "field": "description",
        "after": text,
        "justification": "it was empty",
        "confidence": 1.0,
    }
    for evidence, made in (("verified:judged@says", 0), ("record:fields", 1)):
        model = Says(propose_changes={"family_slug": "bench-press", "changes": [{**change, "evidence": evidence}]})
        async with open_steps(loaded, model) as steps:
            run, results = await run_all(steps, RunRequest(run=f"r{made}", mode="dry_run", families=("bench-press",)))
            entries = [e async for e in steps.app.runtime.operations.journal(turn=f"{run.id}/bench-press")]
        edits = [entry for entry in entries if entry.op_type == "upsert_exercise"]
        assert len(edits) == made
        assert all("verified:judged@says" not in entry.evidence for entry in entries)
        assert bool(results["bench-press"].rejected) is not bool(made)
    assert edits[0].confidence == 0.5  # and what it says of itself does not make it surer than its record
    assert edits[0].evidence[:2] == ("checks:missing", "content:missing@says")


async def test_a_record_for_texts_is_none_for_merges(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, clean_families("bench-press"))
    other = "bench-press-wide-grip-bench-press-barbell"
    report = {"exercise_id": other, "field": "merged_into", "issue_type": "inconsistent", "severity": "high",
              "evidence": "it looks the same", "confidence": 1.0, "duplicate_of": PRESS}  # fmt: skip
    model = Says(report_issues={"family_slug": "bench-press", "issues": [report]})
    async with open_steps(loaded, model, Calibration({"analyst:confirmed@says": Tally(500, 0)})) as steps:
        run, _results = await run_all(steps, RunRequest(run="r1", mode="apply", families=("bench-press",)))
        (entry,) = [e async for e in steps.app.runtime.operations.journal(turn="r1/bench-press")]
    assert (entry.op_type, entry.status, entry.confidence) == ("merge_exercises", "parked", 0.5)
    assert run.counts == {"parked": 1}


async def test_one_decision_counts_once(tmp_path: Path) -> None:
    """Night after night the same shadow plan of two documents, then one edit: one agreement."""
    docs = clean_families("bench-press")
    twin = {**docs[f"exercise:{PRESS}"], "id": "bench-press-twin", "name": "Barbell Bench Press"}
    docs["exercise:bench-press-twin"] = {**twin, "name_slug": "barbell-bench-press", "execution_notes": ["Press."]}
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        for night in range(3):
            await run_all(steps, RunRequest(run=f"s{night}", mode="shadow", families=("bench-press",)))
        entries = [e async for e in steps.app.runtime.operations.journal(turn="s0/bench-press")]
        (merge,) = [entry for entry in entries if entry.op_type == "merge_exercises"]
        assert len(merge.after) >= 2
        first = next(key for key in merge.after if key.startswith("exercise:"))
        await fill_catalog(loaded, {first: merge.after[first]})
        assert await tally_decisions(steps.app.runtime) == {}  # half of it is not it
        await fill_catalog(loaded, merge.after)
        assert await tally_decisions(steps.app.runtime) == {"checks:duplicate": Tally(1, 0)}
        touched = {
            **merge.after[first],
            "description": "Somebody has written about something else, here, at some length.",
        }
        await fill_catalog(loaded, {first: touched})
        assert await tally_decisions(steps.app.runtime) == {
            "checks:duplicate": Tally(1, 0)
        }  # what was planned is still there


async def test_without_a_run_record_a_family_fails_and_nothing_else(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, clean_families("bench-press"))
    async with open_steps(loaded) as steps:
        result = await steps.work_on(RunRequest(run="never-begun"), WorkItem.of_family("bench-press"))
    assert (result.state, "no run 'never-begun'" in result.reason) == ("failed", True)


@asynccontextmanager
async def shadowed(loaded: Loaded) -> AsyncIterator[RunSteps]:
    """A catalog with one name misspelt, over which a shadow run has gone."""
    docs = clean_families("bench-press")
    docs[f"exercise:{PRESS}"]["name"] = "bench press (Barbell)"
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        await run_all(steps, RunRequest(run="s1", mode="shadow", families=("bench-press",)))
        yield steps


async def test_what_the_autopilot_did_itself_is_no_agreement(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home")
    async with shadowed(loaded) as steps:
        run, _results = await run_all(steps, RunRequest(run="r1", mode="apply", families=("bench-press",)))
        assert run.counts == {"ok": 1}
        assert await tally_decisions(steps.app.runtime) == {}
    found = await build_shadow_report(loaded, "s1")
    assert set(found["families"]["bench-press"]) == {"own"}
    assert found["ready"] == []


async def test_going_along_with_a_shadow_plan_is_agreement_and_doing_otherwise_is_not(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home")
    async with shadowed(loaded) as steps:
        (planned,) = [entry async for entry in steps.app.runtime.operations.journal(turn="s1/bench-press")]
        (rule,) = planned.evidence
        ((key, after),) = planned.after.items()
        assert await tally_decisions(steps.app.runtime) == {}
        await fill_catalog(loaded, {key: after})
        assert await tally_decisions(steps.app.runtime) == {rule: Tally(1, 0)}
        await fill_catalog(loaded, {key: {**after, "name": "Another Press (Barbell)"}})
        assert await tally_decisions(steps.app.runtime) == {rule: Tally(0, 1)}
    before = shipped_calibration().rules[rule]
    found = (await build_shadow_report(loaded, None))["confidence"][rule]
    assert found["planted"] == {"right": before.right, "wrong": before.wrong}
    assert found["people"] == {"right": 0, "wrong": 1}
    assert found["confidence"] == (before + Tally(0, 1)).confidence


async def test_a_run_keeps_to_the_record_that_it_began_with(tmp_path: Path) -> None:
    """Another process that goes on with a run is as sure as the one that began it."""
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, doubtful())
    request = RunRequest(run="r1", mode="apply", families=("bench-press",))
    async with open_steps(loaded, None, Calibration({"verified:checks": Tally(30, 0)})) as steps:
        await steps.begin(request)
    async with open_steps(loaded) as steps:
        result = await steps.work_on(request, WorkItem.of_family("bench-press"))
    assert result.counts == {"ok": 2}
    assert not [doc for doc in (await read_catalog(loaded)).values() if doc.get("status") == "draft"]


def test_no_calibration_names_a_rule_that_nothing_can_have() -> None:
    sources = {"checks", "normaliser", "searches", "verified", "analyst", "records", "scout"}
    roles = {"content", "biomechanics", "anatomy", "programming"}
    assert {rule.partition(":")[0] for rule in shipped_calibration().rules} <= sources | roles
