"""The end of a turn: what the user is told, its record, and the ticket of an answer that a person has to verify."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from interlock.answers import prompts
from interlock.answers.agent import Agent
from interlock.answers.citations import cite_claims
from interlock.answers.draft_check import facts_of
from interlock.answers.events import AskedBack, Finished, TurnLog
from interlock.answers.grounding import Grounded, Source, ground_safely
from interlock.answers.history import History
from interlock.answers.ladder import Ask, Escalate, Pass, Render, Step, Stop, TurnOutcome, Wait
from interlock.answers.notes import say_notes
from interlock.answers.result import Action, TurnResult, TurnStatus
from interlock.answers.sessions.when import age_notes
from interlock.answers.statements import TurnEffect, with_closing_line
from interlock.answers.statements.recorded import recorded_effects
from interlock.answers.work.cross_checks import Trace, cross_check
from interlock.answers.work.gaps import Gaps
from interlock.answers.workflows import SourceRead, SourceRule
from interlock.engine import EngineContext
from interlock.errors import NotAllowed
from interlock.models import Usage
from interlock.operations.ledger_writer import LedgerWriter, store_digest
from interlock.review import stamp, ticket_digest
from interlock.state import Ticket, TicketKind, TicketState
from interlock.tools.long_texts import leave_loop, size_of
from interlock.tools.redaction import Redactor
from interlock.transitions import OpenTicket as AskPerson
from interlock.values import Status

ANSWER = "answer"
"""The kind of ticket that holds a draft back."""


class TurnEnd(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known when a turn ends."""

    turn: str
    agent: Agent
    words: str
    """The user's own words."""
    step: Step
    draft: str
    grounded: Grounded
    missing: tuple[str, ...]
    required: bool
    intents: tuple[str, ...]
    notes: tuple[str, ...]
    usage: Usage
    replies: int
    conversation: bool = False
    """Nothing was asked for, and the draft says nothing."""
    overhead_us: int = 0
    on_behalf_of: str | None = None
    asks: AskedBack | None = None
    given: tuple[Source, ...] = ()
    """What was handed in beside the results: an answer that rests on a record of an earlier turn says how old it is."""
    gaps: Gaps | None = None
    """What an answer does not cover; None if it is whole."""
    read: tuple[SourceRead, ...] = ()
    """The sources that its way of working has counted."""
    rule: SourceRule = SourceRule()


async def finish_turn(
    writer: LedgerWriter, log: TurnLog, ctx: EngineContext, ending: TurnEnd, history: History
) -> TurnResult:
    """Write down how the turn ended, open the ticket where a person is needed, and give the result."""
    size = size_of([source.value for source in history.sources])  # they may be written out, in place of a draft
    effects = await recorded_effects(ctx.store, ctx.clock.now_us(), history)
    result = _close(await leave_loop(size, _result, ending, history, ctx), effects)
    asks: tuple[AskPerson, ...] = ()
    opened = ""
    # Before the record: the answer names the ticket, and both land in one commit.
    if result.action is Action.HUMAN_REVIEW and ending.agent.enforcement == "enforce":
        ticket = stamp(_ticket(writer, ctx, ending, result.reason), await writer.store_time_us())
        asks = (AskPerson(ticket),)
        held = msgspec.structs.replace(result, ticket=ticket.id, answer=_escalation(ending, history, ticket.id, ctx))
        result = _close(held, effects)
        opened = ticket_digest(ticket, partial(store_digest, writer.store))
    payload = {"draft": ending.draft, "result": msgspec.to_builtins(result)}
    try:
        event = msgspec.structs.replace(_event(ending, result), ticket_digest=opened)
        await log.append(event, payload, *asks)
    except NotAllowed as refused:  # the same draft is waiting already
        answer = _escalation(ending, history, refused.instead, ctx)
        result = _close(msgspec.structs.replace(result, ticket=refused.instead, answer=answer), effects)
        await log.append(_event(ending, result), {**payload, "result": msgspec.to_builtins(result)})
    return result


def _close(result: TurnResult, effects: tuple[TurnEffect, ...]) -> TurnResult:
    """The result with what was done, waits or was refused, as values and as the last line of the answer."""
    return msgspec.structs.replace(result, effects=effects, answer=with_closing_line(result.answer, effects))


