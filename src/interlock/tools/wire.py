"""What a call has put on the wire: only where nothing can have landed has a change failed, and may be tried again.

A tool may do several things in one attempt. That its last request was refused, or never left, says nothing about those
before it, so the transports of Interlock (`interlock.tools.egress`, `interlock.resources.HttpClient`) note what they
send and `interlock.resources.Documents` what it writes, and the engine believes "nothing landed" only of a call on
whose wire nothing is in doubt. A request is in doubt from the moment at which it may leave, whoever gives it up, until
it is shown that it did nothing; one that was answered with success never is shown that.

An attempt may end while tasks go on that it has started. So its wire is sealed as soon as it is said that it has
changed nothing: from then on nothing leaves that would be noted there, and what was said stays true.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any

from interlock.errors import Forbidden
from interlock.values import Versioned

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
CHANGES = "interlock_changes"
"""The extension of a request by which whoever makes it says whether it changes something, whatever its method is."""
RESOURCE = "interlock_resource"
"""The extension by which it says of which resource it changes the state: a look at that one shows whether it landed."""
Trace = Callable[[str, Any], Awaitable[None]]
_OVER = (
    "not sent: the attempt that started the task which wants to send this is over, and has changed nothing; let a tool"
    " wait for every task that it starts, and start what outlives a call outside of it"
)


class Wire:
    """What the attempts of one call, and the calls that its tool makes, may have changed on the other side."""

    __slots__ = ("_answered", "_doubts", "_noted", "_parent", "_sealed", "thread", "written")

    def __init__(self, parent: Wire | None = None) -> None:
        self._parent = parent
        self._doubts: set[object] = set()
        self._noted = self._sealed = False
        self._answered: Counter[tuple[int, str]] | None = None
        self.thread = threading.get_ident()
        self.written: dict[str, Versioned | None] = {}
        """What the call has left of each RESOURCE/KEY, as its `Context` tells it."""

    @property
    def answered(self) -> Counter[tuple[int, str]]:
        """How often each attempt was told that this very thing is done."""
        if self._answered is None:  # made where it is asked for: most wires carry no answer
            self._answered = Counter()
        return self._answered

    @property
    def may_have_landed(self) -> bool:
        """Whether anything was sent that is not known to have changed nothing."""
        return bool(self._doubts)

    @property
    def was_refused(self) -> bool:
        """Whether something was sent, and all of it is known to have changed nothing."""
        return self._noted and not self._doubts

    def reaches_beyond(self, resource: str | None) -> bool:
        """Whether something may have been changed that a look at this resource does not show."""
        return any(not isinstance(what, Sending) or what.resource != resource for what in self._doubts)

    @property
    def is_sealed(self) -> bool:
        """Whether nothing may leave here any more: it is said that this one, or one that made it, changed nothing."""
        return self._sealed or (self._parent is not None and self._parent.is_sealed)

    def seal(self) -> bool:
        """Let nothing leave from now on; False where something may have landed: then there is nothing to keep true."""
        # Sealed first, asked then; whoever sends is noted first, and asks then. So one of the two sees the other, in
        # whatever thread they are.
        self._sealed = True
        self._sealed = not self._doubts
        return self._sealed

    def begin(self) -> None:
        """Its change begins. The calls that it is made by have a change on its way until it has ended."""
        _RUNNING.add(self)
        above = self._parent
        while above is not None:
            above._doubts.add(self)
            above = above._parent

    def follow(self) -> Wire:
        """The wire of the next attempt: what this one has left running is not taken for what that one sends."""
        after = Wire(self._parent)
        after._doubts, after._noted, after._answered = set(self._doubts), self._noted, self.answered
        after.written = self.written
        after.begin()
        self._retire()
        return after

    def doubt(self, what: object) -> None:
        """Something was done, or is about to be; the calls that this one is made by have done it as well."""
        self._doubts.add(what)
        self._noted = True
        if self._parent is not None:
            self._parent.doubt(what)

    def dismiss(self, what: object) -> None:
        """It is shown that this changed nothing."""
        self._doubts.discard(what)
        if self._parent is not None:
            self._parent.dismiss(what)

    def end(self, *, landed: bool | None) -> None:
        """The call is over: whoever made it has changed what it changed, by whatever means."""
        if landed is False:
            self._sealed = True
            self._retire()
            return
        _RUNNING.discard(self)
        if self._parent is not None:
            self._parent.doubt(self)

    def _retire(self) -> None:
        _RUNNING.discard(self)
        if self._parent is not None:
            self._parent.dismiss(self)


WIRE: ContextVar[Wire | None] = ContextVar("interlock_wire", default=None)
"""Of the change that is being made in this task or thread; None where none is."""
_RUNNING: set[Wire] = set()
_READS = Wire()
"""Of a thread in which a tool runs that changes nothing: nothing is noted on it."""


def open_wire() -> Wire:
    """The wire of a change that begins in this task, on which everything is noted that it sends from now on."""
    above = WIRE.get()
    wire = Wire(None if above is _READS else above)
    WIRE.set(wire)
    wire.begin()
    return wire


def follow_wire(wire: Wire) -> Wire:
    """The wire of the attempt that this task makes after one that changed nothing."""
    after = wire.follow()
    WIRE.set(after)
    return after


def leave_wire() -> None:
    """The attempt of this task is over: what it does from now on is to look, and is noted nowhere."""
    WIRE.set(_READS)


def thread_context() -> Context:
    """The context for a thread in which a tool runs. What it sends is told from what a thread sends that a tool has
    started by itself, also where it changes nothing."""
    context = copy_context()
    if context.get(WIRE) is None:
        context.run(WIRE.set, _READS)
    return context


class Sending:
    """One request, or write, from the moment at which it may leave, and how far its connection says it has come."""

    __slots__ = ("_left", "_seen", "_wires", "resource")

    def __init__(self, method: str, *, changes: bool | None = None, resource: str = "") -> None:
        """`changes`: whoever makes the request says whether it does, whatever its method is; `resource`: and the state
        of which resource, where it changes nothing else."""
        self._seen = self._left = False
        self.resource = resource
        counts = method.upper() not in SAFE_METHODS if changes is None else changes
        own = WIRE.get() if counts else None
        if own is not None and own.is_sealed:
            raise Forbidden(_OVER)
        self._wires = _wires_here() if counts else ()
        for wire in self._wires:
            wire.doubt(self)
        if own is not None and own.is_sealed:  # just now, by another thread
            self.did_nothing()
            raise Forbidden(_OVER)

    def trace(self, inner: Trace | None) -> Trace:
        """What httpx calls at every step of a connection; `inner` is whoever else wants to know."""

        async def trace(event: str, info: Any) -> None:
            self._seen = True
            self._left = self._left or "send_request" in event
            if inner is not None:
                await inner(event, info)

        return trace

    @property
    def still_connects(self) -> bool:
        """Shown, not assumed: a transport that tells nothing may have sent everything."""
        return self._seen and not self._left

    def note_answer(self, status: int) -> None:
        """What was refused (4xx) changed nothing; but for 408, which says that it arrived at least in part. A redirect
        (3xx) refuses nothing: a server that has done what was asked may lead on to what it has made."""
        if 400 <= status < 500 and status != 408:
            self.did_nothing()

    def did_nothing(self) -> None:
        """It is shown that it never left, or was refused."""
        for wire in self._wires:
            wire.dismiss(self)


def answered_here() -> Counter[tuple[int, str]]:
    """How often each attempt of the change that is being made here was told that this very thing is done."""
    wire = WIRE.get()
    return Counter() if wire is None or wire is _READS else wire.answered


def written_here() -> dict[str, Versioned | None]:
    """What the change that is being made here has left of each key: where a resource notes that."""
    wire = WIRE.get()
    return {} if wire is None or wire is _READS else wire.written


def _wires_here() -> tuple[Wire, ...]:
    """The wire of this task or thread. In a thread that a tool has started by itself there is none, and nobody can say
    for which call it sends: then it may be any that is running and has not begun in this very thread."""
    wire = WIRE.get()
    if wire is not None:
        return () if wire is _READS else (wire,)
    here, running = threading.get_ident(), tuple(_RUNNING)
    return () if any(one.thread == here for one in running) else running
