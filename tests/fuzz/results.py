"""What tools return when they are written badly, or by somebody who means no good."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import datetime
import decimal
import enum
import itertools
import pathlib
import types
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from interlock import Outcome, Result, Runtime, Status, tool
from interlock.policy import parse_policy
from tests.conftest import ALLOW
from tests.fuzz.target import Target


class Raising:
    """Raises whatever it is asked."""

    def _refuse(self, *_given: Any) -> Any:
        raise RuntimeError("no")

    __str__ = __repr__ = __len__ = __iter__ = __bool__ = __eq__ = __hash__ = __getattr__ = _refuse
    __getitem__ = __contains__ = __float__ = __int__ = __index__ = keys = items = model_dump = _refuse


class LyingText(str):
    """A text that raises where texts do not."""

    def __str__(self) -> str:
        raise ValueError("no text")

    def encode(self, *_given: Any) -> bytes:
        raise ValueError("no bytes")


class LyingDict(dict[str, Any]):
    """A dict that is never over."""

    def items(self) -> Any:
        return ((str(n), n) for n in itertools.count())

    def __iter__(self) -> Any:
        return (str(n) for n in itertools.count())


@dataclasses.dataclass
class Ring:
    """Holds itself."""

    inner: Any = None

    def __post_init__(self) -> None:
        self.inner = self


class Colour(enum.Enum):
    """A value that is an object."""

    RED = object()


def _deep(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def _ring() -> dict[str, Any]:
    ring: dict[str, Any] = {}
    ring["self"] = [ring]
    return ring


def _wide() -> list[Any]:
    """A few lines of source that are a million items when they are written out."""
    found: list[Any] = ["x"]
    for _ in range(6):
        found = [found] * 10
    return found


_MAKERS: list[Callable[[], Any]] = [
    Raising, lambda: LyingText("x"), LyingDict, Ring, lambda: Colour.RED, lambda: _deep(5_000), lambda: _deep(31), _ring, _wide,
    lambda: (n for n in itertools.count()), itertools.count, lambda: iter([1]), lambda: range(5), lambda: {1: 2, None: 3, (1,): 4}, lambda: {"a", "b"},
    lambda: b"\xff\xfe", lambda: "\ud800", lambda: 10**5_000, lambda: float("nan"), lambda: -0.0, lambda: decimal.Decimal("NaN"),
    lambda: decimal.Decimal(10) ** 999, lambda: datetime.datetime.max, lambda: datetime.timedelta.max, lambda: pathlib.Path("/"),
    lambda: object, lambda: len, lambda: types.SimpleNamespace(a=1), lambda: collections.UserDict({"a": 1}), lambda: memoryview(b"x"),
    lambda: ValueError("x"), lambda: Result(value=Raising()), lambda: Result(value=1, confidence=float("nan")), lambda: Result(metadata={"a": Raising()}),
    lambda: {"error": Raising()}, lambda: {"success": False, "error": "x" * 100_000}, lambda: "error: " * 50_000, lambda: Status.OK,
    lambda: asyncio.sleep, lambda: NotImplemented, lambda: ..., lambda: "x" * 3_000_000, lambda: dict.fromkeys(map(str, range(50_000))),
]  # fmt: skip


def _nest(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "success", "isError", "value", "a", ""]), inner, max_size=3)
        | st.tuples(inner, inner)
        | inner.map(lambda value: Result(value=value))
    )


_PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=8)
_PLACED = st.integers(0, len(_MAKERS) - 1).map(lambda place: _Made(place))
_OBJECTS = st.recursive(_PLAIN | _PLACED, _nest, max_leaves=6)


@dataclasses.dataclass(frozen=True)
class _Made:
    """A hostile object by its number: what is drawn must be printed, compared and drawn again."""

    place: int


def _build(found: Any) -> Any:
    if isinstance(found, _Made):
        return _MAKERS[found.place]()
    if isinstance(found, list | tuple):
        return type(found)(map(_build, found))
    if isinstance(found, dict):
        return {key: _build(value) for key, value in found.items()}
    if type(found) is Result:
        return Result(value=_build(found.value))
    return found


_NOW: list[Any] = []


@tool(effect="read")
async def anything() -> Any:
    return _NOW[0]


@tool(effect="read")
async def listing() -> list[int]:
    found: list[int] = _NOW[0]
    return found


@tool(effect="send")
async def sending() -> dict[str, Any]:
    found: dict[str, Any] = _NOW[0]
    return found


async def _call() -> None:
    tools = (anything, listing, sending)
    policy = parse_policy(ALLOW.replace("version = 1", 'version = 1\nmode = "apply"'))
    async with Runtime.open("memory://", policy=policy, tools=tools) as runtime:
        for each in tools:
            assert isinstance(await runtime.call(each.name, {}, actor="ann", call_id=each.name), Outcome)


def read(found: Any) -> None:
    """An outcome, whatever a tool returns."""
    _NOW[:] = [_build(found)]
    asyncio.run(_call())
    _NOW.clear()


TARGET = Target("results", _OBJECTS, read)
