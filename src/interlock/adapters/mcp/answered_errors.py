"""The errors that a server has really answered with: the SDK makes up others, which look the same and say nothing of
what was done."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.shared.message import SessionMessage

_ERROR = b'"error"'
_MOST_BYTES = 1024 * 1024
"""Of a message that is looked at: one that is longer is no error that anybody reads."""


class AskedFor:
    """The requests that were sent for one thing that is asked of a server, while it is waited for."""

    def __init__(self, errors: AnsweredErrors) -> None:
        self.errors = errors
        """Those of the connection that they go by."""
        self.ids: list[types.RequestId] = []


_ASKED: ContextVar[AskedFor | None] = ContextVar("asked of an MCP server", default=None)


class AnsweredErrors:
    """Those that answer a request which somebody waits for: one that comes to any other says nothing of that."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self._heard: dict[str, list[tuple[int, str]]] = {}

    @contextlib.contextmanager
    def waiting(self) -> Iterator[AskedFor]:
        """For as long as the block waits, the errors that answer its requests are kept."""
        asked = AskedFor(self)
        before = _ASKED.set(asked)
        try:
            yield asked
        finally:
            _ASKED.reset(before)
            for one in map(str, asked.ids):
                self._waiting.discard(one)
                self._heard.pop(one, None)

    def note(self, message: object) -> None:
        """A message that is about to be written to the server."""
        asked = _ASKED.get()
        if asked is not None and asked.errors is self and isinstance(message, types.JSONRPCRequest):
            asked.ids.append(message.id)
            self._waiting.add(str(message.id))

    def hear(self, message: object) -> None:
        """A message that was read from the server."""
        if isinstance(message, types.JSONRPCError) and str(message.id) in self._waiting:
            self._heard.setdefault(str(message.id), []).append((message.error.code, message.error.message))

    def hear_bytes(self, data: bytes) -> None:
        """The bytes of a message; whatever cannot be read as an error is none."""
        if _ERROR in data and len(data) <= _MOST_BYTES:
            try:
                self.hear(types.jsonrpc_message_adapter.validate_json(data, by_name=False))
            except ValueError:
                return

    def answers(self, asked: AskedFor, error: MCPError) -> bool:
        """Whether the server has said this error of one of those requests."""
        said = (error.code, error.message)
        return any(said in self._heard.get(str(one), ()) for one in asked.ids)


class NotedWrites:
    """A stream of the SDK's into which requests are written, and whose they are."""

    def __init__(self, inner: Any, errors: AnsweredErrors) -> None:
        self._inner, self._errors = inner, errors

    async def send(self, item: SessionMessage) -> None:
        """Write a message."""
        self._errors.note(item.message)
        await self._inner.send(item)

    async def aclose(self) -> None:
        """Write no more."""
        await self._inner.aclose()

    async def __aenter__(self) -> NotedWrites:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._inner.__aexit__(*error)


@contextlib.asynccontextmanager
async def note_requests(transport: AbstractAsyncContextManager[Any], errors: AnsweredErrors) -> AsyncIterator[Any]:
    """A transport of the SDK's, of which it is known which requests were written for whom."""
    async with transport as (read, write, *rest):
        yield (read, NotedWrites(write, errors), *rest)


class HeardReads:
    """A stream of the SDK's that carries nothing but what the server has written, and what is heard of it."""

    def __init__(self, inner: Any, errors: AnsweredErrors) -> None:
        self._inner, self._errors = inner, errors

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        found: SessionMessage | Exception = await self._inner.receive()
        if isinstance(found, SessionMessage):
            self._errors.hear(found.message)
        return found

    async def __aiter__(self) -> AsyncIterator[SessionMessage | Exception]:
        async for found in self._inner:
            if isinstance(found, SessionMessage):
                self._errors.hear(found.message)
            yield found

    async def aclose(self) -> None:
        """Take no more."""
        await self._inner.aclose()

    async def __aenter__(self) -> HeardReads:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.aclose()
