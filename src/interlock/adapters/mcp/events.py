"""What was sent to a client over HTTP, for a while: who comes back with `Last-Event-ID` gets what was missed."""

from __future__ import annotations

from collections import OrderedDict

from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp_types import JSONRPCMessage

_MOST_EVENTS = 2_000
_MOST_CHARS = 16_000_000


class RecentEvents(EventStore):
    """The newest events of all streams, bounded in number and size; the oldest go first."""

    def __init__(self) -> None:
        self._events: OrderedDict[EventId, tuple[StreamId, JSONRPCMessage | None, int]] = OrderedDict()
        self._count = self._chars = 0

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """Keep one; its id."""
        self._count += 1
        chars = 0 if message is None else len(message.model_dump_json())
        self._events[str(self._count)] = (stream_id, message, chars)
        self._chars += chars
        while len(self._events) > _MOST_EVENTS or (self._chars > _MOST_CHARS and len(self._events) > 1):
            self._chars -= self._events.popitem(last=False)[1][2]
        return str(self._count)

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        """Send what came after an event on its stream; None where that event is not kept any more."""
        known = self._events.get(last_event_id)
        if known is None:
            return None
        for number, (stream, message, _chars) in list(self._events.items()):
            if stream == known[0] and int(number) > int(last_event_id) and message is not None:
                await send_callback(EventMessage(message, number))
        return known[0]
