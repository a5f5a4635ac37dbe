"""What a session remembers: the records of its earlier turns, folded into typed values. There is no second store."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import msgspec

from interlock.answers.events import AskedBack, Delegated, Finished, Joined, Opened, Replied, event_of
from interlock.answers.requirements import NOTHING, CallSeen, Requirement, leaves, satisfies, sure_values
from interlock.canonical import WHATEVER, canonical
from interlock.changes.keys import local_key
from interlock.engine import EngineContext
from interlock.operations.ledger_writer import payload_of, store_digest
from interlock.ports import Query, Store
from interlock.records import Stored
from interlock.state import ChangeFilter, ClaimState, overlapping
from interlock.tools import MARK
from interlock.values import Effect, Json, Status, Value

_MINUTE_US = 60_000_000
_MOST_RECORDS = 50
"""Each is read from the ledger again where it is given to a turn."""
_MOST_ROWS = 200
_MOST_RESULTS = 12
"""So many results are looked through for a list."""
_BOUND = re.compile(r"\bargs(?:\.|\[\")(\w{1,100})")
"""The arguments that a condition speaks of."""
_IS_BOUND_TO = re.compile(r'\bargs\["(\w{1,100})"\] == "([^"\\]{1,1000})"')
_NOT_MADE = (ClaimState.FAILED,)
_LONGEST_CHANGE_US = 10 * _MINUTE_US
"""A change that began so long before a record may have landed after it."""


class SessionPlace(Value, frozen=True):
    """A session of one principal, for one person: whoever asks under another name is in another session."""

    name: str
    principal: str
    on_behalf_of: str | None = None

    def key(self, store: Store) -> str:
        """What stands in the turn column of the session's own records."""
        text = canonical([self.name, self.principal, self.on_behalf_of], WHATEVER)
        return f"session-{store_digest(store, b'session' + text)}"


class EarlierCall(Value, frozen=True):
    """A call of an earlier turn that succeeded."""

    record: int
    at_us: int
    turn: str
    tool: str
    arguments: dict[str, Json] = {}
    """Those that may be remembered: none of which the record has a mark in place of the value."""
    keys: tuple[str, ...] = ()
    changes: bool = False
    through: str = ""
    """The agent that made it, where the turn had asked another one."""
    units: tuple[str, ...] = ()
    """The units in which its turn was to be answered."""
    is_aside: bool = False
    """Whether it is about something else than its turn was asked about: what a model called by mistake, say."""


class ReturnedLists(Value, frozen=True):
    """The rows of one result, in order."""

    record: int
    lists: tuple[tuple[Json, ...], ...] = ()
    """Several, where it has several lists."""
    is_list: bool = False
    """Whether the result is the list itself, and not something that has one."""


class SessionContext(Value, frozen=True):
    """What is known from the earlier turns of a session."""

    turns: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    """What the user has said in them, where that is still kept."""
    calls: tuple[EarlierCall, ...] = ()
    """In the order of their records."""
    returned: tuple[ReturnedLists, ...] = ()
    """The lists of the last results, the last first: the second one is a row of one of them."""
    spoken_of: dict[str, str] = {}
    """What the last turn was asked about, where none of its calls was: it asked back, or its tool failed."""
    last_turn: str = ""
    last_agent: str = ""
    asks: AskedBack | None = None
    """What the last turn has asked, where it ended so."""
    is_asked: bool = False

    @property
    def meant(self) -> tuple[EarlierCall, ...]:
        """The calls that were about what was asked: "it" is one of theirs."""
        return tuple(call for call in self.calls if not call.is_aside)


