"""`make bench-catalog`: planted faults, found and fixed by checks alone, the embedded model, a competent one."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from interlock.answers.constrained import constrain
from interlock.models import Model, open_model
from interlock_catalog.app import AppContext, open_app
from interlock_catalog.checks import Issue
from interlock_catalog.confidence import Calibration, read_calibration, shipped_calibration
from interlock_catalog.contracts import Doc
from interlock_catalog.pipeline.family import FamilyPlan
from interlock_catalog.roles.context import RoleContext
from interlock_catalog.runner.records import FamilyResult, Run, RunRequest, RunStore, open_run_store
from interlock_catalog.runner.steps import RunSteps
from interlock_catalog.runner.work_items import WorkItem
from interlock_catalog.seed import build_clean_catalog
from interlock_catalog.seed.demonstration import PlantedFault
from interlock_catalog.snapshot import Snapshot

sys.path.insert(0, str(Path(__file__).parent))
from competent import Competent
from homes import fill_catalog, prepare_home, read_catalog
from judge import Score, count_violations, find_fixed, format_table, score_detection, score_fixes
from plant import plant_faults

DOCS = Path(__file__).parents[3] / "docs" / "catalog-quality.md"
COMPETENT = Path(__file__).with_name("competent.toml")
_LANES = 4


class FinishedRun(msgspec.Struct, frozen=True):
    """A run, and every issue that was found in it."""

    run: Run
    issues: list[Issue]


class NotingSteps(RunSteps):
    """Notes every issue of every plan: a run itself keeps only how many there were."""

    def __init__(self, app: AppContext, runs: RunStore) -> None:
        super().__init__(app, runs)
        self.issues: list[Issue] = []

    async def plan(self, context: RoleContext, family: Snapshot) -> FamilyPlan:
        plan = await super().plan(context, family)
        self.issues += plan.issues
        return plan


async def run_without_engine(app: AppContext, request: RunRequest) -> FinishedRun:
    """A run without the durable engine."""
    lane = asyncio.Semaphore(_LANES)
    async with open_run_store(app.settings) as runs:
        steps = NotingSteps(app, runs)
        work = await steps.begin(request)

        async def work_on(item: WorkItem) -> FamilyResult:
            async with lane:
                return await steps.work_on(request, item)

        results = list(await asyncio.gather(*(work_on(item) for item in work if item.is_family)))
        results += [await steps.work_on(request, item) for item in work if not item.is_family]
        return FinishedRun(await steps.end(request, results), steps.issues)


def calibration_of(model: Model | None) -> Calibration:
    """The record of the rules, and of the model on faults that were planted elsewhere."""
    shipped = shipped_calibration()
    return shipped.add(read_calibration(COMPETENT).rules) if type(model) is Competent else shipped


class Newcomer(Competent):
    """The same model on its first night: nobody has measured it, and nobody has decided about its work."""

    name = "newcomer"


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one way of judging."""

    planted: tuple[PlantedFault, ...]
    fixed_targets: set[str]
    """The documents whose fault is gone."""
    detection: Score
    fixes: Score
    wrong: list[str]
    """Documents that were changed, and are not what they should be."""
    never: dict[str, int]
    run: Run
    took_s: float


async def measure_quality(folder: Path, model: Model | None, embed: Any = None) -> Quality:
    """One run over the planted faults, scored."""
    clean = build_clean_catalog()
    planted = plant_faults(clean)
    loaded = prepare_home(folder)
    await fill_catalog(loaded, planted.docs)
    async with open_app(loaded) as opened:
        app = msgspec.structs.replace(opened, model=model, embed=embed, calibration=calibration_of(model))
        began = time.perf_counter()
        finished = await run_without_engine(app, RunRequest(run="r1", mode="apply", max_changes=5000))
        took_s = time.perf_counter() - began
        after = await read_catalog(loaded)
        never = await count_violations(app.runtime, finished.run, after)
    issues = [*finished.issues, *_orphan_issues(planted.faults, planted.docs, after)]
    fixes, wrong = score_fixes(planted.faults, planted.docs, after, clean)
    return Quality(
        planted=planted.faults,
        fixed_targets=find_fixed(planted.faults, after, clean),
        detection=score_detection(planted.faults, issues),
        fixes=fixes,
        wrong=wrong,
        never=never,
        run=finished.run,
        took_s=took_s,
    )


