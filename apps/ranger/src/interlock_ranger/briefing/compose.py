"""A briefing: four domains in one go, from one turn of the coordinator with a child turn for each specialist."""

from __future__ import annotations

from datetime import date
from typing import Any

import msgspec

from interlock import Outcome, Runtime
from interlock.answers import Answers, App, TurnResult, run_turn
from interlock_ranger.agents import SPECIALISTS
from interlock_ranger.briefing.planner import Planner
from interlock_ranger.fires import Fire

QUESTION = "Full briefing on {name}: burn, trails, timber and compliance."


class Found(msgspec.Struct, frozen=True):
    """A result that the briefing rests on, and the record that it stands in."""

    tool: str
    record: int
    value: dict[str, Any]
    said: str
    confidence: float | None
    sources: tuple[str, ...]


class Briefing(msgspec.Struct, frozen=True):
    """What is known about a fire."""

    fire: Fire
    day: date
    result: TurnResult
    found: tuple[Found, ...]

    def of(self, tool: str) -> tuple[Found, ...]:
        """The results of a tool."""
        return tuple(item for item in self.found if item.tool == tool)

    @property
    def confidence(self) -> float | None:
        """The lowest of all results."""
        return min((item.confidence for item in self.found if item.confidence is not None), default=None)


async def brief(runtime: Runtime, app: App, fire: Fire, day: date, season: str | None = None) -> Briefing:
    """The briefing of a fire; it needs all four specialists to have succeeded, like any answer that is called so."""
    outcomes: list[Outcome] = []

    def keep(progress: Any) -> None:
        if progress.outcome is not None and progress.outcome.ok:
            outcomes.append(progress.outcome)

    agent = app.agent("coordinator")
    needs = next(intent.requirement for intent in agent.intents if intent.name == "briefing")
    async with Answers(runtime).turn(QUESTION.format(name=fire.facts.name), agent=agent, requires=needs) as turn:
        result = await run_turn(turn, Planner(fire, season), watch=keep)
    found = tuple(
        Found(o.tool, o.record or 0, o.value, o.said, o.confidence, o.sources)
        for o in outcomes
        if o.tool not in SPECIALISTS and isinstance(o.value, dict)
    )
    return Briefing(fire, day, result, found)
