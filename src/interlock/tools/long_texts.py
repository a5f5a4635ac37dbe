"""Long texts leave the event loop: while one is read, other turns go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

from interlock.values import Json

P = ParamSpec("P")
T = TypeVar("T")
LONG = 8_000
"""Characters that are read within a few hundredths of a second; for more, nobody else should have to wait."""
_A_NUMBER = 8
"""About as many characters as a number is written with."""


async def leave_loop(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do some work on texts of that size: here if it is little, else in a thread."""
    if size > LONG:
        return await asyncio.to_thread(work, *args, **kwargs)
    return work(*args, **kwargs)


def size_of(value: Json) -> int:
    """About how many characters a value has; not counted to the end where it is long.

    Of a class of somebody else's what it holds is counted: what it shows of it may raise, or have no end.
    """
    total, waiting = 0, [value]
    while waiting and total <= LONG:
        value = waiting.pop()
        if isinstance(value, str):
            total += len(value)
            continue
        if isinstance(value, dict):
            waiting.extend(dict.keys(value))
            waiting.extend(dict.values(value))
        elif isinstance(value, list | tuple):
            waiting.extend(items_of(value))
        total += _A_NUMBER
    return total


def items_of(value: list[Json] | tuple[Json, ...]) -> Iterator[Json]:
    """The items that a list holds, whatever its class shows of them."""
    return list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value)
