"""Asking a model for one report: one that can be instructed writes it, another one chooses between given answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import msgspec

from interlock.models import Message, ModelFailed, Reply, Request, ToolCard, guarded_reply
from interlock_catalog.contracts import Json
from interlock_catalog.roles.coercion import coerce_entries
from interlock_catalog.roles.context import Rejection, RoleContext, build_rejection
from interlock_catalog.roles.reports import ReportShape

_QUESTIONS_AT_A_TIME = 6
"""So many answers fit well into the 160 tokens that a constrained model has for one reply."""


class Question(msgspec.Struct, frozen=True):
    """One thing to decide, with the answers that there are."""

    text: str
    options: tuple[str, ...]


class Report(msgspec.Struct, frozen=True):
    """The entries of a report that fit; None if there is no report that could be used."""

    entries: tuple[dict[str, Json], ...] | None
    rejections: tuple[Rejection, ...] = ()


async def request_report(
    context: RoleContext, role: str, shape: ReportShape, instructions: str, content: Json
) -> Report:
    """Have a model write a report: the one call that it is forced to make."""
    tool = context.tools[shape.tool]
    card = ToolCard(tool.name, tool.description, tool.input.schema)
    # In a fixed order: recorded replies are found by the digest of the request.
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    request = Request(
        instructions, (Message("user", text),), tools=(card,), force=tool.name, max_tokens=4096, temperature=0.0
    )
    try:
        reply = await _request_reply(context, role, request)
    except ModelFailed as error:
        return Report(None, (build_rejection(tool.name, None, str(error)),))
    report = _read_report(reply, shape)
    context.model_answers[role] += report.entries is not None
    return report


def _read_report(reply: Reply, shape: ReportShape) -> Report:
    """A report can be used if it has its list, and the list is empty or has an entry that fits."""
    found = next((item for item in reply.proposals if item.tool == shape.tool), None)
    if found is None:
        reason = reply.blocked or "the model made no report"
        return Report(None, (build_rejection(shape.tool, None, reason),))
    if not isinstance(found.arguments, dict):
        return Report(None, (build_rejection(shape.tool, None, "the report is no object"),))
    entries = found.arguments.get(shape.entries)
    # Nothing said is not "nothing is wrong": that is a list with nothing in it.
    if not isinstance(entries, list):
        reason = f"the report has no list {shape.entries}"
        return Report(None, (build_rejection(shape.tool, found.arguments, reason),))
    coerced = coerce_entries(entries, shape.entry)
    rejections = tuple(build_rejection(shape.tool, item.entry, item.reason) for item in coerced.rejected)
    return Report(coerced.entries if coerced.entries or not entries else None, rejections)


async def _request_reply(context: RoleContext, role: str, request: Request) -> Reply:
    """A reply in time; whatever a model raises means that it gave none. Both are counted here, and nowhere else."""
    assert context.model is not None
    context.model_calls[role] += 1
    try:
        reply = await guarded_reply(context.model, request, context.reply_s)
    except TimeoutError:
        raise ModelFailed(f"no reply within {context.reply_s:g} s") from None
    context.model_replies[role] += 1
    return reply


async def request_choices(
    context: RoleContext, role: str, task: str, questions: Sequence[Question]
) -> list[str | None]:
    """What a model that can only choose picks for each question, a few at a time; None for no answer."""
    answers: list[str | None] = []
    for start in range(0, len(questions), _QUESTIONS_AT_A_TIME):
        answers += await _choose(context, role, task, questions[start : start + _QUESTIONS_AT_A_TIME])
    return answers


async def _choose(context: RoleContext, role: str, task: str, questions: Sequence[Question]) -> list[str | None]:
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
        reply = await _request_reply(context, role, request)
    except ModelFailed:
        # Silence is no yes: suspicions stay unconfirmed, and offered values unused.
        return [None] * len(questions)
    given: Mapping[str, Json] = {}
    if reply.proposals and isinstance(reply.proposals[0].arguments, dict):
        given = reply.proposals[0].arguments
    picked = [given.get(name) for name in names]
    answers = [item if item in q.options else None for item, q in zip(picked, questions, strict=True)]
    context.model_answers[role] += any(answer is not None for answer in answers)
    return answers
