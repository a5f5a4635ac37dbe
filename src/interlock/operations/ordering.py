"""In which order steps are taken: writes of different keys side by side, a send only when all before it is done.

What is written can be looked at and put back, so that writes of different keys need no order among each other. A send
is seen outside: nobody is told that a thing is so (or is so no more) before it is, nor after it came to nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

import msgspec

from interlock.engine import EngineContext
from interlock.operations.made import was_made
from interlock.operations.undo import UndoStep
from interlock.state import overlapping
from interlock.values import Outcome

Done = tuple[UndoStep, Outcome | None]
"""A step of an undo or replay, and how its call ended; None where there was no call to make, or it was not made."""
Take = Callable[[UndoStep], Awaitable[Outcome]]
_Task = asyncio.Task[Outcome | None]
# Bounded, so that an undo of thousands does not hold thousands of calls open.
_AT_ONCE = 16


class Direction(msgspec.Struct, frozen=True):
    """Which way steps go, and how that is said of one that waits for another."""

    waits_for: str
    way_on: str

    def leave(self, step: UndoStep, other: UndoStep) -> UndoStep:
        """The step as one that is left as it is, because of another one."""
        why = f"record {other.record} ({other.claim.tool}) {self.waits_for}; {self.way_on}"
        return msgspec.structs.replace(step, obstacle=why)


BACK = Direction("came after it and is not taken back", "see to that one first, or name this record alone")
AGAIN = Direction("came before it and is not made", "see to that one first, and replay again")


def hold_back(ctx: EngineContext, steps: Sequence[UndoStep], way: Direction) -> list[UndoStep]:
    """The steps as far as it can be told beforehand which of them are not taken: a send, and all behind it, where
    something before it is known to stay as it is."""
    found: list[UndoStep] = []
    stays: UndoStep | None = None
    beyond = False
    for step in steps:
        if step.obstacle:
            stays = stays or (step if step.holds_back else None)
        elif stays is not None and (beyond or _is_send(ctx, step)):
            beyond = True
            step = way.leave(step, stays)
        found.append(step)
    return found


async def take_in_order(ctx: EngineContext, steps: Sequence[UndoStep], take: Take, way: Direction) -> list[Done]:
    """Take the steps, group by group; after a group in which something failed nothing more is touched."""
    done: list[Done] = []
    failed: UndoStep | None = None
    for group in _groups(ctx, steps):
        if failed is None:
            taken = await _side_by_side(ctx, group, take, way)
            failed = await _first_failed(ctx, taken)
            done += taken
        else:
            done += [(step if step.obstacle else way.leave(step, failed), None) for step in group]
    return done


def _groups(ctx: EngineContext, steps: Sequence[UndoStep]) -> Iterator[list[UndoStep]]:
    """Each send alone, and the writes between two of them together. What is not taken parts nothing."""
    together: list[UndoStep] = []
    for step in steps:
        if step.obstacle or not _is_send(ctx, step):
            together.append(step)
            continue
        yield together
        yield [step]
        together = []
    yield together


def _is_send(ctx: EngineContext, step: UndoStep) -> bool:
    """Whether the change has no state of its own that could be looked at and put back."""
    binding = ctx.bindings.get(step.claim.tool)
    return binding is None or binding.tool.resource is None


async def _first_failed(ctx: EngineContext, taken: Sequence[Done]) -> UndoStep | None:
    for step, outcome in taken:
        if outcome is not None and not await was_made(ctx, outcome):
            return step
    return None


async def _side_by_side(ctx: EngineContext, steps: Sequence[UndoStep], take: Take, way: Direction) -> list[Done]:
    """Steps that share a key, or what is locked for them, one after the other, the others side by side."""
    places, last = asyncio.Semaphore(_AT_ONCE), dict[str, tuple[UndoStep, _Task]]()
    in_use: dict[
        str, _Task
    ] = {}  # by what a step changes or has locked: two that want the same would shut each other out
    left: dict[int, UndoStep] = {}  # by their place: what was not tried, as one before it on the same key failed

    async def work(
        place: int, step: UndoStep, before: list[tuple[UndoStep, _Task]], users: set[_Task]
    ) -> Outcome | None:
        if users:
            await asyncio.wait(users)
        for other, task in before:
            # What an earlier step has not put back is not what this one was planned on.
            outcome = task.result()
            if outcome is None or not await was_made(ctx, outcome):
                left[place] = way.leave(step, other)
                return None
        async with places:
            return await take(step)

    tasks: list[_Task | None] = []
    for place, step in enumerate(steps):
        if step.obstacle:
            tasks.append(None)
            continue
        wanted = (*step.keys, *step.locks)
        users = {in_use[name] for key in wanted for name in overlapping(key, in_use)}
        task = asyncio.ensure_future(work(place, step, _on_the_same_keys(step, last), users))
        last.update(dict.fromkeys(step.keys, (step, task)))
        in_use.update(dict.fromkeys(wanted, task))
        tasks.append(task)
    try:
        outcomes = [None if task is None else await task for task in tasks]
    except BaseException:  # what has not begun is not begun; what has is waited for, as on the path itself
        begun = [task for task in tasks if task is not None]
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)
        raise
    return [(left.get(place, step), outcomes[place]) for place, step in enumerate(steps)]


def _on_the_same_keys(step: UndoStep, last: dict[str, tuple[UndoStep, _Task]]) -> list[tuple[UndoStep, _Task]]:
    """The last steps on each key of this one; the whole of a resource is each of its keys."""
    return [last[name] for key in step.keys for name in overlapping(key, last)]
