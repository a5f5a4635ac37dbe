"""What a call waits for is said, once, where it takes longer than a moment: a holder may be alive, or dead."""

from __future__ import annotations

import logging

from interlock.ports import Clock

_log = logging.getLogger("interlock.waiting")
_SAY_AFTER_S = 1.0


class Waiting:
    """One wait of one call."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_s = clock.monotonic()
        self._said = False

    def note(self, what: str, left_s: float) -> None:
        """It still waits; a lease of whoever is waited for has so much left, unless it is renewed."""
        if self._said or self._clock.monotonic() - self._since_s < _SAY_AFTER_S:
            return
        self._said = True
        _log.info(
            "waiting for %s: until it ends or, if its process is dead, for %.0f s at most", what, max(1.0, left_s)
        )