def _event(ending: TurnEnd, result: TurnResult) -> Finished:
    return Finished(
        agent=ending.agent.name,
        outcome=result.outcome,
        status=result.status,
        verified=result.verified,
        attempts=result.attempts,
        model_calls=result.model_calls,
        overhead_us=result.overhead_us,
        usage=result.usage,
        tools=result.tools,
        missing=result.missing,
        reason=result.reason,
        ticket=result.ticket,
        enforced=ending.agent.enforcement == "enforce",
        required=ending.required,
        intents=ending.intents,
        asks=ending.asks if result.status is TurnStatus.ASKED else None,
    )


def _result(ending: TurnEnd, history: History, ctx: EngineContext) -> TurnResult:
    step, common = ending.step, _common(ending, history)
    if ending.agent.enforcement != "enforce":  # observing only records what would have been done
        outcome = getattr(step, "outcome", TurnOutcome.ESCALATED)  # Retry, Force, Ask and Wait have none
        return TurnResult(
            **common,
            status=TurnStatus.UNVERIFIED,
            outcome=outcome,
            verified=False,
            answer=f"{ending.draft}\n\n(unverified: enforcement is off for this agent)",
            reason=f"enforcement is off; would have been {type(step).__name__.lower()}",
        )
    match step:
        case Pass(outcome=outcome):
            return _pass(ending, history, common, outcome, ctx)
        case Render():
            return _render(ending, history, common, step, ctx)
        case Ask(question=question):
            return TurnResult(
                **common,
                status=TurnStatus.ASKED,
                outcome=TurnOutcome.ASKED,
                verified=False,
                answer=question[:1].upper() + question[1:],
                reason=question,
            )
        case Wait(ticket=ticket):
            return TurnResult(
                **common,
                status=TurnStatus.WAITING,
                outcome=TurnOutcome.WAITING,
                verified=False,
                answer=prompts.waiting_text(ticket),
                reason="a call waits for approval",
                ticket=ticket,
            )
        case Stop():
            return _stop(common, step)
        case Escalate(outcome=outcome, reason=reason):
            blocked = outcome is TurnOutcome.BLOCKED
            return TurnResult(
                **common,
                status=TurnStatus.BLOCKED if blocked else TurnStatus.ESCALATED,
                outcome=outcome,
                verified=False,
                answer="",
                reason=reason,
                action=Action.HUMAN_REVIEW,
            )
    raise AssertionError(f"{step} is not an end")  # pragma: no cover - Retry and Force go back to the model


def _common(ending: TurnEnd, history: History) -> dict[str, Any]:
    return {
        "turn": ending.turn,
        "agent": ending.agent.name,
        "attempts": 1 + history.retries + history.corrected + len(history.forced),
        "tools": tuple(dict.fromkeys(call.tool for call in history.calls if call.status is Status.OK)),
        "missing": ending.missing,
        "model_calls": ending.replies,
        "usage": ending.usage,
        "overhead_us": ending.overhead_us,
        "sources": history.data_sources,
        "records": history.records,
        **({} if ending.gaps is None else {"partial": True, "gaps": ending.gaps.found}),
    }


def _pass(
    ending: TurnEnd, history: History, common: dict[str, Any], outcome: TurnOutcome, ctx: EngineContext
) -> TurnResult:
    ages, claims = age_notes(ending.grounded, ending.given, ctx.clock.now_us()), ending.grounded.claims
    if claims:
        claims = cite_claims(claims, facts_of(ending.agent, history, ending.given, ctx))
    if claims and ending.read:
        claims = cross_check(claims, ending.read, history.sources, ending.rule, _tracer(ending, history, ctx))
    sure = [claim.confidence for claim in claims if claim.confidence is not None]
    sure += [] if history.confidence is None else [history.confidence]
    status = TurnStatus.CONVERSATION if ending.conversation else TurnStatus.VERIFIED
    return TurnResult(
        **common,
        status=status if ending.gaps is None else TurnStatus.PARTIAL,
        outcome=outcome if ending.gaps is None else TurnOutcome.PARTIAL,
        verified=not ending.conversation and ending.gaps is None,
        answer=prompts.add_notes(ending.draft, (*say_notes(history.notes, ending.words), *_notes(ending), *ages)),
        claims=claims,
        confidence=min(sure, default=None),
        reason="" if ending.gaps is None else ending.gaps.note,
    )


