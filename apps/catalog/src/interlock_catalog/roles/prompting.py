"""Asking a model for one report: one that can be told writes it; one that cannot chooses between known answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence

import msgspec

from interlock.models import Message, ModelFailed, Reply, Request, ToolCard
from interlock_catalog.contracts import Json
from interlock_catalog.roles.desk import Asked

_MOST_QUESTIONS = 6


class Question(msgspec.Struct, frozen=True):
    """One thing to decide, with the answers that there are."""

    text: str
    options: tuple[str, ...]


async def told(asked: Asked, report: str, instructions: str, content: Json) -> tuple[Json | None, str]:
    """The arguments of the report that a model writes, or None and why there are none."""
    tool = asked.tool(report)
    card = ToolCard(tool.name, tool.description, tool.input.schema)
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    request = Request(
        instructions, (Message("user", text),), tools=(card,), force=tool.name, max_tokens=4096, temperature=0.0
    )
    try:
        reply = await _replied(asked, request)
    except ModelFailed as error:
        return None, str(error)
    found = next((item for item in reply.proposals if item.tool == tool.name), None)
    if found is None:
        return None, reply.blocked or "the model made no report"
    return (found.arguments, "") if isinstance(found.arguments, dict) else (None, "the report is no object")


async def _replied(asked: Asked, request: Request) -> Reply:
    """A reply in time; whatever a model raises is that it gave none."""
    assert asked.model is not None
    try:
        async with asyncio.timeout(asked.reply_s):
            return await asked.model.reply(request)
    except (KeyboardInterrupt, ModelFailed):
        raise
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise ModelFailed("the model cancelled itself") from None
    except TimeoutError:
        raise ModelFailed(f"no reply within {asked.reply_s:g} s") from None
    except BaseException as error:  # noqa: BLE001 - a model is somebody else's, and may even raise SystemExit
        raise ModelFailed(f"{type(error).__name__}: {error}") from None


async def chosen(asked: Asked, task: str, questions: Sequence[Question]) -> list[str | None]:
    """What a model that can only be constrained chooses for each question, a few at a time; None for no answer."""
    answers: list[str | None] = []
    for start in range(0, len(questions), _MOST_QUESTIONS):
        answers += await _batch(asked, task, questions[start : start + _MOST_QUESTIONS])
    return answers


async def _batch(asked: Asked, task: str, questions: Sequence[Question]) -> list[str | None]:
    names = [f"answer_{number}" for number in range(1, len(questions) + 1)]
    properties = {name: {"type": "string", "enum": list(q.options)} for name, q in zip(names, questions, strict=True)}
    card = ToolCard("choose", task, {"type": "object", "properties": properties, "required": names})
    lines = [f"{name}: {q.text} ({' or '.join(q.options)})" for name, q in zip(names, questions, strict=True)]
    request = Request(
        task,
        (Message("user", "\n".join(lines)),),
        tools=(card,),
        force="choose",
        temperature=0.0,
    )
    try:
        reply = await _replied(asked, request)
    except ModelFailed:
        return [None] * len(questions)
    given: Mapping[str, Json] = {}
    if reply.proposals and isinstance(reply.proposals[0].arguments, dict):
        given = reply.proposals[0].arguments
    picked = [given.get(name) for name in names]
    return [item if item in q.options else None for item, q in zip(picked, questions, strict=True)]
