"""Work that has begun to change the world goes on to its end, whoever cancels."""

from __future__ import annotations

import asyncio

import pytest

from interlock.engine.uninterrupted import run_uninterrupted


async def test_its_result_comes_without_an_interrupt_where_nobody_cancels() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    assert await run_uninterrupted(work()) == (7, None)


async def test_whoever_cancels_waits_for_the_end_however_often() -> None:
    begun, go_on, ended = asyncio.Event(), asyncio.Event(), []

    async def work() -> str:
        begun.set()
        await go_on.wait()
        ended.append("ended")
        return "result"

    waiting = asyncio.create_task(run_uninterrupted(work()))
    await begun.wait()
    for _ in range(3):
        waiting.cancel("again")
        await asyncio.sleep(0)
        assert not waiting.done()
    go_on.set()
    result, interrupt = await waiting
    assert (result, ended, str(interrupt)) == ("result", ["ended"], "again")


async def test_it_is_told_of_each_cancellation_and_may_end_sooner() -> None:
    begun, give_up, told = asyncio.Event(), asyncio.Event(), list[str]()

    async def work() -> str:
        begun.set()
        await give_up.wait()
        return "given up"

    def tell() -> None:
        told.append("told")
        if len(told) == 2:
            give_up.set()

    waiting = asyncio.create_task(run_uninterrupted(work(), tell))
    await begun.wait()
    waiting.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    result, interrupt = await waiting
    assert (result, type(interrupt), len(told)) == ("given up", asyncio.CancelledError, 2)


async def test_a_cancellation_in_the_very_pass_in_which_it_ends_is_told_with_the_result() -> None:
    async def work() -> str:
        waiting.cancel()
        return "result"

    waiting = asyncio.create_task(run_uninterrupted(work()))
    result, interrupt = await waiting
    assert (result, type(interrupt)) == ("result", asyncio.CancelledError)


async def test_what_it_raises_is_raised() -> None:
    async def work() -> None:
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        await run_uninterrupted(work())


async def test_a_loop_that_ends_does_not_leave_it_waiting() -> None:
    """A task that is cancelled before its first step never comes to its own end."""

    async def work() -> None:
        raise AssertionError("not begun")

    coroutine = work()
    waiting = asyncio.create_task(run_uninterrupted(coroutine))
    await asyncio.sleep(0)
    (own,) = asyncio.all_tasks() - {waiting, asyncio.current_task()}
    own.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    coroutine.close()
