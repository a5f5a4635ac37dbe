"""What tests of the catalog share: small catalogs, folders that are ready, runs without the engine, scripted models."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from interlock.models import Proposal, Reply, Request
from interlock_catalog.app import POLICY, open_app
from interlock_catalog.backends.embedded import DatabaseBackend
from interlock_catalog.confidence import Calibration, shipped_calibration
from interlock_catalog.contracts import Doc
from interlock_catalog.runner.lanes import carry_out
from interlock_catalog.runner.records import FamilyResult, Run, RunRequest, open_run_store
from interlock_catalog.runner.steps import RunSteps
from interlock_catalog.seed import build_clean_catalog
from interlock_catalog.server.tokens import TokenHolder, digest_token
from interlock_catalog.settings import Loaded, load_catalog_settings
from plant import plant_faults

PRESS = "bench-press-bench-press-barbell"
TOKENS = {digest_token(role): TokenHolder(role, role) for role in ("reader", "editor", "admin")}
"""Of a server under test: each role's token is its own name."""
PATIENCE_S = 600.0
"""How long tests wait for something that happens within seconds on an idle machine: an end for a hang, no measure."""


def source_record(**more: Any) -> dict[str, Any]:
    """A record of the free exercise database, as files that are imported have it."""
    return {
        "name": "Barbell Curl",
        "equipment": "barbell",
        "primaryMuscles": ["biceps"],
        "secondaryMuscles": [],
        "instructions": ["Curl."],
        "force": "pull",
        "level": "beginner",
        "mechanic": "isolation",
        "category": "strength",
        "id": "Barbell_Curl",
        **more,
    }


def families_of(docs: Mapping[str, Doc], slugs: Iterable[str]) -> dict[str, Doc]:
    """The documents of a few families, with the aliases that point at them."""
    wanted = set(slugs)
    ids = {doc["id"] for key, doc in docs.items() if key.startswith("exercise:") and doc["family_slug"] in wanted}
    return {
        key: json.loads(json.dumps(doc))
        for key, doc in docs.items()
        if (key.startswith("family:") and doc["slug"] in wanted)
        or (key.startswith("exercise:") and doc["id"] in ids)
        or (key.startswith("alias:") and (doc.get("exercise_id") in ids or doc.get("family_slug") in wanted))
    }


def clean_families(*slugs: str) -> dict[str, Doc]:
    return families_of(build_clean_catalog(), slugs)


def faulty_families(*slugs: str) -> dict[str, Doc]:
    return families_of(plant_faults(build_clean_catalog()).docs, slugs)


def prepare_home(
    folder: Path, *, enabled: str = "*", policy: str | None = None, lease_s: int = 60, **settings: Any
) -> Loaded:
    """A folder that runs can work in; where no process dies, leases may be long, so that a busy machine loses none."""
    folder.mkdir(parents=True, exist_ok=True)
    store = settings.pop("store", "sqlite:///interlock.db")
    text = f'store = "{store}"\npolicy = "policy.toml"\ntools = ["interlock_catalog.app:TOOLS"]\nrepeats = "allow"\nlease_s = {lease_s}\n'
    (folder / "interlock.toml").write_text(text)
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    (folder / "catalog.toml").write_text("\n".join(lines) + "\n")
    if policy is None:
        shutil.copyfile(POLICY, folder / "policy.toml")
    else:
        (folder / "policy.toml").write_text(policy)
    (folder / "enabled.txt").write_text(f"{enabled}\n")
    return load_catalog_settings(folder, environment={})


async def fill_catalog(loaded: Loaded, docs: Mapping[str, Doc | None]) -> None:
    """Put documents into a folder's catalog."""
    backend = DatabaseBackend(loaded.settings.backend)
    await backend.fill(docs)
    await backend.close()


async def read_catalog(loaded: Loaded) -> dict[str, Any]:
    """Every document of a folder's catalog."""
    backend = DatabaseBackend(loaded.settings.backend)
    try:
        return {key: doc for key, doc in (await backend.read_all()).items() if not key.startswith(("idem:", "ledger:"))}
    finally:
        await backend.close()


@asynccontextmanager
async def open_steps(
    loaded: Loaded, model: Any = None, calibration: Calibration | None = None
) -> AsyncIterator[RunSteps]:
    """The steps of runs, without the durable engine; what is locked is not waited for."""
    async with open_run_store(loaded.settings) as runs, open_app(loaded) as opened:
        app = msgspec.structs.replace(
            opened, model=model, lock_wait_s=0.1, calibration=calibration or shipped_calibration()
        )
        yield RunSteps(app, runs)


async def run_all(steps: RunSteps, request: RunRequest) -> tuple[Run, dict[str, FamilyResult]]:
    """One run to its end, family after family."""
    results = await carry_out(1, await steps.begin(request), lambda item: steps.work_on(request, item))
    run = await steps.end(request, results)
    return run, {result.family: result for result in results}


class Says:
    """An instructable model: it hands in what it was given, and notes what it was asked."""

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
