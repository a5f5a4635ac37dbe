"""A clock that moves only when it is told to; sleeping moves it and takes no time."""

from __future__ import annotations

import asyncio


class ManualClock:
    """Wall clock and stopwatch under the test's control; `slept` lists every wait."""

    def __init__(self, now_s: float = 1_800_000_000.0) -> None:
        self._wall_us = round(now_s * 1e6)
        self._monotonic = 1000.0
        self.slept: list[float] = []

    def now_us(self) -> int:
        """Microseconds since the epoch."""
        return self._wall_us

    def monotonic(self) -> float:
        """Seconds that never step back."""
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        """Note the wait, move on, and let others run."""
        self.slept.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)

    def advance(self, seconds: float) -> None:
        """Time passes."""
        self._wall_us += round(seconds * 1e6)
        self._monotonic += seconds

    def step_back(self, seconds: float) -> None:
        """Somebody sets the wall clock back."""
        self._wall_us -= round(seconds * 1e6)
