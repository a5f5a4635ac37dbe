"""Answers afterwards: fetched by whoever asked, released, corrected or rejected by a reviewer, gone on with."""

from __future__ import annotations

import msgspec

from interlock.answers import prompts
from interlock.answers.asked import Asked, Carried
from interlock.answers.events import ENDS, Finished, Opened, Replied, Reviewed, TurnLog, event_of
from interlock.answers.finish import ANSWER
from interlock.answers.grounding import Source
from interlock.answers.hidden_values import redacted_names, whole_of
from interlock.answers.history import read_history
from interlock.answers.intents import Classified
from interlock.answers.ladder import TurnOutcome
from interlock.answers.requirements import leaves
from interlock.answers.result import Action, TurnResult, TurnStatus
from interlock.answers.sessions.settled import Settled, bind_settled
from interlock.answers.statements import with_closing_line
from interlock.answers.statements.recorded import recorded_effects
from interlock.answers.workflows import Workflow
from interlock.engine import EngineContext
from interlock.errors import ConfigError, NotAllowed
from interlock.operations.approvals import record_decision, refuse_forged
from interlock.operations.ledger_writer import LedgerWriter, payload_of, store_digest
from interlock.ports import Query, Store
from interlock.records import Stored
from interlock.review import voice_of
from interlock.state import Ticket, TicketKind, TicketState
from interlock.transitions import DecideTicket
from interlock.values import Json

Settlements = tuple[Settled, ...]


async def _own_records(store: Store, turn: str) -> list[Stored]:
    found = [record async for record in store.records(Query(turn=turn)) if record.kind == "turn"]
    if not found:
        raise NotAllowed(f"there is no turn {turn!r}; see interlock turns list")
    return found


async def fetch_result(store: Store, turn: str) -> TurnResult:
    """The result of a turn as it stands now."""
    ended = [record for record in await _own_records(store, turn) if record.status in ENDS]
    if not ended:
        raise NotAllowed(f"turn {turn!r} has not ended yet, or was abandoned")
    payload = await payload_of(store, ended[-1].id, ended[-1].content())
    if "result" not in payload:
        raise NotAllowed(f"the answer of turn {turn!r} was deleted; its records remain: interlock turns show {turn}")
    return msgspec.convert(payload["result"], TurnResult)


async def reopen_turn(ctx: EngineContext, turn: str, agent: str, on_behalf_of: str | None) -> Asked:
    """What a turn that waited is gone on with, by whom it was opened for; what it knew is known again."""
    records = await _own_records(ctx.store, turn)
    history = await read_history(ctx.store, turn, evidence=False)
    opened, record = history.opened, next((r for r in records if isinstance(event_of(r), Opened)), None)
    if opened is None or record is None:
        raise NotAllowed(f"the beginning of turn {turn!r} is not in the ledger; it cannot be gone on with")
    if opened.agent != agent:
        raise NotAllowed(f"turn {turn!r} is one of {opened.agent}, not of {agent}")
    # Where the caller speaks for somebody (ADK does), an id alone is not enough: clients can write any.
    if on_behalf_of is not None and opened.on_behalf_of != on_behalf_of:
        raise NotAllowed(f"turn {turn!r} was not opened for {on_behalf_of}")
    if history.finished is not None and history.finished.outcome not in (TurnOutcome.WAITING, TurnOutcome.ASKED):
        raise NotAllowed(f"turn {turn!r} has ended as {history.finished.outcome}; open a new one")
    payload = await payload_of(ctx.store, record.id, record.content())
    answered = [(event, r) for r in records if isinstance(event := event_of(r), Replied)]
    replies = [(event, await payload_of(ctx.store, r.id, r.content())) for event, r in answered]
    if "question" not in payload:
        raise NotAllowed(f"the question of turn {turn!r} was deleted; it cannot be gone on with")
    hidden = redacted_names(ctx.bindings)
    above = whole_of(payload.get("carried"), opened.carried, hidden)
    beside = [payload, *(reply for _event, reply in replies)]
    settled = msgspec.convert(next((p["settled"] for p in reversed(beside) if p.get("settled")), ()), Settlements)
    # As it was taken then: an agent whose intents have changed since does not change what this answer needs.
    wanted = whole_of(payload.get("requires"), opened.requires, hidden)
    classified = Classified(wanted, opened.intents, opened.by, opened.certainty)
    for event, reply in replies:
        if event.requires is not None:  # it said what was wanted at all
            classified = Classified(
                whole_of(reply.get("requires"), event.requires, hidden), event.intents, "reply", 1.0
            )
    return Asked(
        id=turn,
        question=payload["question"],
        classified=msgspec.structs.replace(classified, requirement=bind_settled(classified.requirement, settled)),
        principal=record.content().principal,
        parent=opened.parent,
        run=opened.run,
        mode=opened.mode,
        workflow=_workflow_of(turn, payload.get("workflow")),
        given=tuple(n if isinstance(n, int) else msgspec.convert(n, Source) for n in payload.get("given", ())),
        on_behalf_of=opened.on_behalf_of,
        root_turn=opened.root_turn,
        before=history,
        user_words=payload.get("user_words"),
        carried=Carried(opened.carried_from, above) if opened.carried_from or leaves(above) else None,
        settled=settled,
        said=tuple(reply["reply"] for _event, reply in replies if isinstance(reply.get("reply"), str)),
        units=opened.units,
    )


