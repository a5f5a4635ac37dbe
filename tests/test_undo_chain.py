"""An undo that is undone: the change stands again, whoever asks, for as long as that is so; to any depth, and also where
nobody knew for a while whether it was."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from interlock import Outcome, Runtime, Status, tool
from interlock.audit import verify
from interlock.errors import ContractError, InDoubt, Permanent
from interlock.state import ChangeFilter
from interlock.testing import ManualClock
from interlock.tools import Compensation, Tool
from interlock.values import Call
from tests.conftest import expect
from tests.test_changes import OPEN, Shelf, WholeShelf, error, retitle, running
from tests.test_forged_tables import Edit, edit  # noqa: F401 - a fixture

COOLING = OPEN + '[[cooldown]]\nid = "rest"\ntools = ["title"]\nwindow = "1h"\n'


class Bank:
    """What was paid and refunded, in order; `ends` says how the next sends end."""

    def __init__(self, refunds_once_per: str = "turn") -> None:
        self.refunds_once_per = refunds_once_per
        self.moved: list[int] = []
        self.ends: list[str] = []
        self.gate, self.entered = asyncio.Event(), asyncio.Event()

    async def move(self, amount: int) -> int:
        end = self.ends.pop(0) if self.ends else "ok"
        if end == "held":
            self.entered.set()
            await self.gate.wait()
        if end == "refused":
            raise Permanent("the bank says no")
        if end != "lost before":
            self.moved.append(amount)
        if end.startswith("lost"):
            raise InDoubt("no answer came")
        return amount

    def tools(self, probe: Any = None, **options: Any) -> tuple[Tool, Tool]:
        back = Compensation("refund", lambda a, _v: {"n": a["n"]})

        @tool(effect="send", once_per="ever", probe=probe, compensate=back, **options)
        async def pay(n: int) -> int:
            """Pay."""
            return await self.move(n)

        again = Compensation("pay", lambda a, _v: {"n": a["n"]})

        @tool(effect="send", once_per=self.refunds_once_per, compensate=again)
        async def refund(n: int) -> int:
            """Refund."""
            return await self.move(-n)

        return pay, refund


@pytest.fixture(params=["turn", "ever"])
def bank(request: pytest.FixtureRequest) -> Bank:
    """Of which a refund is the same one within an undo, or ever."""
    return Bank(request.param)


class Planning:
    """Tells when a call has looked up whether it was made before, and is about to be planned."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    def at(self, name: str) -> None:
        if name == "prepare.wait":
            self.reached.set()


async def come_late(planning: Planning, call: Coroutine[Any, Any, Outcome]) -> asyncio.Task[Outcome]:
    """A call that has looked, and waits for what somebody else has locked."""
    planning.reached.clear()
    late = asyncio.create_task(call)
    await planning.reached.wait()
    return late


class HeldShelf(Shelf):
    """One that says no, after a while, to whoever puts something back."""

    def __init__(self, **items: Any) -> None:
        super().__init__(**items)
        self.holds, self.gate, self.entered = False, asyncio.Event(), asyncio.Event()

    async def restore(self, key: str, state: Any) -> None:
        if self.holds:
            self.entered.set()
            await self.gate.wait()
            raise Permanent("the server says no")
        await super().restore(key, state)


def put_on(shelf: WholeShelf) -> tuple[Tool, Tool]:
    """Sets several items to one value; sets all of them, and declares no key."""

    @tool(effect="write", key=lambda a: tuple(a["ids"]), resource=shelf, once_per="ever", locks=lambda _a: ("desk",))
    async def put(ids: list[str], v: int) -> int:
        """Put."""
        shelf.items |= {name: {"v": v} for name in ids}
        return v

    @tool(effect="write", resource=shelf)
    async def sweep(name: str, v: int) -> int:
        """Change anything."""
        shelf.items[name] = {"v": v}
        return v

    return put, sweep


async def take_back(runtime: Runtime, record: int | None, **how: Any) -> Outcome:
    ((_step, outcome),) = await runtime.operations.undo(record=expect(record), **how)
    return expect(outcome)


async def pay(runtime: Runtime, call_id: str, **more: Any) -> Outcome:
    return await runtime.call("pay", {"n": 100}, actor="ann", run="night", call_id=call_id, **more)


