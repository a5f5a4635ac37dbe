"""What an effect class adds to the path: how its plan is made, and what its begin and end commits carry.

This is the seam for claims, leases and images: a class of effects brings its own journal, and the engine asks it
without knowing which it is.
"""

from __future__ import annotations

from typing import Protocol

from interlock.schema import Tool
from interlock.transitions import Transition
from interlock.values import Call, Json, Plan, Verdict

NOTHING_CHANGES = Plan(digest="")


class Journal(Protocol):
    """How one class of effects is planned and written down."""

    constant: Plan | None
    """The plan of every call, where it is always the same."""

    def refusal(self, tool: Tool) -> str | None:
        """Why calls of this class cannot be performed at all, or None."""
        ...

    async def plan(self, call: Call, tool: Tool, arguments: Json) -> Plan:
        """What the call will do."""
        ...

    def begin(self, call: Call, plan: Plan, verdict: Verdict) -> tuple[Transition, ...]:
        """What is committed before the effect."""
        ...

    def end(self, call: Call, plan: Plan) -> tuple[Transition, ...]:
        """What is committed with the outcome."""
        ...


class ReadJournal:
    """Reads change nothing: there is nothing to plan, and nothing but the record is kept."""

    constant: Plan | None = NOTHING_CHANGES

    def refusal(self, tool: Tool) -> str | None:
        """Reads may always be performed."""
        return None

    async def plan(self, call: Call, tool: Tool, arguments: Json) -> Plan:
        """Nothing changes."""
        return NOTHING_CHANGES

    def begin(self, call: Call, plan: Plan, verdict: Verdict) -> tuple[Transition, ...]:
        """Nothing."""
        return ()

    def end(self, call: Call, plan: Plan) -> tuple[Transition, ...]:
        """Nothing."""
        return ()


class NoJournal(ReadJournal):
    """An effect class that has no journal is refused: it must not be performed without one."""

    def refusal(self, tool: Tool) -> str | None:
        """Always."""
        return (
            f"{tool.name!r} has effect {tool.effect.value!r}, which needs a journal of intents, and this version has"
            " none: it is refused rather than performed without one"
        )
