"""`Engine.run`: every call of every tool takes this path and no other."""

from __future__ import annotations

from interlock.engine.admit import admit
from interlock.engine.perform import perform
from interlock.engine.prepare import prepare
from interlock.engine.recall import answer, recall
from interlock.engine.record import record
from interlock.engine.stages import Admitted, Ended, Prepared, Repeated, Started, World
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
        """Take one call through the path; it always ends in a record."""
        if self.closed:
            raise StoreError("the runtime is closed")
        self.running += 1
        try:
            world = self._world
            started = Started(world.clock.now_us(), world.clock.monotonic())
            turn = None if call.turn is None else await recall(world, call, started)
            step: Admitted | Repeated | Prepared | Ended
            step = turn if type(turn) is Ended else admit(world, call, started, turn)  # type: ignore[arg-type]
            if type(step) is Repeated:
                step = await answer(world, step) or admit(world, call, started, turn, look_up=False)  # type: ignore[arg-type]
            if type(step) is Admitted:
                journal = step.desk.journal
                plan = journal.constant or await journal.plan(call, step.desk.tool, step.facts.arguments)
                step = prepare(world, step, plan)
            if type(step) is Prepared:
                step = await perform(world, step)
            assert isinstance(step, Ended)
            outcome = await record(world, step)
            if step.interrupt is not None:
                raise step.interrupt
            return outcome
        finally:
            self.running -= 1
