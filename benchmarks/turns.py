"""What the turn layer costs without a model: alone, and inside ADK against ADK alone."""

from __future__ import annotations

import asyncio
import time
import warnings
from statistics import median
from typing import Any

from interlock import Runtime, tool
from interlock.answers import Agent, Answers, Intent, run_turn
from interlock.models import Proposal, Reply, Request
from interlock.policy import parse_policy

TURNS = 60
ROUNDS = 5
CALLS = 3
POLICY = 'version = 1\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n'
QUESTION = "how bad is the damage, and where?"


def _contracts() -> list[Any]:
    @tool(effect="read")
    async def damage(n: int) -> dict[str, Any]:
        """Damage of a trail."""
        return {"trail": f"trail-{n}", "damage_class": n, "acres": 100 + n}

    return [damage]


class Calls:
    """A model that makes three calls, one a reply, then answers."""

    name, instructable = "scripted", True

    async def reply(self, request: Request) -> Reply:
        """The next call, or the answer."""
        done = sum(message.role == "tool" for message in request.messages)
        if done < CALLS:
            return Reply(proposals=(Proposal("damage", {"n": done}, f"c{done}"),))
        return Reply("trail-1 is class 1 with 101 acres, trail-2 is class 2.")

    async def close(self) -> None:
        """Nothing is held."""


class CallsAlone(Calls):
    """The same without a draft: the results leave as they are."""

    async def reply(self, request: Request) -> Reply:
        """The next call, or nothing."""
        reply = await super().reply(request)
        return reply if reply.proposals else Reply("")


AGENT = Agent(
    name="bench",
    tools=("damage",),
    intents=(Intent(name="damage", requires="damage", keywords=("damage",)),),
    semantic=False,
)


async def alone(store: str, model: type[Calls] = Calls) -> float:
    """Milliseconds of the turn layer itself in a turn with three calls."""
    runtime = Runtime.open(store, policy=parse_policy(POLICY), tools=_contracts())
    found, answers = [], Answers(runtime)
    for _ in range(TURNS):
        async with answers.turn(QUESTION, agent=AGENT) as turn:
            result = await run_turn(turn, model())
        assert result.verified, result
        found.append(result.overhead_us / 1000)
    await runtime.close()
    return median(found)


async def _adk(plugged: bool) -> float:
    """CPU milliseconds of an ADK turn with three tool calls and a scripted model."""
    from google.adk.agents import LlmAgent
    from google.adk.apps import App
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    from interlock.adapters.adk import AdkTool, InterlockLlm, InterlockPlugin

    def damage(n: int) -> dict[str, Any]:
        """Damage of a trail."""
        return {"trail": f"trail-{n}", "damage_class": n, "acres": 100 + n}

    contracts = _contracts()
    runtime = Runtime.open("memory://", policy=parse_policy(POLICY), tools=contracts)
    plugins = [InterlockPlugin(runtime, {"bench": AGENT}, instruct=False)] if plugged else []
    tools: list[Any] = [AdkTool(item) for item in contracts] if plugged else [damage]
    app = App(
        name="bench", root_agent=LlmAgent(name="bench", model=InterlockLlm(Calls()), tools=tools), plugins=plugins
    )
    runner = InMemoryRunner(app=app)
    message = types.Content(role="user", parts=[types.Part(text=QUESTION)])
    took = []
    for _ in range(TURNS):
        session = await runner.session_service.create_session(app_name="bench", user_id="u")
        started = time.process_time()
        async for _event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            pass
        took.append((time.process_time() - started) * 1000)
    await runtime.close()
    return median(took)


def measure(folder: str) -> dict[str, float]:
    """Medians over interleaved rounds."""
    warnings.filterwarnings("ignore")
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, value in (
            ("memory_ms", asyncio.run(alone("memory://"))),
            ("no_draft_ms", asyncio.run(alone("memory://", CallsAlone))),
            ("sqlite_ms", asyncio.run(alone(f"sqlite:///{folder}/turns.db"))),
            ("bare_adk_ms", asyncio.run(_adk(plugged=False))),
            ("adk_ms", asyncio.run(_adk(plugged=True))),
        ):
            found.setdefault(name, []).append(value)
    return {name: median(values) for name, values in found.items()}


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as folder:
        print({name: round(value, 3) for name, value in measure(folder).items()})
