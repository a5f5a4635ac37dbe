"""RANGER for tests: its shipped fires, a clock that stands still, a runtime in memory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import Outcome, Runtime
from interlock.answers import Answers, App
from interlock.ports import Query
from interlock_ranger.app import DATA, build_app
from interlock_ranger.briefing.compose import compose_briefing
from interlock_ranger.fires import Fires
from interlock_ranger.records import Fire
from ranger_parts import PATIENCE_S, TODAY, Call, Composed


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


@pytest.fixture(scope="session")
def composed(app: App, fires: Fires) -> dict[str, Composed]:
    """The winter briefing of each fire, composed once."""

    async def compose(fire: Fire) -> Composed:
        async with Runtime.open("memory://", policy=app.policy or "", tools=app.tools) as runtime:
            briefing = await compose_briefing(runtime, app, fire, TODAY, "winter")
            calls = {record.id async for record in runtime.store.records(Query()) if record.kind == "call"}
        return Composed(briefing, calls)

    return {name: asyncio.run(compose(fire)) for name, fire in fires.by_id.items()}


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
