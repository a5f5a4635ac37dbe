"""What a turn has seen, kept as an index by which the values of arguments are traced; built once, extended as it grows.

One index for a whole delegation: what a specialist has read does not become clean by being passed on.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable

import msgspec

from interlock.engine.turn_tail import Newer, TurnTail
from interlock.policy.provenance import OriginIndex
from interlock.ports import Faults, Store
from interlock.records import Content, Stored
from interlock.tools import Tool
from interlock.tools.labels import FieldLabels, Label
from interlock.values import Call, Json, Status

_MOST_TURNS = 64
"""So many delegations are kept; the one that was used longest ago goes first, and is read again when it is needed."""
_SEEN = (Status.OK.value, Status.NO_DATA.value)
_ERRORS = FieldLabels(default=Label.FREE)
_EVENTS = ("opened", "replied", "delegated")


class SeenTurns(msgspec.Struct):
    """The turns of one delegation: what was seen in them, and how far each has been read."""

    index: OriginIndex
    tails: dict[str, TurnTail]
    reading: asyncio.Lock
    words: list[str]
    """The user's own."""
    earlier: set[str]
    """Turns of the same session, in which the user has spoken, too."""

    @property
    def question(self) -> str:
        return "\n".join(self.words)


def labels_in(tools: Iterable[Tool]) -> Callable[[str], FieldLabels]:
    """What is known of the results of a tool; of one that there is not any more, as little as of any."""
    known = {tool.name: tool.labels for tool in tools}
    return lambda name: known.get(name, _ERRORS)


class OriginIndexes:
    """The delegations that a runtime has seen lately."""

    def __init__(self, store: Store, labels: Callable[[str], FieldLabels], faults: Faults | None) -> None:
        self._store = store
        self._labels = labels
        self._faults = faults
        self._kept: OrderedDict[str, SeenTurns] = OrderedDict()

    async def read(self, call: Call) -> SeenTurns:
        """What was seen up to now in the turns that a call belongs to, in whatever process."""
        outermost = call.root_turn or call.turn
        seen = self._find(outermost)
        self._at("origins.read")
        async with seen.reading:
            # First: what the user has pointed at is known when it is read.
            self._say(seen, call.question)
            if outermost is not None:
                await self._catch_up(seen, outermost, call.turn or outermost)
        return seen

    def _find(self, outermost: str | None) -> SeenTurns:
        found = SeenTurns(OriginIndex(), {}, asyncio.Lock(), [], set())
        if outermost is None:  # a call of its own: nothing was seen before it
            return found
        found = self._kept.setdefault(outermost, found)
        self._kept.move_to_end(outermost)
        while len(self._kept) > _MOST_TURNS:
            self._kept.popitem(last=False)
        return found

    async def _catch_up(self, seen: SeenTurns, outermost: str, here: str) -> None:
        left = list(dict.fromkeys((outermost, *seen.tails, here)))
        for turn in left:  # grows: a turn names those that it has delegated to, and those of its session before it
            tail = seen.tails.setdefault(turn, TurnTail(self._store, turn, self._faults))
            newer = await tail.newer() or Newer((), {})
            for record in tail.fresh(newer):
                more = await self._see(seen, record, is_users=turn == outermost or turn in seen.earlier)
                left += [other for other in more if other not in left]
            tail.advance(newer)

    async def _see(self, seen: SeenTurns, record: Stored, *, is_users: bool) -> list[str]:
        """Take one record in; the turns that it names."""
        if record.kind == "call":
            await self._see_call(seen, record, record.content())
        if record.kind != "turn" or record.status not in _EVENTS:
            return []
        content = record.content()
        said: dict[str, Json] = content.arguments if isinstance(content.arguments, dict) else {}
        # What a model has asked a specialist is not what the user has said.
        if is_users and content.payload:
            whole = await self._beside(record)
            self._say(seen, whole.get("question") or whole.get("reply"))
        earlier = [str(turn) for turn in said.get("earlier_turns", ())] if is_users else []
        seen.earlier.update(earlier)
        child = said.get("child")
        return [*earlier, str(child)] if child else earlier

    def _say(self, seen: SeenTurns, words: Json) -> None:
        if isinstance(words, str) and words and words not in seen.words:
            seen.words.append(words)
            seen.index.add_words(words)

    async def _see_call(self, seen: SeenTurns, record: Stored, content: Content) -> None:
        if content.repeats is not None:  # what it says stands there already
            return
        if content.problem is not None and content.attempts:
            # Whatever a tool says may be somebody else's words, its error, too.
            seen.index.add_result(record.id, record.tool, None, {"error": content.problem.message}, _ERRORS)
        if record.status not in _SEEN:
            return
        whole = await self._beside(record) if content.payload else {}
        arguments, value = whole.get("arguments", content.arguments), whole.get("value", content.value)
        labels = self._labels(record.tool)
        seen.index.add_result(record.id, record.tool, arguments, value, labels, shown=content.arguments)

    async def _beside(self, record: Stored) -> dict[str, Json]:
        self._at("origins.payload")
        found = await self._store.payload(record.id)
        whole = None if found is None else msgspec.json.decode(found)
        return whole if isinstance(whole, dict) else {}

    def _at(self, point: str) -> None:
        if self._faults is not None:
            self._faults.at(point)
