"""The end of a turn: what the user is told, its record, and the ticket of an answer that a person has to verify."""

from __future__ import annotations

from typing import Any

import msgspec

from interlock.errors import NotAllowed
from interlock.grounding import Grounded, ground
from interlock.models import Usage
from interlock.operations import Desk, store_digest
from interlock.review import Terms
from interlock.standing import Ticket, TicketState
from interlock.transitions import Ask as AskPerson
from interlock.turn import wording
from interlock.turn.agent import Agent
from interlock.turn.ladder import Ask, Escalate, Pass, Render, Step, Stop, TurnOutcome, Wait
from interlock.turn.result import Action, TurnResult, TurnStatus
from interlock.turn.trail import Trail
from interlock.values import Json, Status

ANSWER = "answer"
"""The kind of ticket that holds a draft back."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known when a turn ends."""

    turn: str
    agent: Agent
    question: str
    step: Step
    draft: str
    grounded: Grounded
    missing: tuple[str, ...]
    required: bool
    intents: tuple[str, ...]
    notes: tuple[str, ...]
    usage: Usage
    replies: int
    overhead_us: int = 0


async def conclude(desk: Desk, terms: Terms, ending: Ending, trail: Trail) -> TurnResult:
    """Write down how the turn ended, open the ticket where a person is needed, and give the result."""
    result = _result(ending, trail)
    asks: tuple[AskPerson, ...] = ()
    if result.action is Action.HUMAN_REVIEW and ending.agent.enforcement == "enforce":
        ticket = _ticket(desk, terms, ending, result.reason)
        asks = (AskPerson(ticket),)
        result = msgspec.structs.replace(result, ticket=ticket.id, answer=_escalated(ending, trail, ticket.id))
    what: dict[str, Json] = {
        "state": "finished",
        "agent": ending.agent.name,
        "outcome": result.outcome.value,
        "status": result.status.value,
        "verified": result.verified,
        "attempts": result.attempts,
        "model_calls": result.model_calls,
        "overhead_us": result.overhead_us,
        "usage": msgspec.to_builtins(result.usage),
        "tools": list(result.tools),
        "missing": list(result.missing),
        "reason": result.reason,
        "ticket": result.ticket,
        "enforced": ending.agent.enforcement == "enforce",
        "required": ending.required,
        "intents": list(ending.intents),
    }
    beside = {"draft": ending.draft, "result": msgspec.to_builtins(result)}
    try:
        await desk.commit_with("turn", what, beside, ending.turn, *asks)
    except NotAllowed as refused:  # the same draft is waiting already
        what["ticket"] = refused.instead
        result = msgspec.structs.replace(
            result, ticket=refused.instead, answer=_escalated(ending, trail, refused.instead)
        )
        await desk.commit_with("turn", what, {**beside, "result": msgspec.to_builtins(result)}, ending.turn)
    return result


def _result(ending: Ending, trail: Trail) -> TurnResult:
    step, common = ending.step, _common(ending, trail)
    if ending.agent.enforcement != "enforce":
        outcome = getattr(step, "outcome", TurnOutcome.ESCALATED)
        return TurnResult(
            **common,
            status=TurnStatus.OBSERVED,
            outcome=outcome,
            verified=False,
            answer=f"{ending.draft}\n\n(unverified: enforcement is off for this agent)",
            reason=f"enforcement is off; would have been {type(step).__name__.lower()}",
        )
    match step:
        case Pass(outcome=outcome):
            return _passed(ending, trail, common, outcome)
        case Render(outcome=outcome, reason=reason):
            return _rendered(ending, trail, common, outcome, reason)
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
                answer=wording.waiting(ticket),
                reason="a call waits for approval",
                ticket=ticket,
            )
        case Stop():
            return _stopped(common, step)
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


def _common(ending: Ending, trail: Trail) -> dict[str, Any]:
    return {
        "turn": ending.turn,
        "agent": ending.agent.name,
        "attempts": 1 + trail.retries + trail.corrected + len(trail.forced),
        "tools": tuple(dict.fromkeys(call.tool for call in trail.calls if call.status is Status.OK)),
        "missing": ending.missing,
        "model_calls": ending.replies,
        "usage": ending.usage,
        "overhead_us": ending.overhead_us,
        "sources": trail.data_sources,
        "records": trail.records,
    }


def _passed(ending: Ending, trail: Trail, common: dict[str, Any], outcome: TurnOutcome) -> TurnResult:
    return TurnResult(
        **common,
        status=TurnStatus.VERIFIED,
        outcome=outcome,
        verified=True,
        answer=wording.with_notes(ending.draft, (*trail.notes, *ending.notes)),
        claims=ending.grounded.claims,
        confidence=trail.confidence,
    )


def _rendered(ending: Ending, trail: Trail, common: dict[str, Any], outcome: TurnOutcome, reason: str) -> TurnResult:
    text = wording.rendering(trail.sources)
    names = [intent.name.replace("_", " ") for intent in ending.agent.intents]
    answer = wording.with_notes(text or wording.unanswered(names), (*trail.notes, *ending.notes))
    return TurnResult(
        **common,
        status=TurnStatus.RENDERED,
        outcome=outcome,
        verified=True,
        answer=answer,
        claims=tuple(claim for claim in ground(text, trail.sources).claims if claim.how != "unsupported"),
        confidence=trail.confidence,
        reason=reason,
    )


def _stopped(common: dict[str, Any], step: Stop) -> TurnResult:
    late, reason = step.outcome is TurnOutcome.TIMEOUT, step.reason
    answer = wording.timed_out() if late else wording.nothing_found(reason) if step.nothing else wording.failed(reason)
    return TurnResult(
        **common,
        status=TurnStatus.TIMED_OUT if late else TurnStatus.LIMITED,
        outcome=step.outcome,
        verified=False,
        answer=answer,
        confidence=0.0,
        reason=reason,
        action=Action.NONE if step.nothing else Action.RETRY,
    )


def _escalated(ending: Ending, trail: Trail, ticket: str) -> str:
    if isinstance(ending.step, Escalate) and ending.step.outcome is TurnOutcome.BLOCKED:
        return wording.blocked(ticket)
    return wording.escalated(ticket, wording.rendering(trail.sources))


def _ticket(desk: Desk, terms: Terms, ending: Ending, why: str) -> Ticket:
    now_us = desk.clock.now_us()
    return Ticket(
        id=desk.ids.new(),
        kind=ANSWER,
        state=TicketState.OPEN,
        binding=f"{ANSWER}|{ending.turn}|{store_digest(desk.store, ending.draft.encode())}",
        tool=ANSWER,
        actor=ending.agent.name,
        asked_by=desk.by,
        call="",
        turn=ending.turn,
        why=why,
        created_us=now_us,
        expires_us=now_us + terms.expires_us,
        escalate_us=now_us + terms.escalate_us,
    )
