"""What processes do in the attacks on plan sets and undo: apply, take back and make again, on documents with versions."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import msgspec

from interlock import Context, Runtime, Tool, tool
from interlock.config import Settings
from interlock.errors import NotAllowed
from interlock.operations import Change, PlannedChange
from interlock.policy import parse_policy
from interlock.ports import SystemClock
from interlock.resources import Documents
from tests.contending import key_beside
from tests.killing import Cell, Points
from tests.test_changes import OPEN

KEYS = ("a", "b", "c")
SET = tuple(
    Change("title", {"id": key, "title": title}) for key, title in [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4")]
)
"""One key twice: the later change rests on the earlier one."""


class Place(msgspec.Struct, frozen=True):
    """Where one attack happens."""

    store: str
    documents: str
    folder: str
    point: str = ""
    nth: int = 0

    def shelf(self) -> Documents:
        """The documents, whose versions count what was written."""
        return Documents(self.documents, "shelf", busy_s=60)

    def opened(self, shelf: Documents, points: Points | None = None, clock: SystemClock | None = None) -> Runtime:
        """A runtime on them."""
        parts: dict[str, Any] = {} if points is None else {"faults": points}
        settings = Settings(busy_s=60.0, payload_key=key_beside(self.store))
        return Runtime.open(
            self.store,
            policy=parse_policy(OPEN),
            tools=[retitling(shelf)],
            settings=settings,
            clock=clock or SystemClock(),
            **parts,
        )

    def points(self) -> Points:
        """What kills the process at its point, if it has one."""
        cell = Cell("set", probe=False, store="", folder=self.folder, port=0, point=self.point, nth=self.nth)
        return Points(cell if self.point else None)


def retitling(shelf: Documents) -> Tool:
    """Sets a title at the version that it was planned on."""

    @tool(
        effect="write",
        key="{id}",
        resource=shelf,
        timeout_s=60,
        deadline_s=120,
        simulate=lambda state, arguments: {**(state or {}), "title": arguments["title"]},
    )
    async def title(id: str, title: str, context: Context) -> str:
        found = await shelf.read_state(id)
        await shelf.write(id, {**(found.value if found else {}), "title": title}, context)
        return title

    return title


async def fill(place: Place) -> None:
    """Every key once, by hand."""
    shelf = place.shelf()
    for key in KEYS:
        await shelf.write(key, {"title": "old"})
    await shelf.close()


async def found(place: Place) -> dict[str, tuple[str, str]]:
    """The title and version of every key."""
    shelf = place.shelf()
    states = {key: await shelf.read_state(key) for key in KEYS}
    await shelf.close()
    return {key: (state.value["title"], state.version) for key, state in states.items() if state is not None}


async def plan(place: Place, changes: tuple[Change, ...] = SET) -> list[PlannedChange]:
    """The set, planned."""
    shelf = place.shelf()
    async with place.opened(shelf) as runtime:
        planned, wrong = await runtime.operations.plan_set(changes, actor="ann")
    await shelf.close()
    assert wrong is None, wrong
    return list(planned)


async def apply(
    place: Place, planned: list[PlannedChange], points: Points | None = None, clock: SystemClock | None = None
) -> list[str]:
    """The set, made; how each change ended."""
    shelf = place.shelf()
    async with place.opened(shelf, points, clock) as runtime:
        if clock is not None:
            await runtime.operations.recover()
        if points is not None:
            points.armed = True
        try:
            outcomes = await runtime.operations.apply_set("nightly", planned, actor="ann")
        except NotAllowed:
            return ["another set"]
        finally:
            if points is not None:
                points.armed = False
    await shelf.close()
    return [outcome.status.value for outcome in outcomes]


def apply_in_process(place: Place, planned: list[PlannedChange], answers: Path, barrier: Any) -> None:
    """The body of a child that applies a set, perhaps with others, perhaps until it is killed."""

    async def run() -> None:
        if barrier is not None:
            barrier.wait(30)
        ends = await apply(place, planned, place.points())
        answers.write_text(json.dumps(ends))

    asyncio.run(run())


def undo_or_replay(place: Place, what: str, times: int, answers: Path, barrier: Any) -> None:
    """The body of a child that takes a run back or makes it again, several times, with others."""

    async def run() -> None:
        shelf, ends = place.shelf(), list[list[str]]()
        async with place.opened(shelf) as runtime:
            for _ in range(times):
                barrier.wait(60)
                await asyncio.sleep(random.uniform(0, 0.01))
                work = runtime.operations.undo(run="r") if what == "undo" else runtime.operations.replay("r")
                done = await work
                ends.append(["none" if end is None else end.status.value for _step, end in done])
                barrier.wait(60)
        await shelf.close()
        answers.write_text(json.dumps(ends))

    asyncio.run(run())
