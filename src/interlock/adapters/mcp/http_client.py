"""Requests to servers at an address: what comes back has a bound, however it is packed."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import mcp_types as types

from interlock.adapters.mcp.answered_errors import AnsweredErrors
from interlock.adapters.mcp.lines import MOST_BYTES

_REFUSED, _BROKEN = 400, 500
_NOT_TAKEN = frozenset((400, 401, 403, 404, 405, 406, 411, 413, 414, 415, 421, 426, 429, 431))
"""Refusals that say that a request was not taken, whoever says it. Any other (408, 499 …) may be a proxy's that has
waited long enough for a server which goes on."""
_CONNECT_S, _READ_S = 30.0, 300.0
"""So long until something moves, and so long until an answer comes; a call has its own limit."""


_ENDS = re.compile(rb"\n[\r\n]|\r\r|\r\n[\r\n]")
_DATA = b"data:"
_LONGEST_END = 3
"""An event ends with an empty line, and a line with one of three."""


class _BoundedStream(httpx2.AsyncByteStream):
    """The bytes of an answer: a body, or events, of which each has an end of its own. The errors in it are heard before
    anybody else reads them."""

    def __init__(self, inner: httpx2.AsyncByteStream, errors: AnsweredErrors, *, events: bool) -> None:
        self._inner, self._errors, self._events = inner, errors, events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        since, before, begun = 0, b"", [b""]
        async for chunk in self._inner:
            since += len(chunk)
            if since > MOST_BYTES:
                raise httpx2.ReadError(f"a message of more than {MOST_BYTES // (1024 * 1024)} MiB")
            begun.append(chunk)
            if self._events and _ENDS.search(before + chunk):
                since = 0
                *events, rest = _ENDS.split(b"".join(begun))
                begun = [rest]
                for event in events:
                    self._errors.hear_bytes(_data_of(event))
            before = (before + chunk)[-_LONGEST_END + 1 :]
            yield chunk
        if not self._events:
            self._errors.hear_bytes(b"".join(begun))

    async def aclose(self) -> None:
        await self._inner.aclose()


def _data_of(event: bytes) -> bytes:
    """What an event carries."""
    data = (line[len(_DATA) :].removeprefix(b" ") for line in event.splitlines() if line.startswith(_DATA))
    return b"\n".join(data)


class McpHttpClient(httpx2.AsyncClient):
    """As the SDK's own client is, with the bound."""

    refused: str = ""
    """What the last answer was, where it was a refusal."""

    def __init__(
        self,
        headers: Mapping[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
        errors: AnsweredErrors | None = None,
    ) -> None:
        self._errors = errors or AnsweredErrors()
        said = {**(headers or {}), "accept-encoding": "identity"}
        super().__init__(headers=said, timeout=timeout or httpx2.Timeout(_CONNECT_S, read=_READ_S), auth=auth)

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        found = await super().send(request, stream=True, **options)
        if found.headers.get("content-encoding", "identity").lower() != "identity":
            await found.aclose()
            raise httpx2.RemoteProtocolError("it has packed its answer, and was asked not to")
        assert isinstance(found.stream, httpx2.AsyncByteStream)
        is_events = found.headers.get("content-type", "").lower().startswith("text/event-stream")
        # What is read at once is one message, whatever it looks like.
        is_events = is_events and stream and found.status_code < _BROKEN
        found.stream = _BoundedStream(found.stream, self._errors, events=is_events)
        if not stream:
            await found.aread()
        self.refused = f"it answered {found.status_code}" if found.status_code >= _REFUSED else ""
        is_refusal = found.status_code in _NOT_TAKEN
        if found.status_code >= _REFUSED and not is_refusal and not _is_answer(await found.aread()):
            await found.aclose()
            raise httpx2.RemoteProtocolError(self.refused)  # whoever said that, it was not the server's answer
        return found


def _is_answer(body: bytes) -> bool:
    """Whether the body of an answer is an error of JSON-RPC."""
    try:
        return isinstance(types.jsonrpc_message_adapter.validate_json(body, by_name=False), types.JSONRPCError)
    except ValueError:
        return False