async def statuses(runtime: Runtime) -> list[str]:
    return [entry.status async for entry in runtime.operations.journal(since_us=0)]


async def intact(runtime: Runtime) -> None:
    assert (await verify(runtime.store)).problems == ()


@pytest.mark.parametrize("depth", [2, 3, 4, 5])
async def test_a_payment_stands_or_not_by_the_last_undo_and_is_made_once_ever(
    store_url: str, bank: Bank, depth: int
) -> None:
    async with running(*bank.tools(), url=store_url) as runtime:
        made = last = await pay(runtime, "order-1")
        for _ in range(depth):
            last = await take_back(runtime, last.record)
            assert last.ok
        stands = depth % 2 == 0
        assert await statuses(runtime) == ["done" if (depth - n) % 2 == 0 else "undone" for n in range(depth + 1)]
        same = await pay(runtime, "order-1")
        assert (same.ok, same.undone, same.value) == (True, not stands, 100)
        planned = await runtime.operations.undo_plan(record=expect(made.record))
        assert [(step.tool, step.obstacle) for step in planned] == ([("refund", "")] if stands else [])
        assert [step.tool for step in await runtime.operations.replay_plan("night")] == ([] if stands else ["pay"])
        assert sum(bank.moved) == (100 if stands else 0)
        assert (await pay(runtime, "order-2")).ok, "made again only where it does not stand"
        await runtime.operations.replay("night")
        assert sum(bank.moved) == 100
        await intact(runtime)


async def test_what_stands_again_is_taken_back_by_its_own_record_and_by_its_run_once(
    store_url: str, bank: Bank
) -> None:
    async with running(*bank.tools(), url=store_url) as runtime:
        made = await pay(runtime, "order-1")
        undone = await take_back(runtime, made.record)
        again = await take_back(runtime, undone.record)
        ((step, outcome),) = await runtime.operations.undo(run="night")
        assert (step.record, expect(outcome).ok, sum(bank.moved)) == (again.record, True, 0)
        for number in (made.record, again.record):
            assert await runtime.operations.undo(record=expect(number)) == ()
        assert sum(bank.moved) == 0, "the payment was refunded once"
        await intact(runtime)
        third = await take_back(runtime, undone.record)
        assert (third.ok, sum(bank.moved)) == (True, 100)
        await intact(runtime)


async def test_two_who_take_back_what_stands_again_take_it_back_once(store_url: str, bank: Bank) -> None:
    """One names the change, one the undo of its undo."""
    async with running(*bank.tools(), url=store_url) as runtime:
        made = await pay(runtime, "order-1")
        again = await take_back(runtime, (await take_back(runtime, made.record)).record)
        await asyncio.gather(*(runtime.operations.undo(record=expect(one.record)) for one in (made, again) * 2))
        assert sum(bank.moved) == 0
        await intact(runtime)


async def test_an_undo_that_was_planned_before_its_change_came_and_went_is_refused(store_url: str, bank: Bank) -> None:
    async with running(*bank.tools(), url=store_url) as runtime:
        made = await pay(runtime, "order-1")
        (step,) = await runtime.operations.undo_plan(record=expect(made.record))
        await take_back(runtime, (await take_back(runtime, made.record)).record)
        call = Call("late", step.tool, step.arguments, "os:boss", "os:boss", undoes=step.claim.key)
        late = await runtime._engine.run(call)
        assert (late.status, error(late), sum(bank.moved)) == (Status.FAILED, "moved", 100)
        assert (await take_back(runtime, made.record)).ok
        assert sum(bank.moved) == 0
        await intact(runtime)


async def test_an_undo_is_not_undone_once_its_change_was_made_again(store_url: str, bank: Bank) -> None:
    async with running(*bank.tools(), url=store_url) as runtime:
        undone = await take_back(runtime, (await pay(runtime, "order-1")).record)
        assert (await pay(runtime, "order-2")).ok
        ((step, outcome),) = await runtime.operations.undo(record=expect(undone.record))
        assert (outcome, "was made again since" in step.obstacle) == (None, True)
        assert sum(bank.moved) == 100
        await intact(runtime)


