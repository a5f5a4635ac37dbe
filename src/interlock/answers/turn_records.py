"""What a turn writes down while it is worked on: its beginning, and the attempts that did not pass."""

from __future__ import annotations

import msgspec

from interlock.answers.agent import Agent
from interlock.answers.asked import Asked
from interlock.answers.events import Forced, Opened, Retried
from interlock.answers.history import History
from interlock.answers.ladder import Force, Retry
from interlock.answers.prompts import tool_names
from interlock.models.messages import Usage
from interlock.values import Json


def opening_event(agent: Agent, asked: Asked, *, most_replies: int, root_turn: str | None) -> Opened:
    """The beginning of a turn: what was asked for, and what the answer needs."""
    classified = asked.classified
    return Opened(
        agent=agent.name,
        intents=classified.intents,
        by=classified.by,
        certainty=classified.score,
        requires=classified.requirement,
        enforcement=agent.enforcement,
        most_model_calls=most_replies,
        parent=asked.parent,
        root_turn=root_turn,
        on_behalf_of=asked.on_behalf_of,
        workflow=None if asked.workflow is None else asked.workflow.name,
        mode=asked.mode,
        run=asked.run,
    )


def opening_payload(asked: Asked) -> Json:
    """What lies beside the record of the beginning: the question itself, and what the answer may rest on."""
    return {
        "question": asked.question,
        "given": [item if isinstance(item, int) else msgspec.to_builtins(item) for item in asked.given],
        "workflow": msgspec.to_builtins(asked.workflow),
    }


def attempt_event(step: Retry | Force, history: History, usage: Usage, replies: int) -> Retried | Forced:
    """An attempt that did not pass: what had been called, what is missing or is forced now."""
    called = tuple(call.tool for call in history.calls)
    if isinstance(step, Force):
        return Forced(tool=step.need.tool, called=called, usage=usage, model_calls=replies)
    return Retried(
        called=called,
        missing=tool_names(step.missing),
        unsupported=len(step.unsupported) + bool(step.unchecked),
        usage=usage,
        model_calls=replies,
    )
