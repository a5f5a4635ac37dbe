"""`make bench-catalog`: faults that were planted, found and mended, with checks alone, the embedded model, a competent one."""

from __future__ import annotations

import argparse
import asyncio
import logging
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from interlock.answers.constrained import constrain
from interlock.models import Model, open_model
from interlock_catalog.app import POLICY, Shop, opened
from interlock_catalog.backends.embedded import DatabaseBackend
from interlock_catalog.checks import Issue
from interlock_catalog.pipeline.family import FamilyPlan
from interlock_catalog.runner import work as working
from interlock_catalog.runner.record import Order, Run, Runs
from interlock_catalog.seed import clean_catalog, plant
from interlock_catalog.settings import Loaded, load
from interlock_catalog.trust import Trust, read
from interlock_catalog.trust import measured as on_planted

sys.path.insert(0, str(Path(__file__).parent))
from competent import Competent
from judge import detection, fixes, mended, table, violations

DOCS = Path(__file__).parents[3] / "docs" / "catalog-quality.md"


def home_of(folder: Path) -> Loaded:
    """A folder that is ready for runs."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "interlock.toml").write_text('store = "sqlite:///interlock.db"\nrepeats = "allow"\nlease_s = 5\n')
    (folder / "catalog.toml").write_text("")
    shutil.copyfile(POLICY, folder / "policy.toml")
    (folder / "enabled.txt").write_text("*\n")
    return load(folder, environment={})


async def one_run(shop: Shop, runs: Runs, order: Order, lanes: int = 4) -> tuple[Run, list[Issue]]:
    """A run without the durable engine; its record, and every issue that was found."""
    seen: list[Issue] = []
    plan_family = working.plan_family

    async def noted(*given: Any) -> FamilyPlan:
        plan = await plan_family(*given)
        seen.extend(plan.issues)
        return plan

    working.plan_family = noted  # type: ignore[assignment]
    work, lane = working.Work(shop, runs), asyncio.Semaphore(lanes)
    try:
        families = await work.begin(order)

        async def one(name: str) -> Any:
            async with lane:
                return await work.family(order, name)

        first = [name for name in families if not name.startswith("~")]
        results = list(await asyncio.gather(*(one(name) for name in first)))
        for name in families:
            if name.startswith("~"):
                results.append(await work.family(order, name))
        return await work.end(order, results), seen
    finally:
        working.plan_family = plan_family


COMPETENT = Path(__file__).with_name("competent.toml")


def record_of(model: Model | None) -> Trust:
    """The record of the rules, and of the model on faults that were planted elsewhere."""
    return on_planted().adding(read(COMPETENT).rules) if type(model) is Competent else on_planted()


class Newcomer(Competent):
    """The same model on its first night: nobody has measured it, and nobody has decided about its work."""

    name = "newcomer"


async def measured(folder: Path, model: Model | None, embed: Any = None) -> dict[str, Any]:
    """Everything about one way of judging."""
    clean = clean_catalog()
    docs, planted = plant(clean)
    loaded = home_of(folder)
    backend = DatabaseBackend(loaded.url("backend"))
    await backend.fill(docs)
    await backend.close()
    runs = Runs(loaded.url("engine"))
    async with opened(loaded) as found:
        shop = Shop(found.loaded, found.parts, found.runtime, model, embed, measured=record_of(model))
        began = time.perf_counter()
        run, issues = await one_run(shop, runs, Order(run="r1", mode="apply", max_changes=5000))
        took = time.perf_counter() - began
        after = await found.parts.backend.everything()  # type: ignore[attr-defined]
        never = await violations(found.runtime, run, after)
    await runs.close()
    lost = [f.target for f in planted if f.kind == "alias_lost"]
    issues += [Issue(target=t, field="exercise_id", code="orphan", issue_type="inconsistent", severity="high", evidence="lost")
               for t in lost if after.get(t) != docs.get(t)]  # fmt: skip
    seen = detection(planted, issues)
    fixed, wrong = fixes(planted, docs, after, clean)
    return {"planted": planted, "mended": mended(planted, after, clean), "seen": seen, "fixed": fixed, "wrong": wrong, "never": never, "run": run, "took": took,
            "after": after, "issues": issues}  # fmt: skip


def row(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """One line of the table."""
    seen, fixed, run = found["seen"], found["fixed"], found["run"]
    return {
        "judged by": name,
        "found: precision": f"{seen.precision:.3f}",
        "recall": f"{seen.recall:.3f}",
        "mended: precision": f"{fixed.precision:.3f}",
        "recall ": f"{fixed.recall:.3f}",
        "changes": run.counts.get("ok", 0),
        "asked a person": run.counts.get("parked", 0),
        "model calls": sum(run.asked.values()),
        "never": sum(found["never"].values()),
        "seconds": f"{found['took']:.0f}",
    }


def by_kind(ways: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """How many of each kind were mended, by each way of judging."""
    kinds = dict.fromkeys(fault.kind for found in ways.values() for fault in found["planted"])
    rows = []
    for kind in kinds:
        row_of: dict[str, Any] = {"kind": kind}
        for name, found in ways.items():
            mine = [fault for fault in found["planted"] if fault.kind == kind]
            row_of["needs"] = mine[0].needs
            row_of[name] = f"{sum(fault.target in found['mended'] for fault in mine)} of {len(mine)}"
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
    measured_ways: dict[str, dict[str, Any]] = {}
    for name, make in WAYS.items():
        if given.only and name != given.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            measured_ways[name] = asyncio.run(measured(Path(folder) / "home", make()))
        found = measured_ways[name]
        print(row(name, found), found["wrong"][:10], found["never"], flush=True)
    rows = [row(name, found) for name, found in measured_ways.items()]
    print(table(rows))
    if given.only is None:
        docs, planted = plant(clean_catalog())
        counts = {kind: sum(key.startswith(f"{kind}:") for key in docs) for kind in ("exercise", "family")}
        head = HEAD.format(
            planted=len(planted),
            kinds=len({f.kind for f in planted}),
            exercises=counts["exercise"],
            families=counts["family"],
        )
        text = f"{head}{table(rows)}\n\nMended, kind by kind:\n\n{table(by_kind(measured_ways))}\n"
        DOCS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