def _workflow_of(turn: str, kept: Json) -> Workflow | None:
    """The way of working that a turn was opened with."""
    try:
        return None if kept is None else msgspec.convert(kept, Workflow)
    except (msgspec.ValidationError, ConfigError) as error:
        raise NotAllowed(
            f"turn {turn!r} was opened with what is no way of working any more: {error}; open a new one"
        ) from None


def refuse_others_reply(asked: Asked, principal: str, on_behalf_of: str | None) -> None:
    """What is said to a question counts as the user's own words: nobody else can say it."""
    if (principal, on_behalf_of) == (asked.principal, asked.on_behalf_of):
        return
    whom = asked.principal if asked.on_behalf_of is None else f"{asked.principal} on behalf of {asked.on_behalf_of}"
    raise NotAllowed(
        f"turn {asked.id!r} has asked {whom}, who alone can answer; say who does with principal= and on_behalf_of="
    )


async def decide_answer(writer: LedgerWriter, name: str, state: TicketState, reason: str, text: str = "") -> int:
    """Release an escalated draft, put another answer in its place, or reject it; under the same turn."""
    if writer.faults is not None:
        writer.faults.at("answer.read")
    ticket = await writer.store.ticket(name)
    if ticket is None or ticket.kind is not TicketKind.ANSWER or ticket.turn is None:
        raise NotAllowed(f"there is no answer that waits under ticket {name!r}; see interlock review list")
    await refuse_forged(writer.store, ticket)
    voice = voice_of(ticket, writer.by, await writer.store_time_us())
    if text and ticket.terms.quorum > 1:
        raise NotAllowed(
            "where several have to approve, the draft is released as it is, or denied: nobody else saw a text"
        )
    ended = [(r, e) for r in await _own_records(writer.store, ticket.turn) if isinstance(e := event_of(r), Finished)]
    # A turn that was gone on with has ended several times; the ticket is about one of them.
    finished = next((record for record, event in ended if event.ticket == name), ended[-1][0])
    payload = await payload_of(writer.store, finished.id, finished.content())
    # What lies beside the record can be altered without breaking the chain; the binding says what was held back.
    if "draft" not in payload or ticket.binding != _binding(writer, ticket, payload["draft"]):
        raise NotAllowed(f"the draft that ticket {name!r} is about was deleted or altered; it cannot be released")
    before = msgspec.convert(payload["result"], TurnResult)
    # As they stand now: what waited when the draft was held may have been done or refused since.
    history = await read_history(writer.store, ticket.turn, evidence=False)
    effects = await recorded_effects(writer.store, writer.clock.now_us(), history)
    before = msgspec.structs.replace(before, effects=effects)
    after = _apply_decision(before, ticket, state, payload["draft"], text or "", reason)
    event = Reviewed(status=after.status, outcome=after.outcome, agent=ticket.actor, ticket=name, reason=reason)
    decision = DecideTicket(name, state, writer.by, reason, voice)
    log, payload = TurnLog(writer, ticket.turn), {"result": msgspec.to_builtins(after)}
    if state is TicketState.APPROVED and len(ticket.approvals) + 1 < ticket.terms.quorum:  # not the last who is needed
        number = await record_decision(writer, ticket, state, reason)
        if await _was_last(writer, name, voice):  # all the same, as somebody else was as quick
            await log.append(event, payload)
        return number
    return await log.append(event, payload, decision)


async def _was_last(writer: LedgerWriter, name: str, voice: str) -> bool:
    """Whether an approval that was to be one of several was the last one that was needed."""
    ticket = await writer.store.ticket(name)
    return ticket is not None and ticket.state is TicketState.APPROVED and ticket.approvals[-1].voice == voice


async def read_held_answer(store: Store, ticket: Ticket) -> dict[str, str]:
    """What a reviewer has to look at: the question, and the draft that did not leave."""
    records = await _own_records(store, ticket.turn or "")
    payload = {type(event_of(r)): await payload_of(store, r.id, r.content()) for r in records}
    draft = payload.get(Finished, {}).get("draft", "(deleted)")
    answer = payload.get(Finished, {}).get("result", {}).get("answer", "")
    return {
        "question": payload.get(Opened, {}).get("question", "(deleted)"),
        "draft": draft or "(the model wrote none)",
        "answered": answer,
    }


def _binding(writer: LedgerWriter, ticket: Ticket, draft: str) -> str:
    return f"{ANSWER}|{ticket.turn}|{store_digest(writer.store, draft.encode())}"


def _apply_decision(
    before: TurnResult, ticket: Ticket, state: TicketState, draft: str, text: str, reason: str
) -> TurnResult:
    if state is TicketState.DENIED:
        status, answer = TurnStatus.REJECTED, prompts.rejection_text(ticket.id, reason)
    elif text:
        status, answer = TurnStatus.CORRECTED, text
    elif not draft:
        raise NotAllowed("there is no draft to release: write the answer (--answer), or deny the ticket")
    else:
        status, answer = TurnStatus.RELEASED, draft
    answer = with_closing_line(answer, before.effects)
    return msgspec.structs.replace(before, status=status, answer=answer, action=Action.NONE, reason=reason)
