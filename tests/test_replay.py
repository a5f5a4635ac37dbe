"""Replay: what a run had made and was taken back is all made again, in the order of the first time, and each once."""

from __future__ import annotations

from typing import Any

from interlock import Runtime, Tool, tool
from interlock.audit import verify
from interlock.errors import NothingLanded
from interlock.operations import Change
from interlock.tools import RetryRule
from tests.conftest import expect
from tests.test_changes import OPEN, Shelf, running

ASK = OPEN + "[[rule]]\nid = 'ask'\ntools = ['double']\ndecision = 'review'\nwhen = 'args.k == \"z\"'\n"


def _count(state: Any) -> int:
    return int((state or {"n": 0})["n"])


def counting(shelf: Shelf, down: list[str], **options: Any) -> tuple[Tool, Tool]:
    """Add to a number and double it; the tools that `down` names fail once each, before anything is done."""

    def fail(name: str) -> None:
        if name in down:
            down.remove(name)
            raise NothingLanded("down")

    once = RetryRule(max_attempts=1)

    def added(state: Any, a: Any) -> Any:
        return {"n": _count(state) + a["n"]}

    def doubled(state: Any, _a: Any) -> Any:
        return {"n": _count(state) * 2}

    @tool(effect="write", key="{k}", resource=shelf, simulate=added, retry=once, **options)
    async def add(k: str, n: int) -> str:
        """Add."""
        fail("add")
        shelf.items[k] = added(shelf.items.get(k), {"n": n})
        return "added"

    @tool(effect="write", key="{k}", resource=shelf, simulate=doubled, retry=once, **options)
    async def double(k: str) -> str:
        """Double."""
        fail("double")
        shelf.items[k] = doubled(shelf.items.get(k), {})
        return "doubled"

    return add, double


async def add_double_add(runtime: Runtime) -> None:
    for name, more in (("add", {"n": 5}), ("double", {}), ("add", {"n": 5})):
        made = await runtime.call(name, {"k": "a", **more}, actor="ann", run="night")
        assert (made.ok, made.repeats) == (True, None)


async def replayed(runtime: Runtime) -> list[tuple[str, str]]:
    """The changes of the run that were made again, and how that ended; nothing is foreseen that does not come so."""
    foreseen = [step.claim.tool for step in await runtime.operations.replay_plan("night")]
    done = await runtime.operations.replay("night")
    assert [step.claim.tool for step, _outcome in done] == foreseen
    return [(step.claim.tool, "left" if outcome is None else outcome.status.value) for step, outcome in done]


async def test_a_change_that_the_run_made_twice_is_made_twice_again(store_url: str) -> None:
    """The second is a change of its own, as something came in between; the first was put aside while it stood."""
    shelf = Shelf()
    async with running(*counting(shelf, []), url=store_url) as runtime:
        await add_double_add(runtime)
        for _ in range(2):
            await runtime.operations.undo(run="night")
            assert shelf.items == {}
            assert await replayed(runtime) == [("add", "ok"), ("double", "ok"), ("add", "ok")]
            assert (shelf.items, await replayed(runtime)) == ({"a": {"n": 15}}, [])
        assert (await verify(runtime.store)).problems == ()


async def test_a_replay_that_failed_half_way_goes_on_from_there(store_url: str) -> None:
    shelf, down = Shelf(), list[str]()
    async with running(*counting(shelf, down), url=store_url) as runtime:
        await add_double_add(runtime)
        await runtime.operations.undo(run="night")
        down.append("double")
        assert await replayed(runtime) == [("add", "ok"), ("double", "failed"), ("add", "left")]
        assert await replayed(runtime) == [("double", "ok"), ("add", "ok")]
        assert (shelf.items, await replayed(runtime)) == ({"a": {"n": 15}}, [])
        assert (await verify(runtime.store)).problems == ()


async def test_what_failed_in_a_replay_is_still_made_before_what_came_after_it(store_url: str) -> None:
    shelf, down = Shelf(), list[str]()
    async with running(*counting(shelf, down), url=store_url) as runtime:
        await add_double_add(runtime)
        await runtime.operations.undo(run="night")
        down.append("add")
        assert await replayed(runtime) == [("add", "failed"), ("double", "left"), ("add", "left")]
        assert await replayed(runtime) == [("add", "ok"), ("double", "ok"), ("add", "ok")]
        assert shelf.items == {"a": {"n": 15}}


async def test_what_another_call_has_made_again_is_not_replayed(store_url: str) -> None:
    shelf = Shelf()
    async with running(*counting(shelf, [], once_per="ever"), url=store_url) as runtime:
        first = await runtime.call("add", {"k": "a", "n": 5}, actor="ann", run="night", call_id="1")
        await runtime.operations.undo(record=expect(first.record))
        assert (await runtime.call("add", {"k": "a", "n": 5}, actor="ben", run="day", call_id="2")).ok
        assert (await runtime.call("double", {"k": "a"}, actor="ben", run="day", call_id="3")).ok
        assert (await replayed(runtime), shelf.items) == ([], {"a": {"n": 10}})


async def test_a_set_that_makes_a_change_twice_goes_on_after_it_was_undone_and_replayed(store_url: str) -> None:
    shelf = Shelf()
    add, double = Change("add", {"k": "a", "n": 5}), Change("double", {"k": "a"})
    changes = [add, double, add, Change("double", {"k": "z"})]
    async with running(*counting(shelf, []), policy=ASK, url=store_url) as runtime:
        planned, _wrong = await runtime.operations.plan_set(changes, actor="ann", name="s")
        made = await runtime.operations.apply_set("s", planned, actor="ann")
        assert [outcome.status.value for outcome in made] == ["ok", "ok", "ok", "parked"]
        await runtime.operations.undo(run="set:s")
        await runtime.operations.replay("set:s")
        assert shelf.items == {"a": {"n": 15}}
        stored, _wrong = await runtime.operations.plan_set(changes, actor="ann", name="s")
        again = await runtime.operations.apply_set("s", stored, actor="ann")
        assert [outcome.status.value for outcome in again] == ["ok", "ok", "ok", "parked"]
        assert ([len(item.notes) for item in stored], shelf.items) == ([0, 0, 0, 1], {"a": {"n": 15}})
        assert (await verify(runtime.store)).problems == ()
