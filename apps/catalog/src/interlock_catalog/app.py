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
from interlock_catalog.checks.twins import Embed
from interlock_catalog.reading import Memo
from interlock_catalog.reads import reading_tools
from interlock_catalog.resource import Catalog
from interlock_catalog.roles.desk import Asked
from interlock_catalog.roles.reports import report_tools
from interlock_catalog.settings import Loaded, load
from interlock_catalog.tools import changing_tools
from interlock_catalog.trust import Trust, measured

HERE = Path(__file__).parent
POLICY = HERE / "policy.toml"


class Parts(msgspec.Struct, frozen=True):
    """The catalog put together, without a ledger."""

    backend: Backend
    memo: Memo
    tools: tuple[Tool, ...]


class Shop(msgspec.Struct, frozen=True):
    """Everything that a run works with."""

    loaded: Loaded
    parts: Parts
    runtime: Runtime
    model: Model | None
    embed: Embed | None
    patience_s: float = 6.0
    """How long a family that somebody else holds is waited for: as long as a dead one keeps it."""
    measured: Trust = measured()
    """How far each rule is trusted before anybody has decided anything."""

    def asked(self, turn: str, run: str, trust: Trust | None = None) -> Asked:
        """One piece of work."""
        tools = {tool.name: tool for tool in self.parts.tools}
        made = Asked(self.runtime, tools, (self.model, self.embed), (turn, run))
        made.trust = self.measured if trust is None else trust
        made.reply_s = self.loaded.settings.reply_s
        return made


def backend_of(loaded: Loaded) -> Backend:
    """The backend that the settings name."""
    url = loaded.url("backend")
    if url.startswith(("http://", "https://")):
        from interlock_catalog.backends.http import HttpBackend

        return HttpBackend(url, loaded.settings)
    from interlock_catalog.backends.embedded import DatabaseBackend

    return DatabaseBackend(url)


def parts_of(backend: Backend) -> Parts:
    """The tools over a backend."""
    memo = Memo()
    tools = (*reading_tools(backend, memo), *changing_tools(Catalog(backend)), *report_tools())
    return Parts(backend, memo, tools)


@asynccontextmanager
async def opened(loaded: Loaded, *, judges: bool = False) -> AsyncIterator[Shop]:
    """The catalog with its ledger; with `judges`, also the model and the vectors that the settings name."""
    settings = load_settings(_ledger(loaded)).settings
    parts = parts_of(backend_of(loaded))
    model = model_of(loaded) if judges else None
    embed = _embed() if judges and loaded.settings.embeddings else None
    policy = settings.policy if Path(settings.policy).exists() else POLICY
    runtime = Runtime.open(settings.store, policy=policy, tools=parts.tools, settings=settings)
    try:
        async with runtime:
            yield Shop(loaded, parts, runtime, model, embed, settings.lease_s + 1.0)
    finally:
        if model is not None:
            await model.close()
        await parts.backend.close()


def _ledger(loaded: Loaded) -> Path | None:
    file = loaded.folder / "interlock.toml"
    return file if file.exists() else None


def model_of(loaded: Loaded) -> Model | None:
    """The model that the settings name, recorded or replayed where they say so."""
    replay, record, name = loaded.file("replay"), loaded.file("record"), loaded.settings.model
    if replay is not None:
        return ReplayModel(replay)
    if name == "none":
        return None
    model = constrain(open_model(name))
    return model if record is None else RecordingModel(model, record)


def _embed() -> Embed:
    from interlock.answers.intents import Embedder

    return Embedder().embed


def __getattr__(name: str) -> Any:
    """`TOOLS`, for `interlock.toml`: made when somebody asks, from the settings of the folder they are in."""
    if name != "TOOLS":
        raise AttributeError(name)
    return parts_of(backend_of(load())).tools
