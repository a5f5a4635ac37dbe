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

from catalog_parts import Says, contents, fill, ready, run_all, some_families, working
from interlock.state import TicketState
from interlock_catalog.agreement import agreement
from interlock_catalog.runner.record import Order
from interlock_catalog.runner.work import Work
from interlock_catalog.settings import Loaded
from interlock_catalog.trust import CALIBRATION, Seen, Trust, decided, measured, read, rules_of

counts = st.integers(min_value=0, max_value=10_000)
PRESS = "bench-press-bench-press-barbell"


@given(counts, counts)
def test_each_one_that_was_right_makes_surer_and_each_wrong_one_less_sure(right: int, wrong: int) -> None:
    seen = Seen(right, wrong)
    assert 0 <= seen.sure <= 1
    assert (seen + Seen(1, 0)).sure >= seen.sure >= (seen + Seen(0, 1)).sure
    assert Seen(right, right).sure == 0.5


def test_what_nobody_has_seen_is_worth_a_coins_toss() -> None:
    trust = Trust({"checks:good": Seen(99, 0), "checks:bad": Seen(1, 9)})
    assert trust.of("checks:new") == 0.5
    assert trust.of("checks:good", "checks:bad") == trust.of("checks:bad") < 0.2
    assert Trust(unseen=Seen(1000, 0)).of("checks:new") > 0.99


def test_where_a_model_had_a_hand_in_it_its_record_answers() -> None:
    assert rules_of(["checks:missing", "content:missing@m", "record:fields"]) == ["content:missing@m"]
    assert rules_of(["checks:duplicate", "checks:orphan"]) == ["checks:duplicate", "checks:orphan"]
    assert rules_of(["left:missing", "left:contract"]) == []


def test_a_record_is_written_and_read_back(tmp_path: Path) -> None:
    from calibrate import written

    trust = Trust({'odd:"name"@a b': Seen(1, 2), "checks:x": Seen(3, 4)})
    (tmp_path / "t.toml").write_text(written(trust, "two lines\nof words"))
    assert read(tmp_path / "t.toml") == trust


async def test_the_shipped_record_is_what_planted_faults_say(tmp_path: Path) -> None:
    """One of its plantings is measured again: nothing in it may be missing from the file, or better there."""
    from calibrate import SEEDS, counted

    logging.disable(logging.CRITICAL)
    try:
        again = await counted(None, SEEDS[0])
    finally:
        logging.disable(logging.NOTSET)
    shipped = {rule: seen for rule, seen in read(CALIBRATION).rules.items() if "@" not in rule}
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
    docs = some_families("bench-press")
    for key in [key for key in docs if key.startswith("exercise:")][:2]:
        docs[key]["status"] = "draft"
    return docs


async def approvals(work: Work, run: str) -> list[Any]:
    entries = work.shop.runtime.operations.journal(turn=f"{run}/bench-press")
    return [entry async for entry in entries if entry.op_type == "approve_exercise"]


@pytest.mark.parametrize("yes", [True, False])
async def test_people_make_a_models_record(tmp_path: Path, yes: bool) -> None:
    loaded = ready(tmp_path / "home")
    await fill(loaded, doubtful())
    rule = "verified:judged@says"
    async with working(loaded, Says(), Trust({rule: Seen(7, 0)})) as work:
        _run, results = await run_all(work, Order(run="r1", mode="apply", families=("bench-press",)))
        assert results["bench-press"].counts == {"parked": 2}
        asked = await approvals(work, "r1")
        assert {entry.confidence for entry in asked} == {Seen(7, 0).sure}
        for ticket in await work.shop.runtime.store.tickets(TicketState.OPEN):
            await work.shop.runtime.operations.decide(ticket.id, approve=yes, by="os:reviewer", reason="looked at it")
        learned = await decided(work.shop.runtime)
        assert learned == {rule: Seen(2, 0) if yes else Seen(0, 2)}
        run, _results = await run_all(work, Order(run="r2", mode="apply", families=("bench-press",)))
        assert run.trust is not None
        assert run.trust.rules[rule] == Seen(7, 0) + learned[rule]
        again = await approvals(work, "r2")
    wanted = {("done", run.trust.of(rule))} if yes else set()  # what a person has denied is not asked about again
    assert {(entry.status, entry.confidence) for entry in again} == wanted


