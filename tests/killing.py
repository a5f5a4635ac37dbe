"""What the kill grid runs in a child: one scenario with a fault point at which the process kills itself."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter as Tally
from pathlib import Path
from typing import Any

import msgspec

from interlock import Context, Outcome, Runtime, Tool, tool
from interlock.config import Settings
from interlock.policy import parse_policy
from interlock.ports import SystemClock
from tests.counting import Counter

POLICY = """
version = 1
mode = "apply"
[review]
vouched = ["user"]
[[rule]]
id = "open"
tools = ["*"]
decision = "allow"
[[budget]]
id = "day"
per = "actor"
calls = 1000
"""
REVIEW = POLICY + '[[rule]]\nid = "ask"\ntools = ["mail", "title"]\ndecision = "review"\n'


class Cell(msgspec.Struct, frozen=True):
    """One scenario, and the point (its nth passing) at which the process dies."""

    scenario: str
    probe: bool
    store: str
    folder: str
    port: int
    point: str = ""
    nth: int = 0

    @property
    def key(self) -> str:
        """What the effect is called on the other side of the wire."""
        place = Path(self.folder)
        return f"{self.scenario}-{self.probe}-{place.parent.name}-{place.name}"


class Points:
    """Notes every fault point that is passed; kills the process at one of them."""

    def __init__(self, cell: Cell | None = None) -> None:
        self.armed = False
        self.passed: list[tuple[str, int]] = []
        self._cell = cell
        self._seen: Tally[str] = Tally()

    def at(self, point: str) -> None:
        """A fault point."""
        if not self.armed:
            return
        self._seen[point] += 1
        self.passed.append((point, self._seen[point]))
        if self._cell is not None and (point, self._seen[point]) == (self._cell.point, self._cell.nth):
            os.kill(os.getpid(), signal.SIGKILL)


class Later(SystemClock):
    """The machine's clock, after every lease of the dead has expired."""

    def now_us(self) -> int:
        """Five minutes on."""
        return super().now_us() + 300_000_000


class Shelf:
    """A resource on the other side of the wire."""

    name = "shelf"

    def __init__(self, port: int) -> None:
        self._counter = Counter(port)

    async def read_state(self, key: str) -> Any:
        """A title, if there is one."""
        found = await asyncio.to_thread(self._counter.get, key)
        return None if found == "-" else {"title": found}

    async def restore(self, key: str, state: Any) -> None:
        """Put a title back."""
        await asyncio.to_thread(self._counter.set, key, "-" if state is None else state["title"])


def tools(cell: Cell, points: Points | None) -> list[Tool]:
    """A read, a write and a send, each counted by another process."""
    counter, shelf = Counter(cell.port), Shelf(cell.port)

    async def effect(key: str, body: str | None = None) -> None:
        if points is not None:
            points.at("tool.before")
        await (asyncio.to_thread(counter.add, key) if body is None else asyncio.to_thread(counter.put, key, body))
        if cell.scenario == "renew" and points is not None:
            await asyncio.sleep(0.5)
        if points is not None:
            points.at("tool.after")

    async def landed(_arguments: Any, context: Context) -> bool:
        return await asyncio.to_thread(counter.count, cell.key) > 0

    probing: dict[str, Any] = {"probe": landed} if cell.probe else {}

    @tool(effect="read")
    async def look(key: str) -> str:
        await effect(key)
        return "seen"

    @tool(
        effect="write",
        key="{key}",
        resource=shelf,
        simulate=lambda _state, arguments: {"title": arguments["title"]},
        **probing,
    )
    async def title(key: str, title: str) -> str:
        await effect(key, title)
        return title

    @tool(effect="send", **probing)
    async def mail(key: str) -> str:
        await effect(key)
        return "sent"

    return [look, title, mail]


def opened(cell: Cell, points: Points | None, clock: SystemClock | None = None) -> Runtime:
    """The runtime of one cell."""
    parts: dict[str, Any] = {} if points is None else {"faults": points}
    policy = parse_policy(REVIEW if cell.scenario == "approve" else POLICY)
    # Named: whoever is killed may have been started in another test's environment.
    key = f"{cell.folder}/payloads.key" if cell.store.startswith("sqlite") else ""
    settings = Settings(lease_s=1.0 if cell.scenario == "renew" else 30.0, busy_s=30.0, payload_key=key)
    return Runtime.open(
        cell.store, policy=policy, tools=tools(cell, points), settings=settings, clock=clock or SystemClock(), **parts
    )


async def deliver(runtime: Runtime, cell: Cell) -> Outcome:
    """The call of a scenario; delivered again it is the same call."""
    kind = {"read": "look", "write": "title", "undo": "title"}.get(cell.scenario, "mail")
    arguments = {"key": cell.key, "title": "new"} if kind == "title" else {"key": cell.key}
    return await runtime.call(kind, arguments, actor="ann", turn="t", run="r", call_id="c1")


async def play(cell: Cell, points: Points) -> None:
    """The scenario: what comes before is done in peace, the rest under fire."""
    runtime = opened(cell, points)
    if cell.scenario == "undo":
        assert (await deliver(runtime, cell)).ok
        points.armed = True
        await runtime.operations.undo(run="r")
    elif cell.scenario == "approve":
        ticket = (await deliver(runtime, cell)).ticket
        assert ticket is not None
        Path(cell.folder, "ticket").write_text(ticket)
        points.armed = True
        await runtime.operations.decide(ticket, approve=True, by="user:boss")
        await runtime.operations.resume(ticket)
    else:
        points.armed = True
        outcome = await deliver(runtime, cell)
        Path(cell.folder, "acknowledged").write_text(outcome.status.value)
    points.armed = False
    await runtime.close()


def child(cell: Cell) -> None:
    """The body of the child process."""
    asyncio.run(play(cell, Points(cell)))
