"""A circuit breaker for one tool: closed, open, half-open with a single probe."""

from __future__ import annotations

from interlock.ports import Clock


class Breaker:
    """Opens after so many failures in a row; after a while lets one call through to see."""

    def __init__(self, failures: int, reset_s: float) -> None:
        self.troubled = False
        """Whether there is anything to ask or to forgive: most of the time there is not."""
        self._most = failures
        self._reset_s = reset_s
        self._failures = 0
        self._opened: float | None = None
        self._probing = False

    @property
    def state(self) -> str:
        """closed, open or half-open."""
        if self._opened is None:
            return "closed"
        return "half-open" if self._probing else "open"

    def wait_s(self, clock: Clock) -> float | None:
        """None if a call may pass (as the probe, if the breaker was open); otherwise how long not to try."""
        if self._opened is None:
            return None
        left = self._opened + self._reset_s - clock.monotonic()
        if left > 0 or self._probing:  # one probe at a time; the others are told to wait, for how long is not known
            return max(left, 0.0)
        self._probing = True
        return None

    def record_success(self) -> None:
        """The other side answers."""
        self._failures, self._opened, self._probing, self.troubled = 0, None, False, False

    def record_failure(self, now: float) -> None:
        """The other side does not answer."""
        self._failures, self.troubled = self._failures + 1, True
        if self._probing or self._failures >= self._most:  # one failed probe is enough to stay open
            self._opened, self._probing = now, False

    def abandon(self) -> None:
        """The call that passed ended without saying anything about the other side."""
        self._probing = False
