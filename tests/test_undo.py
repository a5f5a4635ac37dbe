"""Undo: from before-images, last change first, never over what somebody else wrote; and replay, and recovery."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from interlock import Runtime, Status, tool
from interlock.config import Settings
from interlock.errors import InDoubt, Unavailable
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock.schema import Compensation, RetryRule
from interlock.standing import ClaimState, Which
from interlock.testing import ManualClock
from tests.test_changes import OPEN, Shelf, error, mailing, retitle, running


async def write(runtime: Runtime, key: str, title: str, **details: Any) -> None:
    assert (await runtime.call("title", {"id": key, "title": title}, actor="ann", **details)).ok


async def test_a_run_is_taken_back_in_reverse_order(store_url: str) -> None:
    shelf = Shelf(a={"title": "first", "pages": 3})
    async with running(retitle(shelf, []), url=store_url) as runtime:
        for n, key in enumerate(["a", "b", "a", "a"]):
            await write(runtime, key, f"t{n}", run="r", turn=f"turn{n}")
        plan = await runtime.undo_plan(Which(run="r"))
        assert shelf.items["a"]["title"] == "t3"
        done = await runtime.undo(Which(run="r"), by="os:boss")
        nothing = await runtime.undo_plan(Which(run="r"))
        states = [claim.state for claim in await runtime.store.claims(Which(run="r"))]
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
        ((_step, undone),) = await runtime.undo(Which(run="r"))
        assert undone is not None
        assert shelf.items["a"] == {"title": "old"}
        ((step, again),) = await runtime.undo(Which(record=undone.record))
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
        ((step, outcome),) = await runtime.undo(Which(run="r"))
        assert (step.tool, outcome) == ("", None)
        assert "has changed since" in step.why_not
        ((_step, waiting),) = await runtime.undo(Which(run="r"), force=True)
        assert waiting is not None
        assert waiting.status is Status.PARKED
        assert shelf.items["a"] == {"title": "by hand"}
        assert waiting.ticket is not None
        await runtime.decide(waiting.ticket, approve=True, by="os:boss")
        assert (await runtime.resume(waiting.ticket)).ok
    assert shelf.items["a"] == {"title": "old"}


async def test_a_change_between_plan_and_undo_is_not_overwritten() -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(retitle(shelf, [])) as runtime:
        await write(runtime, "a", "new", run="r")
        (step,) = await runtime.undo_plan(Which(run="r"))
        shelf.items["a"] = {"title": "by hand"}
        late = await runtime.call(step.tool, step.arguments, actor="ann")
    assert (late.status, error(late)) == (Status.FAILED, "conflict")
    assert shelf.items["a"] == {"title": "by hand"}


async def test_a_send_is_listed_with_its_compensation_or_without() -> None:
    made, cancelled = [], []  # type: ignore[var-annotated]

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
        done = await runtime.undo(Which(run="r"))
        left = await runtime.undo_plan(Which(run="r"))
    assert "a send cannot be taken back" in done[0][0].why_not
    assert done[1][1] is not None
    assert (done[1][1].value, cancelled) == ("cancelled", ["order-book"])
    assert [step.claim.tool for step in left] == ["mail", "cancel"] or [step.claim.tool for step in left] == ["mail"]


async def test_an_undo_by_key_turn_time_and_record() -> None:
    clock = ManualClock()
    shelf = Shelf()
    async with running(retitle(shelf, []), clock=clock) as runtime:
        await write(runtime, "a", "1", turn="t1")
        clock.advance(60)
        since = clock.now_us()
        await write(runtime, "b", "2", turn="t2")
        await write(runtime, "c", "3", turn="t2")
        assert [s.keys for s in await runtime.undo_plan(Which(key="shelf/a"))] == [("shelf/a",)]
        assert [s.keys for s in await runtime.undo_plan(Which(turn="t2"))] == [("shelf/c",), ("shelf/b",)]
        assert [s.keys for s in await runtime.undo_plan(Which(since_us=since))] == [("shelf/c",), ("shelf/b",)]
        assert [s.keys for s in await runtime.undo_plan(Which(record=4))] == [("shelf/b",)]
        assert list(await runtime.undo_plan(Which(record=99))) == []


async def test_a_before_image_that_is_gone_or_damaged_cannot_be_put_back() -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(retitle(shelf, [])) as runtime:
        await write(runtime, "a", "new", run="r")
        payloads = runtime.store._payloads  # type: ignore[attr-defined]
        whole = payloads[1]
        for damaged in (b"{not json", b'{"before": 5}', b"[]"):
            payloads[1] = damaged
            (step,) = await runtime.undo_plan(Which(run="r"))
            assert "cannot be read" in step.why_not
        del payloads[1]
        (step,) = await runtime.undo_plan(Which(run="r"))
        assert "have been deleted" in step.why_not
        payloads[1] = whole
        shelf.broken = True
        (step,) = await runtime.undo_plan(Which(run="r"))
        assert "cannot be read" in step.why_not


async def test_a_restore_that_does_not_read_back_is_in_doubt() -> None:
    class Forgetful(Shelf):
        async def restore(self, key: str, state: Any) -> None:
            self.items[key] = {"title": "something else"}

    shelf = Forgetful(a={"title": "old"})
    async with running(retitle(shelf, [])) as runtime:
        await write(runtime, "a", "new", run="r")
        ((_step, outcome),) = await runtime.undo(Which(run="r"))
        claims = await runtime.store.claims(Which(run="r"))
    assert outcome is not None
    assert outcome.status is Status.UNKNOWN
    assert claims[0].state is ClaimState.DONE


async def test_replay_makes_what_failed_and_what_was_undone(store_url: str) -> None:
    shelf, made, sent = Shelf(), [], []  # type: ignore[var-annotated]
    once = RetryRule(max_attempts=1)
    async with running(retitle(shelf, made), mailing(sent, Unavailable("down"), retry=once), url=store_url) as runtime:
        await write(runtime, "a", "new", run="r", turn="t", call_id="c1")
        failed = await runtime.call("mail", {"to": "x"}, actor="ann", run="r", turn="t", call_id="c2")
        await write(runtime, "b", "stays", run="r", turn="t", call_id="c3")
        await runtime.undo(Which(key="shelf/a"))
        plan = await runtime.replay_plan("r")
        done = await runtime.replay("r")
        again = await runtime.replay("r")
    assert failed.status is Status.FAILED
    assert [step.claim.tool for step in plan] == ["title", "mail"]
    assert [outcome.status for _step, outcome in done if outcome is not None] == [Status.OK, Status.OK]
    keys = [context.idempotency_key for id, _title, context in made if id == "a"]
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
        (found,) = await runtime.recover()
        again = await runtime.recover()
        if says is None:
            assert (found.state, again[0].ticket) == ("asked", found.ticket)
            assert found.ticket is not None
            still = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
            assert still.status is Status.UNKNOWN
            await runtime.decide(found.ticket, approve=True, by="os:boss", reason="it is in the outbox")
        else:
            assert (found.state, again) == ("done" if says else "failed", ())
        after = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
    assert after.ok
    assert made == (["x", "x"] if says is False else ["x"])


async def test_recovery_waits_for_a_holder_that_may_be_alive() -> None:
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
        assert await other.recover() == ()
        clock.advance(61)
        (found,) = await other.recover()
        release.set()
        outcome = await task
    assert (found.state, found.how) == ("failed", "the resource shows it")
    assert (outcome.status, error(outcome)) == (Status.UNKNOWN, "lease_lost")  # it was settled without the late one


async def test_what_is_unknown_on_a_resource_is_settled_when_its_lease_has_expired() -> None:
    clock, shelf = ManualClock(), Shelf()

    @tool(effect="write", key="{id}", resource=shelf, simulate=lambda _s, _a: {"v": 1})
    async def put(id: str) -> str:
        raise RuntimeError("lost")

    async with running(put, clock=clock, settings=Settings(lease_s=60)) as runtime:
        assert (await runtime.call("put", {"id": "a"}, actor="ann", turn="t")).status is Status.UNKNOWN
        (early,) = await runtime.recover()
        clock.advance(61)
        (late,) = await runtime.recover()
    assert (early.state, late.state) == ("waiting", "failed")


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

    @rule(key=st.sampled_from("abc"), actor=st.sampled_from(["ann", "bob"]))
    def change(self, key: str, actor: str) -> None:
        self.count += 1
        run, title = f"r{self.count}", f"t{self.count}"
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
        ((step, outcome),) = self.loop.run_until_complete(self.runtime.undo(Which(run=run)))
        if self.model.get(key) == after:
            assert outcome is not None
            assert outcome.ok
            del self.made[place]
            if before is None:
                self.model.pop(key, None)
            else:
                self.model[key] = before
        else:
            assert outcome is None
            assert "has changed since" in step.why_not

    @invariant()
    def the_state_is_the_models(self) -> None:
        assert self.shelf.items == self.model


TestUndoUnderFire = UndoUnderFire.TestCase
TestUndoUnderFire.settings = hypothesis_settings(stateful_step_count=25)
