"""One family from snapshot to plan: what is found, who is asked, what a bad model cannot do, and that it is the same twice."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec

from catalog_testing import (
    Says,
    clean_families,
    fill_catalog,
    open_steps,
    prepare_home,
)
from interlock.models import RecordingModel, ReplayModel, Reply
from interlock_catalog.checks import run_checks
from interlock_catalog.checks.duplicates import find_near_duplicates
from interlock_catalog.confidence import Calibration, Tally
from interlock_catalog.family_reader import read_family
from interlock_catalog.pipeline.family import FamilyPlan, plan_family
from interlock_catalog.runner.steps import RunSteps
from interlock_catalog.seed import build_clean_catalog, build_demonstration
from interlock_catalog.seed.demonstration import FILE
from interlock_catalog.snapshot import Snapshot
from plant import COMMAND, encode_faults, plant_faults

GOLDEN = Path(__file__).with_name("golden")
PRESS = "bench-press-bench-press-barbell"
RULES = ("checks:duplicate", "normaliser:naming", "normaliser:slug", "normaliser:spelling", "normaliser:text")
MODELS = ("analyst:outlier", "biomechanics:outlier", "content:missing")
RECORD = Calibration(
    {
        **{rule: Tally(21, 0) for rule in RULES},
        **{f"{rule}@{model}": Tally(50, 1) for rule in MODELS for model in ("says", "competent")},
    }
)
"""The same record of the rules, whatever was measured last."""


def messy() -> dict[str, Any]:
    """A family with something of every sort."""
    docs = clean_families("bench-press", "t-bar-row")
    docs[f"exercise:{PRESS}"]["name"] = "bench press (Barbell)"
    docs["exercise:bench-press-bench-press-dumbbell"]["description"] = ""
    docs["exercise:bench-press-bench-press-smith-machine"]["movement"]["type"] = "hinge"
    twin = {**docs[f"exercise:{PRESS}"], "id": "bench-press-twin", "name": "Barbell Bench Press", "status": "draft"}
    docs["exercise:bench-press-twin"] = {**twin, "name_slug": "barbell-bench-press", "execution_notes": ["Press."]}
    docs["alias:olympic-bench"] = {"alias_slug": "olympic-bench", "exercise_id": "bench-press-twin"}
    return docs


async def planned(steps: RunSteps, slug: str = "bench-press") -> FamilyPlan:
    snapshot = await read_family(steps.app.backend, slug)
    return await plan_family(steps.app.role_context(f"r/{slug}", "r", RECORD), snapshot)


def plan_bytes(plan: FamilyPlan) -> bytes:
    return msgspec.json.format(msgspec.json.encode(plan, order="deterministic"), indent=1)


def test_a_clean_catalog_has_no_certainbuild_issue() -> None:
    docs = build_clean_catalog()
    families: dict[str, Snapshot] = {}
    for key, doc in docs.items():
        if key.startswith("exercise:"):
            slug = doc["family_slug"]
            families.setdefault(slug, Snapshot(slug, docs[f"family:{slug}"], {}, {})).exercises[doc["id"]] = doc
    found = [issue for family in families.values() for issue in run_checks(family)]
    assert [issue for issue in found if issue.certain] == []
    assert 10 <= len(found) <= 60  # variants that differ for a reason look odd, and are left to a judge


def test_there_are_enough_faults_of_enough_kinds() -> None:
    planted = plant_faults(build_clean_catalog())
    assert len(planted.faults) >= 200
    assert len({fault.kind for fault in planted.faults}) >= 20
    assert plant_faults(build_clean_catalog()) == planted
    assert plant_faults(build_clean_catalog(), seed=7).faults != planted.faults


def test_the_demonstration_is_what_its_command_writes() -> None:
    """The package ships faults as data; benchmarks/plant.py, which the file names, wrote it."""
    planted = plant_faults(build_clean_catalog())
    assert FILE.read_bytes() == encode_faults(planted)
    assert build_demonstration() == planted
    assert COMMAND.encode() in FILE.read_bytes().splitlines()[0]
    assert (Path(__file__).parents[3] / COMMAND.partition(" ")[2]).exists()


async def test_a_clean_family_costs_one_analyst_pass_and_no_specialist(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, clean_families("bench-press"))
    model = Says()
    async with open_steps(loaded, model) as steps:
        plan = await planned(steps)
    assert plan.ops == ()
    assert plan.model_calls == {"analyst": 1}
    assert [request.force for request in model.asked] == ["report_issues"]


async def test_low_issues_call_no_specialist(tmp_path: Path) -> None:
    docs = clean_families("bench-press")
    notes = docs[f"exercise:{PRESS}"]["execution_notes"]
    docs[f"exercise:{PRESS}"]["execution_notes"] = [*notes, notes[0].upper()]
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    model = Says(
        report_issues=lambda content: {
            "family_slug": "bench-press",
            "issues": [build_issue(PRESS, "description", "low")],
        }
    )
    async with open_steps(loaded, model) as steps:
        plan = await planned(steps)
    assert plan.model_calls == {"analyst": 1}
    assert [op.tool for op in plan.ops] == ["normalize_catalog_page"]


def build_issue(identity: str, field: str, severity: str = "high", **more: Any) -> dict[str, Any]:
    return {"exercise_id": identity, "field": field, "issue_type": "inaccurate", "severity": severity,
            "evidence": "it reads wrong", "confidence": 0.9, **more}  # fmt: skip


async def test_the_field_decides_the_specialist_and_the_work_is_looked_at_again(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, messy())
    dumbbell, machine = "bench-press-bench-press-dumbbell", "bench-press-bench-press-smith-machine"

    def issues(content: Any) -> Any:
        odd = [item for item in content["suspicions"] if item["exercise_id"] == machine]
        return {
            "family_slug": "bench-press",
            "issues": [build_issue(item["exercise_id"], item["field"]) for item in odd],
        }

    def changes(content: Any) -> Any:
        made = {
            "content": [
                (
                    dumbbell,
                    "description",
                    "The Bench Press with two dumbbells trains the chest through a long path, each arm on its own.",
                )
            ],
            "biomechanics": [(machine, "movement.type", "push")],
        }[content["role"]]
        return {"family_slug": "bench-press", "changes": [
            {"exercise_id": i, "field": f, "after": v, "justification": "from the record", "evidence": "record:fields", "confidence": 0.99}
            for i, f, v in made]}  # fmt: skip

    model = Says(report_issues=issues, propose_changes=changes)
    async with open_steps(loaded, model) as steps:
        plan = await planned(steps)
    assert [(op.tool, op.actor) for op in plan.ops] == [
        ("merge_exercises", "librarian"),
        ("normalize_catalog_page", "normalizer"),
        ("upsert_exercise", "content"),
        ("upsert_exercise", "biomechanics"),
    ]
    assert plan.model_calls == {"analyst": 2, "biomechanics": 1, "content": 1}
    edit = plan.ops[3].arguments["changes"][0]
    assert (edit["field"], edit["before"], edit["after"]) == ("movement.type", "hinge", "push")
    assert 0.9 < plan.ops[3].confidence < 0.99  # as far as siblings support it, and never more than was stated
    assert plan.unresolved == ()


async def test_golden_plan_byte_for_byte(tmp_path: Path) -> None:
    """The same snapshot and the same answers give the same plan; the answers come from a file."""
    golden, answers = GOLDEN / "plan-bench-press.json", GOLDEN / "answers-bench-press.jsonl"
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, messy())
    async with open_steps(loaded, ReplayModel(answers)) as steps:
        once, again = plan_bytes(await planned(steps)), None
    async with open_steps(loaded, ReplayModel(answers)) as steps:
        again = plan_bytes(await planned(steps))
    assert once == again == golden.read_bytes()
    plan = json.loads(once)
    assert {op["tool"] for op in plan["ops"]} >= {"merge_exercises", "normalize_catalog_page", "upsert_exercise"}


async def test_answers_are_recorded_and_replayed_to_the_same_plan(tmp_path: Path) -> None:
    from competent import Competent

    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, messy())
    async with open_steps(loaded, RecordingModel(Competent(), tmp_path / "answers.jsonl")) as steps:
        first = plan_bytes(await planned(steps))
    async with open_steps(loaded, ReplayModel(tmp_path / "answers.jsonl")) as steps:
        assert plan_bytes(await planned(steps)) == first
    async with open_steps(loaded, ReplayModel(tmp_path / "answers.jsonl")) as steps:
        strange = await planned(steps, "t-bar-row")
    assert "holds no answer" in strange.rejected[0].reason


class Hangs:
    """A model that never answers."""

    name, instructable = "hangs", True

    async def reply(self, request: Any) -> Reply:
        await asyncio.sleep(3600)
        raise AssertionError

    async def close(self) -> None: ...


async def test_a_model_that_hangs_is_given_up(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home", reply_s=0.1)
    await fill_catalog(loaded, messy())
    async with open_steps(loaded, Hangs()) as steps:
        plan = await planned(steps)
    assert {item.reason for item in plan.rejected} == {"no reply within 0.1 s"}
    assert [op.tool for op in plan.ops][:2] == ["merge_exercises", "normalize_catalog_page"]  # checks need no model


async def test_names_that_mean_the_same_are_looked_at(tmp_path: Path) -> None:
    from interlock.embedding import MiniLm

    docs = clean_families("lateral-raise")
    some = next(doc for key, doc in docs.items() if key == "exercise:lateral-raise-lateral-raise-dumbbell")
    twin = {
        **some,
        "id": "lateral-raise-x",
        "name": "Lateral Raises Standing (Dumbbell)",
        "variant_key": some["variant_key"],
    }
    docs["exercise:lateral-raise-x"] = {**twin, "name_slug": "lateral-raises-standing-dumbbell"}
    family = Snapshot(
        "lateral-raise",
        docs["family:lateral-raise"],
        {k[9:]: d for k, d in docs.items() if k.startswith("exercise:")},
        {},
    )
    found = find_near_duplicates(family, MiniLm().embed)
    assert ("exercise:lateral-raise-x", False) in {(issue.target, issue.certain) for issue in found}
