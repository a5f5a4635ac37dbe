"""A briefing: four domains in one go, from one turn of the coordinator with a child turn for each specialist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import msgspec

from interlock import Outcome, Runtime, Status
from interlock.answers import Answers, App, TurnResult, run_turn
from interlock.answers.runner import Progress, Returned
from interlock_ranger.agents import SPECIALISTS
from interlock_ranger.briefing.planner import BriefingPlanner
from interlock_ranger.records import Fire

QUESTION = "Full briefing on {name}: burn, trails, timber and compliance."
SECTIONS = {
    "Burn": ("assess_severity", "classify_mtbs", "validate_boundary"),
    "Trails": ("classify_damage", "evaluate_closure"),
    "Timber": ("estimate_volume", "assess_salvage"),
    "Compliance": ("decide_pathway",),
}
"""The parts of a briefing, and the tools whose results stand in each."""


class RecordedResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result that the briefing rests on, and the record that it stands in."""

    tool: str
    record: int
    value: dict[str, Any]
    summary: str
    confidence: float | None


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """A question of the briefing to which nothing is on file, and the record that says so."""

    tool: str
    record: int
    reason: str


class Briefing(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a fire."""

    fire: Fire
    day: date
    turn: TurnResult
    results: tuple[RecordedResult, ...]
    gaps: tuple[Gap, ...] = ()
    failures: tuple[str, ...] = ()
    """Which specialists did not succeed, and why, a sentence each."""

    def results_of(self, tool: str) -> tuple[RecordedResult, ...]:
        return tuple(result for result in self.results if result.tool == tool)

    def gaps_of(self, tools: Sequence[str]) -> dict[str, tuple[Gap, ...]]:
        """By their reason, which several tools may have in common."""
        own = [gap for gap in self.gaps if gap.tool in tools]
        return {reason: tuple(g for g in own if g.reason == reason) for reason in dict.fromkeys(g.reason for g in own)}

    @property
    def confidence(self) -> float | None:
        """The lowest of all results."""
        return min((item.confidence for item in self.results if item.confidence is not None), default=None)


async def compose_briefing(runtime: Runtime, app: App, fire: Fire, day: date, season: str | None = None) -> Briefing:
    """The briefing of a fire; it needs all four specialists to have succeeded, like any answer that is called so."""
    outcomes: list[Outcome] = []

    def keep(progress: Progress) -> None:
        # Child turns are watched with the same function, so the results of the specialists' tools come here, too.
        if isinstance(progress, Returned):
            outcomes.append(progress.outcome)

    agent = app.agent("coordinator")
    # Looked up by its name and not recognised from the question: a briefing without one of the four is none.
    needs = next(intent.requirement for intent in agent.intents if intent.name == "briefing")
    question = QUESTION.format(name=fire.facts.name)
    answers = Answers(runtime)
    # First: specialists are asked in calls, whose deadlines must not pass while one of them is learned.
    await answers.prepare(*(app.agent(name) for name in SPECIALISTS))
    async with answers.turn(question, agent=agent, requires=needs) as turn:
        result = await run_turn(turn, BriefingPlanner(fire, season), watch=keep)
    results = tuple(
        RecordedResult(tool=o.tool, record=o.record or 0, value=o.value, summary=o.said, confidence=o.confidence)
        for o in outcomes
        # A delegation holds what a specialist said; figures are taken from the results below it.
        if o.ok and o.tool not in SPECIALISTS and isinstance(o.value, dict)
    )
    # In the order of the sections, whichever of the specialists answered first.
    gaps = tuple(
        Gap(tool=o.tool, record=o.record or 0, reason=o.problem.message)
        for tool in (tool for tools in SECTIONS.values() for tool in tools)
        for o in outcomes
        if o.tool == tool and o.status is Status.NO_DATA and o.problem is not None
    )
    failures = () if result.verified else tuple(_find_failures(outcomes)) or (result.reason,)
    return Briefing(fire=fire, day=day, turn=result, results=results, gaps=gaps, failures=failures)


def _find_failures(outcomes: list[Outcome]) -> Iterator[str]:
    for name in SPECIALISTS:
        asked = [outcome for outcome in outcomes if outcome.tool == name]
        if not asked:
            yield f"{name} was not asked"
        elif asked[-1].problem is not None:
            yield f"{name} failed: {asked[-1].problem.message}"
        elif isinstance(asked[-1].value, dict) and not asked[-1].value.get("verified"):
            yield f"{name} did not succeed: {asked[-1].value.get('answer') or asked[-1].value.get('status')}"