async def read_context(ctx: EngineContext, place: SessionPlace) -> SessionContext:
    """The last turns of a session, as they stand in the ledger now."""
    store, key = ctx.store, place.key(ctx.store)
    found = [r async for r in store.records(Query(turn=key, newest=ctx.limits.max_session_turns))]
    events = [event_of(record) for record in sorted(found, key=lambda record: record.id)]
    context, last = SessionContext(), None
    for turn in dict.fromkeys(event.turn for event in events if isinstance(event, Joined)):
        read = await _read_turn(store, turn)
        if read is None or not _is_of(read, place):
            continue
        calls = [*context.calls, *read.calls]
        for child, agent in read.children:
            inner = await _read_turn(store, child)
            found_below = () if inner is None else inner.calls
            calls += [msgspec.structs.replace(c, through=agent, units=read.units) for c in found_below]
        calls = sorted(calls, key=lambda call: call.record)
        said = (*context.questions, *((read.words,) if read.words else ()))
        turns = (*context.turns, turn)
        context, last = msgspec.structs.replace(context, turns=turns, questions=said, calls=tuple(calls)), read
    if last is None:
        return context
    finished, opened = last.finished, last.opened
    return msgspec.structs.replace(
        context,
        returned=await _read_lists(store, context.calls),
        spoken_of={} if opened is None else _spoken_of(opened, last.calls),
        last_turn=last.turn,
        last_agent="" if opened is None else opened.agent,
        asks=None if finished is None else finished.asks,
        is_asked=finished is not None and finished.status == "asked",
    )


class _TurnRead(Value, frozen=True):
    """What the records of one turn say."""

    turn: str
    principal: str
    opened: Opened | None
    finished: Finished | None
    calls: tuple[EarlierCall, ...]
    children: tuple[tuple[str, str], ...]
    words: str = ""
    """What the user said; empty once it is purged."""

    @property
    def units(self) -> tuple[str, ...]:
        return () if self.opened is None else self.opened.units


async def _read_turn(store: Store, turn: str) -> _TurnRead | None:
    records = [record async for record in store.records(Query(turn=turn))]
    events = [(record, event) for record in records if (event := event_of(record)) is not None]
    if not events:
        return None
    opened = next((event for _record, event in events if isinstance(event, Opened)), None)
    units = () if opened is None else opened.units
    # What was said since may have changed what it is about.
    replied = any(isinstance(event, Replied) for _record, event in events)
    calls = [_call(record, units) for record in records if record.kind == "call" and record.status == Status.OK]
    return _TurnRead(
        turn=turn,
        principal=events[0][0].content().principal,
        opened=opened,
        finished=next((event for _record, event in reversed(events) if isinstance(event, Finished)), None),
        calls=_mark_aside(calls, NOTHING if opened is None or replied else opened.requires),
        children=tuple((event.child, event.agent) for _record, event in events if isinstance(event, Delegated)),
        words="".join([await read_words(store, r) for r, event in events if isinstance(event, Opened)][:1]),
    )


async def read_words(store: Store, opened: Stored) -> str:
    """The user's own words, which lie beside the record of a turn's beginning; empty where they were deleted."""
    payload = await payload_of(store, opened.id, opened.content())
    said = payload.get("user_words") or payload.get("question")
    return said if isinstance(said, str) else ""


def _is_of(read: _TurnRead, place: SessionPlace) -> bool:
    """Whether a turn is really one of this session: by its own record, not by the one that names it alone."""
    opened = read.opened
    return opened is not None and (opened.session, read.principal, opened.on_behalf_of) == (
        place.name,
        place.principal,
        place.on_behalf_of,
    )


def _call(record: Stored, units: tuple[str, ...]) -> EarlierCall:
    content = record.content()
    arguments = content.arguments if isinstance(content.arguments, dict) else {}
    return EarlierCall(
        record=record.id,
        at_us=record.at_us,
        turn=record.turn or "",
        tool=record.tool,
        # What a tool redacts is a mark here, and is not remembered: it would be written down once more.
        arguments={n: value for n, value in arguments.items() if value is not None and MARK not in str(value)},
        keys=content.keys,
        changes=content.effect is not Effect.READ,
        units=units,
    )


def _mark_aside(calls: Sequence[EarlierCall], requires: Requirement) -> tuple[EarlierCall, ...]:
    """The calls of a turn, marked where one is about another thing than the answer needs."""
    bound = [leaf for leaf in leaves(requires) if leaf.where or leaf.about]
    if not bound or MARK in str(bound):  # what a tool redacts is not known here
        return tuple(calls)
    asked: dict[str, set[str]] = {name: set() for leaf in bound for name in _BOUND.findall(leaf.where)}
    for name, value in (pair for leaf in bound for entity in leaf.about for pair in entity.values):
        asked.setdefault(name, set()).add(_text(value))
    for call in calls:
        seen = CallSeen(call.record, call.tool, Status.OK, arguments=call.arguments)
        if any(satisfies(seen, leaf) for leaf in bound):
            for name in asked.keys() & call.arguments.keys():
                asked[name].add(_text(call.arguments[name]))
    return tuple(
        msgspec.structs.replace(
            call, is_aside=any(_text(call.arguments[n]) not in asked[n] for n in asked.keys() & call.arguments.keys())
        )
        for call in calls
    )


