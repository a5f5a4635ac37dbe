"""The readings of calls whose tool gave no answer: it raised, or its caller gave up."""

from __future__ import annotations

import msgspec

from interlock.engine.context import refuse
from interlock.errors import InputRequired, NotFound, ToolError, Transient
from interlock.reasons import Reason
from interlock.tools import Reading, Tool, ask_first
from interlock.values import Status


def failure_reading(error: ToolError, tool: Tool) -> Reading:
    """The reading of a tool that has said by the class of an error how it failed."""
    message = str(error) or f"{tool.name!r} failed"
    given = error.hints if isinstance(error.hints, list | tuple) else ()
    hints = tuple(hint for hint in given if isinstance(hint, str))
    if isinstance(error, InputRequired):
        return ask_first(message, error.requests, tool.limits.max_bytes, hints)
    status = Status.NO_DATA if isinstance(error, NotFound) else Status.FAILED
    wait_s = error.retry_after_s if isinstance(error, Transient) else None
    reading = refuse(status, error.reason, message, hints=hints, wait_s=wait_s)
    return msgspec.structs.replace(reading, traceback=error.traceback) if error.traceback else reading


def interrupted_reading(interrupt: BaseException) -> Reading:
    """The reading of a call that its caller gave up."""
    if isinstance(interrupt, KeyboardInterrupt):
        return refuse(Status.FAILED, Reason.INTERRUPTED, "interrupted from the keyboard")
    return refuse(Status.FAILED, Reason.CANCELLED, "the caller cancelled the call")
