"""How often each rule is right, on faults that are planted elsewhere than those by which the whole is judged.

Writes `calibration.toml` of the package (checks alone, and with `--embedded` the embedded model) and `competent.toml` here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from interlock.answers.constrained import constrain
from interlock.models import Model, open_model
from interlock.operations import Entry
from interlock_catalog.app import open_app
from interlock_catalog.confidence import CALIBRATION, Calibration, Tally, read_calibration
from interlock_catalog.contracts import Doc
from interlock_catalog.evidence import Evidence, find_accountable
from interlock_catalog.runner.records import RunRequest
from interlock_catalog.seed import build_clean_catalog
from interlock_catalog.vocabulary import slug

sys.path.insert(0, str(Path(__file__).parent))
from competent import Competent
from homes import fill_catalog, prepare_home, read_catalog
from judge import score_fixes
from plant import SEED, plant_faults
from quality import COMPETENT, run_without_engine
from search_meanings import read_meanings

SEEDS = tuple(SEED + n for n in (1, 2, 3))
DRAFTS = 0.15
"""The share of exercises that are made drafts, so that approving them can be measured, too."""
HEAD = """How often each rule was right and wrong, on {faults} faults planted with other seeds than those of
docs/catalog-quality.md. Written by `make bench-catalog` (apps/catalog/benchmarks/calibrate.py); do not edit."""


EVERYTHING = Calibration(unseen=Tally(10**6, 0))
"""Every rule is trusted, so that everything is done and can be judged."""


async def tally_rules(model: Model | None, seed: int) -> dict[str, Tally]:
    """One run over faults of this seed: what each rule did right and wrong."""
    clean = build_clean_catalog()
    planted = plant_faults(clean, seed=seed)
    drafts = choose_drafts(planted.docs, clean, seed)
    with tempfile.TemporaryDirectory() as folder:
        loaded = prepare_home(Path(folder) / "home")
        await fill_catalog(loaded, {**planted.docs, **drafts})
        async with open_app(loaded) as opened:
            app = msgspec.structs.replace(opened, model=model, calibration=EVERYTHING)
            run = (await run_without_engine(app, RunRequest(run="r1", mode="apply", max_changes=5000))).run
            after = await read_catalog(loaded)
            wrong = set(score_fixes(planted.faults, planted.docs, release_drafts(after, drafts), clean)[1])
            wrong |= {
                key for key in drafts if after[key]["status"] != "merged" and not is_right(after[key], clean.get(key))
            }
            wrong |= find_misleading(after, clean)
            journal = app.runtime.operations.journal
            entries = [entry for turn in run.turns async for entry in journal(turn=turn)]
    tallies: dict[str, Tally] = {}
    for entry in entries:
        tally = Tally(0, 1) if any(key in wrong for key in entry.target_ids) else Tally(1, 0)
        evidence = [Evidence.parse(text) for text in entry.evidence]
        for rule in find_accountable(evidence) if can_be_judged(entry, clean) else ():
            tallies[rule.text] = tallies.get(rule.text, Tally()) + tally
    return tallies


def can_be_judged(entry: Entry, clean: dict[str, Doc]) -> bool:
    """Whether it is known what a change should have made; of a planted copy only that it should be gone, not its form."""
    if entry.status != "done":
        return False
    known = any(key in clean for key in entry.target_ids if key.startswith("exercise:"))
    return known or entry.op_type != "normalize_catalog_page"


def choose_drafts(docs: dict[str, Doc], clean: dict[str, Doc], seed: int) -> dict[str, Doc]:
    """Exercises by chance, as drafts."""
    chance = random.Random(seed)
    keys = [key for key in sorted(clean) if key.startswith("exercise:") and docs[key].get("status") == "approved"]
    return {key: {**docs[key], "status": "draft"} for key in keys if chance.random() < DRAFTS}


def release_drafts(after: dict[str, Doc], drafts: dict[str, Doc]) -> dict[str, Doc]:
    """What was made, with the drafts among it as they would be if approved: that is judged apart."""
    back = {key: {**after[key], "status": "approved"} for key in drafts if after[key]["status"] == "draft"}
    return {**after, **back}


def is_right(doc: Doc, clean: Doc | None) -> bool:
    """Whether a draft is what it should be."""
    ours = {key: value for key, value in doc.items() if key not in ("status", "merge_lineage")}
    return clean is not None and all(clean.get(key) == value for key, value in ours.items())


def find_misleading(after: dict[str, Doc], clean: dict[str, Doc]) -> set[str]:
    """Aliases that were made for searches and lead elsewhere than people meant."""
    names = {str(doc["name"]): str(doc["id"]) for key, doc in clean.items() if key.startswith("exercise:")}
    meant = {f"alias:{slug(query)}": names.get(name) for query, name in read_meanings().items()}
    return {key for key, wanted in meant.items() if key in after and after[key].get("exercise_id") != wanted}


async def calibrate(make: Any, seeds: tuple[int, ...]) -> Calibration:
    """What a way of judging does right and wrong, over several plantings."""
    calibration = Calibration()
    for seed in seeds:
        calibration = calibration.add(await tally_rules(make(), seed))
    return calibration


def format_calibration(calibration: Calibration, head: str) -> str:
    """The text of a table of rules."""
    lines = [f"{json.dumps(name)} = [{tally.right}, {tally.wrong}]" for name, tally in calibration.rules.items()]
    return "\n".join([*(f"# {line}" for line in head.splitlines()), "[rules]", *lines, ""])


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedded", action="store_true", help="the embedded model, too (five minutes a planting)")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    faults = sum(len(plant_faults(build_clean_catalog(), seed=seed).faults) for seed in SEEDS)
    checks = asyncio.run(calibrate(lambda: None, SEEDS))
    competent = asyncio.run(calibrate(Competent, SEEDS))
    if given.embedded:
        theirs = asyncio.run(calibrate(lambda: constrain(open_model("local")), SEEDS[:1]))
    else:
        theirs = read_calibration(CALIBRATION) if CALIBRATION.exists() else Calibration()
    models = {rule: tally for rule, tally in theirs.rules.items() if "@" in rule}
    CALIBRATION.write_text(format_calibration(checks.add(models), HEAD.format(faults=faults)), encoding="utf-8")
    own = {rule: tally for rule, tally in competent.rules.items() if "@" in rule}
    COMPETENT.write_text(format_calibration(Calibration(own), HEAD.format(faults=faults)), encoding="utf-8")
    print(CALIBRATION.read_text(), COMPETENT.read_text())


if __name__ == "__main__":
    main()
