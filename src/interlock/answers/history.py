"""The history of a turn: its records, folded into what was called, what was tried, and what an answer may rest on."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import assert_never

from msgspec import field
from msgspec.structs import replace

from interlock.answers.events import (
    TURN,
    Abandoned,
    Delegated,
    Finished,
    Forced,
    Joined,
    Judged,
    Noted,
    Offered,
    Opened,
    PhaseBegun,
    Planned,
    Reopened,
    Replied,
    Retried,
    Reviewed,
    Sourced,
    Talked,
    TurnEvent,
    event_of,
)
from interlock.answers.grounding import Source
from interlock.answers.grounding.kept_evidence import KeptEvidence
from interlock.answers.ladder import TurnOutcome
from interlock.answers.notes import Note, notes_of
from interlock.answers.requirements import CallSeen
from interlock.engine import TurnTail
from interlock.models.messages import Usage
from interlock.operations.ledger_writer import payload_of
from interlock.ports import Faults, Store
from interlock.reasons import Reason
from interlock.records import Content, Stored
from interlock.tools import MARK
from interlock.values import Effect, Json, Status, Trust, Value

_EVIDENCE = (Status.OK, Status.NO_DATA, Status.PLANNED)  # that nothing is on file, or was only planned, may be said too


class History(Value, frozen=True):
    """What a turn's records say."""

    turn: str
    opened: Opened | None = None
    finished: Finished | None = None
    calls: tuple[CallSeen, ...] = ()
    inner: tuple[CallSeen, ...] = ()
    """Calls of the turns that it delegated to, each by the agent of its turn."""
    retries: int = 0
    corrected: bool = False
    forced: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    below: tuple[CallSeen, ...] = ()
    """The calls of the turns that it delegated to."""
    steps: tuple[tuple[int, Planned | Talked], ...] = ()
    """What the model has written where a plan or a call was due, each with its record."""
    sourced: tuple[Sourced, ...] = ()
    """The results that count as sources."""
    phase: str = ""
    """The phase that its workflow has come to, if it has left the first."""
    partial: tuple[str, ...] = ()
    """The agents that it asked, and that gave only a partial answer."""
    offered: tuple[str, ...] | None = None
    """The tools that were offered last; None: all of the agent's."""
    replied_at: int = 0
    """The record of the last answer to what it had asked: calls before it were made without knowing that."""
    usage: Usage = Usage()
    model_calls: int = 0
    sources: tuple[Source, ...] = ()
    confidence: float | None = None
    data_sources: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    """What was noted while it was worked on, to be said with the answer."""
    notes: tuple[Note, ...] = ()
    """What an answer must say whatever the model writes: changes that were only planned, nothing on file."""
    kept: KeptEvidence = field(default_factory=KeptEvidence)
    """What was read in its sources for an earlier draft; it lasts as long as the turn is held."""

    @property
    def short(self) -> tuple[str, ...]:
        """The agent, where its answer was a partial one."""
        ended = self.finished
        return (ended.agent,) if ended is not None and ended.outcome is TurnOutcome.PARTIAL else ()

    @property
    def own(self) -> tuple[CallSeen, ...]:
        """Calls of the turn's own agent: what somebody else calls in its name meets none of its requirements."""
        return tuple(call for call in self.calls if self.opened is None or call.actor == self.opened.agent)

    @property
    def records(self) -> tuple[int, ...]:
        """The records of its calls that an answer may rest on."""
        return tuple(call.record for call in self.evident)

    @property
    def evident(self) -> tuple[CallSeen, ...]:
        """Those calls; one that was answered from the record of another is named by that alone."""
        own = {call.record for call in self.calls}
        return tuple(call for call in self.calls if call.status in _EVIDENCE and call.repeats not in own)

    @property
    def told(self) -> tuple[CallSeen, ...]:
        """Those that a model is to know of when the turn goes on: also what a person has refused."""
        refused = [call for call in self.calls if call.refused]
        return tuple(sorted((*self.evident, *refused), key=lambda call: call.record))

    def with_calls_of(self, other: History) -> History:
        """The same with the calls of a turn that handed its question over, and of all below that."""
        own = {call.record for call in (*self.calls, *self.below)}
        others = (call for call in (*other.calls, *other.below) if call.record not in own)
        return replace(self, below=(*self.below, *others))


