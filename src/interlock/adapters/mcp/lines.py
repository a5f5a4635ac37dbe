"""Messages of JSON-RPC as lines of a pipe, read and written on the event loop: no thread, and a bound on everything."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from interlock.adapters.mcp.answered_errors import AnsweredErrors

_log = logging.getLogger("interlock.mcp")
MOST_BYTES = 64 * 1024 * 1024
"""Of one message. Whoever sends more is cut off: nobody knows what it would have said."""
_WAITING_BYTES = 8 * 1024 * 1024
"""So much may wait to be handled before no more is read."""
_A_SECOND = 200
"""So many messages of log and progress are taken in a second; the others are left out."""
_PASSING = re.compile(rb'"method"\s*:\s*"notifications\\?/(?:message|progress)"')
_AGAIN = re.compile(rb'"method"\s*:\s*"notifications/[a-z/]+/list_changed"')
_LOOKED_AT = 200
"""Bytes at the head of a message in which its method stands."""


Refuse = Callable[[bytes], Awaitable[None]]


class Pausable(Protocol):
    """The pipe that is read, as asyncio has it."""

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class WritePipe(Protocol):
    """The pipe that is written, as asyncio has it."""

    def write(self, data: bytes) -> None: ...
    def is_closing(self) -> bool: ...
    def close(self) -> None: ...


class LineReads:
    """The messages that come in, as the SDK wants to read them; `ended` is called once the last one was taken.

    Where more come than are handled, the pipe is not read on. Of log and progress some are left out where they come too
    fast, so that an answer behind a flood of them comes in time; that a list has changed is heard once. `refuse` is
    told of lines that are no messages; without it, the SDK is.
    """

    def __init__(
        self,
        who: str,
        ended: Callable[[], None] | None = None,
        refuse: Refuse | None = None,
        errors: AnsweredErrors | None = None,
    ) -> None:
        self.errors = errors or AnsweredErrors()
        """Those that were read."""
        self.problem = ""
        """Why no more is read, where the other side is to blame."""
        self._who, self._ended, self._refuse = who, ended, refuse
        self._lines: deque[bytes] = deque()
        self._waiting = 0
        self._begun: list[bytes] = []
        self._begun_bytes = 0
        self._second, self._taken = 0.0, 0
        self._pipe: Pausable | None = None
        self._paused = self._closed = False
        self._taker: asyncio.Future[None] | None = None

    def follow(self, pipe: Pausable) -> None:
        """Where they come from."""
        self._pipe = pipe

    def feed(self, data: bytes) -> None:
        """Bytes that have come."""
        if self._closed:
            return
        head, newline, rest = data.rpartition(b"\n")
        if newline:
            for line in b"".join((*self._begun, head)).split(b"\n"):
                self._add(line)
            self._begun, self._begun_bytes = [], 0
        if rest:
            self._begun.append(rest)
            self._begun_bytes += len(rest)
        if self._begun_bytes > MOST_BYTES:
            self.problem = f"it has sent a message of more than {MOST_BYTES // (1024 * 1024)} MiB"
            _log.warning("%s: %s", self._who, self.problem)
            self.feed_end()
        if self._waiting > _WAITING_BYTES and self._pipe is not None and not self._paused:
            self._paused = True
            self._pipe.pause_reading()
        self._wake()

    def feed_end(self) -> None:
        """Nothing more comes. What is no whole line is no message."""
        self._closed = True
        self._begun = []
        self._wake()

    def _add(self, line: bytes) -> None:
        if not line or line.isspace():
            return
        if self._lines and line == self._lines[-1] and _AGAIN.search(line):
            return
        if b'"id"' not in line and _PASSING.search(line[:_LOOKED_AT]) and not self._has_time():
            return
        self._lines.append(line)
        self._waiting += len(line)

    def _has_time(self) -> bool:
        now = asyncio.get_running_loop().time()
        if now - self._second >= 1.0:
            self._second, self._taken = now, 0
        self._taken += 1
        if self._taken == _A_SECOND + 1:
            _log.warning("%s: messages of log and progress come too fast; some are left out", self._who)
        return self._taken <= _A_SECOND

    def _wake(self) -> None:
        if self._taker is not None and not self._taker.done():
            self._taker.set_result(None)

    async def receive(self) -> SessionMessage | Exception:
        """The next one."""
        while True:
            line = await self._take()
            found: SessionMessage | Exception
            try:
                found = SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError as error:
                found = self._read_damaged(line, error)
            if isinstance(found, SessionMessage):
                self.errors.hear(found.message)
                return found
            if self._refuse is None:
                return found
            await self._refuse(line)
            await asyncio.sleep(0)  # a flood of them leaves room for others

    async def _take(self) -> bytes:
        while not self._lines:
            if self._closed:
                if self._ended is not None:
                    self._ended()
                raise anyio.EndOfStream
            self._taker = asyncio.get_running_loop().create_future()
            await self._taker
        line = self._lines.popleft()
        self._waiting -= len(line)
        if not self._lines and self._paused and self._pipe is not None and not self._closed:
            self._paused = False
            self._pipe.resume_reading()
        return line

    @staticmethod
    def _read_damaged(line: bytes, error: Exception) -> SessionMessage | Exception:
        """A line with bytes that are no text, which is a message all the same."""
        try:
            text = line.decode(errors="replace")
            return SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))
        except ValueError:
            return error

    def __aiter__(self) -> LineReads:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Take no more."""
        self._lines.clear()
        self.feed_end()

    async def __aenter__(self) -> LineReads:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.aclose()


class LineWrites(asyncio.BaseProtocol):
    """The messages that go out, as the SDK wants to write them: at once, unless the other side does not read."""

    def __init__(self) -> None:
        self._pipe: WritePipe | None = None
        self._free, self.ended = asyncio.Event(), asyncio.Event()
        self._free.set()

    def follow(self, pipe: WritePipe) -> None:
        """Where they go."""
        self._pipe = pipe

    def pause_writing(self) -> None:
        """The pipe is full."""
        self._free.clear()

    def resume_writing(self) -> None:
        """It is not full any more."""
        self._free.set()

    def connection_lost(self, _error: Exception | None) -> None:
        """Nobody reads it any more."""
        self._pipe = None
        self._free.set()
        self.ended.set()

    async def send(self, item: SessionMessage) -> None:
        """Write one."""
        if self._pipe is None or self._pipe.is_closing():
            raise anyio.ClosedResourceError
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._pipe.write(f"{text}\n".encode())
        await self._free.wait()

    async def aclose(self) -> None:
        """What was written goes out; then the other side reads an end."""
        if self._pipe is not None:
            self._pipe.close()

    async def __aenter__(self) -> LineWrites:
        return self

    async def __aexit__(self, *_exc: Any) -> None:
        await self.aclose()
