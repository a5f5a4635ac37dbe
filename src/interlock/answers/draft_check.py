"""What is found out about a draft: its claims are traced, and its relevance is looked at.

Where there is much to read this happens off the event loop, so that other turns go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from interlock.answers.agent import Agent
from interlock.answers.grounding import Grounded, Source, ground_safely
from interlock.answers.grounding.evidence import size_of
from interlock.answers.history import History
from interlock.answers.relevance import is_irrelevant
from interlock.config import TextLimits
from interlock.values import Value

P = ParamSpec("P")
T = TypeVar("T")
_LONG = 8_000
"""Characters that are read within a few hundredths of a second; for more, other turns must not wait."""


class CheckedDraft(Value, frozen=True):
    """What was found out about a draft."""

    grounded: Grounded = Grounded()
    irrelevant: bool = False
    """It rests on nothing that the tools returned."""


async def check_draft(
    draft: str, agent: Agent, history: History, sources: Sequence[Source], limits: TextLimits, *, question: str
) -> CheckedDraft:
    """Hold a draft against what it may rest on: the sources, and the user's own words, which prove nothing."""

    def check() -> CheckedDraft:
        known = [*sources, Source("question", question, echo=True)]
        grounded = ground_safely(draft, known, agent.vocabulary, limits)
        # A draft that was not read as a whole is sent back for that alone.
        irrelevant = not grounded.unchecked and is_irrelevant(draft, question, grounded, history)
        return CheckedDraft(grounded, irrelevant)

    if not draft or not agent.grounding:
        return CheckedDraft()
    return await leave_loop(draft, [source.value for source in sources], check)


async def leave_loop(text: str, values: Sequence[object], work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do some work on a text and values: here if they are short, else in a thread, so that other turns go on."""
    if len(text) + size_of(list(values), _LONG) > _LONG:
        return await asyncio.to_thread(work, *args, **kwargs)
    return work(*args, **kwargs)
