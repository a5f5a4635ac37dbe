"""Delegation in a plain loop: an agent as a tool of another, whose call opens a child turn for a model to work on."""

from __future__ import annotations

import asyncio

import msgspec

from interlock.answers.agent import Agent
from interlock.answers.entities import pass_on
from interlock.answers.result import TurnResult
from interlock.answers.runner import DRIVEN, run_turn
from interlock.errors import Permanent
from interlock.tools import Tool, tool
from interlock.tools.labels import SAID_BY_A_MODEL
from interlock.values import Context, Json, Result


def delegation(agent: Agent, *, description: str = "", timeout_s: float = 600.0) -> Tool:
    """A tool that asks `agent`: a child turn with its own requirements and ladder, in the same history and budget."""

    async def ask(request: str, context: Context) -> Result[dict[str, Json]]:
        """Open a turn of the agent in that of the caller."""
        driven = DRIVEN.get()
        # A context variable is inherited by every task; only the call's own turn says whose it is.
        if driven is None or driven.turn.id != context.turn:
            raise Permanent(f"{agent.name} can be asked only by a turn that a model is working on")
        # In a thread: an agent that was never asked is learned first, and other calls have deadlines meanwhile.
        async with await asyncio.to_thread(driven.turn.child, agent, request) as turn:
            return _describe_answer(await run_turn(turn, driven.model, watch=driven.watch))

    ask.__doc__ = description or agent.purpose or f"Ask {agent.name}."
    # A read of its own: what the child changes are calls of the child, each with its own effect on the path.
    made = tool(effect="read", name=agent.name, timeout_s=timeout_s, known_values={"request": pass_on})
    return msgspec.structs.replace(made(ask), labels=SAID_BY_A_MODEL)


def _describe_answer(result: TurnResult) -> Result[dict[str, Json]]:
    """What the other agent answered; whether it may be used is decided from the child's record."""
    value: dict[str, Json] = {
        "agent": result.agent,
        "status": result.status.value,
        "verified": result.verified,
        "answer": result.answer,
        "turn": result.turn,
    }
    return Result(value=value, summary=result.answer, confidence=result.confidence, sources=result.sources)