class Histories:
    """The histories of a turn and of those it delegated to: a record is decoded once, however often they are read."""

    def __init__(self, store: Store, faults: Faults | None = None) -> None:
        self.store = store
        self._faults = faults
        self._folds: dict[str, _Fold] = {}
        self._kept = KeptEvidence()
        self._reading = asyncio.Lock()  # what lies beside the records is waited for while they are folded

    async def read(self, turn: str, *, evidence: bool = True, depth: int = 4) -> History:
        """What a turn's records say now, with what lies beside them, and those of the turns it delegated to."""
        async with self._reading:
            return replace(await self._read(turn, evidence, depth), kept=self._kept)

    async def _read(self, turn: str, evidence: bool, depth: int) -> History:
        fold = self._folds.get(turn)
        if fold is None or not await fold.catch_up(evidence=evidence):
            fold = self._folds[turn] = _Fold(self.store, turn, TurnTail(self.store, turn, self._faults))
            await fold.catch_up(evidence=evidence)
        history = fold.history(evidence=evidence)
        sources, named, notes = list(history.sources), list(history.data_sources), list(history.notes)
        below: list[CallSeen] = []
        confidences = [] if history.confidence is None else [history.confidence]
        own: list[CallSeen] = []
        partial: list[str] = []
        for child in history.children if depth else ():
            inner = await self._read(child, evidence, depth - 1)
            # Children first, so that a figure is traced to where it was computed before who passed it on.
            sources = [*inner.sources, *sources]
            named += inner.data_sources
            own += (*inner.own, *inner.inner)
            notes += inner.notes
            below += (*inner.calls, *inner.below)
            partial += inner.short
            confidences += [] if inner.confidence is None else [inner.confidence]
        return replace(
            history,
            inner=tuple(own),
            partial=tuple(dict.fromkeys(partial)),
            sources=tuple(sources),
            below=tuple(below),
            confidence=min(confidences, default=None),  # an answer is as sure as the least sure result
            data_sources=tuple(dict.fromkeys(named)),
            notes=tuple(dict.fromkeys(notes)),
        )


async def read_history(store: Store, turn: str, *, evidence: bool = True, depth: int = 4) -> History:
    """The history of a turn for whoever reads it once."""
    return await Histories(store).read(turn, evidence=evidence, depth=depth)


class _Fold:
    """The records of one turn, by their ids: lanes of a ledger may show them in another order."""

    def __init__(self, store: Store, turn: str, tail: TurnTail) -> None:
        self._store = store
        self._turn = turn
        self._tail = tail
        self._events: dict[int, TurnEvent] = {}
        self._calls: dict[int, CallSeen] = {}
        self._named: dict[int, tuple[str, ...]] = {}
        self._evidence: dict[int, _Evidence] = {}
        # Taken from here only when it is folded: whoever is cancelled while he waits loses nothing.
        self._unseen: deque[Stored] = deque()
        self._unweighed: deque[tuple[Stored, Content]] = deque()

    async def catch_up(self, *, evidence: bool) -> bool:
        """Fold what is new; False where the ledger ends before what was folded."""
        newer = await self._tail.newer()
        if newer is None:
            return False
        self._unseen += self._tail.fresh(newer)
        self._tail.advance(newer)
        while self._unseen:
            await self._see(self._unseen[0])
            self._unseen.popleft()
        while evidence and self._unweighed:
            record, content = self._unweighed[0]
            # Whoever was asked has a turn of its own: what it said is prose of a model, in whatever form it came back.
            asked = {event.agent for event in self._events.values() if isinstance(event, Delegated)}
            source = await source_of(self._store, record, content, is_prose=record.tool in asked)
            self._evidence[record.id] = _Evidence(source, content.result_confidence, notes_of(record, content))
            self._unweighed.popleft()
        return True

    async def _see(self, record: Stored) -> None:
        event = event_of(record)
        if event is not None:
            self._events[record.id] = event
        if record.kind != "call" or record.tool == TURN:
            return
        content = record.content()
        call = await _see_call(self._store, record, content)
        self._calls[record.id] = call
        # What repeats another record of the turn proves nothing more than that one.
        if call.status in _EVIDENCE and call.repeats not in self._calls:
            # A workflow counts them when its turn is reopened, without the evidence itself.
            self._named[record.id] = content.sources
            self._unweighed.append((record, content))

    def history(self, *, evidence: bool) -> History:
        """What they say."""
        history = History(turn=self._turn)
        for number, event in sorted(self._events.items()):
            history = _after(history, event, number)
            if isinstance(event, Replied):  # from here on it is asked again, knowing more
                history = replace(history, retries=0, corrected=False, forced=(), replied_at=number)
        found = [item for _number, item in sorted(self._evidence.items())] if evidence else []
        return replace(
            history,
            calls=tuple(_drop_retaken([call for _number, call in sorted(self._calls.items())])),
            sources=tuple(item.source for item in found),
            confidence=min((item.confidence for item in found if item.confidence is not None), default=None),
            data_sources=tuple(name for _number, names in sorted(self._named.items()) for name in names),
            notes=tuple(note for item in found for note in item.notes),
        )


class _Evidence(Value, frozen=True):
    """What one record can prove."""

    source: Source
    confidence: float | None
    notes: tuple[Note, ...]


