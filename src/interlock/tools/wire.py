"""What an attempt has put on the wire: only where nothing can have landed is a change tried again.

A tool may do several things in one attempt. That its last request never left says nothing about those before it, so the
transports of Interlock (`interlock.tools.egress`, `interlock.resources.HttpClient`) note what they sent, and the engine
believes "nothing landed" only of an attempt that sent nothing before.
"""

from __future__ import annotations

from contextvars import ContextVar

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class Wire:
    """The requests of one attempt that may have changed something on the other side."""

    __slots__ = ("may_have_landed",)

    def __init__(self) -> None:
        self.may_have_landed = False


WIRE: ContextVar[Wire | None] = ContextVar("interlock_wire", default=None)
"""Of the attempt that is running in this task or thread; None where no change is being made."""


def note_request(method: str, status: int | None) -> None:
    """A request has left; `status` is that of its answer, None if none came. What was refused (4xx) changed nothing."""
    wire = WIRE.get()
    refused = status is not None and 400 <= status < 500 and status != 408  # 408: it arrived, at least in part
    if wire is not None and method.upper() not in SAFE_METHODS and not refused:
        wire.may_have_landed = True
