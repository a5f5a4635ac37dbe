"""What a session remembers of us. Clients can write it: what is read from there is under a seal, and in the ledger."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from interlock.answers import Answers, TurnOutcome, TurnResult
from interlock.answers.events import Opened, event_of
from interlock.canonical import WHATEVER, Refusal, canonical
from interlock.errors import NotAllowed
from interlock.operations.ledger_writer import store_digest
from interlock.ports import Query, Store
from interlock.values import Json

WAITING = "interlock_waiting"
_OF_NOBODY = "(not of this session)"
"""In place of a turn that somebody else has written down as the one that waits: there is none of this name."""
_LONGEST_NAME = 200
_STOPPED = "This question cannot be gone on with"


def user_of(context: Any) -> str:
    """For whom an invocation works."""
    return f"adk:{context._invocation_context.user_id}"


def session_of(context: Any) -> str:
    """Which session it belongs to."""
    return str(context._invocation_context.session.id)


def name_session(context: Any) -> str:
    """What the session is called in the ledger, where sessions of several Apps may be."""
    session = context._invocation_context.session
    name = f"adk:{session.app_name}:{session.id}"
    if name.isprintable() and len(name) <= _LONGEST_NAME:
        return name
    # Clients choose the id, and may choose what cannot be a name.
    return f"adk:{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()}"


def seal(store: Store, context: Any, what: Json) -> str:
    """What shows that we have written something into this session of this user of this App, and nobody else has."""
    session = context._invocation_context.session
    text = canonical([session.app_name, session.user_id, session.id, what], WHATEVER)
    return store_digest(store, b"adk session\n" + text)  # no JSON, as every other text is that the key is used for


def is_sealed(store: Store, context: Any, what: Json, sealed: Any) -> bool:
    """Whether it is we who have written something into this very session."""
    try:
        return isinstance(sealed, str) and hmac.compare_digest(sealed.encode(), seal(store, context, what).encode())
    except (Refusal, UnicodeEncodeError):  # words that nobody of ours has written
        return False


def waiting_turn(store: Store, context: Any, agent: str) -> str | None:
    """The turn of this agent that waits in this invocation, if the session says so."""
    waits, key = context.state.get(WAITING), f"{context.invocation_id}|{agent}"
    if not isinstance(waits, dict) or key not in waits:
        return None
    for turn, sealed in _pairs([waits[key]]):
        if isinstance(turn, str) and is_sealed(store, context, ["waiting", key, turn], sealed):
            return turn
    return _OF_NOBODY


def remember(store: Store, context: Any, agent: str, result: TurnResult) -> None:
    """Which turn of which agent waits in the session; everything else of it stands in the ledger."""
    state, key = context.state, f"{context.invocation_id}|{agent}"
    before = state.get(WAITING)
    waits = {name: turn for name, turn in before.items() if name != key} if isinstance(before, dict) else {}
    if result.outcome.value == "WAITING":
        waits[key] = [result.turn, seal(store, context, ["waiting", key, result.turn])]
    state[WAITING] = waits


def _pairs(given: Any) -> list[list[Any]]:
    """Those entries of a list that are something and its seal."""
    return [pair for pair in (given if isinstance(given, list) else ()) if isinstance(pair, list) and len(pair) == 2]


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