def _orphan_issues(faults: tuple[PlantedFault, ...], before: dict[str, Doc], after: dict[str, Doc]) -> list[Issue]:
    """Aliases that belong to no family are not in the plan of one: those that were changed were found."""
    found = [f.target for f in faults if f.kind == "alias_lost" and after.get(f.target) != before.get(f.target)]
    return [
        Issue(
            target=target, field="exercise_id", code="orphan", issue_type="inconsistent", severity="high", evidence=""
        )
        for target in found
    ]


def build_row(name: str, found: Quality) -> dict[str, Any]:
    """One line of the table."""
    seen, fixed, run = found.detection, found.fixes, found.run
    return {
        "judged by": name,
        "found: precision": f"{seen.precision:.3f}",
        "recall": f"{seen.recall:.3f}",
        "mended: precision": f"{fixed.precision:.3f}",
        "recall ": f"{fixed.recall:.3f}",
        "changes": run.counts.get("ok", 0),
        "asked a person": run.counts.get("parked", 0),
        "model calls": sum(run.model_calls.values()),
        "never": sum(found.never.values()),
        "seconds": f"{found.took_s:.0f}",
    }


def build_kind_rows(ways: dict[str, Quality]) -> list[dict[str, Any]]:
    """How many of each kind were fixed, by each way of judging."""
    kinds = dict.fromkeys(fault.kind for found in ways.values() for fault in found.planted)
    rows = []
    for kind in kinds:
        row_of: dict[str, Any] = {"kind": kind}
        for name, found in ways.items():
            mine = [fault for fault in found.planted if fault.kind == kind]
            row_of["needs"] = mine[0].needs
            row_of[name] = f"{sum(fault.target in found.fixed_targets for fault in mine)} of {len(mine)}"
        rows.append(row_of)
    return rows


HEAD = """# Catalog: planted faults, found and mended

Written by `make bench-catalog` (`apps/catalog/benchmarks/quality.py`); do not edit. {planted} faults of {kinds} kinds are
planted in the generated catalog ({exercises} exercises in {families} families); then one run applies what it decides. A document that is
changed counts as right only if it is what it was before the fault (for texts: if it holds its contract and speaks of its
subject; how well it is written is not judged). *never* counts broken invariants, merges across families and changes
outside a role's fields. *competent* is a scripted model that works from the records in its requests alone: the ceiling of
the pipeline, not a claim about any language model; how sure it may be was measured on faults planted elsewhere
(`calibrate.py`). *newcomer* is the same model without such a record: a person is asked about its changes, until people have
borne it out. *embedded* is SmolLM2-135M (4 bits, one thread), which can only choose between answers that the records offer;
its record says where that is worth something.

"""


WAYS: dict[str, Any] = {
    "checks": lambda: None,
    "embedded": lambda: constrain(open_model("local")),
    "competent": Competent,
    "newcomer": Newcomer,
}


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=tuple(WAYS))
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    results: dict[str, Quality] = {}
    for name, make in WAYS.items():
        if given.only and name != given.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            results[name] = asyncio.run(measure_quality(Path(folder) / "home", make()))
        found = results[name]
        print(build_row(name, found), found.wrong[:10], found.never, flush=True)
    rows = [build_row(name, found) for name, found in results.items()]
    print(format_table(rows))
    if given.only is None:
        planted = plant_faults(build_clean_catalog())
        counts = {kind: sum(key.startswith(f"{kind}:") for key in planted.docs) for kind in ("exercise", "family")}
        head = HEAD.format(
            planted=len(planted.faults),
            kinds=len({fault.kind for fault in planted.faults}),
            exercises=counts["exercise"],
            families=counts["family"],
        )
        text = f"{head}{format_table(rows)}\n\nMended, kind by kind:\n\n{format_table(build_kind_rows(results))}\n"
        DOCS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
