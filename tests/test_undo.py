"""Undo: from before-images, last change first, never over what somebody else wrote; and replay, and recovery."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from interlock import Context, ContractError, Runtime, Status, tool
from interlock.audit import verify
from interlock.config import Settings
from interlock.errors import InDoubt, NotAllowed, NotFound, NothingLanded, Permanent, TooLarge, Unavailable
from interlock.operations import Change
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock.resources import Documents
from interlock.state import ChangeFilter, ClaimState
from interlock.stores import MemoryStore
from interlock.testing import ManualClock
from interlock.tools import Compensation, Limits, RetryRule
from interlock.values import Call
from tests.conftest import expect
from tests.test_changes import OPEN, Made, Shelf, error, keyed_mailing, mailing, retitle, running


async def write(runtime: Runtime, key: str, title: str, **details: Any) -> None:
    assert (await runtime.call("title", {"id": key, "title": title}, actor="ann", **details)).ok


async def test_a_run_is_taken_back_in_reverse_order(store_url: str) -> None:
    shelf = Shelf(a={"title": "first", "pages": 3})
    async with running(retitle(shelf, []), url=store_url) as runtime:
        for n, key in enumerate(["a", "b", "a", "a"]):
            await write(runtime, key, f"t{n}", run="r", turn=f"turn{n}")
        plan = await runtime.operations.undo_plan(run="r")
        assert shelf.items["a"]["title"] == "t3"
        done = await runtime.operations.undo(run="r", by="user:boss")
        nothing = await runtime.operations.undo_plan(run="r")
        states = [claim.state for claim in await runtime.store.claims(ChangeFilter(run="r"))]
    assert [step.keys for step in plan] == [("shelf/a",), ("shelf/a",), ("shelf/b",), ("shelf/a",)]
    assert '-  "title": "t3"' in (plan[0].diff or "")
    assert '+  "title": "t2"' in (plan[0].diff or "")
    assert all(outcome is not None and outcome.ok for _step, outcome in done)
    assert shelf.items == {"a": {"title": "first", "pages": 3}}
    assert (nothing, states) == ([], [ClaimState.UNDONE] * 4)


async def test_an_undo_is_recorded_and_can_be_undone() -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(retitle(shelf, [])) as runtime:
        await write(runtime, "a", "new", run="r")
        ((_step, undone),) = await runtime.operations.undo(run="r")
        assert undone is not None
        assert shelf.items["a"] == {"title": "old"}
        ((step, again),) = await runtime.operations.undo(record=undone.record)
        kinds = [(record.kind, record.tool) async for record in runtime.store.records(Query())]
    assert step.claim.tool == "undo.shelf"
    assert again is not None
    assert again.ok
    assert shelf.items["a"] == {"title": "new"}
    assert kinds == [("intent", "title"), ("call", "title")] + [("intent", "undo.shelf"), ("call", "undo.shelf")] * 2


async def test_what_somebody_changed_since_is_left_alone_and_force_asks_a_person() -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(retitle(shelf, [])) as runtime:
        await write(runtime, "a", "new", run="r")
        shelf.items["a"] = {"title": "by hand"}
        ((step, outcome),) = await runtime.operations.undo(run="r")
        assert (step.tool, outcome) == ("", None)
        assert "has changed since" in step.obstacle
        ((_step, waiting),) = await runtime.operations.undo(run="r", force=True)
        assert waiting is not None
        assert waiting.status is Status.PARKED
        assert shelf.items["a"] == {"title": "by hand"}
        assert waiting.ticket is not None
        await runtime.operations.decide(waiting.ticket, approve=True, by="user:boss")
        assert (await runtime.operations.resume(waiting.ticket)).ok
    assert shelf.items["a"] == {"title": "old"}


async def test_a_call_that_is_asked_for_again_says_that_its_change_was_undone_since(store_url: str) -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(retitle(shelf, []), url=store_url) as runtime:
        given: dict[str, Any] = {"actor": "ann", "call_id": "order-17"}
        made = await runtime.call("title", {"id": "a", "title": "new"}, **given)
        again = await runtime.call("title", {"id": "a", "title": "new"}, **given)
        assert (made.ok, made.undone, again.ok, again.undone) == (True, False, True, False)
        [(_step, undone)] = await runtime.operations.undo(record=expect(made.record))
        assert expect(undone).ok
        later = await runtime.call("title", {"id": "a", "title": "new"}, **given)
    assert (later.ok, later.undone, later.value) == (True, True, made.value)
    assert later.summary.endswith("; it was undone since")
    assert shelf.items["a"] == {"title": "old"}


async def test_a_change_between_plan_and_undo_is_not_overwritten() -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(retitle(shelf, [])) as runtime:
        await write(runtime, "a", "new", run="r")
        (step,) = await runtime.operations.undo_plan(run="r")
        shelf.items["a"] = {"title": "by hand"}
        call = Call("late", step.tool, step.arguments, "os:boss", "os:boss", undoes=f"{step.claim.name}.1")
        late = await runtime._engine.run(call)
        by_a_model = await runtime.call(step.tool, step.arguments, actor="ann")
    assert (by_a_model.status, "is for undo alone" in by_a_model.summary) == (Status.DENIED, True)
    assert step.tool not in [item.name for item in runtime.tools()]
    assert (late.status, error(late)) == (Status.FAILED, "conflict")
    assert shelf.items["a"] == {"title": "by hand"}


async def test_a_send_is_listed_with_its_compensation_or_without() -> None:
    made: list[str] = []
    cancelled: list[str] = []

    @tool(effect="send")
    async def cancel(order: str) -> str:
        cancelled.append(order)
        return "cancelled"

    @tool(effect="send", compensate=Compensation("cancel", lambda _arguments, value: {"order": value}))
    async def order(what: str) -> str:
        made.append(what)
        return f"order-{what}"

    async with running(order, cancel, mailing(made)) as runtime:
        await runtime.call("order", {"what": "book"}, actor="ann", run="r")
        await runtime.call("mail", {"to": "x"}, actor="ann", run="r")
        done = await runtime.operations.undo(run="r")
        left = await runtime.operations.undo_plan(run="r")
    assert "a send cannot be taken back" in done[0][0].obstacle
    assert done[1][1] is not None
    assert (done[1][1].value, cancelled) == ("cancelled", ["order-book"])
    assert [step.claim.tool for step in left] == ["mail", "cancel"] or [step.claim.tool for step in left] == ["mail"]


async def test_a_preview_judges_the_arguments_of_a_compensation_as_the_undo_will() -> None:
    lost, refunded = [False, True, True], list[str]()

    async def probe(_arguments: Any, _context: Any) -> bool:
        return True

    @tool(effect="send")
    async def refund(refund_id: str) -> str:
        refunded.append(refund_id)
        return "refunded"

    @tool(
        effect="send",
        probe=probe,
        compensate=Compensation("refund", lambda _arguments, value: {"refund_id": value}),
        retry=RetryRule(max_attempts=1),
    )
    async def pay(order: int) -> str:
        if lost[order]:
            raise InDoubt("the line went dead")
        return f"payment-{order}"

    async with running(pay, refund) as runtime:
        made = [await runtime.call("pay", {"order": order}, actor="ann", run="r") for order in range(3)]
        assert [(outcome.ok, outcome.value) for outcome in made] == [(True, "payment-0"), (True, None), (True, None)]
        plan = await runtime.operations.undo_plan(run="r")
        done = await runtime.operations.undo(run="r")
    assert [step.tool for step in plan] == ["", "", "refund"]
    assert "'refund' would be refused: refund_id: " in plan[0].obstacle
    assert plan[0].obstacle.endswith("was handed None")
    assert [(step.obstacle, outcome and outcome.ok) for step, outcome in done] == [
        (plan[0].obstacle, None),
        (plan[1].obstacle, None),
        ("", True),
    ]
    assert refunded == ["payment-0"]


async def test_a_doubt_that_the_probe_settles_has_the_reason_of_what_it_became() -> None:
    async def probe(_arguments: Any, _context: Any) -> bool:
        return False

    async with running(mailing([], InDoubt("HTTP 500"), probe=probe)) as runtime:
        outcome = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
    assert (outcome.status, error(outcome)) == (Status.FAILED, "nothing_landed")
    assert (expect(outcome.problem).message, expect(outcome.problem).hints) == (
        "it did not land (its probe says so): HTTP 500",
        (),
    )


async def test_what_was_taken_back_is_not_made_again_by_an_undo_that_it_falls_into(store_url: str) -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(retitle(shelf, []), url=store_url) as runtime:
        await write(runtime, "a", "new", run="r")
        await runtime.operations.undo(run="r")
        for _ in range(2):
            assert await runtime.operations.undo(since_us=0) == ()
            assert await runtime.operations.undo(key="shelf/a") == ()
    assert shelf.items["a"] == {"title": "old"}


async def test_an_undo_by_key_turn_time_and_record() -> None:
    clock = ManualClock()
    shelf = Shelf()
    async with running(retitle(shelf, []), clock=clock) as runtime:
        await write(runtime, "a", "1", turn="t1")
        clock.advance(60)
        since = clock.now_us()
        await write(runtime, "b", "2", turn="t2")
        await write(runtime, "c", "3", turn="t2")
        assert [s.keys for s in await runtime.operations.undo_plan(key="shelf/a")] == [("shelf/a",)]
        assert [s.keys for s in await runtime.operations.undo_plan(turn="t2")] == [("shelf/c",), ("shelf/b",)]
        assert [s.keys for s in await runtime.operations.undo_plan(since_us=since)] == [("shelf/c",), ("shelf/b",)]
        assert [s.keys for s in await runtime.operations.undo_plan(record=4)] == [("shelf/b",)]
        assert list(await runtime.operations.undo_plan(record=99)) == []


async def test_an_undo_of_a_repeat_or_of_a_call_that_waited_takes_back_what_was_made(store_url: str) -> None:
    shelf = Shelf()
    policy = OPEN + "[[rule]]\nid = 'ask'\ntools = ['title']\ndecision = 'review'\nwhen = 'args.id == \"b\"'\n"
    async with running(retitle(shelf, []), policy=policy, url=store_url) as runtime:
        first = await runtime.call("title", {"id": "a", "title": "A"}, actor="ann", call_id="1")
        same = await runtime.call("title", {"id": "a", "title": "A"}, actor="ann", call_id="1")
        third = await runtime.call("title", {"id": "a", "title": "A"}, actor="ann", call_id="1")
        waits = await runtime.call("title", {"id": "b", "title": "B"}, actor="ann", call_id="2")
        assert await runtime.operations.undo(record=expect(waits.record)) == ()
        await runtime.operations.decide(expect(waits.ticket), approve=True, by="user:boss")
        made = await runtime.operations.resume(expect(waits.ticket))
        assert set(shelf.items) == {"a", "b"}
        (step,) = await runtime.operations.undo_plan(record=expect(third.record))
        assert (step.record, same.repeats) == (first.record, first.record)
        ((_step, back),) = await runtime.operations.undo(record=expect(same.record))
        ((step, other),) = await runtime.operations.undo(record=expect(waits.record))
        assert (step.record, expect(back).ok, expect(other).ok, shelf.items) == (made.record, True, True, {})
        assert await runtime.operations.undo(record=expect(third.record)) == ()


async def test_a_before_image_that_is_gone_or_damaged_cannot_be_put_back() -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(retitle(shelf, [])) as runtime:
        await write(runtime, "a", "new", run="r")
        assert isinstance(runtime.store, MemoryStore)
        payloads = runtime.store._payloads
        whole = payloads[1]
        forged = whole.replace(b'"old"', b'"evil"')
        assert forged != whole
        for damaged in (b"{not json", b'{"before": 5}', b"[]", forged):
            payloads[1] = damaged
            (step,) = await runtime.operations.undo_plan(run="r")
            assert "cannot be read" in step.obstacle
        del payloads[1]
        (step,) = await runtime.operations.undo_plan(run="r")
        assert "have been deleted" in step.obstacle
        payloads[1] = whole
        shelf.broken = True
        (step,) = await runtime.operations.undo_plan(run="r")
        assert "cannot be read" in step.obstacle


async def test_a_restore_that_does_not_read_back_is_in_doubt() -> None:
    class Forgetful(Shelf):
        async def restore(self, key: str, state: Any) -> None:
            self.items[key] = {"title": "something else"}

    shelf = Forgetful(a={"title": "old"})
    async with running(retitle(shelf, [])) as runtime:
        await write(runtime, "a", "new", run="r")
        ((_step, outcome),) = await runtime.operations.undo(run="r")
        claims = await runtime.store.claims(ChangeFilter(run="r"))
    assert outcome is not None
    assert outcome.status is Status.UNKNOWN
    assert claims[0].state is ClaimState.DONE


async def test_replay_makes_what_failed_and_what_was_undone(store_url: str) -> None:
    shelf = Shelf()
    made: list[Made] = []
    sent: list[str] = []
    once = RetryRule(max_attempts=1)
    async with running(
        retitle(shelf, made), mailing(sent, NothingLanded("down"), retry=once), url=store_url
    ) as runtime:
        await write(runtime, "a", "new", run="r", turn="t", call_id="c1")
        failed = await runtime.call("mail", {"to": "x"}, actor="ann", run="r", turn="t", call_id="c2")
        await write(runtime, "b", "stays", run="r", turn="t", call_id="c3")
        await runtime.operations.undo(key="shelf/a")
        plan = await runtime.operations.replay_plan("r")
        done = await runtime.operations.replay("r")
        again = await runtime.operations.replay("r")
    assert failed.status is Status.FAILED
    assert [step.claim.tool for step in plan] == ["title", "mail"]
    assert [outcome.status for _step, outcome in done if outcome is not None] == [Status.OK, Status.OK]
    keys = [expect(context.idempotency_key) for id, _title, context in made if id == "a"]
    assert [key.rpartition(".")[2] for key in keys] == ["1", "2"]
    assert (len(sent), list(again)) == (2, [])
    assert shelf.items == {"a": {"title": "new"}, "b": {"title": "stays"}}


# Recovery


@pytest.mark.parametrize("says", [True, False, None])
async def test_recovery_asks_the_probe_or_a_person(store_url: str, says: bool | None) -> None:
    made: list[str] = []
    answers: list[bool | None] = [None, says]

    async def probe(_arguments: Any, _context: Any) -> bool | None:
        return answers.pop(0) if answers else None

    mail = mailing(made, InDoubt("lost"), probe=probe)
    async with running(mail, url=store_url) as runtime:
        lost = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
        assert lost.status is Status.UNKNOWN
        (found,) = await runtime.operations.recover()
        again = await runtime.operations.recover()
        if says is None:
            assert (found.state, again[0].ticket) == ("asked", found.ticket)
            assert found.ticket is not None
            still = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
            assert still.status is Status.UNKNOWN
            await runtime.operations.decide(found.ticket, approve=True, by="user:boss", reason="it is in the outbox")
        else:
            assert (found.state, again) == ("done" if says else "failed", ())
        after = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
    assert after.ok
    assert made == (["x", "x"] if says is False else ["x"])


async def test_a_holder_that_may_be_alive_is_not_declared_dead_by_a_look_at_an_unfenced_resource() -> None:
    clock, shelf = ManualClock(), Shelf()
    release, entered = asyncio.Event(), asyncio.Event()

    @tool(effect="write", key="{id}", resource=shelf, simulate=lambda _s, _a: {"v": 1})
    async def put(id: str) -> str:
        entered.set()
        await release.wait()
        shelf.items[id] = {"v": 1}
        return id

    async with running(put, clock=clock, settings=Settings(lease_s=60)) as runtime:
        task = asyncio.create_task(runtime.call("put", {"id": "a"}, actor="ann", turn="t"))
        await entered.wait()
        other = Runtime.open(runtime.store, policy=parse_policy(OPEN), tools=[put], clock=clock)
        assert await other.operations.recover() == ()
        (going_on,) = await other.operations.under_way()
        assert (going_on.state, going_on.call, going_on.until_us > clock.now_us()) == ("under_way", going_on.call, True)
        clock.advance(61)
        assert await other.operations.under_way() == ()
        (found,) = await other.operations.recover()
        release.set()
        outcome = await task
        await other.operations.decide(expect(found.ticket), approve=True, by="user:boss", reason="I looked")
        again = await runtime.call("put", {"id": "a"}, actor="ann", turn="t")
    assert (found.state, "does not check fencing tokens" in found.how) == ("asked", True)
    assert (outcome.status, error(outcome)) == (Status.UNKNOWN, "lease_lost")
    assert (again.ok, shelf.items) == (True, {"a": {"v": 1}})


async def test_on_a_fenced_resource_the_late_one_is_shut_out_before_it_is_said_that_it_did_not_land(
    tmp_path: Path,
) -> None:
    clock, shelf = ManualClock(), Documents(f"sqlite:///{tmp_path / 'shelf.db'}", "shelf")
    release, entered = asyncio.Event(), asyncio.Event()

    @tool(effect="write", key="{id}", resource=shelf, simulate=lambda _s, _a: {"v": 1}, retry=RetryRule(max_attempts=1))
    async def put(id: str, context: Context) -> str:
        entered.set()
        await release.wait()
        await shelf.write(id, {"v": 1}, context)
        return id

    async with running(put, clock=clock, settings=Settings(lease_s=60)) as runtime:
        task = asyncio.create_task(runtime.call("put", {"id": "a"}, actor="ann", turn="t"))
        await entered.wait()
        other = Runtime.open(runtime.store, policy=parse_policy(OPEN), tools=[put], clock=clock)
        clock.advance(61)
        (found,) = await other.operations.recover()
        release.set()
        late = await task
        state = await shelf.read_state("a")
        again = await runtime.call("put", {"id": "a"}, actor="ann", turn="t")
    assert (found.state, found.how) == ("failed", "the resource shows it")
    assert (late.status, state) == (Status.UNKNOWN, None)
    assert again.ok
    await shelf.close()


async def test_what_is_unknown_on_a_fenced_resource_is_settled_at_once(tmp_path: Path) -> None:
    shelf = Documents(f"sqlite:///{tmp_path / 'shelf.db'}", "shelf")

    @tool(effect="write", key="{id}", resource=shelf, simulate=lambda _s, _a: {"v": 1})
    async def put(id: str, context: Context) -> str:
        raise RuntimeError("lost")

    async with running(put) as runtime:
        assert (await runtime.call("put", {"id": "a"}, actor="ann", turn="t")).status is Status.UNKNOWN
        (found,) = await runtime.operations.recover()
    assert found.state == "failed"
    await shelf.close()


async def test_generations_of_one_change_are_undone_one_by_one(store_url: str) -> None:
    shelf = Shelf(a={"title": "first"})
    async with running(retitle(shelf, []), url=store_url) as runtime:
        for title in ("x", "y", "x"):
            await write(runtime, "a", title, turn="t")
        done = await runtime.operations.undo(turn="t")
        left = await runtime.operations.undo_plan(turn="t")
    assert [outcome.ok for _step, outcome in done if outcome is not None] == [True] * 3
    assert (shelf.items, list(left)) == ({"a": {"title": "first"}}, [])


async def test_a_compensation_that_failed_is_not_part_of_a_replay() -> None:
    @tool(effect="send", retry=RetryRule(max_attempts=1))
    async def refund(order: str) -> str:
        raise Permanent("the bank is closed")

    @tool(effect="send", compensate=Compensation("refund", lambda arguments, _value: {"order": arguments["order"]}))
    async def pay(order: str) -> str:
        return "paid"

    async with running(pay, refund) as runtime:
        await runtime.call("pay", {"order": "1"}, actor="ann", run="r")
        ((_step, failed),) = await runtime.operations.undo(run="r")
        claims = await runtime.store.claims(ChangeFilter(run="r"))
        plan = await runtime.operations.replay_plan("r")
    assert expect(failed).status is Status.FAILED
    assert {(claim.tool, claim.state) for claim in claims} >= {("pay", ClaimState.DONE)}
    assert [step.claim.tool for step in plan] == []


async def test_a_tool_may_be_called_lock_and_what_it_changed_is_still_undone() -> None:
    shelf = Shelf(a={"title": "old"})
    made = retitle(shelf, [], name="lock")
    async with running(made) as runtime:
        for title in ("one", "two"):
            await runtime.call("lock", {"id": "a", "title": title}, actor="ann", run="r", call_id=title)
        async with runtime.lock("shelf/b"):
            await runtime.operations.recover()
        undone = await runtime.operations.undo(run="r")
    assert [expect(outcome).ok for _step, outcome in undone] == [True, True]
    assert shelf.items["a"] == {"title": "old"}


async def test_a_compensation_is_made_once_however_often_it_is_asked_for() -> None:
    refunds: list[str] = []

    @tool(effect="send")
    async def refund(order: str) -> str:
        refunds.append(order)
        await asyncio.sleep(0.01)
        return "refunded"

    @tool(effect="send", compensate=Compensation("refund", lambda arguments, _value: {"order": arguments["order"]}))
    async def pay(order: str) -> str:
        return "paid"

    async with running(pay, refund) as runtime:
        await runtime.call("pay", {"order": "1"}, actor="ann", turn="t")
        await asyncio.gather(*(runtime.operations.undo(turn="t") for _ in range(4)))
    assert refunds == ["1"]


async def test_an_approved_undo_or_replay_closes_what_it_took_back() -> None:
    shelf = Shelf()
    ask = OPEN + '[[rule]]\nid = "ask"\ntools = ["undo.*", "title"]\ndecision = "review"\nwhen = "actor != \'ann\'"\n'
    async with running(retitle(shelf, []), policy=ask) as runtime:
        await write(runtime, "a", "new", turn="t", run="r", call_id="c1")
        ((_step, waiting),) = await runtime.operations.undo(turn="t", by="user:eve")
        assert waiting is not None
        assert waiting.ticket is not None
        await runtime.operations.decide(waiting.ticket, approve=True, by="user:boss")
        assert (await runtime.operations.resume(waiting.ticket)).ok
        (claim,) = await runtime.store.claims(ChangeFilter(turn="t"))
        assert (claim.state, shelf.items) == (ClaimState.UNDONE, {})
        ((_step, replayed),) = await runtime.operations.replay("r")
    assert replayed is not None
    assert (replayed.ok, shelf.items) == (True, {"a": {"title": "new"}})


async def test_several_keys_are_put_back_together_or_the_rest_is_in_doubt() -> None:
    class Stubborn(Shelf):
        fails = 1

        async def restore(self, key: str, state: Any) -> None:
            if key == "b" and self.fails:
                self.fails -= 1
                raise Unavailable("not now")
            await super().restore(key, state)

    shelf = Stubborn(a={"n": 0}, b={"n": 0})

    @tool(effect="write", key=lambda a: ("a", "b"), resource=shelf, simulate=lambda s, _a: {"n": s["n"] + 1})
    async def both() -> int:
        for key in ("a", "b"):
            shelf.items[key] = {"n": 1}
        return 1

    clock = ManualClock()
    async with running(both, clock=clock) as runtime:
        assert (await runtime.call("both", {}, actor="ann", turn="t")).ok
        ((_step, half),) = await runtime.operations.undo(turn="t")
        assert half is not None
        assert half.status is Status.UNKNOWN
        clock.advance(120)
        assert [found.state for found in await runtime.operations.recover()] == ["asked"]
    assert shelf.items == {"a": {"n": 0}, "b": {"n": 1}}


async def test_a_keyed_and_a_sweeping_tool_see_each_others_changes(durable_url: str, tmp_path: Any) -> None:
    from interlock.resources import Documents

    shelf = Documents(f"sqlite:///{tmp_path}/documents.db", "shelf")

    @tool(effect="write", key="{id}", resource=shelf)
    async def put(id: str, n: int, context: Context) -> int:
        await shelf.write(id, {"n": n}, context)
        return n

    @tool(effect="write", resource=shelf)
    async def wipe(why: str, context: Context) -> int:
        found = await shelf.snapshot()
        for key in found:
            await shelf.write(key, None, context)
        return len(found)

    async with running(put, wipe, url=durable_url) as runtime:
        for n in (1, 2, 3):
            assert (await runtime.call("put", {"id": "a", "n": n}, actor="ann", turn="t")).ok
        wiped = await runtime.call("wipe", {"why": "x"}, actor="ann", turn="t", run="w")
        assert wiped.ok, wiped
        again = await runtime.call("put", {"id": "a", "n": 3}, actor="ann", turn="t")
        assert again.ok, again
        assert await shelf.get("a") == {"n": 3}
        second = await runtime.call("wipe", {"why": "x"}, actor="ann", turn="t", run="w")
        assert (second.ok, await shelf.snapshot()) == (True, {})
        done = await runtime.operations.undo(run="w")
    assert next(outcome.ok for _step, outcome in done if outcome is not None)
    await shelf.close()


async def test_two_resources_of_one_name_are_refused() -> None:
    one, two = retitle(Shelf(), []), retitle(Shelf(), [])
    with pytest.raises(ContractError, match="two resources called 'shelf'"):
        Runtime.open("memory://", policy=parse_policy(OPEN), tools=[one, msgspec.structs.replace(two, name="t2")])


@pytest.mark.slow
async def test_a_thread_that_runs_on_keeps_its_claim() -> None:
    shelf, done = Shelf(), threading.Event()

    @tool(effect="write", key="{id}", resource=shelf, timeout_s=0.05, simulate=lambda _s, _a: {"v": 1})
    def put(id: str) -> str:
        done.wait(5)
        shelf.items[id] = {"v": 1}
        return id

    async with running(put, settings=Settings(lease_s=1.0)) as runtime:
        slow = await runtime.call("put", {"id": "a"}, actor="ann", turn="t")
        await asyncio.sleep(1.2)
        assert await runtime.operations.recover() == ()  # its heart beats on
        done.set()
        await asyncio.sleep(1.5)
        (found,) = await runtime.operations.recover()
    assert (slow.status, found.state) == (Status.UNKNOWN, "done")


async def test_an_earlier_attempt_that_may_have_landed_stays_in_doubt() -> None:
    made: list[str] = []
    async with running(keyed_mailing(made, InDoubt("lost"), NothingLanded("down"), NothingLanded("down"))) as runtime:
        outcome = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
    assert (outcome.status, len(made)) == (Status.UNKNOWN, 3)


@pytest.mark.parametrize("raised", [NotFound("none"), TooLarge("too big")])
async def test_a_refusal_of_the_other_side_has_not_landed(raised: Exception) -> None:
    made: list[str] = []
    async with running(mailing(made, raised)) as runtime:
        first = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
        again = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
    assert first.status in (Status.NO_DATA, Status.FAILED)
    assert (again.ok, len(made)) == (True, 2)


async def test_a_tool_that_cancels_itself_or_is_interrupted_leaves_an_outcome() -> None:
    @tool(effect="send")
    async def odd(how: str) -> str:
        if how == "cancel":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)
        raise KeyboardInterrupt

    async with running(odd) as runtime:
        cancelled = await runtime.call("odd", {"how": "cancel"}, actor="ann", turn="t")
        statuses = [record.status async for record in runtime.store.records(Query())]
        held = await runtime.store.unsettled_claims(0)
    assert (cancelled.status, statuses) == (Status.UNKNOWN, ["intent", "unknown"])
    assert [claim.state for claim in held] == [ClaimState.UNKNOWN]


async def test_another_actor_learns_that_it_was_made_not_what_it_answered() -> None:
    made: list[str] = []
    async with running(mailing(made)) as runtime:
        await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
        other = await runtime.call("mail", {"to": "x"}, actor="bob", turn="t")
    assert (other.ok, other.value, made) == (True, None, ["x"])
    assert "made before by ann" in other.summary


async def test_a_probe_that_fails_says_nothing_and_blocks_nobody() -> None:
    async def probe(_arguments: Any, _context: Any) -> bool:
        raise RuntimeError("no")

    made: list[str] = []
    async with running(mailing(made, InDoubt("lost"), probe=probe)) as runtime:
        assert (await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")).status is Status.UNKNOWN
        assert [found.state for found in await runtime.operations.recover()] == ["asked"]
    with pytest.raises(ContractError, match="a probe is an async function"):
        mailing(made, probe=lambda arguments, context: True)


async def test_a_settled_claim_takes_its_question_with_it() -> None:
    answers: list[bool | None] = [None, None, True]

    async def probe(_arguments: Any, _context: Any) -> bool | None:
        return answers.pop(0)

    made: list[str] = []
    async with running(mailing(made, InDoubt("lost"), probe=probe)) as runtime:
        await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
        (asked,) = await runtime.operations.recover()
        (settled,) = await runtime.operations.recover()
        assert asked.ticket is not None
        ticket = await runtime.store.ticket(asked.ticket)
    assert (asked.state, settled.state) == ("asked", "done")
    assert ticket is not None
    assert ticket.state == "settled"


async def test_a_resource_that_hangs_does_not_hold_a_call() -> None:
    class Stuck(Shelf):
        async def read_state(self, key: str) -> Any:
            await asyncio.sleep(60)

    change = retitle(Stuck(), [], timeout_s=0.05)
    async with running(change) as runtime:
        outcome = await asyncio.wait_for(runtime.call("title", {"id": "a", "title": "x"}, actor="ann", call_id="c1"), 5)
    assert (outcome.status, error(outcome)) == (Status.FAILED, "unreadable")


async def test_a_probe_of_the_breaker_that_is_refused_gives_its_turn_back() -> None:
    clock = ManualClock()
    made: list[str] = []
    limits = Limits(breaker_failures=1, breaker_reset_s=10)
    once = RetryRule(max_attempts=1)
    mail = mailing(made, NothingLanded("down"), retry=once, limits=limits, repeatable=True)
    async with running(mail, clock=clock) as runtime:
        await runtime.call("mail", {"to": "x"}, actor="ann")
        clock.advance(11)
        await runtime.operations.halt("tool:mail")
        runtime.context.halts.active.clear()  # as another process that has not looked yet
        runtime.context.halts.until = clock.monotonic() + 100
        assert error(await runtime.call("mail", {"to": "x"}, actor="ann")) == "halted"
        await runtime.operations.unhalt("tool:mail")
        assert (await runtime.call("mail", {"to": "x"}, actor="ann")).ok


async def test_a_deep_result_is_recorded() -> None:
    deep: Any = 1
    for _ in range(31):
        deep = [deep]

    @tool(effect="send")
    async def dig() -> Any:
        return deep

    async with running(dig) as runtime:
        assert (await runtime.call("dig", {}, actor="ann", call_id="c2")).ok


# Plan sets and shadow


async def test_a_plan_set_is_made_as_planned_and_a_rerun_goes_on(store_url: str) -> None:
    shelf = Shelf(a={"title": "old"})
    made: list[Made] = []
    once = RetryRule(max_attempts=1)
    changes = [
        Change("title", {"id": "a", "title": "1"}),
        Change("title", {"id": "a", "title": "2"}),
        Change("mail", {"to": "x"}),
        Change("title", {"id": "b", "title": "3"}),
    ]
    async with running(
        retitle(shelf, made), mailing(made, NothingLanded("down"), retry=once), url=store_url
    ) as runtime:
        planned, wrong = await runtime.operations.plan_set(changes, actor="ann")
        assert (len(planned), wrong, made) == (4, None, [])
        first = await runtime.operations.apply_set("nightly", planned, actor="ann")
        again = await runtime.operations.apply_set("nightly", planned, actor="ann")
        more = await runtime.operations.apply_set("nightly", planned, actor="ann")
        with pytest.raises(NotAllowed, match="there is another set called 'nightly'"):
            await runtime.operations.apply_set("nightly", planned[:1], actor="ann")
        report = await verify(runtime.store)
    assert [outcome.status.value for outcome in first] == ["ok", "ok", "failed"]
    assert [outcome.status.value for outcome in again] == ["ok"] * 4
    assert [outcome.status.value for outcome in more] == ["ok"] * 4
    assert [item[1] if isinstance(item, tuple) else item for item in made] == ["1", "2", "x", "x", "3"]
    assert shelf.items == {"a": {"title": "2"}, "b": {"title": "3"}}
    assert report.intact, report


async def test_a_plan_set_does_not_go_over_what_somebody_else_wrote() -> None:
    shelf = Shelf(a={"title": "old"})
    changes = [Change("title", {"id": "b", "title": "1"}), Change("title", {"id": "a", "title": "2"})]
    async with running(retitle(shelf, [])) as runtime:
        planned, _wrong = await runtime.operations.plan_set(changes, actor="ann")
        shelf.items["a"] = {"title": "by hand"}
        outcomes = await runtime.operations.apply_set("s", planned, actor="ann")
        unplanned, wrong = await runtime.operations.plan_set([Change("title", {"id": "", "title": "x"})], actor="ann")
    assert [outcome.status.value for outcome in outcomes] == ["ok", "denied"]
    assert "the resource changed since" in outcomes[1].summary
    assert unplanned == []
    assert wrong is not None


async def test_the_same_change_twice_in_a_set_is_made_once_and_said_to_be_repeated(store_url: str) -> None:
    made: list[Any] = []
    changes = [Change("title", {"id": "a", "title": "1"})] * 2 + [Change("mail", {"to": "x"})] * 2
    async with running(retitle(Shelf(), made), mailing(made), url=store_url) as runtime:
        planned, _wrong = await runtime.operations.plan_set(changes, actor="ann")
        outcomes = await runtime.operations.apply_set("s", planned, actor="ann")
        again = await runtime.operations.apply_set("s", planned, actor="ann")
    title, title_again, mail, mail_again = outcomes
    assert [outcome.ok for outcome in outcomes] == [True] * 4
    assert (title.repeats, title_again.repeats) == (None, title.record)
    assert (mail.repeats, mail_again.repeats) == (None, mail.record)
    assert [outcome.repeats for outcome in again] == [title.record] * 2 + [mail.record] * 2
    assert len(made) == 2


async def test_a_set_whose_changes_were_purged_is_refused_in_a_sentence(store_url: str) -> None:
    clock = ManualClock()
    made: list[Any] = []
    async with running(mailing(made), url=store_url, clock=clock) as runtime:
        planned, _wrong = await runtime.operations.plan_set([Change("mail", {"to": "x"})], actor="ann")
        assert (await runtime.operations.apply_set("s", planned, actor="ann"))[0].ok
        clock.advance(timedelta(days=2).total_seconds())
        await runtime.operations.purge(older_than=timedelta(days=1))
        with pytest.raises(NotAllowed, match=r"the changes of the set 's' \(record \d+\) were deleted.* another name"):
            await runtime.operations.apply_set("s", planned, actor="ann")
        assert (await runtime.operations.apply_set("s2", planned, actor="ann"))[0].ok
    assert made == ["x", "x"]


async def test_a_plan_that_rests_on_another_cannot_be_applied_alone() -> None:
    shelf = Shelf()
    async with running(retitle(shelf, [])) as runtime:
        first = await runtime.call("title", {"id": "a", "title": "1"}, actor="ann", turn="t", mode="dry_run")
        second = await runtime.call("title", {"id": "a", "title": "2"}, actor="ann", turn="t", mode="dry_run")
        assert first.plan is not None
        assert second.plan is not None
        alone = await runtime.call("title", {"id": "a", "title": "2"}, actor="ann", turn="t", plan=second.plan.digest)
        fine = await runtime.call("title", {"id": "a", "title": "1"}, actor="ann", turn="t", plan=first.plan.digest)
    assert second.plan.rests_on == (first.record,)
    assert alone.status is Status.DENIED
    assert "rests on 1 other planned call" in alone.summary
    assert fine.ok


async def test_shadow_plans_are_held_against_what_happened() -> None:
    shelf = Shelf()
    async with running(retitle(shelf, []), mailing([])) as runtime:
        for key in ("agrees", "differs", "pending", "hand"):
            shadow = await runtime.call(
                "title", {"id": key, "title": "x"}, actor="bot", mode="shadow", run="s", turn=f"s-{key}"
            )
            assert shadow.status is Status.PLANNED
        await runtime.call("mail", {"to": "x"}, actor="bot", mode="shadow", run="s")
        await runtime.call("title", {"id": "agrees", "title": "x"}, actor="ann", call_id="c3")
        await runtime.call("title", {"id": "differs", "title": "y"}, actor="ann", call_id="c4")
        shelf.items["hand"] = {"title": "x"}
        report = {item.key: item for item in await runtime.operations.shadow(run="s")}
        assert list(await runtime.operations.shadow(run="another")) == []
    assert {key: item.verdict for key, item in report.items()} == {
        "shelf/agrees": "agrees",
        "shelf/differs": "differs",
        "shelf/pending": "pending",
        "shelf/hand": "agrees",
    }
    assert report["shelf/agrees"].compared_with.startswith("ann (record")
    assert '-  "title": "x"' in (report["shelf/differs"].diff or "")
    assert set(shelf.items) == {"agrees", "differs", "hand"}


async def test_a_shadow_plan_is_judged_by_what_it_was_to_change() -> None:
    shelf = Shelf()
    shelf.items["a"] = {"title": "old", "pages": 1}
    async with running(retitle(shelf, [])) as runtime:
        await runtime.call("title", {"id": "a", "title": "x"}, actor="bot", mode="shadow", run="s", turn="s")

        async def verdict() -> str:
            (found,) = await runtime.operations.shadow(run="s")
            return found.verdict

        assert await verdict() == "pending"
        shelf.items["a"] = {"title": "old", "pages": 2}
        assert await verdict() == "pending"
        shelf.items["a"] = {"title": "x", "pages": 3}
        assert await verdict() == "agrees"
        shelf.items["a"] = {"pages": 3}
        assert await verdict() == "differs"
        del shelf.items["a"]
        assert await verdict() == "differs"


async def test_shadow_plans_of_many_keys_are_looked_at_together() -> None:
    class Together(Shelf):
        """A shelf that can be asked for several at once."""

        asked = 0

        async def read_states(self, keys: Any) -> dict[str, Any]:
            self.asked += 1
            return {key: self.items[key] for key in keys if key in self.items}

    shelf = Together()
    async with running(retitle(shelf, [])) as runtime:
        for number in range(30):
            await runtime.call(
                "title", {"id": f"k{number}", "title": "x"}, actor="bot", mode="shadow", turn=f"t{number}"
            )
        shelf.asked = 0
        shelf.items["k7"] = {"title": "x"}
        found = {item.key: item.verdict for item in await runtime.operations.shadow()}
    assert shelf.asked == 1
    assert [key for key, verdict in found.items() if verdict == "agrees"] == ["shelf/k7"]
    assert len(found) == 30


# Under fire


class UndoUnderFire(RuleBasedStateMachine):
    """Several actors change and undo at random; a plain model says what must be there, and by whom."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.shelf = Shelf()
        self.runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[retitle(self.shelf, [])])
        self.made: list[tuple[str, str, Any, Any]] = []  # run, key, before, after; those that stand
        self.model: dict[str, Any] = {}
        self.count = 0

    def teardown(self) -> None:
        self.loop.run_until_complete(self.runtime.close())
        self.loop.close()

    @rule(key=st.sampled_from("abc"), actor=st.sampled_from(["ann", "bob"]), title=st.sampled_from("xyz"))
    def change(self, key: str, actor: str, title: str) -> None:
        self.count += 1
        run = f"r{self.count}"
        call = self.runtime.call("title", {"id": key, "title": title}, actor=actor, run=run)
        assert self.loop.run_until_complete(call).ok
        before = self.model.get(key)
        self.model[key] = {**(before or {}), "title": title}
        self.made.append((run, key, before, self.model[key]))

    @rule(key=st.sampled_from("abc"), pages=st.integers(0, 3))
    def by_hand(self, key: str, pages: int) -> None:
        """Somebody writes past Interlock."""
        self.model[key] = {"title": "hand", "pages": pages}
        self.shelf.items[key] = dict(self.model[key])

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        place = data.draw(st.integers(0, len(self.made) - 1))
        run, key, before, after = self.made[place]
        ((step, outcome),) = self.loop.run_until_complete(self.runtime.operations.undo(run=run))
        later = [item for item in self.made[place + 1 :] if item[1] == key]
        if before == after:
            assert step.obstacle == "it changed nothing"
        elif self.model.get(key) == after and not later:  # equal words are not enough: others may have come and gone
            assert outcome is not None
            assert outcome.ok
            del self.made[place]
            if before is None:
                self.model.pop(key, None)
            else:
                self.model[key] = before
        else:
            assert outcome is None
            assert "has changed since" in step.obstacle

    @invariant()
    def the_state_is_the_models(self) -> None:
        assert self.shelf.items == self.model


TestUndoUnderFire = UndoUnderFire.TestCase
TestUndoUnderFire.settings = hypothesis_settings(stateful_step_count=25)
