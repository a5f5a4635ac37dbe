"""What a call has left of documents, noted at the write: what is there later may be somebody else's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from interlock.errors import InDoubt, StoreError, ToolError
from interlock.tools.wire import written_here
from interlock.values import Context, Versioned


def note_written(resource: str, left: Mapping[str, Versioned | None], context: Context | None) -> None:
    """Note for the call that is being made here, and for the one whose context was handed on, what keys are now."""
    noted = {f"{resource}/{key}": found for key, found in left.items()}
    written_here().update(noted)
    if context is not None:
        context.written.update(noted)


def note_failure(resource: str, keys: Iterable[str], context: Context | None, error: BaseException) -> None:
    """Of a write that failed, and may have landed all the same, nobody knows which version it left."""
    if isinstance(error, InDoubt) or not isinstance(error, ToolError | StoreError):
        note_written(resource, dict.fromkeys(keys), context)