def _spoken_of(opened: Opened, calls: Sequence[EarlierCall]) -> dict[str, str]:
    """The one value of each argument that a turn was bound to, and that no call of it was made with."""
    found: dict[str, set[str]] = {}
    for leaf in leaves(opened.requires):
        for name, value in (*_IS_BOUND_TO.findall(leaf.where), *sure_values(leaf)):
            found.setdefault(name, set()).add(value)
    told = {name for call in calls if not call.is_aside for name in call.arguments}
    return {
        n: value
        for n, values in found.items()
        if n not in told and len(values) == 1 and MARK not in (value := min(values))
    }


def _text(value: Json) -> str:
    return value if isinstance(value, str) else str(value)


async def _read_lists(store: Store, calls: Sequence[EarlierCall]) -> tuple[ReturnedLists, ...]:
    """What the last results list, back to the last one that is a list itself."""
    found: list[ReturnedLists] = []
    for call in reversed(calls[-_MOST_RESULTS:]):
        async for record in store.records(Query(after=call.record - 1, until=call.record)):
            content = record.content()
            value = (await payload_of(store, record.id, content)).get("value") if content.payload else content.value
            lists, is_list = _lists_in(value), isinstance(value, list)
            if lists or is_list:
                found.append(ReturnedLists(call.record, tuple(tuple(rows[:_MOST_ROWS]) for rows in lists), is_list))
            if is_list:
                return tuple(found)
    return tuple(found)


def _lists_in(value: Json) -> list[list[Json]]:
    if isinstance(value, list):
        return [value] if value else []
    inner = [item for item in value.values() if isinstance(item, list)] if isinstance(value, dict) else []
    rows = [item for item in inner if len(item) > 1 and all(isinstance(row, dict | str) for row in item)]
    return [item for item in rows if all(isinstance(row, dict) for row in item)] or rows


async def citable_records(
    ctx: EngineContext, context: SessionContext, named: dict[str, Collection[str]]
) -> tuple[int, ...]:
    """The records that an answer may still rest on: not too old, not changed since, and not about something else.

    `named`: for each argument the values that the question speaks of, where it speaks of any.
    """
    now_us, oldest_us = ctx.clock.now_us(), ctx.limits.max_session_minutes * _MINUTE_US
    # The same call again tells more than the first time.
    latest = {(call.tool, canonical(call.arguments, WHATEVER)): call for call in context.calls}
    calls = [c for c in latest.values() if now_us - c.at_us <= oldest_us and not _is_about_another(c, named)]
    if not calls:
        return ()
    first_us = min(call.at_us for call in calls) - _LONGEST_CHANGE_US
    made = [
        claim
        for claim in await ctx.store.claims(ChangeFilter(since_us=first_us))
        if not claim.is_lock and claim.state not in _NOT_MADE
    ]
    own = {call.turn for call in context.calls}
    fresh = [
        call
        for call in calls
        if not any(
            (claim.record or claim.intent or call.record + 1) > call.record
            and (claim.turn in own or _may_concern(call, claim.keys))
            for claim in made
            if claim.record != call.record
        )
    ]
    return tuple(sorted(call.record for call in fresh))[-_MOST_RECORDS:]


def _is_about_another(call: EarlierCall, named: dict[str, Collection[str]]) -> bool:
    values = {name: value for name, value in call.arguments.items() if isinstance(value, str) and named.get(name)}
    return any(value not in named[name] for name, value in values.items())


def _may_concern(call: EarlierCall, keys: Sequence[str]) -> bool:
    """Whether a change of these keys may have changed what a call has returned."""
    if call.keys:
        return any(overlapping(key, call.keys) for key in keys)
    given = [one for value in call.arguments.values() for one in (value if isinstance(value, list) else (value,))]
    ids = [str(one) for one in given if (isinstance(one, str) and one) or type(one) is int]
    # A read says what it was about by its ids alone; of one that has none nothing is known.
    return not ids or any(value in local_key(key) or key.endswith("/*") for key in keys for value in ids)
