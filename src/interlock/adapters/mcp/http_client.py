"""Requests to servers at an address: what comes back has a bound, however it is packed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2

from interlock.adapters.mcp.lines import MOST_BYTES

_CONNECT_S, _READ_S = 30.0, 300.0
"""So long until something moves, and so long until an answer comes; a call has its own limit."""


class _BoundedStream(httpx2.AsyncByteStream):
    """The bytes of an answer: a body, or events, of which each has an end of its own."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        since = 0
        async for chunk in self._inner:
            since += len(chunk)
            if since > MOST_BYTES:
                raise httpx2.ReadError(f"a message of more than {MOST_BYTES // (1024 * 1024)} MiB")
            for end in (b"\n\n", b"\r\n\r\n"):
                if (at := chunk.rfind(end)) >= 0:
                    since = min(since, len(chunk) - at)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class McpHttpClient(httpx2.AsyncClient):
    """As the SDK's own client is, with the bound."""

    def __init__(
        self,
        headers: Mapping[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> None:
        said = {**(headers or {}), "accept-encoding": "identity"}
        super().__init__(headers=said, timeout=timeout or httpx2.Timeout(_CONNECT_S, read=_READ_S), auth=auth)

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        found = await super().send(request, stream=True, **options)
        if found.headers.get("content-encoding", "identity").lower() != "identity":
            await found.aclose()
            raise httpx2.RemoteProtocolError("it has packed its answer, and was asked not to")
        assert isinstance(found.stream, httpx2.AsyncByteStream)
        found.stream = _BoundedStream(found.stream)
        if not stream:
            await found.aread()
        return found
