"""What tests of the catalog share: small catalogs, folders that are ready, runs without the engine, scripted models."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from interlock.models import Proposal, Reply, Request
from interlock_catalog.app import POLICY, Shop, opened
from interlock_catalog.backends.embedded import DatabaseBackend
from interlock_catalog.contracts import Doc
from interlock_catalog.runner.record import FamilyResult, Order, Run, Runs
from interlock_catalog.runner.work import Work
from interlock_catalog.seed import clean_catalog
from interlock_catalog.settings import Loaded, load
from interlock_catalog.trust import Trust, measured

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))


def some_families(*slugs: str) -> dict[str, Doc]:
    """The clean documents of a few families."""
    every = clean_catalog()
    ids = {doc["id"] for key, doc in every.items() if key.startswith("exercise:") and doc["family_slug"] in slugs}
    return {
        key: json.loads(json.dumps(doc))
        for key, doc in every.items()
        if key in {f"family:{slug}" for slug in slugs}
        or (key.startswith("exercise:") and doc["id"] in ids)
        or (key.startswith("alias:") and (doc.get("exercise_id") in ids or doc.get("family_slug") in slugs))
    }


def ready(folder: Path, *, enabled: str = "*", policy: str | None = None, **settings: Any) -> Loaded:
    """A folder that runs can work in."""
    folder.mkdir(parents=True, exist_ok=True)
    store = settings.pop("store", "sqlite:///interlock.db")
    text = f'store = "{store}"\npolicy = "policy.toml"\ntools = ["interlock_catalog.app:TOOLS"]\nrepeats = "allow"\nlease_s = 5\n'
    (folder / "interlock.toml").write_text(text)
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    (folder / "catalog.toml").write_text("\n".join(lines) + "\n")
    if policy is None:
        shutil.copyfile(POLICY, folder / "policy.toml")
    else:
        (folder / "policy.toml").write_text(policy)
    (folder / "enabled.txt").write_text(f"{enabled}\n")
    return load(folder, environment={})


async def fill(loaded: Loaded, docs: Mapping[str, Doc | None]) -> None:
    """Put documents into a folder's catalog."""
    backend = DatabaseBackend(loaded.url("backend"))
    await backend.fill(docs)
    await backend.close()


async def contents(loaded: Loaded) -> dict[str, Any]:
    """Every document of a folder's catalog."""
    backend = DatabaseBackend(loaded.url("backend"))
    try:
        return {key: doc for key, doc in (await backend.everything()).items() if not key.startswith("idem:")}
    finally:
        await backend.close()


@asynccontextmanager
async def working(loaded: Loaded, model: Any = None, record: Trust | None = None) -> AsyncIterator[Work]:
    """The steps of runs, without the durable engine."""
    runs = Runs(loaded.url("engine"))
    try:
        async with opened(loaded) as found:
            shop = Shop(loaded, found.parts, found.runtime, model, None, 0.1, record or measured())
            yield Work(shop, runs)
    finally:
        await runs.close()


async def run_all(work: Work, order: Order) -> tuple[Run, dict[str, FamilyResult]]:
    """One run to its end, family after family."""
    results = [await work.family(order, name) for name in await work.begin(order)]
    run = await work.end(order, results)
    return run, {result.family: result for result in results}


class Says:
    """A model that follows: it hands in what it is told to, and notes what it was asked."""

    name, instructable = "says", True

    def __init__(self, **reports: Any) -> None:
        self.reports = reports
        self.asked: list[Request] = []

    async def reply(self, request: Request) -> Reply:
        self.asked.append(request)
        report = self.reports.get(str(request.force))
        if isinstance(report, Exception):
            raise report
        made = report(json.loads(request.messages[0].text)) if callable(report) else report
        if made is None:
            made = {"family_slug": "x", "issues": [], "changes": [], "actions": []}
            wanted = {"report_issues": "issues", "propose_changes": "changes", "propose_actions": "actions"}[
                str(request.force)
            ]
            made = {key: value for key, value in made.items() if key in ("family_slug", wanted)}
        return Reply(proposals=(Proposal(str(request.force), made),))

    async def close(self) -> None: ...
