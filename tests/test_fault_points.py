"""Every wait for something outside the path has a named fault point, so that the process can be killed there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "interlock"
ROOMS = {"engine": ("engine", "changes"), "changes": ("changes",), "stores": ("stores",)}
NEAR = 8
# Waits that are no boundary: nothing outside can have happened, or the wait is for a part of the same call.
INSIDE = {
    "end.waiting": "for the call's own task, whose awaits have points of their own",
    "own_work": "the same, from within that task",
    "places.take": "for a place in line in this process",
    "line.acquire": "the same",
    "asyncio.wrap_future": "for the tool's own thread; the attempt that waits for it has a point",
    "asyncio.to_thread": "for work of our own, in a thread",
    "clock.sleep": "time passes",
    "asyncio.sleep": "time passes",
}


def files(room: str) -> list[Path]:
    return sorted((SOURCE / room).rglob("*.py"))


def internal(room: str) -> set[str]:
    """Names of coroutine functions of the room itself: their own awaits are looked at where they stand."""
    trees = [ast.parse(file.read_text()) for name in ROOMS[room] for file in files(name)]
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)}


def called(node: ast.expr) -> str:
    """The name of what is awaited, as it is written."""
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


def waits(function: ast.AsyncFunctionDef) -> Iterator[tuple[int, str]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Await):
            inner: ast.expr = node.value
            if isinstance(inner, ast.IfExp):
                yield inner.body.lineno, called(inner.body)
                inner = inner.orelse
            yield node.lineno, called(inner)
        elif isinstance(node, ast.comprehension) and node.is_async:
            yield node.iter.lineno, called(node.iter)
        elif isinstance(node, ast.AsyncFor | ast.AsyncWith):
            first = node.iter if isinstance(node, ast.AsyncFor) else node.items[0].context_expr
            yield node.lineno, called(first)


def points(function: ast.AsyncFunctionDef) -> list[int]:
    """The lines of the function's fault points."""
    return [
        node.lineno
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and called(node).rpartition(".")[2] in ("at", "_at") and node.args
    ]


def bare(room: str) -> list[str]:
    """Waits without a point."""
    own, found = internal(room), []
    for file in files(room):
        for function in [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.AsyncFunctionDef)]:
            marks = points(function)
            for line, name in waits(function):
                last = name.rpartition(".")[2]
                port = ".store." in f".{name}" or name.startswith(("resource.", "self._store."))
                inside = (last in own and not port) or any(name.endswith(known) for known in INSIDE)
                near = any(0 <= line - mark <= NEAR for mark in marks)
                if not inside and not near:
                    found.append(f"{file.relative_to(SOURCE)}:{line}: {name}")
    return found


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_every_wait_has_a_fault_point(room: str) -> None:
    assert bare(room) == []


def test_the_check_can_fail() -> None:
    """Without its points, a function that waits for the store is found."""
    source = "async def f(world):\n    await world.store.commit(1)\n"
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.AsyncFunctionDef)
    assert list(waits(function)) == [(2, "world.store.commit")]
    assert points(function) == []
