"""`Engine.run`: every call of every tool takes this path and no other."""

from __future__ import annotations

from interlock.engine.admit import accept, admit
from interlock.engine.context import Ended, EngineContext
from interlock.engine.idempotency import look_up, receive
from interlock.engine.perform.read import read
from interlock.engine.perform.write import write
from interlock.engine.prepare import prepare
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
            ended = await self._path(call)
            outcome = await record(self._ctx, ended)
            if ended.interrupt is not None:
                raise ended.interrupt
            return outcome
        finally:
            self.running -= 1

    async def _path(self, call: Call) -> Ended:
        """Each stage takes what the one before it made, and makes the next, or ends the call."""
        ctx = self._ctx
        received = await receive(ctx, call)
        if isinstance(received, Ended):
            return received
        # ADMIT: contract and grant, the same or again, clamps and the rules that need no plan.
        accepted = accept(ctx, received)
        if isinstance(accepted, Ended):
            return accepted
        fresh = await look_up(ctx, accepted, received)
        if isinstance(fresh, Ended):
            return fresh
        admitted = admit(ctx, fresh)
        if isinstance(admitted, Ended):
            return admitted
        # PREPARE: the plan, its preconditions, and all rules.
        prepared = await prepare(ctx, admitted)
        if isinstance(prepared, Ended):
            return prepared
        # PERFORM: for a change under its claim, where it is planned again if the world has moved.
        return await read(ctx, prepared) if prepared.reads else await write(ctx, prepared)
