"""What a target is: something to draw, something that reads it, and bounds on how long one reading takes."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

LONGEST_S = 10
"""For one input; the longest take milliseconds."""


class Target(msgspec.Struct, frozen=True):
    """A reader of what others wrote, and what is put before it. Any error that is not the reader's own is a fault."""

    name: str
    inputs: st.SearchStrategy[Any]
    read: Callable[[Any], None]


class Hang(BaseException):
    """An input took longer than any may: no `except Exception` on the way stops this."""


@contextmanager
def within_bounds() -> Iterator[None]:
    """End a reading that takes too long."""

    def ring(_signal: int, _frame: Any) -> None:
        raise Hang(f"one input took longer than {LONGEST_S} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def attack(target: Target, examples: int, number: int) -> int:
    """So many inputs; the smallest that shows a fault is printed with it. How many were read to their end."""
    read = 0

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(target.inputs)
    def run(value: Any) -> None:
        nonlocal read
        with within_bounds():
            target.read(value)
        read += 1

    run()
    return read


def mutated(texts: list[str], fragments: list[str]) -> st.SearchStrategy[str]:
    """Texts that were fine, with pieces cut out, doubled, exchanged, or put in from elsewhere."""

    def mutate(text: str, number: int, steps: int) -> str:
        chance = random.Random(number)
        for _ in range(steps):
            start = chance.randrange(len(text) + 1)
            end = min(len(text), start + chance.choice([1, 1, 3, 10, 40]))
            piece = chance.choice(
                [
                    "",
                    text[start:end] * chance.choice([2, 2, 5, 50]),
                    chance.choice(fragments),
                    chr(chance.choice([0, 9, 10, 34, 39, 91, 93, 123, 0x2028, 0x661, 0xD7FF, 0xFFFD, 0x1F600])),
                    chance.choice(texts)[: chance.choice([5, 50, 500])],
                ]
            )
            text = (text[:start] + piece + text[end:])[:20_000]
        return text

    return st.builds(mutate, st.sampled_from(texts), st.integers(0, 2**32), st.integers(0, 12))
