"""How work grows with its size: what is bounded takes so many times as long for so many times the text, not its square."""

from __future__ import annotations

import time
from collections.abc import Callable

FACTOR = 4
LINEAR = 9.0
"""Between what is linear (4) and what is quadratic (16)."""
_ROUNDS = 3
_TRIES = 3


def growth(work: Callable[[int], object], size: int) -> float:
    """How many times the work takes for four times the size.

    Processor time of this thread, and the least of several rounds: what else the machine does hardly counts. What is
    still disturbed (by a cache that others use) is measured again; what grows with the square does so each time.
    """
    found = _growth_once(work, size)
    for _ in range(_TRIES - 1):
        if found < LINEAR:
            return found
        found = min(found, _growth_once(work, size))
    return found


def _growth_once(work: Callable[[int], object], size: int) -> float:
    return max(_least(work, size * FACTOR), 1e-9) / max(_least(work, size), 1e-9)


def _least(work: Callable[[int], object], size: int) -> float:
    return min(_measure(work, size) for _ in range(_ROUNDS))


def _measure(work: Callable[[int], object], size: int) -> float:
    started = time.thread_time()
    work(size)
    return time.thread_time() - started
