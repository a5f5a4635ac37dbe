"""`Engine.run`: every call of every tool takes this path and no other."""

from __future__ import annotations

from interlock.engine.admit import admit
from interlock.engine.perform import perform
from interlock.engine.prepare import prepare
from interlock.engine.record import record
from interlock.engine.stages import Admitted, Ended, Prepared, Started, World
from interlock.values import Call, Outcome


class Engine:
    """ADMIT, PREPARE, PERFORM, RECORD."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def run(self, call: Call) -> Outcome:
        """Take one call through the path; it always ends in a record."""
        world = self.world
        step: Admitted | Prepared | Ended
        step = await admit(world, call, Started(world.clock.now_us(), world.clock.monotonic()))
        if isinstance(step, Admitted):
            step = await prepare(world, step)
        if isinstance(step, Prepared):
            step = await perform(world, step)
        outcome = await record(world, step)
        if step.interrupt is not None:
            raise step.interrupt
        return outcome
