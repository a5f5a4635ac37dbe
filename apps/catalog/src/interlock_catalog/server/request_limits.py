"""Limits of every request: a known token before the body is read, so many bytes, so much time."""

from __future__ import annotations

import asyncio
from collections import Counter

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock_catalog.server.tokens import Tokens, digest_token

MAX_BYTES = 1_000_000
MAX_S = 60.0
"""How long a request may take in all."""
_MAX_CHUNK_S = 20.0
"""How long the next piece of a body may take: whoever trickles must not hold a connection for the whole time."""
MAX_AT_ONCE = 100
"""Requests of one token that are worked on at a time: whoever sends many, or slow ones, waits for themselves alone."""
_WITHOUT_TOKEN = ("/openapi.json", "/health", "/docs")


class _Exchange:
    """One request on its way in, and its answer on its way out."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, *, max_bytes: int, max_chunk_s: float) -> None:
        self._receive = receive
        self._send = send
        self._max_bytes = max_bytes
        self._max_chunk_s = max_chunk_s
        self._received = 0
        self.refused: int | None = None
        """The status with which the request is refused, once it is."""
        self.has_answer = False
        self.is_whole = scope["method"] in ("GET", "HEAD")
        """Whether the body has come in to its end."""

    async def receive(self) -> Message:
        """The next piece of the body; a disconnection once the request is refused, so that nobody works on it."""
        try:
            async with asyncio.timeout(self._max_chunk_s):
                message = await self._receive()
        except TimeoutError:
            self.refused = 408
            return {"type": "http.disconnect"}
        self._received += len(message.get("body", b""))
        self.is_whole = not message.get("more_body", False)
        if self._received > self._max_bytes:
            self.refused = 413
            return {"type": "http.disconnect"}
        return message

    async def send(self, message: Message) -> None:
        """Pass the answer on, unless the request was refused meanwhile."""
        if self.refused is None:
            self.has_answer = True
            await self._send(message)


class RequestLimits:
    """Middleware that refuses whoever has no token, bodies that are too large, and requests that take too long."""

    def __init__(self, app: ASGIApp, tokens: Tokens, max_bytes: int = MAX_BYTES, max_s: float = MAX_S) -> None:
        self._app = app
        self._tokens = tokens
        self._max_bytes = max_bytes
        self._max_s, self._max_chunk_s = max_s, min(max_s, _MAX_CHUNK_S)
        self._under_way: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, within its limits."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        whose = _digest_of(scope)
        refused = self._refuse_unread(scope, whose)
        if refused is None:
            exchange = _Exchange(scope, receive, send, max_bytes=self._max_bytes, max_chunk_s=self._max_chunk_s)
            self._under_way[whose] += 1
            try:
                refused = await self._run(scope, exchange)
            finally:
                self._under_way[whose] -= 1
                # Whoever asks without a token may write one of their own each time: none of them is remembered.
                if not self._under_way[whose]:
                    del self._under_way[whose]
        if refused is not None:
            await self._answer(send, refused)

    def _refuse_unread(self, scope: Scope, whose: str) -> int | None:
        """The status for what can be refused before the body is read."""
        headers = dict(scope["headers"])
        if scope["path"] not in _WITHOUT_TOKEN and whose not in self._tokens:
            return 401
        if self._under_way[whose] >= MAX_AT_ONCE:
            return 503
        # Only a first look: a body in chunks says no length, and is counted as it comes (`receive`).
        declared = headers.get(b"content-length", b"0")
        return 413 if not declared.isdigit() or int(declared) > self._max_bytes else None

    async def _run(self, scope: Scope, exchange: _Exchange) -> int | None:
        """Have the request answered; the status for one that was refused or has run out of time without an answer."""
        limit = asyncio.timeout(self._max_s)
        try:
            async with limit:
                await self._app(scope, exchange.receive, exchange.send)
        except Exception:
            # The application raises where we cut it off. That is answered below; what it raises by itself is not ours.
            ended_by_us = exchange.refused is not None or (limit.expired() and not exchange.has_answer)
            if not ended_by_us:
                raise
        if exchange.refused is not None:
            return exchange.refused
        # Once an answer has begun, no other can follow: then the connection merely ends.
        if limit.expired() and not exchange.has_answer:
            return 504 if exchange.is_whole else 408  # 504: what it was to write may have landed, and its key tells
        return None

    async def _answer(self, send: Send, status: int) -> None:
        why = {
            401: "a token is needed: Authorization: Bearer …",
            408: "the request did not come whole in time; send it again",
            413: f"a request has at most {self._max_bytes} bytes",
            503: f"{MAX_AT_ONCE} requests of this token are under way; try again later",
            504: f"it took more than {self._max_s:g} s; send it again with its key",
        }
        answer = JSONResponse({"detail": why[status]}, status)
        if status == 401:
            answer.headers["WWW-Authenticate"] = "Bearer"
        if status == 503:
            answer.headers["Retry-After"] = "1"
        await answer({"type": "http"}, _receive_nothing, send)


def _digest_of(scope: Scope) -> str:
    """The digest of the token that a request carries; '' if it carries none, or more than one."""
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(given) != 1:
        return ""
    kind, _, token = given[0].decode("latin-1").partition(" ")
    return digest_token(token.strip()) if kind.lower() == "bearer" else ""


async def _receive_nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}