@pytest.mark.parametrize("landed", [True, False])
@pytest.mark.parametrize("by", ["a person", "a probe"])
async def test_while_nobody_knows_whether_it_stands_again_nobody_makes_it(
    store_url: str, bank: Bank, landed: bool, by: str
) -> None:

    async def probe(_arguments: Any, _context: Any) -> bool | None:
        return landed if by == "a probe" and asked else None

    asked = False
    async with running(*bank.tools(probe), url=store_url) as runtime:
        made = await pay(runtime, "order-1")
        undone = await take_back(runtime, made.record)
        bank.ends = ["lost" if landed else "lost before"]
        lost = await take_back(runtime, undone.record)
        assert (lost.status, (await statuses(runtime))[0]) == (Status.UNKNOWN, "returning")
        for name in ("order-1", "order-2"):
            waits = await pay(runtime, name)
            assert (waits.status, error(waits)) == (Status.UNKNOWN, "in_doubt"), waits
        assert [step.tool for step in await runtime.operations.replay_plan("night")] == [""]
        await intact(runtime)
        asked = True
        (found,) = await runtime.operations.recover()
        if by == "a person":
            await runtime.operations.decide(expect(found.ticket), approve=landed, by="user:boss")
        assert (await statuses(runtime))[0] == ("done" if landed else "undone")
        same = await pay(runtime, "order-1")
        assert (same.ok, same.undone) == (True, not landed)
        assert (await pay(runtime, "order-2")).ok
        assert sum(bank.moved) == 100
        await intact(runtime)


async def test_while_an_undo_is_undone_its_change_is_not_made_beside_it(store_url: str, bank: Bank) -> None:
    async with running(*bank.tools(), url=store_url) as runtime:
        undone = await take_back(runtime, (await pay(runtime, "order-1")).record)
        bank.ends = ["held"]
        work = asyncio.create_task(take_back(runtime, undone.record))
        await bank.entered.wait()
        beside = await pay(runtime, "order-2")
        bank.gate.set()
        assert (await work).ok
        assert (beside.status, sum(bank.moved)) == (Status.UNKNOWN, 100)
        await intact(runtime)


async def test_a_change_that_fails_to_come_back_can_be_made_again(store_url: str) -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(retitle(shelf, [], once_per="ever"), url=store_url) as runtime:
        made = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", call_id="1")
        undone = await take_back(runtime, made.record)
        await runtime.operations.halt("tool:undo.shelf")
        assert (await take_back(runtime, undone.record)).status is Status.DENIED
        await runtime.operations.unhalt("tool:undo.shelf")
        (step,) = await runtime.operations.undo_plan(record=expect(undone.record))
        shelf.items["a"] = {"title": "by hand"}
        call = Call("late", step.tool, step.arguments, "os:boss", "os:boss", undoes=step.claim.key)
        assert (await runtime._engine.run(call)).status is Status.FAILED
        assert await statuses(runtime) == ["undone", "done", "failed"]
        await intact(runtime)
        again = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", call_id="2")
        assert (again.ok, shelf.items["a"]) == (True, {"title": "new"})
        await intact(runtime)


async def refund(runtime: Runtime, call_id: str) -> Outcome:
    return await runtime.call("refund", {"n": 100}, actor="bob", call_id=call_id)


async def test_what_is_refunded_once_ever_by_hand_is_not_refunded_by_an_undo(store_url: str) -> None:
    bank, shelf = Bank("ever"), Shelf(a={"title": "Old"})
    async with running(*bank.tools(), retitle(shelf, []), url=store_url) as runtime:
        named = await runtime.call("title", {"id": "a", "title": "New"}, actor="ann", run="night", call_id="t")
        made = await pay(runtime, "order-1")
        by_hand = await refund(runtime, "by hand")
        assert (named.ok, made.ok, by_hand.ok) == (True, True, True)
        paid, written = await runtime.operations.undo(run="night")
        assert (paid[1], f"(record {by_hand.record})" in paid[0].obstacle) == (None, True), paid[0].obstacle
        assert (expect(written[1]).ok, shelf.items["a"]) == (True, {"title": "Old"}), "it waits for nothing"
        assert bank.moved == [100, -100]
        late = await runtime._engine.run(
            Call("late", "refund", {"n": 100}, "os:boss", "os:boss", turn="u", undoes=paid[0].claim.key)
        )
        assert (late.status, error(late), bank.moved) == (Status.FAILED, "moved", [100, -100])
        await intact(runtime)


