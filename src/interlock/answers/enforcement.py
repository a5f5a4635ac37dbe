"""How well turns are enforced: first pass, retry, forced, escalated, per agent, against targets and alarms."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import msgspec

from interlock.answers.events import Finished, event_of
from interlock.answers.ladder import TurnOutcome
from interlock.records import Stored

_PASSED = (TurnOutcome.PASSED, TurnOutcome.RETRY_SUCCEEDED, TurnOutcome.FORCED, TurnOutcome.PARTIAL)
_RETRIED = (TurnOutcome.RETRY_SUCCEEDED, TurnOutcome.FORCED, TurnOutcome.ESCALATED)
TARGETS = {"first_pass": 0.90, "combined": 0.99, "escalated": 0.01, "overhead_ms": 100.0}
ALARMS = {"first_pass": 0.85, "combined": 0.95, "escalated": 0.05, "overhead_ms": 500.0}
RETRY_WARNING = 0.10


class AgentLine(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's turns."""

    agent: str
    turns: int
    required: int
    """Turns whose answer needed a tool: rates are of these."""
    outcomes: dict[str, int]
    first_pass: float
    combined: float
    escalated: float
    retried: float
    overhead_ms: float
    """Of the turn layer itself, at the 95th percentile."""
    alarms: tuple[str, ...]
    retried_intents: tuple[str, ...]
    """Intents behind the retries, if there are too many."""


async def enforcement(records: AsyncIterator[Stored]) -> tuple[AgentLine, ...]:
    """Fold finished turns; those that were only observed count as what they would have been.

    A turn that waited and was gone on with has ended several times: it counts once, as it ended last.
    """
    last: dict[str | None, Finished] = {}
    async for record in records:
        event = event_of(record)
        if isinstance(event, Finished):
            last[record.turn] = event
    found: dict[str, list[Finished]] = {}
    for event in last.values():
        found.setdefault(event.agent, []).append(event)
    return tuple(_line(agent, turns) for agent, turns in sorted(found.items()))


def _line(agent: str, turns: list[Finished]) -> AgentLine:
    required = [turn for turn in turns if turn.required]
    count = max(1, len(required))
    outcomes = Counter(turn.outcome.value for turn in turns)
    mine = Counter(turn.outcome for turn in required)
    took = sorted(turn.overhead_us for turn in turns)
    rates = {
        "first_pass": mine[TurnOutcome.PASSED] / count if required else 1.0,
        "combined": sum(mine[outcome] for outcome in _PASSED) / count if required else 1.0,
        "escalated": (mine[TurnOutcome.ESCALATED] + mine[TurnOutcome.BLOCKED]) / count,
        "overhead_ms": took[min(len(took) - 1, int(0.95 * len(took)))] / 1000,
    }
    retried = sum(mine[outcome] for outcome in _RETRIED) / count
    behind: Counter[str] = Counter()
    for turn in required:
        if turn.outcome in _RETRIED:
            behind.update(turn.intents or ("(default)",))
    return AgentLine(
        agent=agent,
        turns=len(turns),
        required=len(required),
        outcomes=dict(outcomes.most_common()),
        retried=retried,
        alarms=tuple(name for name in ALARMS if _is_beyond(name, rates[name], ALARMS[name])),
        retried_intents=tuple(name for name, _ in behind.most_common(5)) if retried > RETRY_WARNING else (),
        **rates,
    )


def _is_beyond(name: str, value: float, bound: float) -> bool:
    return value < bound if name in ("first_pass", "combined") else value > bound


def meets(line: AgentLine, name: str) -> bool:
    """Whether a figure reaches its target."""
    value: float = getattr(line, name)
    return value > TARGETS[name] if name in ("first_pass", "combined") else value < TARGETS[name]
