"""`Engine.run`: every call of every tool takes this path and no other."""

from __future__ import annotations

from interlock.engine.admit import accept, admit
from interlock.engine.context import Accepted, Admitted, Ended, EngineContext, Prepared, Started
from interlock.engine.idempotency import look_up, read_turn
from interlock.engine.perform.read import read
from interlock.engine.perform.write import write
from interlock.engine.prepare import decide_read, prepare
from interlock.engine.record import record
from interlock.errors import StoreError
from interlock.values import Call, Outcome


class Engine:
    """ADMIT, PREPARE, PERFORM, RECORD."""

    def __init__(self, ctx: EngineContext) -> None:
        self._ctx = ctx
        self.running = 0
        """How many calls are on the path now."""
        self.closed = False
        """No more calls are taken."""

    async def run(self, call: Call) -> Outcome:
        """Take one call through the path; it ends in a record, unless its caller gives it up before it is prepared.

        Each stage takes what the one before it made, and makes the next, or ends the call. A stage that may have to
        wait is awaited only where it does: a coroutine costs as much as a rule.
        """
        if self.closed:
            raise StoreError("the runtime is closed")
        ctx = self._ctx
        self.running += 1
        try:
            started = Started(ctx.clock.now_us(), ctx.clock.monotonic())
            if started.clock >= ctx.halts.until:
                await ctx.halts.refresh()
            turn = None if call.turn is None else await read_turn(ctx, call, started)
            if turn is not None and isinstance(turn, Ended):
                return await record(ctx, turn)
            # ADMIT: contract and grant, the same or again, clamps and the rules that need no plan.
            accepted = accept(ctx, call, started, turn)
            if isinstance(accepted, Accepted) and (turn is not None or accepted.changes):
                accepted = await look_up(ctx, accepted, turn)
            if not isinstance(accepted, Accepted):
                return await record(ctx, accepted)
            admitted = admit(ctx, accepted)
            if not isinstance(admitted, Admitted):
                return await record(ctx, admitted)
            # PREPARE: the plan, its preconditions, and all rules.
            plans = accepted.changes or call.ticket is not None
            prepared = await prepare(ctx, admitted) if plans else decide_read(ctx, admitted)
            if not isinstance(prepared, Prepared):
                return await record(ctx, prepared)
            # PERFORM: a change under its claim, where it is planned again if the world has moved.
            ended = await write(ctx, prepared) if accepted.changes else await read(ctx, prepared)
            return await record(ctx, ended)
        finally:
            self.running -= 1
