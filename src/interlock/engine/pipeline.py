"""`Engine.run`: every call of every tool takes this path and no other."""

from __future__ import annotations

from interlock.engine.admit import accept, admit
from interlock.engine.context import Accepted, Admitted, Ended, EngineContext, Prepared, Repeated, Started
from interlock.engine.idempotency import look_up, recall, recorded_answer
from interlock.engine.perform.attempt import perform
from interlock.engine.perform.write import change
from interlock.engine.prepare import NOTHING_CHANGES, plan, prepare, ticket_of
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
        """Take one call through the path; it ends in a record, unless its caller gives it up before it is prepared."""
        if self.closed:
            raise StoreError("the runtime is closed")
        self.running += 1
        try:
            ctx = self._ctx
            started = Started(ctx.clock.now_us(), ctx.clock.monotonic())
            step: Accepted | Admitted | Repeated | Prepared | Ended
            if started.clock >= ctx.halts.until:
                await ctx.halts.refresh()
            turn = None if call.turn is None else await recall(ctx, call, started)
            step = turn if type(turn) is Ended else accept(ctx, call, started, turn)  # type: ignore[arg-type]
            if type(step) is Accepted:
                step = await look_up(ctx, step)
            if type(step) is Repeated:
                step = await recorded_answer(ctx, step) or accept(ctx, call, started, turn, look_up=False)  # type: ignore[arg-type]
            if type(step) is Accepted:
                step = admit(ctx, step.facts, started, step.binding, step.parsed, step.claim)
            if type(step) is Admitted:
                if step.binding.planner is None and call.ticket is None:
                    step = prepare(ctx, step, NOTHING_CHANGES)
                else:
                    planned = NOTHING_CHANGES if step.binding.planner is None else await plan(ctx, step)
                    ticket = None if call.ticket is None else await ticket_of(ctx, step)
                    halfway = planned if type(planned) is Ended else ticket
                    step = halfway if type(halfway) is Ended else prepare(ctx, step, planned, ticket)  # type: ignore[arg-type]
            if type(step) is Prepared:
                step = await (perform(ctx, step) if step.admitted.binding.planner is None else change(ctx, step))
            assert isinstance(step, Ended)
            outcome = await record(ctx, step)
            if step.interrupt is not None:
                raise step.interrupt
            return outcome
        finally:
            self.running -= 1
