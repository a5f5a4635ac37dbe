"""Long texts leave the event loop: while one is read, other turns go on."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, ParamSpec, TypeVar

from interlock.values import Json

P = ParamSpec("P")
T = TypeVar("T")
LONG = 8_000
"""Characters that are read within a few hundredths of a second; for more, nobody else should have to wait."""
_A_NUMBER = 8
"""About as many characters as a number is written with."""
_PLAIN = frozenset({int, float, bool, type(None)})
_FIELDS = ("__struct_fields__", "__dataclass_fields__", "__pydantic_fields__")
"""Where classes name the fields that are written out."""


async def leave_loop(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do some work on texts of that size: here if it is little, else in a thread."""
    if size > LONG:
        return await asyncio.to_thread(work, *args, **kwargs)
    return work(*args, **kwargs)


def size_of(value: Any) -> int:
    """About how many characters a value has; not counted to the end where it is long.

    Of a class of somebody else's what it holds is counted: what it shows of it may raise, or have no end.
    """
    total, waiting = 0, [value]
    while waiting and total <= LONG:
        value = waiting.pop()
        kind = type(value)
        if kind is str:
            total += len(value)
            continue
        total += _A_NUMBER
        if kind is dict:
            waiting += value
            waiting += value.values()
        elif kind is list:
            waiting += value
        elif kind not in _PLAIN:
            if isinstance(value, str | bytes | bytearray):
                total += len(value)
            else:
                waiting.extend(_held_by(value))
    return total


def is_longer(value: Any, most: int) -> bool:
    """Whether a value is written in more characters than that, whatever they are; no more of it is looked at than
    that takes."""
    total, waiting = 0, [value]
    while waiting and total <= most:
        value = waiting.pop()
        if isinstance(value, str | bytes | bytearray):
            total += len(value) + 2  # its quotes
            continue
        held = len(waiting)
        if type(value) not in _PLAIN:
            waiting.extend(_held_by(value))
        total += 1 if len(waiting) > held else 2  # with what separates it from the next
    return total > most


def _held_by(value: Any) -> Iterable[Any]:
    """What is in a value: its items, or the fields of what has fields."""
    if isinstance(value, dict):
        return chain(dict.keys(value), dict.values(value))
    if isinstance(value, list | tuple):
        return items_of(value)
    if isinstance(value, deque):
        return value
    if isinstance(value, set | frozenset):
        return set.__iter__(value) if isinstance(value, set) else frozenset.__iter__(value)
    for name in _FIELDS:
        fields = getattr(type(value), name, None)
        if fields is not None:
            return [getattr(value, field, None) for field in fields]
    return ()


def items_of(value: list[Json] | tuple[Json, ...]) -> Iterator[Json]:
    """The items that a list holds, whatever its class shows of them."""
    return list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value)
