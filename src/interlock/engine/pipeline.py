"""`Engine.run`: every call of every tool takes this path and no other."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from interlock.engine.admit import accept, admit
from interlock.engine.context import Accepted, Admitted, Ended, EngineContext, Prepared, Started, refuse
from interlock.engine.denials import hear_denial
from interlock.engine.halted_calls import tell_made_before
from interlock.engine.idempotency import look_up, not_looked_up, read_turn, trace_arguments
from interlock.engine.perform.read import read
from interlock.engine.perform.write import write
from interlock.engine.prepare import decide_read, prepare
from interlock.engine.record import record
from interlock.engine.turns import FoldedTurn
from interlock.errors import StoreError
from interlock.reasons import Reason
from interlock.resilience import Expired
from interlock.values import Call, Mode, Outcome, Status

T = TypeVar("T")
_NO_TOOL_S = 5.0
"""How long a call of a tool that there is not waits for the store."""


class Engine:
    """ADMIT, PREPARE, PERFORM, RECORD."""

    def __init__(self, ctx: EngineContext) -> None:
        self.context = ctx
        """What the next call is taken by; one that is on the path keeps what it was begun with."""
        self.running = 0
        """How many calls are on the path now."""
        self.closed = False
        """No more calls are taken."""

    async def run(self, call: Call, context: EngineContext | None = None) -> Outcome:
        """Take one call through the path; it ends in a record, unless its caller gives it up before it is prepared.

        Each stage takes what the one before it made, and makes the next, or ends the call. A stage that may have to
        wait is awaited only where it does: a coroutine costs as much as a rule.
        """
        if self.closed:
            raise StoreError("the runtime is closed")
        ctx, prepares = context or self.context, False
        self.running += 1
        try:
            clock = ctx.clock
            started = Started(clock.now_us(), clock.monotonic())
            if started.clock >= ctx.halts.until:
                await _in_time(ctx, call, started, ctx.halts.refresh())
            # ADMIT: contract and grant, the same or again, clamps and the rules that need no plan.
            turn = None if call.turn is None else await _in_time(ctx, call, started, read_turn(ctx, call, started))
            if turn is not None and isinstance(turn, Ended):
                return await record(ctx, turn)
            accepted = accept(ctx, call, started, turn)
            if not isinstance(accepted, Accepted):
                return await record(ctx, await _end_unaccepted(ctx, accepted))
            changes = accepted.changes
            if turn is not None or accepted.binding.looks_up:
                looked_up = await _look_up(ctx, accepted, turn)
                if not isinstance(looked_up, Accepted):
                    return await record(ctx, looked_up)
                accepted = looked_up
            admitted = admit(ctx, accepted)
            if not isinstance(admitted, Admitted):
                return await record(ctx, admitted)
            # PREPARE: the plan, its preconditions, and all rules.
            prepares = True
            plans = changes or call.ticket is not None
            prepared = await prepare(ctx, admitted) if plans else decide_read(ctx, admitted)
            if not isinstance(prepared, Prepared):
                return await _end_unprepared(ctx, prepared)
            # PERFORM: a change under its claim, where it is planned again if the world has moved.
            return await record(ctx, await write(ctx, prepared) if changes else await read(ctx, prepared))
        except Expired:
            return await record(ctx, _end_unanswered(ctx, call, started, prepares=prepares))
        finally:
            self.running -= 1


async def _look_up(ctx: EngineContext, accepted: Accepted, turn: FoldedTurn | None) -> Accepted | Ended:
    """What else has to be known before any rule is asked: where arguments come from, and the same or again."""
    if accepted.binding.traces:
        work = trace_arguments(ctx, accepted, turn)
        traced = await _in_time(ctx, accepted.facts.call, accepted.started, work)
        if isinstance(traced, Ended):
            return traced
        accepted = traced
    if turn is None and not accepted.changes:
        return accepted
    return await look_up(ctx, accepted, turn)  # it knows what may be said when time is up


async def _end_unaccepted(ctx: EngineContext, ended: Ended) -> Ended:
    """A change that a halt stops may have been made before: whoever asks is told."""
    problem = ended.reading.problem
    halted = problem is not None and problem.reason is Reason.HALTED
    return await tell_made_before(ctx, ended) if halted else ended


async def _end_unprepared(ctx: EngineContext, ended: Ended) -> Outcome:
    """Record a call that is not made; before it waits for a person, it is asked whether one has denied it."""
    if ended.asks is not None:
        ended = await _in_time(ctx, ended.call, ended.started, hear_denial(ctx, ended))
    return await record(ctx, ended)


async def _in_time(ctx: EngineContext, call: Call, started: Started, work: Coroutine[Any, Any, T]) -> T:
    """What has to be known before anything is done is waited for no longer than the call may last."""
    binding = ctx.bindings.get(call.tool)
    deadline_s = _NO_TOOL_S if binding is None else binding.tool.deadline_s
    left_s = started.clock + deadline_s - ctx.clock.monotonic()
    ctx.at("run.wait")
    return await ctx.deadlines.within(max(0.0, left_s), work)


def _end_unanswered(ctx: EngineContext, call: Call, started: Started, *, prepares: bool) -> Ended:
    """This call has done nothing. Before it prepares, that does not say that nothing was done: it may be delivered
    again, and nobody has looked."""
    binding = ctx.bindings.get(call.tool)
    said = "its deadline passed before anything was done: the store, or what it plans by, gave no answer"
    changes = binding is not None and binding.planner is not None and call.mode is Mode.APPLY
    if changes and not prepares:
        said = not_looked_up("the store gave no answer in time")
    tool = None if binding is None else binding.tool
    return Ended(call=call, started=started, tool=tool, reading=refuse(Status.FAILED, Reason.TIMEOUT, said))