async def test_what_an_undo_has_refunded_once_ever_is_not_refunded_by_hand(store_url: str) -> None:
    bank = Bank("ever")
    async with running(*bank.tools(), url=store_url) as runtime:
        made = await pay(runtime, "order-1")
        undone = await take_back(runtime, made.record)
        by_hand = await refund(runtime, "by hand")
        assert (by_hand.ok, by_hand.repeats, bank.moved) == (True, undone.record, [100, -100])
        assert await runtime.operations.undo(record=expect(made.record)) == ()
        assert (await pay(runtime, "order-2")).ok
        ((step, outcome),) = await runtime.operations.undo(run="night")
        assert (outcome, "once ever" in step.obstacle, bank.moved) == (None, True, [100, -100, 100])
        await intact(runtime)


@pytest.mark.parametrize("first", ["an undo", "a person"])
async def test_a_refund_once_ever_that_is_on_its_way_is_not_made_beside_it(store_url: str, first: str) -> None:
    bank, planning = Bank("ever"), Planning()
    async with running(*bank.tools(), url=store_url, faults=planning) as runtime:
        made = await pay(runtime, "order-1")
        (step,) = await runtime.operations.undo_plan(record=expect(made.record))
        back = Call("back", "refund", step.arguments, "os:boss", "os:boss", turn="u", undoes=step.claim.key)
        bank.ends = ["held"]
        calls = [runtime._engine.run(back), refund(runtime, "by hand")]
        one, other = calls if first == "an undo" else reversed(calls)
        begun = asyncio.create_task(one)
        await bank.entered.wait()
        waits = asyncio.create_task(other)
        await asyncio.sleep(0)
        bank.gate.set()
        ended, late = await begun, await waits
        assert (ended.ok, bank.moved) == (True, [100, -100])
        if first == "an undo":
            assert (late.ok, late.repeats) == (True, ended.record)
        else:
            assert (late.status, error(late)) == (Status.FAILED, "moved")
        assert (await statuses(runtime))[0] == ("undone" if first == "an undo" else "done")
        await intact(runtime)


async def test_a_refund_once_ever_that_failed_or_was_taken_back_is_made_by_whoever_comes_next(store_url: str) -> None:
    bank = Bank("ever")
    async with running(*bank.tools(), url=store_url) as runtime:
        made = await pay(runtime, "order-1")
        bank.ends = ["refused", "refused"]
        assert (await take_back(runtime, made.record)).status is Status.FAILED
        assert (await refund(runtime, "by hand")).status is Status.FAILED
        assert (await refund(runtime, "again")).ok
        ((step, _none),) = await runtime.operations.undo(record=expect(made.record))
        assert ("once ever" in step.obstacle, bank.moved) == (True, [100, -100])
        await intact(runtime)


async def test_a_refund_by_hand_that_was_taken_back_leaves_the_undo_of_its_payment_free(store_url: str) -> None:
    bank = Bank("ever")

    @tool(effect="send")
    async def recall(n: int) -> int:
        """Take a refund back."""
        return await bank.move(n)

    @tool(effect="send", name="refund", once_per="ever", compensate=Compensation("recall", lambda a, _v: {"n": a["n"]}))
    async def recalled(n: int) -> int:
        """Refund."""
        return await bank.move(-n)

    async with running(bank.tools()[0], recalled, recall, url=store_url) as runtime:
        made = await pay(runtime, "order-1")
        await take_back(runtime, (await refund(runtime, "by hand")).record)
        undone = await take_back(runtime, made.record)
        assert (undone.ok, bank.moved) == (True, [100, -100, 100, -100])
        await take_back(runtime, undone.record)
        assert (await refund(runtime, "anew")).ok
        same = await pay(runtime, "order-1")
        assert (same.ok, same.undone, sum(bank.moved)) == (True, False, 0)
        ((step, _none),) = await runtime.operations.undo(record=expect(made.record))
        assert "was made again since" in step.obstacle
        await intact(runtime)


