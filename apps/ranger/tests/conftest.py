"""RANGER for tests: its shipped fires, a clock that stands still, a runtime in memory."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import Outcome, Runtime
from interlock.answers import Answers, App
from interlock_ranger.app import DATA, build_app
from interlock_ranger.fires import Fires
from ranger_parts import PATIENCE_S, TODAY, Call


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
    """With deadlines that a busy machine does not reach: these tests are about answers, not about how long they take."""
    built = build_app(fires, today=lambda: TODAY, deadline_s=PATIENCE_S)
    tools = tuple(msgspec.structs.replace(tool, timeout_s=PATIENCE_S, deadline_s=PATIENCE_S) for tool in built.tools)
    return msgspec.structs.replace(built, tools=tools)


@pytest.fixture
async def runtime(app: App) -> AsyncIterator[Runtime]:
    opened = Runtime.open("memory://", policy=app.policy or "", tools=app.tools)
    yield opened
    await opened.close()


@pytest.fixture
def answers(runtime: Runtime) -> Answers:
    """One for all questions of a test: it keeps the classifier of each agent."""
    return Answers(runtime)


@pytest.fixture
def call(runtime: Runtime) -> Call:
    """One governed call as an operator."""

    def call_tool(tool: str, **arguments: Any) -> Awaitable[Outcome]:
        return runtime.call(tool, arguments, actor="operator")

    return call_tool
