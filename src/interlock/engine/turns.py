"""What turns have recorded, folded once and carried on: each call reads only the records that are newer.

Nothing here is the truth: it is what the ledger says, and what falls out is read from it again.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from typing import Any

import msgspec

from interlock.canonical import encode_canonical
from interlock.engine.turn_tail import LateRecords, Newer, TurnTail
from interlock.ports import Faults, Store, digest_of
from interlock.records import Content, Stored
from interlock.state import wildcard
from interlock.tools import MARK
from interlock.values import Call, Json, Mode, Status, Trust, TurnView

MOST_TURNS = 256
"""So many turns are kept folded; the one that was used longest ago goes first."""
MOST_CALLS = 100_000
"""So many calls of all of them together (about half a kilobyte each); the turn in use is kept however long it is."""
_ANSWERS = (Status.OK, Status.NO_DATA)
_OK, _PLANNED = Status.OK.value, Status.PLANNED.value


class CallIdentity(msgspec.Struct, frozen=True, gc=False):
    """What makes two calls of a turn the same: who asks for what, in the words it was asked in, before any clamp."""

    actor: str
    tool: str
    principal: str
    mode: Mode
    arguments: str


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """The newest answer that was given under a call id."""

    record: int
    request: CallIdentity

    def may_answer(self, request: CallIdentity) -> bool:
        """Whether it may be the answer to a request, whatever its arguments: here they are known by their words alone,
        and are to be compared by value."""
        return msgspec.structs.replace(self.request, arguments=request.arguments) == request


class Made(msgspec.Struct, frozen=True, gc=False):
    """The newest outcome of its own under a call id, which repeats no other record, and its claim if it has one."""

    record: int
    claim: str | None


class FoldedTurn:
    """What one turn has recorded, as rules and repeated calls need it. It grows with the turn."""

    def __init__(self, tail: TurnTail, keyed: Any, *, keeps_late: bool = False) -> None:
        self.tail = tail
        self.late = LateRecords(wanted=keeps_late)
        self.view = TurnView()
        """What rules are told."""
        self._keyed = keyed
        self._calls = 0
        self._tools: dict[str, int] = {}
        self._untrusted: dict[str, int] = {}
        self._planned: dict[str, list[int]] = {}
        self._delivered: dict[tuple[str, str], Delivered] = {}
        self._made: dict[tuple[str, str], Made] = {}
        self._begun: set[tuple[str, str]] = set()
        self._answered: dict[CallIdentity, int] = {}
        self._changed = 0
        """The newest record of a change that was begun: what was read before it may be otherwise now."""

    def last_delivered(self, call: Call) -> Delivered | None:
        """What the actor of a call was answered last under its id."""
        return self._delivered.get((call.actor, call.call_id))

    def last_made(self, call: Call) -> Made | None:
        """What the actor of a call has done last under its id."""
        return self._made.get((call.actor, call.call_id))

    def has_begun(self, call: Call) -> bool:
        """Whether the actor of a call has begun a change under its id, whatever became of it, or was answered by it."""
        return (call.actor, call.call_id) in self._begun

    def find_answer(self, request: CallIdentity, changed: int) -> int | None:
        """The newest record that answers a request; none that is older than a change in the turn, or than `changed`."""
        # Which reads a change makes untrue is not known: keys of two tools for the same thing need not be the same.
        found = self._answered.get(request)
        return found if found is not None and found > max(self._changed, changed) else None

    def extend(self, newer: Newer) -> int:
        """Fold what was read since; how many calls that were."""
        before = self._calls
        # All are decoded before any counts as read: a record that cannot be read must fail the next call as well.
        fresh = self.tail.fresh(newer)
        calls = [(record, record.content()) for record in fresh if record.kind == "call"]
        self.tail.advance(newer)
        decoded = {record.id: content for record, content in calls}
        self.late.keep([(record, decoded.get(record.id)) for record in fresh], self.tail.ends)
        intents = [record for record in fresh if record.kind == "intent"]
        self._begun.update((record.actor, record.call) for record in intents)
        self._changed = max(self._changed, *(record.id for record in intents)) if intents else self._changed
        for record, content in calls:
            self._fold(record, content)
        if self._calls != before:
            self.view = TurnView(self._calls, _by_record(self._tools), _by_record(self._untrusted), self._planned)
        return self._calls - before

    def _fold(self, record: Stored, content: Content) -> None:
        # Whatever an untrusted tool says taints the turn: its answer, but also its error or its "nothing found".
        self._calls += 1
        if record.status == _OK:
            _note_first(self._tools, record)
        if content.trust is Trust.UNTRUSTED and content.attempts:
            _note_first(self._untrusted, record)
        if record.status == _PLANNED:
            for key in content.keys:  # one that is redacted may be any in its resource
                self._planned.setdefault(wildcard(key) if MARK in key else key, []).append(record.id)
        if content.change is not None and content.repeats is None and record.status != _PLANNED:
            self._changed = max(self._changed, record.id)
        if content.same_as is not None:
            self._begun.add((record.actor, record.call))
        if record.status in _ANSWERS:
            self._note_answer(record, content)

    def _note_answer(self, record: Stored, content: Content) -> None:
        """Newer is what has the greater id, whichever was seen first."""
        asked = (
            content.asked_digest
            or content.arguments_digest
            or digest_of(self._keyed, encode_canonical(content.arguments))
        )
        # Every record brings these names as texts of its own.
        actor, tool, principal = map(sys.intern, (record.actor, record.tool, content.principal))
        request, name = CallIdentity(actor, tool, principal, content.mode, asked), (actor, record.call)
        if self._answered.get(request, 0) < record.id:
            self._answered[request] = record.id
        delivered = self._delivered.get(name)
        if delivered is None or delivered.record < record.id:
            self._delivered[name] = Delivered(record.id, request)
        made = self._made.get(name)
        if content.repeats is None and (made is None or made.record < record.id):
            self._made[name] = Made(record.id, None if content.change is None else content.change.claim)


class FoldedTurns:
    """The turns that a runtime has seen lately, folded."""

    def __init__(self, store: Store, keyed: Any, faults: Faults | None) -> None:
        self._store = store
        self._faults = faults
        self._keyed = keyed
        self._kept: OrderedDict[str, FoldedTurn] = OrderedDict()
        self._calls = 0
        self._changes: OrderedDict[str, int] = OrderedDict()
        """By outermost turn: the newest change that this process has begun in it or in a turn that it delegated to."""
        self.keeps_late = False
        """Whether somebody else reads turns, too: those that come."""
        self._changing = threading.Lock()  # calls may run on loops of several threads

    def note_change(self, call: Call, intent: int) -> None:
        """A change was begun: what any turn of the same delegation has read before it may be otherwise now."""
        outermost = call.root_turn or call.turn
        if outermost is None:
            return
        with self._changing:
            self._changes[outermost] = max(intent, self._changes.pop(outermost, 0))
            while len(self._changes) > MOST_TURNS:
                self._changes.popitem(last=False)

    def last_change(self, call: Call) -> int:
        """The newest change that this process knows in the turns of a delegation; 0 for none."""
        return self._changes.get(call.root_turn or call.turn or "", 0)

    def request(self, call: Call, arguments: Json) -> CallIdentity:
        """What a call asks for."""
        asked = digest_of(self._keyed, encode_canonical(arguments))
        return CallIdentity(call.actor, call.tool, call.principal, call.mode, asked)

    async def read(self, turn: str) -> FoldedTurn:
        """What a turn has recorded up to now, in whatever process: the ledger is asked for more each time."""
        folded = self._find(turn)
        newer = await folded.tail.newer()
        if newer is None:
            self._forget(turn, folded)
            folded = self._find(turn)
            newer = await folded.tail.newer() or Newer((), {})
        with self._changing:
            more = folded.extend(newer)
            if self._kept.get(turn) is folded:
                self._calls += more
            self._trim()
        return folded

    def _find(self, turn: str) -> FoldedTurn:
        with self._changing:
            folded = self._kept.get(turn)
            if folded is None:
                tail = TurnTail(self._store, turn, self._faults)
                folded = self._kept[turn] = FoldedTurn(tail, self._keyed, keeps_late=self.keeps_late)
            self._kept.move_to_end(turn)
            return folded

    def _forget(self, turn: str, folded: FoldedTurn) -> None:
        with self._changing:
            if self._kept.get(turn) is folded:
                del self._kept[turn]
                self._calls -= folded.view.calls

    def _trim(self) -> None:
        while len(self._kept) > 1 and (len(self._kept) > MOST_TURNS or self._calls > MOST_CALLS):
            _turn, oldest = self._kept.popitem(last=False)
            self._calls -= oldest.view.calls


def _note_first(firsts: dict[str, int], record: Stored) -> None:
    firsts[record.tool] = min(record.id, firsts.get(record.tool, record.id))


def _by_record(firsts: dict[str, int]) -> tuple[str, ...]:
    return tuple(sorted(firsts, key=firsts.__getitem__))
