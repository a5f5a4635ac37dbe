"""RANGER for tests: its shipped fires, a clock that stands still, a runtime in memory."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from interlock import Outcome, Runtime
from interlock.answers import App
from interlock_ranger.app import DATA, build
from interlock_ranger.fires import Fires
from ranger_parts import TODAY, Call


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("INTERLOCK_", "RANGER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture(scope="session")
def fires() -> Fires:
    return Fires(DATA)


@pytest.fixture(scope="session")
def app(fires: Fires) -> App:
    return build(fires, today=lambda: TODAY)


@pytest.fixture
async def runtime(app: App) -> AsyncIterator[Runtime]:
    opened = Runtime.open("memory://", policy=app.policy or "", tools=app.tools)
    yield opened
    await opened.close()


@pytest.fixture
def call(runtime: Runtime) -> Call:
    """One governed call as an operator."""

    def made(tool: str, **arguments: Any) -> Awaitable[Outcome]:
        return runtime.call(tool, arguments, actor="operator")

    return made