def _after(history: History, event: TurnEvent, number: int) -> History:
    match event:
        case Opened():
            return replace(history, opened=event)
        case Retried(usage=usage, model_calls=calls):
            retries, corrected = history.retries + (not event.corrects), history.corrected or event.corrects
            return replace(history, retries=retries, corrected=corrected, usage=usage, model_calls=calls)
        case Forced(tool=tool, usage=usage, model_calls=calls):
            return replace(history, forced=(*history.forced, tool), usage=usage, model_calls=calls)
        case Delegated(child=child):
            return replace(history, children=(*history.children, child))
        case Planned() | Talked() | Sourced() | PhaseBegun():
            return _after_work(history, event, number)
        case Noted(text=text):
            return replace(history, said=(*history.said, text))
        case Offered(tools=tools):
            return replace(history, offered=tools)
        case Finished(usage=usage, model_calls=calls) | Abandoned(usage=usage, model_calls=calls):
            finished = event if isinstance(event, Finished) else history.finished
            return replace(history, finished=finished, usage=usage, model_calls=calls)
        case Reopened() | Replied() | Reviewed() | Joined() | Judged():
            return history
        case _:
            assert_never(event)


def _after_work(history: History, event: Planned | Talked | Sourced | PhaseBegun, number: int) -> History:
    """What happens to the way of working of a turn."""
    match event:
        case Planned(usage=usage, model_calls=calls) | Talked(usage=usage, model_calls=calls):
            usage, calls = (usage, calls) if calls else (history.usage, history.model_calls)
            return replace(history, steps=(*history.steps, (number, event)), usage=usage, model_calls=calls)
        case Sourced():
            return replace(history, sourced=(*history.sourced, event))
        case PhaseBegun(name=name):
            return replace(history, phase=name)
        case _:
            assert_never(event)


async def _see_call(store: Store, record: Stored, content: Content) -> CallSeen:
    arguments, problem = content.arguments, content.problem
    # A requirement's condition looks at arguments; where the record has marks, what lies beside it is needed.
    if content.payload and _is_marked(arguments):
        arguments = (await payload_of(store, record.id, content)).get("arguments", arguments)
    return CallSeen(
        record=record.id,
        tool=record.tool,
        status=Status(record.status),
        actor=record.actor,
        arguments=arguments,
        mode=content.mode,
        reason=None if problem is None else problem.reason,
        message=_message_of(record, content),
        fields=() if problem is None else problem.fields,
        ran=bool(content.attempts),
        changes=_changes(content),
        ticket=content.ticket,
        repeats=content.repeats,
    )


def _message_of(record: Stored, content: Content) -> str:
    """Why a call brought nothing: its problem, or what a tool that ran says of finding nothing."""
    if content.problem is not None:
        return content.problem.message
    return content.said or "" if record.status == Status.NO_DATA and content.attempts else ""


def _changes(content: Content) -> bool:
    return content.effect is not None and content.effect is not Effect.READ


def _is_marked(value: Json) -> bool:
    if isinstance(value, dict):
        return any(_is_marked(item) for item in value.values())
    if isinstance(value, list):
        return any(_is_marked(item) for item in value)
    return bool(isinstance(value, str) and MARK in value)


def _drop_retaken(calls: list[CallSeen]) -> list[CallSeen]:
    """A parked call that was resumed, or made otherwise after that, is decided by its later record."""
    performed = {
        call.ticket
        for call in calls
        if call.ticket is not None and call.status is not Status.PARKED and call.reason is not Reason.NOT_APPROVED
    }
    return [
        call
        for call in calls
        if call.status is not Status.PARKED or not (call.ticket in performed or _was_made_since(call, calls))
    ]


def _was_made_since(parked: CallSeen, calls: list[CallSeen]) -> bool:
    return any(
        call.status is Status.OK and call.record > parked.record and call.arguments == parked.arguments
        for call in calls
        if call.tool == parked.tool
    )


async def source_of(store: Store, record: Stored, content: Content, *, is_prose: bool) -> Source:
    """What a record can prove: not the arguments of a read, which a model chose, but those of a change."""
    whole = await payload_of(store, record.id, content) if content.payload else {"value": content.value}
    made = _changes(content) and record.status == Status.OK
    given = {
        "value": whole.get("value", content.value),
        "made": whole.get("arguments", content.arguments) if made else None,
        "keys": list(content.keys),
        "summary": content.said if content.problem is None else None,
        "snippets": list(content.snippets),
        "metadata": content.metadata,
        "sources": list(content.sources),
        "confidence": content.result_confidence,
        "problem": None if content.problem is None else content.problem.message,
        "hints": None if content.problem is None else list(content.problem.hints),
    }
    kept = {key: item for key, item in given.items() if item not in (None, "", [], {})}
    # A problem and its hints may quote what a model said, keys are made from it, and a confidence is no figure.
    apart = ("problem", "hints", "confidence", *(() if made else ("keys",)))
    if is_prose:  # what stands behind it is in the records of its own turn
        apart += ("value", "summary")
    about, trusted = whole.get("arguments", content.arguments), content.trust is Trust.TRUSTED
    return Source(f"record {record.id}", kept, apart, tool=record.tool or "", about=about, trusted=trusted)