async def test_a_write_that_stands_again_is_answered_and_not_made_twice(store_url: str) -> None:
    shelf, made = Shelf(a={"title": "old"}), list[Any]()
    async with running(retitle(shelf, made, once_per="ever"), url=store_url) as runtime:
        first = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", call_id="1")
        await take_back(runtime, (await take_back(runtime, first.record)).record)
        same = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", call_id="1")
        other = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", call_id="2")
        assert (same.undone, same.repeats, other.repeats, len(made)) == (False, first.record, first.record, 1)
        await runtime.call("title", {"id": "a", "title": "else"}, actor="ann", call_id="3")
        again = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", call_id="4")
        assert (again.repeats, len(made)) == (None, 3), "as something else was there in between"
        await intact(runtime)


async def test_a_payment_that_came_back_while_the_same_one_waited_is_not_made_beside_it(store_url: str) -> None:
    bank, planning = Bank(), Planning()
    async with running(*bank.tools(key="{n}", locks=lambda _a: ("desk",)), url=store_url, faults=planning) as runtime:
        made = await pay(runtime, "order-1")
        undone = await take_back(runtime, made.record)
        async with runtime.lock("pay/desk", wait_s=5) as locks:
            late = await come_late(planning, pay(runtime, "order-2"))
            assert (await take_back(runtime, undone.record, locks=locks)).ok
        outcome = await late
        assert (outcome.ok, outcome.repeats, sum(bank.moved)) == (True, made.record, 100)
        await intact(runtime)


@pytest.mark.parametrize("others", [False, True])
async def test_a_write_that_came_back_while_the_same_one_waited_is_made_only_over_somebody_elses(
    store_url: str, others: bool
) -> None:
    shelf, made, planning = Shelf(a={"title": "old"}), list[Any](), Planning()
    title = retitle(shelf, made, once_per="ever", locks=lambda _a: ("desk",))
    new = {"id": "a", "title": "new"}
    async with running(title, url=store_url, faults=planning) as runtime:
        first = await runtime.call("title", new, actor="ann", call_id="1")
        undone = await take_back(runtime, first.record)
        async with runtime.lock("shelf/desk", wait_s=5) as locks:
            late = await come_late(planning, runtime.call("title", new, actor="ben", call_id="2"))
            assert (await take_back(runtime, undone.record, locks=locks)).ok
            if others:
                await runtime.call("title", {"id": "a", "title": "x"}, actor="cy", call_id="3", locks=locks)
        outcome = await late
        assert (outcome.ok, outcome.repeats) == (True, None if others else first.record)
        assert ([title for _id, title, _context in made], shelf.items["a"]) == (
            ["new", "x", "new"] if others else ["new"],
            {"title": "new"},
        )
        await intact(runtime)


async def test_what_came_back_after_somebody_elses_change_went_is_not_made_again_by_whoever_saw_that(
    store_url: str,
) -> None:
    shelf, made, planning = Shelf(a={"title": "old"}), list[Any](), Planning()
    title = retitle(shelf, made, once_per="ever", locks=lambda _a: ("desk",))
    new = {"id": "a", "title": "new"}
    async with running(title, url=store_url, faults=planning) as runtime:
        first = await runtime.call("title", new, actor="ann", call_id="1")
        other = await runtime.call("title", {"id": "a", "title": "x"}, actor="cy", call_id="2")
        async with runtime.lock("shelf/desk", wait_s=5) as locks:
            late = await come_late(planning, runtime.call("title", new, actor="ben", call_id="3"))
            assert (await take_back(runtime, other.record, locks=locks)).ok
            undone = await take_back(runtime, first.record, locks=locks)
            assert (await take_back(runtime, undone.record, locks=locks)).ok
        outcome = await late
        assert (outcome.ok, outcome.repeats, len(made)) == (True, first.record, 2)
        await intact(runtime)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("late", [False, True])
async def test_what_came_back_on_one_key_is_made_again_where_somebody_changed_the_other(
    store_url: str, whole: bool, late: bool
) -> None:
    """The undo and its undo touch `a` alone, as the first change found `b` as it wanted it; `b` is somebody else's."""
    shelf, planning = WholeShelf(b={"v": 1}), Planning()
    both = {"ids": ["a", "b"], "v": 1}
    async with running(*put_on(shelf), url=store_url, faults=planning) as runtime:
        first = await runtime.call("put", both, actor="ann", call_id="1")
        other = {"name": "b", "v": 2} if whole else {"ids": ["b"], "v": 2}
        assert (await runtime.call("sweep" if whole else "put", other, actor="ben", call_id="2")).ok
        async with runtime.lock("shelf/desk", wait_s=5) as locks:
            again = runtime.call("put", both, actor="ann", call_id="3")
            work = await come_late(planning, again) if late else None
            undone = await take_back(runtime, first.record, locks=locks)
            assert (await take_back(runtime, undone.record, locks=locks)).ok
            assert shelf.items == {"a": {"v": 1}, "b": {"v": 2}}
        outcome = await (again if work is None else work)
        assert (outcome.ok, outcome.repeats, shelf.items) == (True, None, {"a": {"v": 1}, "b": {"v": 1}})
        await intact(runtime)


