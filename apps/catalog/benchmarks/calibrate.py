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

from interlock.answers.constrained import constrain
from interlock.models import Model, open_model
from interlock.operations import Entry
from interlock_catalog.app import Shop, opened
from interlock_catalog.backends.embedded import DatabaseBackend
from interlock_catalog.contracts import Doc
from interlock_catalog.runner.record import Order, Runs
from interlock_catalog.seed import clean_catalog, plant
from interlock_catalog.seed.build import meanings
from interlock_catalog.seed.plant import SEED
from interlock_catalog.trust import CALIBRATION, Seen, Trust, read, rules_of
from interlock_catalog.vocabulary import slug

sys.path.insert(0, str(Path(__file__).parent))
from competent import Competent
from judge import fixes
from quality import COMPETENT, home_of, one_run

SEEDS = tuple(SEED + n for n in (1, 2, 3))
DRAFTS = 0.15
"""The share of exercises that are made drafts, so that releasing them can be measured, too."""
HEAD = """How often each rule was right and wrong, on {faults} faults planted with other seeds than those of
docs/catalog-quality.md. Written by `make bench-catalog` (apps/catalog/benchmarks/calibrate.py); do not edit."""


EVERYTHING = Trust(unseen=Seen(10**6, 0))
"""Every rule is trusted, so that everything is done and can be judged."""


async def counted(model: Model | None, seed: int) -> dict[str, Seen]:
    """One run over faults of this seed: what each rule did right and wrong."""
    clean = clean_catalog()
    docs, planted = plant(clean, seed=seed)
    drafts = drafted(docs, clean, seed)
    with tempfile.TemporaryDirectory() as folder:
        loaded = home_of(Path(folder) / "home")
        backend = DatabaseBackend(loaded.url("backend"))
        await backend.fill({**docs, **drafts})
        await backend.close()
        runs = Runs(loaded.url("engine"))
        async with opened(loaded) as found:
            shop = Shop(found.loaded, found.parts, found.runtime, model, None, measured=EVERYTHING)
            run, _issues = await one_run(shop, runs, Order(run="r1", mode="apply", max_changes=5000))
            after = await found.parts.backend.everything()  # type: ignore[attr-defined]
            wrong = set(fixes(planted, docs, released(after, drafts), clean)[1])
            wrong |= {
                key for key in drafts if after[key]["status"] != "merged" and not same(after[key], clean.get(key))
            }
            wrong |= misled(after, clean)
            counts: dict[str, Seen] = {}
            for turn in run.turns:
                async for entry in found.runtime.operations.journal(turn=turn):
                    bad = any(key in wrong for key in entry.target_ids)
                    judged = entry.status == "done" and (
                        entry.op_type != "normalize_catalog_page" or known(entry, clean)
                    )
                    for rule in rules_of(entry.evidence) if judged else ():
                        counts[rule] = counts.get(rule, Seen()) + (Seen(0, 1) if bad else Seen(1, 0))
        await runs.close()
    return counts


def known(entry: Entry, clean: dict[str, Doc]) -> bool:
    """Whether it is known how the exercise should be spelt; of a planted copy it is only known that it should be gone."""
    return any(key in clean for key in entry.target_ids if key.startswith("exercise:"))


def drafted(docs: dict[str, Doc], clean: dict[str, Doc], seed: int) -> dict[str, Doc]:
    """Exercises by chance, as drafts."""
    chance = random.Random(seed)
    keys = [key for key in sorted(clean) if key.startswith("exercise:") and docs[key].get("status") == "approved"]
    return {key: {**docs[key], "status": "draft"} for key in keys if chance.random() < DRAFTS}


def released(after: dict[str, Doc], drafts: dict[str, Doc]) -> dict[str, Doc]:
    """What was made, with the drafts among it as they would be if released: that is judged apart."""
    back = {key: {**after[key], "status": "approved"} for key in drafts if after[key]["status"] == "draft"}
    return {**after, **back}


def same(doc: Doc, clean: Doc | None) -> bool:
    """Whether a draft is what it should be."""
    ours = {key: value for key, value in doc.items() if key not in ("status", "merge_lineage")}
    return clean is not None and all(clean.get(key) == value for key, value in ours.items())


def misled(after: dict[str, Doc], clean: dict[str, Doc]) -> set[str]:
    """Aliases that were made for searches and lead elsewhere than people meant."""
    names = {str(doc["name"]): str(doc["id"]) for key, doc in clean.items() if key.startswith("exercise:")}
    meant = {f"alias:{slug(query)}": names.get(name) for query, name in meanings().items()}
    return {key for key, wanted in meant.items() if key in after and after[key].get("exercise_id") != wanted}


async def calibrated(make: Any, seeds: tuple[int, ...]) -> Trust:
    """What a way of judging does right and wrong, over several plantings."""
    trust = Trust()
    for seed in seeds:
        trust = trust.adding(await counted(make(), seed))
    return trust


def written(trust: Trust, head: str) -> str:
    """The text of a table of rules."""
    lines = [f"{json.dumps(name)} = [{seen.right}, {seen.wrong}]" for name, seen in trust.rules.items()]
    return "\n".join([*(f"# {line}" for line in head.splitlines()), "[rules]", *lines, ""])


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedded", action="store_true", help="the embedded model, too (five minutes a planting)")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    faults = sum(len(plant(clean_catalog(), seed=seed)[1]) for seed in SEEDS)
    checks = asyncio.run(calibrated(lambda: None, SEEDS))
    competent = asyncio.run(calibrated(Competent, SEEDS))
    if given.embedded:
        theirs = asyncio.run(calibrated(lambda: constrain(open_model("local")), SEEDS[:1]))
    else:
        theirs = read(CALIBRATION) if CALIBRATION.exists() else Trust()
    models = {rule: seen for rule, seen in theirs.rules.items() if "@" in rule}
    CALIBRATION.write_text(written(checks.adding(models), HEAD.format(faults=faults)), encoding="utf-8")
    own = {rule: seen for rule, seen in competent.rules.items() if "@" in rule}
    COMPETENT.write_text(written(Trust(own), HEAD.format(faults=faults)), encoding="utf-8")
    print(CALIBRATION.read_text(), COMPETENT.read_text())


if __name__ == "__main__":
    main()