async def test_withdrawn_taken_back_and_asked_twice_are_counted_as_what_they_are(tmp_path: Path) -> None:
    loaded = ready(tmp_path / "home")
    await fill(loaded, doubtful())
    async with working(loaded, Says()) as work:
        runtime = work.shop.runtime
        await run_all(work, Order(run="r1", mode="apply", families=("bench-press",)))
        first, second = await runtime.store.tickets(TicketState.OPEN)
        await runtime.operations.decide(first.id, approve=False, by=first.asked_by, reason="withdrawn")
        assert await decided(runtime) == {}
        await runtime.operations.decide(second.id, approve=True, by="os:reviewer")
        assert (await runtime.operations.resume(second.id)).ok
        assert await decided(runtime) == {"verified:judged@says": Seen(1, 0)}
        await runtime.operations.undo(run="r1")
        assert await decided(runtime) == {}


async def test_a_model_cannot_write_its_own_record(tmp_path: Path) -> None:
    """Evidence that a model names is its own words: a tag with a judge's name is refused with the change."""
    docs = some_families("bench-press")
    docs[f"exercise:{PRESS}"]["description"] = ""
    loaded = ready(tmp_path / "home")
    await fill(loaded, docs)
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
        async with working(loaded, model) as work:
            run, results = await run_all(work, Order(run=f"r{made}", mode="dry_run", families=("bench-press",)))
            entries = [e async for e in work.shop.runtime.operations.journal(turn=f"{run.id}/bench-press")]
        edits = [entry for entry in entries if entry.op_type == "upsert_exercise"]
        assert len(edits) == made
        assert all("verified:judged@says" not in entry.evidence for entry in entries)
        assert bool(results["bench-press"].refused) is not bool(made)
    assert edits[0].confidence == 0.5  # and what it says of itself does not make it surer than its record
    assert edits[0].evidence[:2] == ("checks:missing", "content:missing@says")


async def test_a_record_for_texts_is_none_for_merges(tmp_path: Path) -> None:
    loaded = ready(tmp_path / "home")
    await fill(loaded, some_families("bench-press"))
    other = "bench-press-wide-grip-bench-press-barbell"
    report = {"exercise_id": other, "field": "merged_into", "issue_type": "inconsistent", "severity": "high",
              "evidence": "it looks the same", "confidence": 1.0, "duplicate_of": PRESS}  # fmt: skip
    model = Says(report_issues={"family_slug": "bench-press", "issues": [report]})
    async with working(loaded, model, Trust({"analyst:confirmed@says": Seen(500, 0)})) as work:
        run, _results = await run_all(work, Order(run="r1", mode="apply", families=("bench-press",)))
        (entry,) = [e async for e in work.shop.runtime.operations.journal(turn="r1/bench-press")]
    assert (entry.op_type, entry.status, entry.confidence) == ("merge_exercises", "parked", 0.5)
    assert run.counts == {"parked": 1}


async def test_one_decision_counts_once(tmp_path: Path) -> None:
    """Night after night the same shadow plan of two documents, then one edit: one agreement."""
    docs = some_families("bench-press")
    twin = {**docs[f"exercise:{PRESS}"], "id": "bench-press-twin", "name": "Barbell Bench Press"}
    docs["exercise:bench-press-twin"] = {**twin, "name_slug": "barbell-bench-press", "execution_notes": ["Press."]}
    loaded = ready(tmp_path / "home")
    await fill(loaded, docs)
    async with working(loaded) as work:
        for night in range(3):
            await run_all(work, Order(run=f"s{night}", mode="shadow", families=("bench-press",)))
        entries = [e async for e in work.shop.runtime.operations.journal(turn="s0/bench-press")]
        (merge,) = [entry for entry in entries if entry.op_type == "merge_exercises"]
        assert len(merge.after) >= 2
        first = next(key for key in merge.after if key.startswith("exercise:"))
        await fill(loaded, {first: merge.after[first]})
        assert await decided(work.shop.runtime) == {}  # half of it is not it
        await fill(loaded, merge.after)
        assert await decided(work.shop.runtime) == {"checks:duplicate": Seen(1, 0)}
        touched = {
            **merge.after[first],
            "description": "Somebody has written about something else, here, at some length.",
        }
        await fill(loaded, {first: touched})
        assert await decided(work.shop.runtime) == {"checks:duplicate": Seen(1, 0)}  # what was planned is still there


