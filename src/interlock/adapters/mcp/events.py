"""What was sent to a client over HTTP, for a while: who comes back with `Last-Event-ID` gets what was missed."""

from __future__ import annotations

from collections import OrderedDict

from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import JSONRPCMessage

_MOST_EVENTS = 500
_MOST_CHARS = 4_000_000


class RecentEvents(EventStore):
    """The newest events of one session, bounded in number and size; the oldest go first.

    Streams are named by the ids of requests, which are the same in every session: what is kept for one is no other's.
    """

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


class HttpSessions(StreamableHTTPSessionManager):
    """That of the SDK, which hands each session the same store: here each gets one of its own."""

    @property
    def event_store(self) -> EventStore:
        """A new one, whenever a session is begun."""
        return RecentEvents()

    @event_store.setter
    def event_store(self, _store: EventStore | None) -> None:
        """The SDK sets one for all."""
