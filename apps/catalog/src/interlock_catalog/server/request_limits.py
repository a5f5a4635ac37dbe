"""What every request passes: its size, its token, its role; and how errors become statuses."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
from fastapi import Depends, Header, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock import Context
from interlock.errors import Conflict, InDoubt, InvalidInput, NotFound, StoreBusy, StoreError, ToolError
from interlock_catalog.server.tokens import allows, digest

MOST_BYTES = 1_000_000
_SLOWEST_S, LONGEST_S = 20.0, 60.0
"""How long a piece of a body may be on its way, and how long a request may take in all."""
_OPEN = ("/openapi.json", "/health", "/docs")
_BEARER = HTTPBearer(auto_error=False)


class Refusal(Exception):
    """A request that is refused: a status, a sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def needs(tokens: Mapping[str, tuple[str, str]], role: str) -> Callable[..., str]:
    """A dependency: the name of whoever calls, if their token has the role."""

    def check(given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]) -> str:
        held = None if given is None else tokens.get(digest(given.credentials))
        if held is None:
            raise HTTPException(401, "a token is needed: Authorization: Bearer …", {"WWW-Authenticate": "Bearer"})
        if not allows(held[1], role):
            raise HTTPException(403, f"this needs the role {role!r}; the token of {held[0]!r} has {held[1]!r}")
        return held[0]

    return check


class Under(msgspec.Struct, frozen=True):
    """What a write is made under: who asks for which function, its key and tokens, and the version it must find."""

    function: str
    context: Context
    if_match: str | None


def writes_under(tokens: Mapping[str, tuple[str, str]]) -> Callable[..., Under]:
    """A dependency of every write: an editor's token, and the headers that make it safe to repeat."""

    editor = Depends(needs(tokens, "editor"))

    def check(
        request: Request,
        idempotency_key: Annotated[str | None, Header(description=_KEY)] = None,
        if_match: Annotated[str | None, Header(description=_MATCH)] = None,
        x_fencing_tokens: Annotated[str | None, Header(description=_TOKENS)] = None,
        x_fencing_ledger: Annotated[str | None, Header(description=_LEDGER)] = None,
        who: str = editor,
    ) -> Under:
        if idempotency_key is not None and not (idempotency_key.isprintable() and 1 <= len(idempotency_key) <= 200):
            raise HTTPException(400, "Idempotency-Key is printable text of at most 200 characters")
        held, ledger = _fences(x_fencing_tokens or ""), (x_fencing_ledger or "")[:100]
        context = Context(
            call_id=idempotency_key or "",
            actor=who,
            attempt=1,
            idempotency_key=idempotency_key,
            tokens=held,
            ledger=ledger,
        )
        return Under(request.url.path, context, if_match)

    return check


_KEY = "What the request is known by: sent again with the same key, it is answered again and not done again."
_MATCH = 'The ETag that the document must still have, or "*".'
_TOKENS = "The fencing token of each lease that is held, KEY=NUMBER,KEY=NUMBER: an older one is refused."
_LEDGER = "Whose tokens these are."


def _fences(header: str) -> dict[str, int]:
    tokens: dict[str, int] = {}
    for part in header.split(","):
        name, _, number = part.strip().rpartition("=")
        if part.strip():
            if not name or not name.isprintable() or not number.isdecimal() or len(number) > 18:
                raise HTTPException(400, "X-Fencing-Tokens is written KEY=NUMBER,KEY=NUMBER")
            tokens[name[:200]] = int(number)
    return tokens


def tagged(request: Request, body: Any, etag: str | None = None) -> Response:
    """An answer with its ETag; not sent again to whoever has it."""
    text = msgspec.json.encode(body)
    tag = etag or f'W/"{hashlib.sha256(text).hexdigest()[:20]}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    return Response(text, media_type="application/json", headers={"ETag": tag})


def failed(request: Request, error: Exception) -> JSONResponse:
    """The status of an error of ours."""
    headers: dict[str, str] = {}
    if isinstance(error, Refusal):
        status = error.status
    elif isinstance(error, Conflict):
        asked = request.headers.get("if-match") is not None and "token" not in str(error)
        status = 412 if asked else 409
    elif isinstance(error, NotFound):
        status = 404
    elif isinstance(error, InvalidInput):
        status = 422
    elif isinstance(error, InDoubt):
        status = 504
    elif isinstance(error, StoreBusy):
        status, headers = 503, {"Retry-After": "1"}
    else:
        status = 503
    return JSONResponse({"detail": str(error)}, status, headers)


def unreadable(_request: Request, error: Exception) -> JSONResponse:
    """A request that does not have its shape; what was sent is not sent back, as it may be no JSON at all."""
    assert isinstance(error, RequestValidationError)
    found = [
        {"loc": [str(part) for part in item["loc"]], "msg": str(item["msg"]), "type": str(item["type"])}
        for item in error.errors()[:20]
    ]
    plain = msgspec.json.decode(json.dumps(found).encode("ascii", "backslashreplace"))
    return JSONResponse({"detail": plain}, 422)


HANDLED = (Refusal, ToolError, StoreError)


class Door:
    """Refuses whoever has no token before the body is read, bodies that are too large, and those that trickle."""

    def __init__(
        self,
        app: ASGIApp,
        tokens: Mapping[str, tuple[str, str]],
        most: int = MOST_BYTES,
        longest_s: float = LONGEST_S,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._most = most
        self._longest_s, self._slowest_s = longest_s, min(longest_s, _SLOWEST_S)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, counting what comes in."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if scope["path"] not in _OPEN and not self._known(headers.get(b"authorization", b"")):
            await self._refuse(send, 401)
            return
        declared = headers.get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > self._most:
            await self._refuse(send, 413)
            return
        seen, refused, begun, whole = 0, 0, False, scope["method"] in ("GET", "HEAD")

        async def counted() -> Message:
            nonlocal seen, refused, whole
            try:
                async with asyncio.timeout(self._slowest_s):
                    message = await receive()
            except TimeoutError:
                refused = 408
                return {"type": "http.disconnect"}
            seen += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if seen > self._most:
                refused = 413
                return {"type": "http.disconnect"}
            return message

        async def guarded(message: Message) -> None:
            nonlocal begun
            if not refused:
                begun = True
                await send(message)

        limit = asyncio.timeout(self._longest_s)
        try:
            async with limit:
                await self._app(scope, counted, guarded)
        except Exception:
            if not refused and not (limit.expired() and not begun):
                raise
        if refused:
            await self._refuse(send, refused)
        elif limit.expired() and not begun:  # 504: what it was to write may have landed, and its key tells
            await self._refuse(send, 504 if whole else 408)

    def _known(self, header: bytes) -> bool:
        kind, _, token = header.decode("latin-1").partition(" ")
        return kind.lower() == "bearer" and digest(token.strip()) in self._tokens

    async def _refuse(self, send: Send, status: int) -> None:
        why = {
            401: "a token is needed: Authorization: Bearer …",
            408: "the request did not come whole in time; send it again",
            413: f"a request has at most {self._most} bytes",
            504: f"it took more than {self._longest_s:g} s; send it again with its key",
        }
        answer = JSONResponse({"detail": why[status]}, status)
        if status == 401:
            answer.headers["WWW-Authenticate"] = "Bearer"
        await answer({"type": "http"}, _nothing, send)


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}