async def test_a_write_is_not_made_twice_while_what_made_it_again_is_about_to_be_taken_back(store_url: str) -> None:
    """That third undo is refused: the write has stood all the time."""
    shelf, made = HeldShelf(a={"title": "old"}), list[Any]()
    new = {"id": "a", "title": "new"}
    async with running(retitle(shelf, made, once_per="ever"), url=store_url) as runtime:
        first = await runtime.call("title", new, actor="ann", call_id="1")
        again = await take_back(runtime, (await take_back(runtime, first.record)).record)
        shelf.holds = True
        third = asyncio.create_task(take_back(runtime, again.record))
        await shelf.entered.wait()
        late = await runtime.call("title", new, actor="ben", call_id="2")
        shelf.gate.set()
        assert (await third).status is Status.FAILED
        assert (late.ok, late.repeats, len(made), shelf.items["a"]) == (True, first.record, 1, {"title": "new"})
        await intact(runtime)
        shelf.holds = False
        assert (await take_back(runtime, first.record)).ok
        assert shelf.items["a"] == {"title": "old"}
        await intact(runtime)


async def test_what_stands_again_is_not_taken_away_by_an_undo_of_what_was_there_before(store_url: str) -> None:
    shelf = Shelf()
    async with running(retitle(shelf, []), url=store_url) as runtime:
        first = await runtime.call("title", {"id": "k", "title": "A"}, actor="ann", call_id="1")
        shelf.items["k"] = {"title": "C"}
        second = await runtime.call("title", {"id": "k", "title": "A"}, actor="ben", call_id="2")
        again = await take_back(runtime, (await take_back(runtime, second.record)).record)
        ((step, outcome),) = await runtime.operations.undo(record=expect(first.record))
        assert (outcome, f"(record {again.record})" in step.obstacle) == (None, True)
        assert shelf.items == {"k": {"title": "A"}}
        done = await runtime.operations.undo(key="shelf/k")
        assert [step.record for step, _outcome in done] == [again.record, first.record]
        assert [outcome is not None and outcome.ok for _step, outcome in done] == [True, False]
        assert shelf.items == {"k": {"title": "C"}}, "the person's"
        await intact(runtime)


async def test_undos_of_one_key_are_undone_in_turn_the_newest_first(store_url: str) -> None:
    shelf = Shelf()
    async with running(retitle(shelf, []), url=store_url) as runtime:
        for title in ("A", "B", "C"):
            await runtime.call("title", {"id": "k", "title": title}, actor="ann", run="night", call_id=title)
        undos = [expect(outcome) for _step, outcome in await runtime.operations.undo(run="night")]
        seen = []
        for undo in reversed(undos):
            assert (await take_back(runtime, undo.record)).ok
            seen.append(shelf.items["k"]["title"])
        assert seen == ["A", "B", "C"]
        await intact(runtime)


async def test_an_undo_is_left_alone_where_what_came_after_it_stands(store_url: str) -> None:
    """Also where that is a change which had been taken back before it, and stands again since."""
    shelf = Shelf(k={"title": "old"})
    async with running(retitle(shelf, []), url=store_url) as runtime:
        first = await runtime.call("title", {"id": "k", "title": "A"}, actor="ann", call_id="1")
        undone = await take_back(runtime, first.record)
        second = await runtime.call("title", {"id": "k", "title": "A"}, actor="ann", call_id="2")
        other = await take_back(runtime, second.record)
        again = await take_back(runtime, undone.record)
        ((step, outcome),) = await runtime.operations.undo(record=expect(other.record))
        assert (outcome, f"(record {again.record})" in step.obstacle) == (None, True)
        assert shelf.items == {"k": {"title": "A"}}
        await intact(runtime)


