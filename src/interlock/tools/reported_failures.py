"""Failures that a tool returned instead of raising them."""

from __future__ import annotations

import re
from typing import Any

# Tools that were written for a chat return their errors as text; only how such texts begin is looked at.
_ERROR_TEXT = re.compile(
    r"\s*(?:(?:\w*error|\w*exception)(?: \d+)?:|traceback \(most recent call last\):)", re.IGNORECASE
)
SAYS_NOTHING_OF_FAILURE = frozenset({"error", "success", "isError", "is_error"}).isdisjoint
"""Whether an object has none of the names under which tools report failures: most have none."""


def reported_failure(value: Any) -> str | None:
    """The message of a failure that was returned instead of raised, or None."""
    if isinstance(value, dict):
        error = value.get("error")
        if value.get("success") is False or value.get("isError") is True or value.get("is_error") is True:
            said = _words(error) or _words(value.get("message")) or _words(value.get("content"))
            return said or "the tool reported failure"
        return _words(error) if error and value.get("success") is not True else None  # success speaks before error
    if isinstance(value, str) and _ERROR_TEXT.match(value):
        return value.strip()
    return None


def _words(value: Any) -> str | None:
    match value:
        case None | "" | False:
            return None
        case str():
            return value
        case {"message": str(message)}:
            return message
        case [{"text": str(text)}, *_]:
            return text
        case _:
            return str(value)
