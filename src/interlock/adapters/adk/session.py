"""What a session remembers of us. Clients can write its state, so what is read from there is checked in the ledger."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interlock.answers import Answers, TurnOutcome, TurnResult
from interlock.answers.events import Opened, event_of
from interlock.canonical import WHATEVER, canonical
from interlock.errors import NotAllowed
from interlock.operations.ledger_writer import store_digest
from interlock.ports import Query, Store
from interlock.values import Json

RECORDS, WAITING = "interlock_records", "interlock_waiting"
_STOPPED = "This question cannot be gone on with"
_MOST_RECORDS = 50  # each is read from the ledger again at the next question


def user_of(context: Any) -> str:
    """For whom an invocation works."""
    return f"adk:{context._invocation_context.user_id}"


def session_of(context: Any) -> str:
    """Which session it belongs to."""
    return str(context._invocation_context.session.id)


def seal(store: Store, context: Any, what: Json) -> str:
    """What shows that we have written something into this session of this user of this App, and nobody else has."""
    session = context._invocation_context.session
    text = canonical([session.app_name, session.user_id, session.id, what], WHATEVER)
    return store_digest(store, b"adk session\n" + text)  # no JSON, as every other text is that the key is used for


async def own_records(store: Store, numbers: Any, user: str) -> list[int]:
    """Those of the numbered records that are calls made for this user."""
    kept = []
    for number in numbers if isinstance(numbers, list) else ():
        if isinstance(number, int) and number > 0:
            found = [r async for r in store.records(Query(after=number - 1, until=number))]
            if found and found[0].kind == "call" and found[0].content().on_behalf_of == user:
                kept.append(number)
    return kept


def waiting_turn(state: Any, invocation: str, agent: str) -> str | None:
    """The turn of this agent that waits in this invocation, if the session says so."""
    known = state.get(WAITING)
    found = known.get(f"{invocation}|{agent}") if isinstance(known, dict) else None
    return found if isinstance(found, str) else None


def remember(state: Any, invocation: str, agent: str, result: TurnResult) -> None:
    """What the next turn of the session may rest on, and which turn of which agent waits."""
    before = state.get(RECORDS)
    known: Iterable[Any] = [*(before if isinstance(before, list) else ()), *result.records]
    state[RECORDS] = list(dict.fromkeys(known))[-_MOST_RECORDS:]
    waits = dict(state.get(WAITING) or {})
    waits.pop(f"{invocation}|{agent}", None)
    if result.outcome.value == "WAITING":
        waits[f"{invocation}|{agent}"] = result.turn
    state[WAITING] = waits


async def answer_instead(answers: Answers, turn: str, refused: NotAllowed, *, agent: str, user: str) -> str:
    """What is said where a turn that the session names cannot be gone on with: its answer, if it has ended meanwhile.

    It may have ended elsewhere, or before a crash. An answer of another agent was checked by what that one needs.
    """
    events = [event_of(record) async for record in answers.runtime.store.records(Query(turn=turn))]
    opened = next((event for event in events if isinstance(event, Opened)), None)
    if opened is None or (opened.agent, opened.on_behalf_of) != (agent, user):
        return f"{_STOPPED}."  # and no more than that: clients can write any turn's id
    try:
        result = await answers.result(turn)
    except NotAllowed as deleted:
        return f"{_STOPPED}: {deleted}."
    waits = result.outcome in (TurnOutcome.WAITING, TurnOutcome.ASKED)
    return f"{_STOPPED}: {refused}." if waits else result.answer