async def test_neither_an_undo_nor_its_undo_makes_a_key_rest_anew(store_url: str) -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(retitle(shelf, []), policy=COOLING, url=store_url) as runtime:
        made = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", run="r", call_id="1")
        (before,) = [lease for lease in await runtime.store.leases(("shelf/a",)) if lease.key == "shelf/a"]
        await take_back(runtime, (await take_back(runtime, made.record)).record)
        (after,) = [lease for lease in await runtime.store.leases(("shelf/a",)) if lease.key == "shelf/a"]
        assert (after.changed_us, after.changed_run) == (before.changed_us, "r")
        other = await runtime.call("title", {"id": "a", "title": "else"}, actor="ann", run="s", call_id="2")
        own = await runtime.call("title", {"id": "a", "title": "own"}, actor="ann", run="r", call_id="3")
        assert (error(other), own.ok) == ("cooldown", True)
        await intact(runtime)


class LosingShelf(Shelf):
    """One that puts things back, and whose answer is lost then: nobody can look for a while."""

    loses = False

    async def restore(self, key: str, state: Any) -> None:
        await super().restore(key, state)
        if self.loses:
            self.broken = True
            raise InDoubt("no answer came")


async def test_an_undo_that_was_settled_later_makes_no_key_rest_anew_either(store_url: str) -> None:
    shelf, clock = LosingShelf(a={"title": "old"}), ManualClock()
    async with running(retitle(shelf, []), policy=COOLING, url=store_url, clock=clock) as runtime:
        made = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", run="r", call_id="1")
        clock.advance(3_000.0)
        shelf.loses = True
        assert (await take_back(runtime, made.record)).status is Status.UNKNOWN
        shelf.loses = shelf.broken = False
        assert [found.state for found in await runtime.operations.recover()] == ["done"]
        await intact(runtime)
        clock.advance(700.0)
        other = await runtime.call("title", {"id": "a", "title": "else"}, actor="ann", run="s", call_id="2")
        assert (other.status, shelf.items["a"]) == (Status.OK, {"title": "else"}), other.summary
        await intact(runtime)


async def test_a_claim_that_is_set_back_in_a_chain_of_undos_is_found(durable_url: str, bank: Bank, edit: Edit) -> None:  # noqa: F811
    async with running(*bank.tools(), url=durable_url) as runtime:
        made = await pay(runtime, "order-1")
        undone = await take_back(runtime, made.record)
        await take_back(runtime, undone.record)
        for number, was, states in (
            (made.record, "done", ("undone", "returning")),
            (undone.record, "undone", ("done",)),
        ):
            (claim,) = await runtime.store.claims(ChangeFilter(record=expect(number)))
            for state in states:
                edit("UPDATE claims SET state = ? WHERE name = ?", (state, claim.name))
                (problem,) = (await verify(runtime.store)).problems
                assert f"is {state} in the store, and {was} in the ledger" in problem
            edit("UPDATE claims SET state = ? WHERE name = ?", (was, claim.name))
        await intact(runtime)


@pytest.mark.parametrize("size", [600_000, 3_000_000])
async def test_what_could_be_changed_can_be_taken_back_however_large_it_is(size: int, store_url: str) -> None:
    """A change is let in by its arguments; the state before it has no limit of a model's."""
    deep: Any = "end"
    for _level in range(29):
        deep = [deep]
    before = {"title": "old", "text": "x" * size, "deep": deep}
    shelf = Shelf(a=dict(before))
    async with running(retitle(shelf, []), url=store_url) as runtime:
        made = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", call_id="1")
        assert made.ok, made.problem
        assert shelf.items["a"] == {**before, "title": "new"}
        [(_step, undone)] = await runtime.operations.undo(record=made.record)
    assert undone is not None
    assert undone.ok, undone.problem
    assert shelf.items == {"a": before}


def test_no_other_tool_goes_by_the_name_of_what_takes_changes_back() -> None:
    @tool(effect="read", name="undo.shelf")
    async def put_back(states: dict[str, int]) -> str:
        """Not what it is called."""
        return str(states)

    with pytest.raises(ContractError, match="takes changes back; give the tool another name"):
        Runtime.open("memory://", policy={"version": 1}, tools=[put_back])
