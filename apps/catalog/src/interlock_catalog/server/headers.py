"""What requests carry in their headers: a token with a role, and for writes what makes them safe to repeat."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from fastapi import Depends, Header, HTTPException, Request
from fastapi.responses import Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from interlock import Context
from interlock_catalog.fencing_header import read_fencing_tokens
from interlock_catalog.server.tokens import Tokens, digest_token

_BEARER = HTTPBearer(auto_error=False)
_MAX_HEADER_CHARS = 200


class WriteHeaders(msgspec.Struct, frozen=True):
    """What a write is made under: its function, who asks, the key and fencing tokens, the version it must find."""

    function: str
    context: Context
    if_match: str | None


def require_role(tokens: Tokens, role: str) -> Callable[..., str]:
    """A dependency: the name of whoever calls, if their token has the role."""

    def check(given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]) -> str:
        holder = None if given is None else tokens.get(digest_token(given.credentials))
        if holder is None:
            raise HTTPException(401, "a token is needed: Authorization: Bearer …", {"WWW-Authenticate": "Bearer"})
        if not holder.has_role(role):
            raise HTTPException(403, f"this needs the role {role!r}; the token of {holder.name!r} has {holder.role!r}")
        return holder.name

    return check


def require_write_headers(tokens: Tokens) -> Callable[..., WriteHeaders]:
    """A dependency of every write: an editor's token, and the headers that make it safe to repeat."""
    editor = Depends(require_role(tokens, "editor"))

    def check(
        request: Request,
        idempotency_key: Annotated[str | None, Header(description=_KEY)] = None,
        if_match: Annotated[str | None, Header(description=_MATCH)] = None,
        x_fencing_tokens: Annotated[str | None, Header(description=_TOKENS)] = None,
        x_fencing_ledger: Annotated[str | None, Header(description=_LEDGER)] = None,
        who: str = editor,
    ) -> WriteHeaders:
        if idempotency_key is not None and not _is_plain(idempotency_key):
            raise HTTPException(400, "Idempotency-Key is printable text of at most 200 characters")
        if (x_fencing_tokens or "").strip() and not _is_plain(x_fencing_ledger or ""):
            raise HTTPException(400, "X-Fencing-Ledger says whose tokens these are, in at most 200 characters")
        context = Context(
            call_id=idempotency_key or "",
            actor=who,
            attempt=1,
            idempotency_key=idempotency_key,
            tokens=_parse_fencing_tokens(x_fencing_tokens or ""),
            ledger=x_fencing_ledger or "",
        )
        return WriteHeaders(request.url.path, context, if_match)

    return check


_KEY = "What the request is known by: sent again with the same key, it is answered again and not done again."
_MATCH = 'The ETag that the document must still have, or "*".'
_TOKENS = "The fencing token of each lease that is held, KEY=NUMBER,KEY=NUMBER: an older one is refused."
_LEDGER = "Whose tokens these are."


def _is_plain(text: str) -> bool:
    return text.isprintable() and 1 <= len(text) <= _MAX_HEADER_CHARS


def _parse_fencing_tokens(header: str) -> dict[str, int]:
    try:
        return read_fencing_tokens(header)
    except ValueError as error:
        raise HTTPException(400, f"X-Fencing-Tokens is written KEY=NUMBER,KEY=NUMBER: {error}") from None


def etag_response(request: Request, body: Any, etag: str | None = None) -> Response:
    """An answer with its ETag; 304 to whoever has it already."""
    text = msgspec.json.encode(body)
    # A page has no version of its own, so its tag is the digest of what it says, and weak.
    tag = etag or f'W/"{hashlib.sha256(text).hexdigest()[:20]}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    return Response(text, media_type="application/json", headers={"ETag": tag})
