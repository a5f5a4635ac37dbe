"""The catalog as an application of Interlock: its tools over the backend that the settings name, and its policy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from interlock import Runtime, Tool
from interlock.answers.constrained import constrain
from interlock.config import load_settings
from interlock.models import Model, RecordingModel, ReplayModel, open_model
from interlock_catalog.backends import Backend
from interlock_catalog.backends.planned import PlannedView
from interlock_catalog.checks.duplicates import Embed
from interlock_catalog.confidence import Calibration, shipped_calibration
from interlock_catalog.family_reader import SnapshotCache
from interlock_catalog.read_tools import build_read_tools
from interlock_catalog.resource import Catalog
from interlock_catalog.roles.context import RoleContext
from interlock_catalog.roles.reports import build_report_tools
from interlock_catalog.sessions import name_sessions
from interlock_catalog.settings import Loaded, Settings, find_ledger_file, load_catalog_settings
from interlock_catalog.tools import build_write_tools

POLICY = Path(__file__).with_name("policy.toml")


class AppContext(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a run works with."""

    loaded: Loaded
    backend: Backend
    snapshots: SnapshotCache
    tools: tuple[Tool, ...]
    runtime: Runtime
    model: Model | None = None
    embed: Embed | None = None
    lock_wait_s: float = 6.0
    """How long a family that somebody else has locked is waited for: longer than a dead process keeps its lease."""
    databases: tuple[str, ...] = ()
    """Where everything is kept: the ledger, the catalog, the runs."""
    calibration: Calibration = shipped_calibration()
    """How often each rule has been right before anybody has decided anything here."""

    @property
    def settings(self) -> Settings:
        """The settings of the catalog."""
        return self.loaded.settings

    def role_context(self, turn: str, run: str, calibration: Calibration | None = None) -> RoleContext:
        """What roles work with on one family of a run, or on its searches."""
        return RoleContext(
            runtime=self.runtime,
            tools={tool.name: tool for tool in self.tools},
            turn=turn,
            run=run,
            model=self.model,
            embed=self.embed,
            calibration=self.calibration if calibration is None else calibration,
            reply_s=self.settings.reply_s,
        )


def open_backend(settings: Settings, executor: str = "") -> Backend:
    """The backend that the settings name; its sessions carry the name of the executor, if there is one."""
    if settings.is_remote:
        from interlock_catalog.backends.http import HttpBackend

        return HttpBackend(settings.backend, settings)
    from interlock_catalog.backends.embedded import DatabaseBackend

    return DatabaseBackend(name_sessions(settings.backend, executor))


def build_tools(backend: Backend, snapshots: SnapshotCache) -> tuple[Tool, ...]:
    """Every tool of the catalog, over one backend."""
    return (
        *build_read_tools(backend, snapshots),
        *build_write_tools(Catalog(PlannedView(backend))),
        *build_report_tools(),
    )


@asynccontextmanager
async def open_app(loaded: Loaded, *, with_model: bool = False, executor: str = "") -> AsyncIterator[AppContext]:
    """The catalog with its ledger; `with_model`: also the model and the embeddings that the settings name."""
    ledger = load_settings(find_ledger_file(loaded)).settings
    backend, snapshots = open_backend(loaded.settings, executor), SnapshotCache()
    tools = build_tools(backend, snapshots)
    model = _open_model(loaded.settings) if with_model else None
    embed = _open_embedder() if with_model and loaded.settings.embeddings else None
    policy = ledger.policy if Path(ledger.policy).exists() else POLICY
    runtime = Runtime.open(name_sessions(ledger.store, executor), policy=policy, tools=tools, settings=ledger)
    try:
        async with runtime:
            yield AppContext(
                loaded=loaded,
                backend=backend,
                snapshots=snapshots,
                tools=tools,
                runtime=runtime,
                model=model,
                embed=embed,
                lock_wait_s=ledger.lease_s + 1.0,
                databases=(ledger.store, loaded.settings.backend, loaded.settings.engine),
            )
    finally:
        if model is not None:
            await model.close()
        await backend.close()


def _open_model(settings: Settings) -> Model | None:
    if settings.replay:
        return ReplayModel(Path(settings.replay))
    if settings.model == "none":
        return None
    model = constrain(open_model(settings.model))
    return RecordingModel(model, Path(settings.record)) if settings.record else model


def _open_embedder() -> Embed:
    from interlock.embedding import MiniLm  # takes a second and a hundred megabytes

    return MiniLm().embed


def __getattr__(name: str) -> Any:
    """`TOOLS`, for `interlock.toml`: built on first use, from the settings of the folder that one is in."""
    if name != "TOOLS":
        raise AttributeError(name)
    return build_tools(open_backend(load_catalog_settings().settings), SnapshotCache())
