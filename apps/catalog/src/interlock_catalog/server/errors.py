"""How errors become answers."""

from __future__ import annotations

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from interlock.errors import Ambiguous, Conflict, InDoubt, InvalidInput, NotFound, StoreBusy, StoreError, ToolError

_MAX_REPORTED = 20


class RequestRefused(Exception):
    """A request that is refused: a status, a sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


HANDLED = (RequestRefused, ToolError, StoreError)
_STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (Conflict, 409),
    (Ambiguous, 409),
    (NotFound, 404),
    (InvalidInput, 422),
    # As for a request that ran out of time: it may have landed, and sent again with its key it is answered.
    (InDoubt, 504),
)


def error_response(_request: Request, error: Exception) -> JSONResponse:
    """The answer to an error of ours; what is not known better is worth another try later."""
    if isinstance(error, RequestRefused):
        return JSONResponse({"detail": str(error)}, error.status)
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 503)
    headers = {"Retry-After": "1"} if isinstance(error, StoreBusy) else {}
    return JSONResponse({"detail": str(error)}, status, headers)


def validation_error_response(_request: Request, error: Exception) -> JSONResponse:
    """A request that does not have its shape; what was sent is not sent back, as it may be no JSON at all."""
    assert isinstance(error, RequestValidationError)
    found = [
        {"loc": [_encodable(part) for part in item["loc"]], "msg": _encodable(item["msg"]), "type": item["type"]}
        for item in error.errors()[:_MAX_REPORTED]
    ]
    return JSONResponse({"detail": found}, 422)


def _encodable(text: object) -> str:
    """A field's name may be a lone surrogate, with which no answer could be encoded."""
    return str(text).encode("utf-8", "backslashreplace").decode()
