"""What an answer does not cover, in the words of Interlock: a partial one says so whatever the model wrote."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.answers.agent import Agent
from interlock.answers.draft_check import check_draft
from interlock.answers.grounding import Source
from interlock.answers.history import History
from interlock.answers.work.ongoing import OngoingWork
from interlock.engine import EngineContext
from interlock.values import Value, name_some


class Gaps(Value, frozen=True):
    """What is missing of an answer, one by one, and the sentence that says it."""

    found: tuple[str, ...]
    note: str


async def find_gaps(
    work: OngoingWork | None, history: History, agent: Agent, given: Sequence[Source], ctx: EngineContext, *, words: str
) -> Gaps | None:
    """What an answer that is given now does not cover; None if it is whole. `words`: what the user has said."""
    short = None if work is None else work.shortfall()
    others = tuple(f"{name} gave only a partial answer" for name in history.partial)
    if short is None and not others:
        return None
    sources, unread = (*history.sources, *given), list[str]()
    for number, question in () if short is None else short.questions:
        # The plan is a model's: what it says of the world may no more leave unchecked in a note than in an answer.
        found = await check_draft(question, agent, history, sources, ctx, question=words)
        is_said = found.grounded.is_supported and not found.disagreements
        unread.append(f"“{question}”" if is_said else f"sub-question {number} of the plan")
    lacks = () if short is None else short.lacks
    why = () if short is None else (short.why,)
    note = f"this is a partial answer: {', and '.join((*why, *lacks, *others))}"
    if unread:
        note += f"; no source was read for {name_some(unread)}"
    return Gaps((*lacks, *(f"no source: {one}" for one in unread), *others), note)
