"""A question that one agent hands over to another is still the user's: what its answer needs goes with it.

ADK hands over by `transfer_to_agent`, within an invocation, and begins the next one where the last left off. Whoever
answers has to meet what the first agent of the tree would have had to, beside what its own intents say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from google.adk.agents import BaseAgent

from interlock.answers import Agent, Answers, Turn
from interlock.answers.asked import Carried
from interlock.answers.requirements import NOTHING, Requirement
from interlock.errors import ConfigError
from interlock.values import Status


class SubagentCall(msgspec.Struct, frozen=True):
    """A call of one agent by another."""

    parent: str | None = None
    """The turn that delegates."""
    request: str = ""
    agent: str = ""
    """Who is called; whoever works below it was handed the question over."""


NOBODY = SubagentCall()
"""Where no agent was called by another."""


class Handover(msgspec.Struct, frozen=True):
    """How a question came to an agent."""

    above: Agent | None
    """The outermost agent above it whose answers are checked; None if it was called itself, or is the first."""
    parent: str | None
    first: Turn | None
    """The turn with which the invocation began."""

    @classmethod
    def to(cls, agent: BaseAgent, known: Mapping[str, Agent], delegated: SubagentCall, first: Turn | None) -> Handover:
        """What came to this agent: by a call, which its caller answers for, or by a handover."""
        if delegated.agent == agent.name:
            return cls(None, delegated.parent, None)
        found, above = None, agent.parent_agent
        while above is not None:
            found, above = known.get(above.name, found), above.parent_agent
        return cls(found, delegated.parent if first is None or found is None else first.id, first)

    async def details(self, answers: Answers, question: str) -> dict[str, Any]:
        """What the turn of the agent is opened with: its parent, what is needed, what was found by then."""
        details: dict[str, Any] = {} if self.parent is None else {"parent": self.parent}
        first = self.first
        if self.above is None and first is None:
            return details
        if first is None:
            assert self.above is not None
            details["carried"] = Carried(None, answers.classify(self.above, question).requirement)
            return details
        # What the session has settled binds that turn, and so whoever the question is handed over to.
        needed: Requirement = NOTHING  # it has come back to the first agent, which has its own needs
        if self.above is not None:
            is_above = first.agent.name == self.above.name
            needed = first.requirement if is_above else answers.classify(self.above, question).requirement
        given, before = first.asked.given, await first.recall()
        details["carried"] = Carried(first.id, needed)
        # Also what those have found that it went through on its way here.
        found = [*before.records, *(call.record for call in before.below if call.status is Status.OK)]
        details["given"] = [*given, *(number for number in found if number not in given)]
        return details


def refuse_live(context: Any, known: Mapping[str, Agent]) -> None:
    """Refuse a run that streams text and sound as the model makes them: nothing of it could be held back."""
    if known and getattr(context, "live_request_queue", None) is not None:
        raise ConfigError(
            "run_live is refused: what a model says there leaves as it is made, before it could be checked; use"
            " run_async, or an App in which no agent has an Agent of ours"
        )
