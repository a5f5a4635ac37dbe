"""An ADK session is a session: the next message goes on from the earlier ones, for the same user alone."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

pytest.importorskip("google.adk")
warnings.filterwarnings("ignore", module="google")

from google.adk.agents import LlmAgent  # noqa: E402
from google.adk.apps import App  # noqa: E402

from interlock import Runtime  # noqa: E402
from interlock.adapters.adk import AdkTool, InterlockLlm, InterlockPlugin, InterlockRunner  # noqa: E402
from interlock.answers import TurnStatus  # noqa: E402
from interlock.answers.constrained import constrain  # noqa: E402
from interlock.policy import parse_policy  # noqa: E402
from interlock.testing import FirstChoice  # noqa: E402
from tests.test_sessions import AGENT, OPEN, make_tools  # noqa: E402


async def test_an_adk_session_is_a_session() -> None:
    made: list[tuple[Any, ...]] = []
    contracts = make_tools(made)
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=contracts)
    root = LlmAgent(
        name="places", model=InterlockLlm(constrain(FirstChoice())), tools=[AdkTool(item) for item in contracts]
    )
    app = App(name="t", root_agent=root, plugins=[InterlockPlugin(runtime, {"places": AGENT})])
    runner = InterlockRunner(app)
    await runner.ask("How many trees at Waldo Lake in winter?", session_id="s")
    result = await runner.ask("and in spring?", session_id="s")
    assert (result.status, result.answer) == (TurnStatus.VERIFIED, "count 42.")  # and not the 41 of winter
    for user, session in (("user", "t"), ("mallory", "s")):
        other = await runner.ask("and in spring?", user_id=user, session_id=session)
        assert other.status is not TurnStatus.VERIFIED
    assert made == [("waldo-lake", "winter", None), ("waldo-lake", "spring", None)]
    asked = await runner.ask("How many trees in summer?", session_id="s")
    assert asked.status is TurnStatus.ASKED
    replied = await runner.ask("Cedar Creek", session_id="s")
    assert (replied.status, replied.turn) == (TurnStatus.VERIFIED, asked.turn)
    assert made[2:] == [("cedar-creek", "summer", None)]
    odd = await runner.ask("How many trees at Waldo Lake?", session_id="a\nb")
    assert odd.status is TurnStatus.VERIFIED
    await runtime.close()
