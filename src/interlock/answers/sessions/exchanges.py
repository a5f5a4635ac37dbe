"""What was said in sessions, and what came of it: read out of the ledger, for whoever shows a conversation again."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.answers.answer_review import fetch_result
from interlock.answers.events import TURN, Joined, Opened, event_of, status_of
from interlock.answers.result import TurnResult
from interlock.answers.sessions.context import SessionPlace, read_words
from interlock.errors import ConfigError, NotAllowed
from interlock.ports import Query, Store
from interlock.records import Stored
from interlock.values import Value
from interlock.wrong_values import require_kind

_LOOKED_THROUGH = 1_000
"""So many beginnings of turns are looked through first for sessions; then ever more, until there are enough."""


class Exchange(Value, frozen=True):
    """One turn of a session, as it can be shown again."""

    turn: str
    at_us: int
    question: str
    """As it was asked; empty where it was deleted."""
    result: TurnResult | None = None
    """None: it has not ended, was abandoned, or its answer was deleted."""


class RecentSession(Value, frozen=True):
    """A session, and when it was last talked in."""

    name: str
    turns: int
    at_us: int
    question: str
    """The first of those that were looked through, which says what it is about; empty where it was deleted."""


def require_most(most: int) -> None:
    """How many are wanted."""
    require_kind("most=", most, int, "how many, a whole number")
    if most < 1:
        raise ConfigError(f"most={most}: how many are wanted is at least 1")


async def read_exchanges(store: Store, place: SessionPlace, most: int) -> list[Exchange]:
    """The last turns of a session, the last one last."""
    joined = [r async for r in store.records(Query(turn=place.key(store), newest=most)) if _as_joined(r) is not None]
    turns = dict.fromkeys(event.turn for record in sorted(joined, key=_number) if (event := _as_joined(record)))
    found = [await _read_exchange(store, place, turn) for turn in turns]
    return [one for one in found if one is not None]


async def read_sessions(store: Store, principal: str, on_behalf_of: str | None, most: int) -> list[RecentSession]:
    """The sessions of somebody, that which was talked in last first."""
    looked = _LOOKED_THROUGH
    while True:
        which = Query(tool=TURN, status=status_of(Joined), newest=looked)
        records = sorted([record async for record in store.records(which)], key=_number)
        found = _by_session(store, records, principal, on_behalf_of)
        if len(records) < looked or len(found) > most:  # one more: the turns of the last one may not all be read
            break
        looked *= 4
    return [await _recent(store, name, joined) for name, joined in list(reversed(found.items()))[:most]]


def _by_session(
    store: Store, records: Sequence[Stored], principal: str, on_behalf_of: str | None
) -> dict[str, list[Stored]]:
    """Somebody's beginnings of turns by session, that which was talked in last last."""
    found: dict[str, list[Stored]] = {}
    keys: dict[str, str] = {}
    for record in records:
        event = _as_joined(record)
        if event is None:
            continue
        if event.session not in keys:
            keys[event.session] = SessionPlace(event.session, principal, on_behalf_of).key(store)
        if keys[event.session] == record.turn:  # not somebody else's of this name
            found[event.session] = [*found.pop(event.session, ()), record]
    return found


async def _recent(store: Store, name: str, joined: Sequence[Stored]) -> RecentSession:
    event = _as_joined(joined[0])
    opened = None if event is None else await _read_opened(store, event.turn)
    question = "" if opened is None else await read_words(store, opened[0])
    return RecentSession(name, len(joined), joined[-1].at_us, question)


async def _read_exchange(store: Store, place: SessionPlace, turn: str) -> Exchange | None:
    opened = await _read_opened(store, turn)
    if opened is None:
        return None
    record, event = opened
    here = (place.name, place.principal, place.on_behalf_of)
    if (event.session, record.content().principal, event.on_behalf_of) != here:
        return None
    try:
        result = await fetch_result(store, turn)
    except NotAllowed:
        result = None
    return Exchange(turn, record.at_us, await read_words(store, record), result)


async def _read_opened(store: Store, turn: str) -> tuple[Stored, Opened] | None:
    async for record in store.records(Query(turn=turn, tool=TURN, status=status_of(Opened))):
        event = event_of(record)
        if isinstance(event, Opened):
            return record, event
    return None


def _as_joined(record: Stored) -> Joined | None:
    event = event_of(record)
    return event if isinstance(event, Joined) else None


def _number(record: Stored) -> int:
    return record.id
