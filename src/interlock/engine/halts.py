"""What is halted, as this process knows it: read again when what is known is older than half a second."""

from __future__ import annotations

from interlock.errors import StoreError
from interlock.ports import Clock, Faults, Store
from interlock.state import Halted, halt_scopes
from interlock.values import Call

# A halt is promised within a second in every process; half of it is left for the read itself.
_FRESH_S = 0.5


class HaltSwitch:
    """The kill switch, seen from one process."""

    def __init__(self, store: Store, clock: Clock, faults: Faults | None) -> None:
        self.active: dict[str, Halted] = {}
        self.until = float("-inf")
        """By the stopwatch: until when what is known may be used."""
        self._store = store
        self._clock = clock
        self._faults = faults

    async def refresh(self) -> bool:
        """Read what is halted now; False if the store does not say."""
        if self._faults is not None:
            self._faults.at("halts.read")
        try:
            found = await self._store.halts()
        except StoreError:
            return False  # what is known stands; a store that is away refuses the commits of the call anyway
        self.active = {halt.scope: halt for halt in found}
        self.until = self._clock.monotonic() + _FRESH_S
        return True

    def stops(self, call: Call) -> Halted | None:
        """The halt that stops a call, or None."""
        if not self.active:
            return None
        scopes = halt_scopes(call.tool, call.actor, call.run)
        return next((self.active[scope] for scope in scopes if scope in self.active), None)
