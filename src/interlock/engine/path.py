"""`Engine.run`: every call of every tool takes this path and no other."""

from __future__ import annotations

from interlock.engine.admit import accept, admit
from interlock.engine.effect import change
from interlock.engine.perform import perform
from interlock.engine.prepare import NOTHING_CHANGES, plan, prepare, ticket_of
from interlock.engine.recall import answer, look_up, recall
from interlock.engine.record import record
from interlock.engine.stages import Accepted, Admitted, Ended, Prepared, Repeated, Started, World
from interlock.errors import StoreError
from interlock.values import Call, Outcome


class Engine:
    """ADMIT, PREPARE, PERFORM, RECORD."""

    def __init__(self, world: World) -> None:
        self._world = world
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
            world = self._world
            started = Started(world.clock.now_us(), world.clock.monotonic())
            step: Accepted | Admitted | Repeated | Prepared | Ended
            if started.clock >= world.halts.until:
                await world.halts.refresh()
            turn = None if call.turn is None else await recall(world, call, started)
            step = turn if type(turn) is Ended else accept(world, call, started, turn)  # type: ignore[arg-type]
            if type(step) is Accepted:
                step = await look_up(world, step)
            if type(step) is Repeated:
                step = await answer(world, step) or accept(world, call, started, turn, look_up=False)  # type: ignore[arg-type]
            if type(step) is Accepted:
                step = admit(world, step.facts, started, step.desk, step.parsed, step.claim)
            if type(step) is Admitted:
                if step.desk.planner is None and call.ticket is None:
                    step = prepare(world, step, NOTHING_CHANGES)
                else:
                    planned = NOTHING_CHANGES if step.desk.planner is None else await plan(world, step)
                    ticket = None if call.ticket is None else await ticket_of(world, step)
                    halfway = planned if type(planned) is Ended else ticket
                    step = halfway if type(halfway) is Ended else prepare(world, step, planned, ticket)  # type: ignore[arg-type]
            if type(step) is Prepared:
                step = await (perform(world, step) if step.admitted.desk.planner is None else change(world, step))
            assert isinstance(step, Ended)
            outcome = await record(world, step)
            if step.interrupt is not None:
                raise step.interrupt
            return outcome
        finally:
            self.running -= 1
