"""Redaction on the path: one redactor for a call, which knows all that the call holds under redacted names.

Whatever leaves the path goes through it, whole: the record, what is logged, the traceback that lies beside the record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec

from interlock.engine.context import Ended, EngineContext, Prepared
from interlock.engine.uninterrupted import run_uninterrupted
from interlock.reasons import Reason
from interlock.records import Content
from interlock.tools import LONGEST_MESSAGE, MARK, Redactor, misspelled_fields, redactor_of, shorten_problem
from interlock.tools.long_texts import LONG, size_of
from interlock.tools.redacted_fields import property_names
from interlock.values import FieldProblem, Json, Plan, Problem, Rewrite, Verdict

T = TypeVar("T")
NOTHING_REDACTED = Redactor(frozenset())
_BEFORE_CONTRACT = frozenset(
    {Reason.INVALID_ARGUMENTS, Reason.NOT_OFFERED, Reason.WITHHELD, Reason.AMBIGUOUS, Reason.NOT_FOUND}
)
"""Why a call may end before its arguments were held against its contract."""


def held_by(prepared: Prepared) -> tuple[Json, ...]:
    """What a call under way was given, and what it has read: `redactor_of` its tool with this knows its secrets."""
    admitted = prepared.admitted
    given = (admitted.facts.call.arguments, admitted.facts.arguments, admitted.asked)
    return (*given, _before_rewrites(admitted.parsed.rewrites), *_states(prepared.plan))


def redactor_of_end(ctx: EngineContext, ended: Ended) -> Redactor:
    """Knows everything that a call held when it ended.

    A call of an unknown tool may carry any tool's secrets, so every tool's are taken out of it. Arguments that passed
    no contract may hold them under names that nobody declared: a slip, or a text that was no call. Those names are
    redacted as well.
    """
    tool, reading = ended.tool, ended.reading
    given = (ended.call.arguments, ended.arguments, ended.asked)
    read = (reading.value, reading.rejected, reading.metadata, *_states(ended.plan), [i.state for i in ended.after])
    rewritten = [] if ended.verdict is None else _before_rewrites(ended.verdict.rewrites)
    documents = (*given, *read, rewritten, *ended.seen)
    if tool is None:
        slips = misspelled_fields(ended.arguments, ctx.redacted, None) if ctx.redacted else frozenset()
        return Redactor(ctx.redacted | slips, *documents)
    refused = reading.problem is not None and reading.problem.reason in _BEFORE_CONTRACT and not ended.attempts
    if not refused or not tool.redact:
        return redactor_of(tool, *documents)
    slips = misspelled_fields(ended.arguments, tool.redact, frozenset(property_names(tool.input.schema)))
    return redactor_of(tool, *documents, also=slips)


async def redact_long(size: int, work: Callable[[], T]) -> tuple[T, BaseException | None]:
    """Do some redaction: here if it is little, else in a thread, so that other calls go on.

    It is waited for, whoever cancels: what was done must be written down. The interrupt is given back.
    """
    if size <= LONG:
        return work(), None
    return await run_uninterrupted(asyncio.to_thread(work))


def size_to_redact(ctx: EngineContext, ended: Ended) -> int:
    """About how many characters are looked at where a call ends; nothing where nothing is redacted."""
    tool, reading = ended.tool, ended.reading
    if not (ctx.redacted if tool is None else tool.redact):
        return 0
    texts = len(reading.text) + len(reading.said)
    return texts + size_of([ended.call.arguments, ended.call.evidence, *_states(ended.plan), list(ended.seen)])


def redact_content(content: Content, ended: Ended, redactor: Redactor, record_bytes: int) -> Content:
    """What may be written into the chain: redacted, and short.

    Arguments that are not even an object cannot be told apart into fields: nothing of them is kept.
    """
    reading = ended.reading
    too_large = len(reading.text) > record_bytes
    said = redactor.text(reading.said)
    whole = isinstance(ended.arguments, dict) or not redactor.redacts
    return msgspec.structs.replace(
        content,
        arguments=redactor.value(ended.arguments) if whole else MARK,
        value={"omitted_bytes": len(reading.text)} if too_large else redactor.value(reading.value),
        metadata=redactor.value(reading.metadata),
        said=said if reading.problem is None else said[:LONGEST_MESSAGE],
        keys=tuple(map(redactor.text, content.keys)),
        evidence=tuple(map(redactor.text, content.evidence)),
        snippets=tuple(map(redactor.text, reading.snippets)),
        sources=tuple(map(redactor.text, reading.sources)),
        problem=_redacted_problem(reading.problem, redactor),
        verdict=_redacted_verdict(ended.verdict, redactor),
    )


def _states(plan: Plan | None) -> list[Json]:
    return [] if plan is None else [plan.before, plan.after]


def _before_rewrites(rewrites: tuple[Rewrite, ...]) -> Json:
    """What stood in fields before it was rewritten, under their names."""
    return [{item.field.rpartition(".")[2]: item.before} for item in rewrites]


def _redacted_problem(problem: Problem | None, redactor: Redactor) -> Problem | None:
    """Redacted first and cut then: half a secret would not be found."""
    if problem is None:
        return None
    fields = tuple(
        FieldProblem(redactor.text(item.field), redactor.text(item.message), item.reason) for item in problem.fields
    )
    hints = tuple(map(redactor.text, problem.hints))
    message = redactor.text(problem.message)
    return shorten_problem(msgspec.structs.replace(problem, message=message, hints=hints, fields=fields))


def _redacted_verdict(verdict: Verdict | None, redactor: Redactor) -> Verdict | None:
    if verdict is None:
        return None
    rewrites = tuple(
        Rewrite(
            field=item.field,
            before=redactor.field(item.field, item.before),
            after=redactor.field(item.field, item.after),
            rule=item.rule,
        )
        for item in verdict.rewrites
    )
    return msgspec.structs.replace(verdict, reason=redactor.text(verdict.reason), rewrites=rewrites)
