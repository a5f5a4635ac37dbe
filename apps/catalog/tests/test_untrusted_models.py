"""Models that cannot be trusted, or only choose: what they cannot do, and what is made of what they say."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from catalog_testing import (
    PATIENCE_S,
    Says,
    clean_families,
    fill_catalog,
    open_steps,
    prepare_home,
    read_catalog,
    run_all,
)
from interlock.models import ModelFailed, Proposal, Reply
from interlock_catalog.confidence import Tally, shipped_calibration
from interlock_catalog.roles.coercion import coerce_entries
from interlock_catalog.roles.reports import ProposedChange, ReportedIssue
from interlock_catalog.runner.records import RunRequest
from test_pipeline import PRESS, build_issue, messy, planned


def _change(identity: str, field: str, after: Any, **more: Any) -> dict[str, Any]:
    return {"exercise_id": identity, "field": field, "after": after, "justification": "because I say so",
            "evidence": "model:feeling", "confidence": 1.0, **more}  # fmt: skip


ROW = "t-bar-row-t-bar-row-landmine"
BAD = [
    pytest.param(
        {"propose_changes": {"family_slug": "x", "changes": [_change(PRESS, "muscles.primary", ["calves"])]}},
        id="foreign field",
    ),
    pytest.param(
        {"propose_changes": {"family_slug": "x", "changes": [_change(ROW, "description", "x" * 60)]}},
        id="foreign family",
    ),
    pytest.param(
        {
            "propose_changes": {
                "family_slug": "x",
                "changes": [_change(PRESS, "id", "y"), _change(PRESS, "status", "merged")],
            }
        },
        id="closed fields",
    ),
    pytest.param(
        {
            "propose_changes": {
                "family_slug": "x",
                "changes": [_change(PRESS, "description", {"a": 1}), _change(PRESS, "description", "z" * 100_000)],
            }
        },
        id="odd values",
    ),
    pytest.param(
        {
            "propose_changes": {
                "family_slug": "x",
                "changes": [_change(PRESS, "description", "ok", confidence="high"), "nonsense", None],
            }
        },
        id="odd shapes",
    ),
    pytest.param({"propose_changes": {"changes": "many"}}, id="no list"),
    pytest.param({"propose_changes": ModelFailed("no connection")}, id="fails"),
    pytest.param({"report_issues": ModelFailed("no connection")}, id="analyst fails"),
    pytest.param(
        {"report_issues": {"family_slug": "x", "issues": [build_issue("nobody", "description")] * 500}}, id="floods"
    ),
    pytest.param(
        {"report_issues": {"family_slug": "x", "issues": [build_issue(PRESS, "merged_into", duplicate_of=ROW)]}},
        id="merge across families",
    ),
    pytest.param({"report_issues": [1, 2]}, id="no object"),
]


@pytest.mark.parametrize("reports", BAD)
async def test_a_bad_model_changes_nothing_that_it_must_not(tmp_path: Path, reports: dict[str, Any]) -> None:
    docs = clean_families("bench-press", "t-bar-row")
    docs["exercise:bench-press-bench-press-dumbbell"]["description"] = ""
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    given = {"report_issues": {"family_slug": "bench-press", "issues": [build_issue(PRESS, "description")]}, **reports}
    async with open_steps(loaded, Says(**given)) as steps:
        run, results = await run_all(
            steps, RunRequest(run="r1", mode="apply", families=("bench-press", "t-bar-row"), scout=False)
        )
    after = await read_catalog(loaded)
    changed = {key for key in docs if after.get(key) != docs[key]}
    assert changed == set(), changed
    assert set(after) == set(docs)
    assert results["t-bar-row"].state in ("clean", "seen")
    assert run.status in ("succeeded", "waiting", "partial", "failed", "degraded")


async def test_a_model_that_hangs_or_raises_hurts_its_family_only(tmp_path: Path) -> None:
    class Odd(Says):
        async def reply(self, request: Any) -> Any:
            if "t-bar-row" in request.messages[0].text:
                raise RuntimeError("an odd error")
            return await super().reply(request)

    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, clean_families("bench-press", "t-bar-row"))
    async with open_steps(loaded, Odd()) as steps:
        run, results = await asyncio.wait_for(run_all(steps, RunRequest(run="r1", mode="apply")), PATIENCE_S)
    assert results["bench-press"].state == "clean"
    assert results["t-bar-row"].state == "seen"
    reason = results["t-bar-row"].rejected[0].reason
    assert "raised RuntimeError; its traceback is in the log" in reason
    assert "odd error" not in reason  # its words may hold a key or an address
    assert run.status == "succeeded"


async def test_every_document_shape_can_be_looked_at(tmp_path: Path) -> None:
    docs = clean_families("bench-press")
    odd: list[dict[str, Any]] = [
        {"name": None}, {"name": 7}, {"equipment": None}, {"equipment": [None, 3]}, {"muscles": []}, {"muscles": {"primary": "x"}},
        {"metadata": None}, {"movement": 3}, {"description": None}, {"execution_notes": "text"}, {"status": "odd"},
        {"merged_into": "bench-press-odd-0", "status": "merged"}, {"name": "(((", "equipment": ["barbell"]}, {"name": "  "},
    ]  # fmt: skip
    for number, change in enumerate(odd):
        key = f"bench-press-odd-{number}"
        docs[f"exercise:{key}"] = {
            **docs[f"exercise:{PRESS}"],
            "id": key,
            "name": f"Odd {number} (Barbell)",
            "name_slug": f"odd-{number}-barbell",
            **change,
        }
    docs["exercise:bench-press-bare"] = {"id": "bench-press-bare", "family_slug": "bench-press"}
    docs["alias:loop"] = {"alias_slug": "loop", "exercise_id": "bench-press-odd-11"}
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        run, results = await run_all(steps, RunRequest(run="r1", mode="apply", families=("bench-press",)))
    assert results["bench-press"].reason == ""
    assert results["bench-press"].counts.get("failed", 0) == 0
    assert run.counts.get("unknown", 0) == 0


# A model that can only choose


def _options(request: Any) -> list[tuple[str, list[str]]]:
    return [(name, part["enum"]) for name, part in request.tools[0].parameters["properties"].items()]


class Chooses:
    """Takes the first of its words that is among the answers; or says nothing at all."""

    name, instructable = "chooses", False

    def __init__(self, *words: str) -> None:
        self.words = words
        self.asked: list[Any] = []

    async def reply(self, request: Any) -> Reply:
        self.asked.append(request)
        if not self.words:
            raise ModelFailed("asleep")
        picked = {name: next(w for w in self.words if w in options) for name, options in _options(request)}
        return Reply(proposals=(Proposal("choose", picked),))

    async def close(self) -> None: ...


async def test_a_model_that_can_only_choose_says_yes_or_no_to_what_the_records_offer(tmp_path: Path) -> None:
    docs = messy()
    docs["exercise:bench-press-incline-bench-press-barbell"]["execution_notes"] = []
    docs["exercise:bench-press-wide-grip-bench-press-barbell"]["muscles"] = {
        "primary": ["calves"], "secondary": [], "category": ["legs"], "contribution": {"calves": 1.0},
    }  # fmt: skip
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    for words, edited in ((("mistake", "use"), True), (("fine", "leave"), False), ((), False)):
        async with open_steps(loaded, Chooses(*words)) as steps:
            plan = await planned(steps)
        edits = {
            change["field"]: change["after"]
            for op in plan.ops
            if op.tool == "upsert_exercise"
            for change in op.arguments["changes"]
        }
        assert bool(edits) is edited
        if edited:
            assert edits["description"].startswith("The Bench Press is a bench press variation")
            assert edits["movement.type"] == "push"
            assert edits["muscles.primary"] == ["pectorals"]
            assert len(edits["execution_notes"]) >= 3
            assert {op.confidence for op in plan.ops if op.tool == "upsert_exercise"} == {0.5}  # it has no record yet
    roles = ("content:missing", "biomechanics:outlier", "anatomy:outlier", "analyst:outlier")
    proven = shipped_calibration().add({f"{rule}@chooses": Tally(20, 1) for rule in roles})
    async with open_steps(loaded, Chooses("mistake", "use"), proven) as steps:
        run, _results = await run_all(steps, RunRequest(run="r1", mode="apply", families=("bench-press",)))
    assert run.counts.get("ok", 0) >= 5
    assert set(run.counts) <= {"ok", "parked"}
    assert (await read_catalog(loaded))["exercise:bench-press-bench-press-dumbbell"]["description"]


def test_a_report_is_corrected_where_there_is_one_way_to() -> None:
    entry = {
        "exercise_id": "x",
        "field": "Tags",
        "issue_type": "Missing",
        "severity": "HIGH",
        "evidence": "none",
        "confidence": 90,
        "mood": "good",
    }
    coerced = coerce_entries([entry, {"exercise_id": "y"}, "text"], ReportedIssue)
    (kept,) = coerced.entries
    assert (kept["field"], kept["severity"], kept["issue_type"], kept["confidence"]) == (
        "stimulus_tags",
        "high",
        "missing",
        0.9,
    )
    assert len(coerced.corrections) >= 4
    assert len(coerced.rejected) == 2
    assert coerce_entries("no list", ReportedIssue).entries == ()
    change = {
        "exercise_id": "x",
        "field": "notes",
        "after": ["a"],
        "justification": "because",
        "evidence": "the record itself",
        "confidence": 1,
    }
    (fixed,) = coerce_entries([change], ProposedChange).entries
    assert (fixed["field"], fixed["evidence"], fixed["confidence"]) == (
        "execution_notes",
        "model:the-record-itself",
        1.0,
    )
