"""What a turn has seen, kept as an index by which the values of arguments are traced; built once, extended as it grows.

One index for a whole delegation: what a specialist has read does not become clean by being passed on.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable

import msgspec

from interlock.engine.recalled import RecalledValues
from interlock.engine.turn_tail import Newer, TurnTail
from interlock.engine.turns import FoldedTurn
from interlock.policy.provenance import TurnHistory
from interlock.ports import Faults, Store
from interlock.records import Content, Stored
from interlock.review import vouched_records
from interlock.tools import Tool
from interlock.tools.labels import FieldLabels, Label
from interlock.values import Call, Json, Status

_MOST_TURNS = 64
"""So many delegations are kept; the one that was used longest ago goes first, and is read again when it is needed."""
_SEEN = (Status.OK.value, Status.NO_DATA.value)
_ERRORS = FieldLabels(default=Label.FREE)
_EVENTS = ("opened", "replied", "delegated")


_LARGE = 16_384
"""Characters and items of a result that are taken apart beside the event loop: fewer take less than a millisecond."""


class SeenTurns(msgspec.Struct):
    """The turns of one delegation: what was seen in them, and how far each has been read."""

    seen: TurnHistory
    tails: dict[str, TurnTail]
    reading: asyncio.Lock
    earlier: set[str]
    """Turns of the same session, in which the user has spoken, too."""


class OriginIndexes:
    """The delegations that a runtime has seen lately."""

    def __init__(
        self,
        store: Store,
        tools: Iterable[Tool],
        faults: Faults | None,
        watched: frozenset[str] = frozenset(),
    ) -> None:
        self._store = store
        self._tools = {tool.name: tool for tool in tools}
        self._recalled = RecalledValues(store, faults)
        self._watched = watched
        self._faults = faults
        self._kept: OrderedDict[str, SeenTurns] = OrderedDict()

    async def read(self, call: Call, here: FoldedTurn | None = None) -> TurnHistory:
        """What was seen up to now in the turns that a call belongs to, in whatever process; `here`: its own turn, where
        that was read for this call."""
        outermost = call.found_in or call.root_turn or call.turn
        turns = self._find(outermost)
        self._at("origins.read")
        async with turns.reading:
            # First: what the user has pointed at is known when it is read.
            turns.seen.say(call.question)
            if outermost is not None:
                await self._catch_up(turns, outermost, call.turn or outermost, here)
        return turns.seen

    def _find(self, outermost: str | None) -> SeenTurns:
        found = None if outermost is None else self._kept.get(outermost)
        if found is None:
            found = SeenTurns(TurnHistory(self._watched), {}, asyncio.Lock(), set())
        if outermost is None:  # a call of its own: nothing was seen before it
            return found
        found = self._kept.setdefault(outermost, found)
        self._kept.move_to_end(outermost)
        while len(self._kept) > _MOST_TURNS:
            self._kept.popitem(last=False)
        return found

    async def _catch_up(self, turns: SeenTurns, outermost: str, own: str, here: FoldedTurn | None) -> None:
        done: set[str] = set()
        for turn in dict.fromkeys((outermost, *turns.tails, own)):
            await self._read_turn(turns, turn, outermost, here if turn == own else None, done)

    async def _read_turn(
        self, turns: SeenTurns, turn: str, outermost: str, here: FoldedTurn | None, done: set[str]
    ) -> None:
        """Take in what is new of a turn, in its order: those that it names before what it did afterwards."""
        if turn in done:
            return
        done.add(turn)
        tail = turns.tails.setdefault(turn, TurnTail(self._store, turn, self._faults))
        late = None if here is None else here.late.newer_than(tail, here.tail.ends)
        self._at("origins.newer")
        newer = late or await tail.newer() or Newer((), {})
        for record in tail.fresh(newer):
            if record.kind == "call":
                await self._see_call(turns.seen, record, newer.content(record))
            elif record.kind == "turn" and record.status in _EVENTS:
                for other in await self._see_event(turns, record, turn, outermost):
                    await self._read_turn(turns, other, outermost, None, done)
            elif record.kind == "ticket" and turn not in turns.earlier:
                self._at("origins.vouched")
                for number in await vouched_records(self._store, record):
                    turns.seen.index.vouch(number)
        tail.advance(newer)

    async def _see_event(self, turns: SeenTurns, record: Stored, turn: str, outermost: str) -> list[str]:
        """Take in what a turn says of itself; the turns that it names."""
        content = record.content()
        said: dict[str, Json] = content.arguments if isinstance(content.arguments, dict) else {}
        earlier: list[str] = []
        # What a model has asked a specialist is not what the user has said.
        if turn == outermost or turn in turns.earlier:
            whole = await self._beside(record) if content.payload else {}
            turns.seen.say(whole.get("question") or whole.get("reply"), earlier=turn != outermost)
            earlier = [str(one) for one in said.get("earlier_turns", ())]
            turns.earlier.update(earlier)
        if turn == outermost and "intents" in said:
            turns.seen.intents = tuple(map(str, said["intents"]))
        child = said.get("child")
        return [*earlier, str(child)] if child else earlier

    async def _see_call(self, seen: TurnHistory, record: Stored, content: Content) -> None:
        if content.repeats is not None:  # what it says stands there already
            return
        if content.problem is not None and content.attempts:
            # Whatever a tool says may be somebody else's words, its error, too.
            seen.index.add_result(record.id, record.tool, None, {"error": content.problem.message}, _ERRORS)
        if record.status == Status.UNKNOWN.value:  # it may have been made, and nobody knows what it gave
            seen.note_call(record.tool, content.arguments, None, record.status)
        if record.status not in _SEEN:
            return
        whole = await self._beside(record) if content.payload else {}
        arguments, value = whole.get("arguments", content.arguments), whole.get("value", content.value)
        seen.note_call(record.tool, arguments, value, record.status)
        tool, reads = self._tools.get(record.tool), content.change is None
        labels = _ERRORS if tool is None else tool.labels  # of one that there is not any more, as little as of any
        if not reads and (value is None or value is True or value is False):
            return  # done, and no word about it
        source = seen.index.source(record.id, record.tool, arguments, labels, content.arguments, reads=reads)
        if tool is not None and tool.recalls:
            self._at("origins.recalled")
            is_foreign = await self._recalled.find(sorted(tool.recalls))
            source = msgspec.structs.replace(source, is_foreign=is_foreign)
        if content.payload and _is_large(value):
            self._at("origins.take_apart")
            entries = await asyncio.to_thread(seen.index.take_apart, source, value)
        else:
            entries = seen.index.take_apart(source, value)
        seen.index.take_in(entries)

    async def _beside(self, record: Stored) -> dict[str, Json]:
        self._at("origins.payload")
        found = await self._store.payload(record.id)
        whole = None if found is None else msgspec.json.decode(found)
        return whole if isinstance(whole, dict) else {}

    def _at(self, point: str) -> None:
        if self._faults is not None:
            self._faults.at(point)


def _is_large(value: Json, most: int = _LARGE) -> bool:
    left, todo = most, [value]
    while todo and left > 0:
        item = todo.pop()
        left -= len(item) if isinstance(item, str | list | dict) else 1
        todo += item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
    return left <= 0