def _tracer(ending: TurnEnd, history: History, ctx: EngineContext) -> Trace:
    """Holds the draft against some of the evidence alone."""

    def trace(sources: Sequence[Source]) -> Grounded:
        tools = {name: binding.tool for name, binding in ctx.bindings.items()}
        words, meanings = ending.agent.vocabulary, history.kept.meanings(tools)
        known = (*sources, Source("question", ending.words, echo=True))
        return ground_safely(ending.draft, known, words, ctx.limits, meanings, history.kept)

    return trace


def _notes(ending: TurnEnd) -> tuple[str, ...]:
    return ending.notes if ending.gaps is None else (*ending.notes, ending.gaps.note)


def _render(ending: TurnEnd, history: History, common: dict[str, Any], step: Render, ctx: EngineContext) -> TurnResult:
    # Nobody wrote this text but we ourselves: what a tool keeps out of the ledger does not leave by it either.
    sources = [_redact(source, ctx) for source in history.sources]
    text = prompts.render_results(sources)
    names = [intent.name.replace("_", " ") for intent in ending.agent.intents]
    notes = say_notes(history.notes, ending.words)
    otherwise = "\n".join(notes) or prompts.no_data_text(names)
    answer = prompts.add_notes(text or otherwise, (*notes, *_notes(ending)))
    return TurnResult(
        **common,
        status=TurnStatus.RENDERED if ending.gaps is None else TurnStatus.PARTIAL,
        outcome=step.outcome if ending.gaps is None else TurnOutcome.PARTIAL,
        verified=ending.gaps is None,
        answer=answer,
        claims=tuple(
            claim
            # What the rendering adds itself (numbers of lines, cut texts) is found in no result, and is no claim.
            for claim in ground_safely(text, sources, ending.agent.vocabulary, ctx.limits).claims
            if claim.how != "unsupported"
        ),
        confidence=history.confidence,
        reason=step.reason if ending.gaps is None else f"{ending.gaps.note}; {step.reason}",
    )


def _redact(source: Source, ctx: EngineContext) -> Source:
    """A result without the values of the fields that its tool redacts; of a tool that is not here, without any such."""
    binding = ctx.bindings.get(source.tool)
    fields = ctx.redacted if binding is None else binding.tool.redact
    if not fields:
        return source
    return msgspec.structs.replace(source, value=Redactor(fields, source.value).value(source.value))


_STOPPED = {TurnOutcome.TIMEOUT: TurnStatus.TIMED_OUT, TurnOutcome.NO_REPLY: TurnStatus.NO_REPLY}


def _stop(common: dict[str, Any], step: Stop) -> TurnResult:
    reason = step.reason
    return TurnResult(
        **common,
        status=_STOPPED.get(step.outcome, TurnStatus.TOOL_FAILED),
        outcome=step.outcome,
        verified=False,
        answer=_limitation(step),
        confidence=0.0,
        reason=reason,
        action=Action.NONE if step.nothing or step.refused else Action.RETRY,
    )


def _limitation(step: Stop) -> str:
    match step.outcome:
        case TurnOutcome.TIMEOUT:
            return prompts.timeout_text()
        case TurnOutcome.NO_REPLY:
            return prompts.no_reply_text(step.reason)
        case _ if step.refused:
            return prompts.refused_text(step.reason)
        case _:
            return (prompts.nothing_found_text if step.nothing else prompts.failure_text)(step.reason)


def _escalation(ending: TurnEnd, history: History, ticket: str, ctx: EngineContext) -> str:
    if isinstance(ending.step, Escalate) and ending.step.outcome is TurnOutcome.BLOCKED:
        return prompts.blocked_text(ticket)
    return prompts.escalation_text(ticket, prompts.render_results([_redact(one, ctx) for one in history.sources]))


def _ticket(writer: LedgerWriter, ctx: EngineContext, ending: TurnEnd, why: str) -> Ticket:
    now_us, terms = writer.clock.now_us(), ctx.review
    return Ticket(
        id=writer.ids.new(),
        kind=TicketKind.ANSWER,
        state=TicketState.OPEN,
        # A keyed digest: the ticket is about this very draft, and does not give its text away.
        binding=f"{ANSWER}|{ending.turn}|{store_digest(writer.store, ending.draft.encode())}",
        tool=ANSWER,
        actor=ending.agent.name,
        asked_by=writer.by,
        call="",
        turn=ending.turn,
        why=why,
        created_us=now_us,
        expires_us=now_us + terms.expires_us,
        escalate_us=now_us + terms.escalate_us,
        on_behalf_of=ending.on_behalf_of,
        terms=terms.everywhere,
        remind_us=terms.remind_us,
        account=ctx.account,
    )
