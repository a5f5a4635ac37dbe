"""What a person says in the session about a call that waits: it decides the ticket that was asked about, and no other.

The question stands in the session with the id of its ticket and a seal over both, made with the ledger's own key.
Clients write the answer, and may write the session; no client can make a seal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from interlock.adapters.adk.session import is_sealed, seal, user_of
from interlock.answers import Answers, Turn
from interlock.errors import NotAllowed
from interlock.operations.ledger_writer import LedgerEntry
from interlock.ports import Store
from interlock.reasons import Reason
from interlock.state import Ticket, TicketKind, TicketState, state_of
from interlock.values import Json, Outcome, Problem, Status

_ASKS = "adk_request_confirmation"
_TICKET, _SEAL = "ticket", "seal"
_FINALLY_REFUSED = (TicketState.DENIED, TicketState.EXPIRED)


class SessionCall(msgspec.Struct, frozen=True):
    """One call that ADK delivers again with what a person said about it."""

    tool: BaseTool
    arguments: dict[str, Any]
    context: ToolContext
    turn: str | None
    """The turn that it is delivered in."""

    @property
    def id(self) -> str:
        """The id that it has in ADK."""
        return self.context.function_call_id or ""


def ask(store: Store, call: SessionCall, outcome: Outcome) -> None:
    """Ask in the session whether a call that waits may be made."""
    ticket = outcome.ticket or ""
    payload = {_TICKET: ticket, _SEAL: seal(store, call.context, _describe_question(call, ticket))}
    call.context.request_confirmation(hint=outcome.summary, payload=payload)


async def take_answer(answers: Answers, call: SessionCall, turn: Turn | None) -> Outcome | None:
    """What comes of the answer; None where the call was made before, and its claim has the answer."""
    said = call.context.tool_confirmation
    assert said is not None
    try:
        ticket = await _ticket(answers.runtime.store, call, _question(call), said.payload)
    except NotAllowed as problem:
        return _refuse(call, f"nothing was decided and nothing was called: {problem}")
    return await (_say_yes(answers, call, ticket) if said.confirmed else _say_no(answers, call, ticket, turn))


def _question(call: SessionCall) -> dict[str, Any]:
    """The payload of the one question in this session that the newest answer is to."""
    events = call.context._invocation_context.session.events
    answered: set[str] = set()
    for event in reversed(events):
        if event.author == "user":
            answered = {said.id for said in event.get_function_responses() if said.name == _ASKS and said.id}
        if answered:
            break
    found = [payload for event in events for payload in _payloads(event, call, answered)]
    if not found:
        raise NotAllowed(f"no question about call {call.id!r} of {call.tool.name} stands in this session")
    if len(found) > 1:  # ADK goes by the call's id, and would take one answer for both
        raise NotAllowed(f"{len(found)} questions about a call {call.id!r} were answered at once; answer one alone")
    return found[0]


def _payloads(event: Any, call: SessionCall, answered: set[str]) -> Iterator[dict[str, Any]]:
    if event.author != call.context.agent_name:
        return
    for request in event.get_function_calls():
        given = request.args or {}
        original, question = given.get("originalFunctionCall"), given.get("toolConfirmation")
        if request.name != _ASKS or request.id not in answered or not isinstance(original, dict):
            continue
        if (original.get("id"), original.get("name")) == (call.id, call.tool.name):
            payload = question.get("payload") if isinstance(question, dict) else None
            yield payload if isinstance(payload, dict) else {}


async def _ticket(store: Store, call: SessionCall, question: dict[str, Any], sent_back: Any) -> Ticket:
    """The ticket that was asked about; `NotAllowed`, with the reason, unless the ledger and the seal agree."""
    name = question.get(_TICKET)
    if not isinstance(name, str):
        why = "it was not Interlock that asked; that a tool asks first is for review_when or a rule to say"
        raise NotAllowed(f"{why}, not for its body")
    # Most clients send no payload. One that does names what it means, and is not taken to mean something else.
    if sent_back is not None and (not isinstance(sent_back, dict) or sent_back.get(_TICKET) != name):
        raise NotAllowed("the answer's payload is not that of the question; send back that one, or none")
    sealed = is_sealed(store, call.context, _describe_question(call, name), question.get(_SEAL))
    ticket = await store.ticket(name) if sealed else None
    if ticket is None:
        raise NotAllowed("the question was not asked in this session, about this call with these arguments")
    wanted = (TicketKind.CHANGE, call.tool.name, user_of(call.context))
    if (ticket.kind, ticket.tool, ticket.on_behalf_of) != wanted:
        raise NotAllowed(f"ticket {ticket.id!r} is not about a call of {call.tool.name} for {wanted[-1]}")
    return ticket


def _describe_question(call: SessionCall, ticket: str) -> Json:
    return ["question", ticket, call.context.agent_name, call.tool.name, call.id, call.arguments]


async def _say_yes(answers: Answers, call: SessionCall, ticket: Ticket) -> Outcome | None:
    """Approve, where they may; whoever decided, the ticket says how, and its call is made if it is approved."""
    operations, store, refused = answers.runtime.operations, answers.runtime.store, ""
    if ticket.state is TicketState.SPENT:
        return _made_before(call, ticket)
    try:
        await answers.decide(ticket.id, approve=True, by=user_of(call.context), reason="in the session")
    except NotAllowed as error:
        refused = str(error)  # not theirs to decide; or it was decided before, and what was decided holds
    try:
        outcome = await operations.resume(ticket.id)
    except NotAllowed as error:
        return _refuse(call, f"the call is not made: {error}")
    after = await store.ticket(ticket.id)
    if refused and after is not None and after.state is TicketState.OPEN and outcome.problem is not None:
        problem = msgspec.structs.replace(outcome.problem, message=f"{outcome.problem.message}: {refused}")
        outcome = msgspec.structs.replace(outcome, problem=problem, said=problem.message)
    if not outcome.ok and after is not None and after.state is TicketState.SPENT:
        return _made_before(call, ticket)  # somebody else's confirmation came first
    return outcome


def _made_before(call: SessionCall, ticket: Ticket) -> Outcome | None:
    """None in the turn of the call, where its claim has the answer; in another the same words are another call."""
    if ticket.turn == call.turn:
        return None
    return _refuse(call, f"the call was made before, in turn {ticket.turn}; ticket {ticket.id!r} is spent")


async def _say_no(answers: Answers, call: SessionCall, ticket: Ticket, turn: Turn | None) -> Outcome:
    """Deny, where they may. Whatever becomes of the ticket, a no makes no call."""
    operations, store, by = answers.runtime.operations, answers.runtime.store, user_of(call.context)
    refused = ""
    try:
        await answers.decide(ticket.id, approve=False, by=by, reason="in the session")
    except NotAllowed as error:
        refused = str(error)
    ticket = await store.ticket(ticket.id) or ticket
    state = state_of(ticket, await store.now_us(answers.runtime.context.clock.now_us()))
    if state in _FINALLY_REFUSED:  # for good, so that resuming can only record the call as refused
        try:
            return await operations.resume(ticket.id)
        except NotAllowed as error:
            return _refuse(call, f"{by} said no, so the call is not made: {error}")
    what: dict[str, Json] = {"ticket": ticket.id, "state": state.value, "tool": ticket.tool, "reason": refused}
    await operations.writer(by).commit(LedgerEntry("ticket", "declined", what, turn=ticket.turn))
    if turn is not None and state is TicketState.APPROVED:
        turn.set_aside += (ticket.id,)  # this turn does not wait for it any more
    return _refuse(call, f"{by} said no, so the call is not made here; {_what_holds(ticket, state, refused)}")


def _what_holds(ticket: Ticket, state: TicketState, refused: str) -> str:
    """What became of a ticket that a no does not deny."""
    if state is TicketState.APPROVED:
        by = ticket.decided_by
        return f"{by} had approved it before, so that interlock review resume {ticket.id} can still make it"
    if state is TicketState.SPENT:
        return f"it had been made before, with ticket {ticket.id}"
    return f"ticket {ticket.id} still waits for somebody who may decide it ({refused})"


def _refuse(call: SessionCall, message: str) -> Outcome:
    problem = Problem(reason=Reason.NOT_APPROVED, message=message)
    return Outcome(call.id, call.tool.name, Status.DENIED, said=message, problem=problem)
