"""What is found out about a draft: its claims are traced, and its relevance is looked at.

Where there is much to read this happens off the event loop, so that other turns go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from interlock.answers.agent import Agent
from interlock.answers.grounding import Grounded, Source, default_vocabulary, ground_safely
from interlock.answers.grounding.meaning import meaning_of
from interlock.answers.history import History
from interlock.answers.relevance import is_irrelevant
from interlock.answers.staleness import mark_stale
from interlock.config import TextLimits
from interlock.tools import Tool
from interlock.tools.long_texts import leave_loop, size_of
from interlock.values import Value


class CheckedDraft(Value, frozen=True):
    """What was found out about a draft."""

    grounded: Grounded = Grounded()
    irrelevant: bool = False
    """It rests on nothing that the tools returned."""


async def check_draft(
    draft: str,
    agent: Agent,
    history: History,
    sources: Sequence[Source],
    limits: TextLimits,
    *,
    question: str,
    tools: Iterable[Tool] = (),
) -> CheckedDraft:
    """Hold a draft against what it may rest on: the sources, and the user's own words, which prove nothing."""

    def check() -> CheckedDraft:
        fresh = mark_stale(sources, history.calls, (agent.vocabulary or default_vocabulary()).words)
        known = [*fresh, *history.asked, Source("question", question, echo=True)]
        grounded = ground_safely(draft, known, agent.vocabulary, limits, meanings)
        # A draft that was not read as a whole is sent back for that alone.
        irrelevant = not grounded.unchecked and is_irrelevant(draft, question, grounded, history)
        return CheckedDraft(grounded, irrelevant)

    meanings = {tool.name: meaning_of(tool) for tool in tools}
    if not draft or not agent.grounding:
        return CheckedDraft()
    return await leave_loop(len(draft) + len(question) + size_of([source.value for source in sources]), check)
