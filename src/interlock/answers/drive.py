"""`drive`: let a model work on an open turn until there is a result."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

import msgspec

from interlock.answers.phased import WorkflowRunner
from interlock.answers.result import TurnResult
from interlock.answers.runner import Progress, Runner, Watch
from interlock.answers.turn import Turn
from interlock.models import Message, Model


class Driven(msgspec.Struct, frozen=True):
    """A turn that a model is working on."""

    turn: Turn
    model: Model
    watch: Watch


DRIVEN: ContextVar[Driven | None] = ContextVar("interlock_driven", default=None)


async def run_turn(
    turn: Turn, model: Model, *, watch: Watch | None = None, history: Sequence[Message] = ()
) -> TurnResult:
    """Ask, call, check, and again, never more often than the bound; in phases, if the turn has a way of working."""
    work, seen = turn.asked.work, watch or _ignore
    mark = DRIVEN.set(Driven(turn, model, seen))
    try:
        if work is None:
            return await Runner(turn, model, seen, history).run()
        return await WorkflowRunner(turn, model, seen, history, work).run()
    finally:
        DRIVEN.reset(mark)


def _ignore(_progress: Progress) -> None:
    return