async def test_without_a_run_record_a_family_fails_and_nothing_else(tmp_path: Path) -> None:
    loaded = ready(tmp_path / "home")
    await fill(loaded, some_families("bench-press"))
    async with working(loaded) as work:
        result = await work.family(Order(run="never-begun"), "bench-press")
    assert (result.state, "no run 'never-begun'" in result.why) == ("failed", True)


@asynccontextmanager
async def shadowed(loaded: Loaded) -> AsyncIterator[Work]:
    """A catalog with one name misspelt, over which a shadow run has gone."""
    docs = some_families("bench-press")
    docs[f"exercise:{PRESS}"]["name"] = "bench press (Barbell)"
    await fill(loaded, docs)
    async with working(loaded) as work:
        await run_all(work, Order(run="s1", mode="shadow", families=("bench-press",)))
        yield work


async def test_what_the_autopilot_did_itself_is_no_agreement(tmp_path: Path) -> None:
    loaded = ready(tmp_path / "home")
    async with shadowed(loaded) as work:
        run, _results = await run_all(work, Order(run="r1", mode="apply", families=("bench-press",)))
        assert run.counts == {"ok": 1}
        assert await decided(work.shop.runtime) == {}
    found = await agreement(loaded, "s1")
    assert set(found["families"]["bench-press"]) == {"own"}
    assert found["ready"] == []


async def test_going_along_with_a_shadow_plan_is_agreement_and_doing_otherwise_is_not(tmp_path: Path) -> None:
    loaded = ready(tmp_path / "home")
    async with shadowed(loaded) as work:
        (planned,) = [entry async for entry in work.shop.runtime.operations.journal(turn="s1/bench-press")]
        (rule,) = planned.evidence
        ((key, after),) = planned.after.items()
        assert await decided(work.shop.runtime) == {}
        await fill(loaded, {key: after})
        assert await decided(work.shop.runtime) == {rule: Seen(1, 0)}
        await fill(loaded, {key: {**after, "name": "Another Press (Barbell)"}})
        assert await decided(work.shop.runtime) == {rule: Seen(0, 1)}
    before = measured().rules[rule]
    found = (await agreement(loaded, None))["confidence"][rule]
    assert found["planted"] == {"right": before.right, "wrong": before.wrong}
    assert found["people"] == {"right": 0, "wrong": 1}
    assert found["confidence"] == (before + Seen(0, 1)).sure


async def test_a_run_keeps_to_the_record_that_it_began_with(tmp_path: Path) -> None:
    """Another process that goes on with a run is as sure as the one that began it."""
    loaded = ready(tmp_path / "home")
    await fill(loaded, doubtful())
    order = Order(run="r1", mode="apply", families=("bench-press",))
    async with working(loaded, None, Trust({"verified:checks": Seen(30, 0)})) as work:
        await work.begin(order)
    async with working(loaded) as work:
        result = await work.family(order, "bench-press")
    assert result.counts == {"ok": 2}
    assert not [doc for doc in (await contents(loaded)).values() if doc.get("status") == "draft"]


def test_no_table_of_trust_names_a_rule_that_nothing_can_have() -> None:
    sources = {"checks", "normaliser", "searches", "verified", "analyst", "records", "scout"}
    roles = {"content", "biomechanics", "anatomy", "programming"}
    assert {rule.partition(":")[0] for rule in measured().rules} <= sources | roles
