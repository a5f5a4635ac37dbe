"""The order of undo and replay: writes of different keys side by side, and never past a send that is not done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import Context, Runtime, Status, Tool, tool
from interlock.errors import InDoubt, Permanent, RateLimited
from interlock.operations import UndoStep
from interlock.operations.execute import run_undo
from interlock.reasons import Reason
from interlock.resources import Documents
from interlock.testing import ManualClock
from interlock.tools import Compensation, RetryRule
from interlock.values import Call, Outcome, Problem
from tests.conftest import expect
from tests.test_changes import OPEN, Shelf, retitle, running

Done = tuple[UndoStep, Outcome | None]


class Post:
    """A send and what takes it back; both note what they do, and wait or fail where a test says so."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.go_on.set()
        self.fails: dict[str, Exception] = {}

    async def _do(self, what: str) -> str:
        self.log.append(f"{what} begins")
        self.begun.set()
        await self.go_on.wait()
        if what in self.fails:
            raise self.fails[what]
        self.log.append(f"{what} is done")
        return what

    def tools(self) -> tuple[Tool, Tool]:
        @tool(effect="send", retry=RetryRule(max_attempts=1))
        async def unsend(to: str) -> str:
            """Take a notice back."""
            return await self._do(f"unsend {to}")

        compensation = Compensation("unsend", lambda arguments, _value: {"to": arguments["to"]})

        @tool(effect="send", compensate=compensation, retry=RetryRule(max_attempts=1))
        async def notify(to: str) -> str:
            """Send a notice."""
            return await self._do(f"notify {to}")

        return unsend, notify


class NotedShelf(Shelf):
    """A shelf that notes what is put back in the log of a post, and asks before it does."""

    def __init__(self, log: list[str], asks: Callable[[str], Any] | None = None) -> None:
        super().__init__()
        self.log, self.asks = log, asks

    async def restore(self, key: str, state: Any) -> None:
        if self.asks is not None:
            await self.asks(key)
        self.log.append(f"restore {key}")
        await super().restore(key, state)


async def make(runtime: Runtime, *what: str) -> None:
    """A run of changes: `a` writes the key a, `to x` sends a notice to x."""
    for place, item in enumerate(what):
        name, given = ("notify", {"to": item[3:]}) if item.startswith("to ") else ("title", {"id": item, "title": "x"})
        outcome = await runtime.call(name, given, actor="ann", run="r", call_id=f"c{place}")
        assert outcome.ok, outcome


def shown(done: Any) -> list[str]:
    """How each step ended: its status, or that it was left."""
    return ["left" if outcome is None else outcome.status.value for _step, outcome in done]


async def test_a_send_is_taken_back_when_all_after_it_is_and_before_anything_earlier(store_url: str) -> None:
    post = Post()
    shelf = NotedShelf(post.log)
    async with running(retitle(shelf, []), *post.tools(), url=store_url) as runtime:
        await make(runtime, "a", "to x", "b", "c", "to y")
        post.log.clear()
        post.begun.clear()
        post.go_on.clear()
        undoing = asyncio.ensure_future(runtime.operations.undo(run="r"))
        await post.begun.wait()
        assert (post.log, sorted(shelf.items)) == (["unsend y begins"], ["a", "b", "c"])
        post.go_on.set()
        done = await undoing
    assert shown(done) == ["ok"] * 5
    assert post.log[:2] == ["unsend y begins", "unsend y is done"]
    assert sorted(post.log[2:4]) == ["restore b", "restore c"]
    assert post.log[4:] == ["unsend x begins", "unsend x is done", "restore a"]


async def test_writes_of_different_keys_are_put_back_side_by_side() -> None:
    begun = {"a": asyncio.Event(), "b": asyncio.Event()}

    async def meet(key: str) -> None:
        begun[key].set()
        await begun["b" if key == "a" else "a"].wait()

    shelf = NotedShelf([], meet)
    async with running(retitle(shelf, [])) as runtime:
        await make(runtime, "a", "b")
        assert shown(await runtime.operations.undo(run="r")) == ["ok", "ok"]
    assert shelf.items == {}


async def test_a_compensation_that_is_refused_leaves_everything_before_it_alone(store_url: str) -> None:
    post = Post()
    shelf = NotedShelf(post.log)
    async with running(retitle(shelf, []), *post.tools(), url=store_url) as runtime:
        await make(runtime, "a", "to x", "b")
        post.fails["unsend x"] = Permanent("the notice was read")
        done = await runtime.operations.undo(run="r")
        assert (shown(done), sorted(shelf.items)) == (["ok", "failed", "left"], ["a"])
        (_b, (notice, _failed), (first, _none)) = done
        assert first.tool == "undo.shelf"
        assert first.obstacle == (
            f"record {notice.record} (notify) came after it and is not taken back; see to that one first, or name this"
            " record alone"
        )
        post.fails.clear()
        assert shown(await runtime.operations.undo(run="r")) == ["ok", "ok"]
    assert shelf.items == {}


@pytest.mark.parametrize("answer", [[], 7], ids=["empty", "of another type"])
async def test_a_compensation_that_was_made_is_done_whatever_it_answered(store_url: str, answer: Any) -> None:
    bank: list[int] = []

    @tool(effect="send", compensate=Compensation("refund", lambda arguments, _value: dict(arguments)))
    async def pay(n: int) -> int:
        """Pay."""
        bank.append(n)
        return n

    @tool(effect="send")
    async def refund(n: int) -> list[str]:
        """Refund; what is odd about it."""
        bank.append(-n)
        return answer  # type: ignore[no-any-return]

    async with running(pay, refund, url=store_url) as runtime:
        for n in (1, 2):
            await runtime.call("pay", {"n": n}, actor="ann", run="r", call_id=str(n))
        done = await runtime.operations.undo(run="r")
        assert ([step.obstacle for step, _outcome in done], bank) == (["", ""], [1, 2, -2, -1])
        assert (await runtime.operations.undo(run="r"), len(bank)) == ((), 4)


async def test_a_write_that_is_not_put_back_keeps_the_send_before_it_from_being_taken_back(store_url: str) -> None:
    post = Post()

    async def refuse(key: str) -> None:
        if key == "c":
            raise Permanent("the shelf is locked")

    shelf = NotedShelf(post.log, refuse)
    async with running(retitle(shelf, []), *post.tools(), url=store_url) as runtime:
        await make(runtime, "a", "to x", "b", "c")
        post.log.clear()
        done = await runtime.operations.undo(run="r")
    assert (shown(done), sorted(shelf.items)) == (["failed", "ok", "left", "left"], ["a", "c"])
    assert post.log == ["restore b"]


async def test_a_preview_says_what_would_be_left_because_something_has_changed_since() -> None:
    post = Post()
    shelf = NotedShelf(post.log)
    async with running(retitle(shelf, []), *post.tools()) as runtime:
        await make(runtime, "a", "to x", "b", "c")
        post.log.clear()
        shelf.items["c"] = {"title": "by hand"}
        plan = await runtime.operations.undo_plan(run="r")
        done = await runtime.operations.undo(run="r")
        (alone,) = await runtime.operations.undo(record=plan[2].record)
    assert [(step.tool, bool(step.obstacle)) for step in plan] == [
        ("", True),
        ("undo.shelf", False),
        ("unsend", True),
        ("undo.shelf", True),
    ]
    assert [step.obstacle for step, _outcome in done] == [step.obstacle for step in plan]
    assert (shown(done), shown([alone])) == (["left", "ok", "left", "left"], ["ok"])
    assert post.log == ["restore b", "unsend x begins", "unsend x is done"]


async def test_a_send_that_has_no_way_back_and_a_write_that_changed_nothing_stop_nothing() -> None:
    post = Post()
    shelf = NotedShelf(post.log)

    @tool(effect="send")
    async def mail(to: str) -> str:
        """Send a mail."""
        return to

    async with running(retitle(shelf, []), mail, *post.tools()) as runtime:
        await make(runtime, "a", "to x")
        assert (await runtime.call("mail", {"to": "y"}, actor="ann", run="r", call_id="m")).ok
        assert (await runtime.call("title", {"id": "a", "title": "x"}, actor="ann", run="r", call_id="again")).ok
        done = await runtime.operations.undo(run="r")
    assert (shown(done)[-2:], shelf.items) == (["ok", "ok"], {})
    assert all(outcome is None for _step, outcome in done[:-2])


async def test_a_send_is_made_again_only_when_everything_before_it_was(store_url: str) -> None:
    post, fails = Post(), list[Exception]()
    shelf = NotedShelf(post.log)

    async def asked(arguments: Any, _before: Any, _after: Any) -> list[str]:
        return ["no stock left"] if fails and arguments["id"] == "b" else []

    async with running(retitle(shelf, [], invariants=asked), *post.tools(), url=store_url) as runtime:
        await make(runtime, "a", "b", "to x", "c")
        await runtime.operations.undo(run="r")
        post.log.clear()
        fails.append(Permanent("no stock left"))
        done = await runtime.operations.replay("r")
        assert (shown(done), post.log, sorted(shelf.items)) == (["ok", "denied", "left", "left"], [], ["a"])
        assert [step.obstacle.startswith("record ") for step, _outcome in done] == [False, False, True, True]
        assert "came before it and is not made" in done[2][0].obstacle
        fails.clear()
        assert shown(await runtime.operations.replay("r")) == ["ok"] * 3
    assert (post.log, sorted(shelf.items)) == (["notify x begins", "notify x is done"], ["a", "b", "c"])


async def test_what_is_in_doubt_is_listed_and_what_lies_beyond_a_send_waits_for_it(store_url: str) -> None:
    post = Post()
    shelf = NotedShelf(post.log)
    async with running(retitle(shelf, []), *post.tools(), url=store_url) as runtime:
        await make(runtime, "a", "to x")
        post.fails["notify y"] = InDoubt("the line went dead")
        lost = await runtime.call("notify", {"to": "y"}, actor="ann", run="r", call_id="lost")
        assert lost.status is Status.UNKNOWN
        done = await runtime.operations.undo(run="r")
        assert (shown(done), sorted(shelf.items)) == (["left"] * 3, ["a"])
        assert "run interlock recover" in done[0][0].obstacle
        assert "came after it and is not taken back" in done[1][0].obstacle
        ((step, _none),) = await runtime.operations.replay("r")
        assert "run interlock recover" in step.obstacle
        (asked,) = await runtime.operations.recover()
        await runtime.operations.decide(expect(asked.ticket), approve=False, by="user:boss")
        assert shown(await runtime.operations.undo(run="r")) == ["ok", "ok"]
    assert shelf.items == {}


async def test_what_was_settled_later_is_taken_back_in_the_order_in_which_it_was_begun() -> None:
    post = Post()
    shelf = NotedShelf(post.log)
    async with running(retitle(shelf, []), *post.tools()) as runtime:
        post.fails["notify x"] = InDoubt("the line went dead")
        lost = await runtime.call("notify", {"to": "x"}, actor="ann", run="r", call_id="lost")
        assert lost.status is Status.UNKNOWN
        await make(runtime, "a")
        (asked,) = await runtime.operations.recover()
        await runtime.operations.decide(expect(asked.ticket), approve=True, by="user:boss")
        post.log.clear()
        assert shown(await runtime.operations.undo(run="r")) == ["ok", "ok"]
    assert post.log == ["restore a", "unsend x begins", "unsend x is done"]


# What the preview promises is what the undo does


@pytest.mark.parametrize("per", ["turn", "run", "actor"])
async def test_no_budget_stops_an_undo_half_way(store_url: str, per: str) -> None:
    shelf = Shelf()
    policy = f"{OPEN}[[budget]]\nid = 'b'\nper = '{per}'\ncalls = 3\n"
    async with running(retitle(shelf, []), policy=policy, url=store_url) as runtime:
        for place, key in enumerate("abcde"):
            details: dict[str, Any] = {"actor": f"bot{place}", "run": f"r{place}", "turn": f"t{place}"}
            assert (await runtime.call("title", {"id": key, "title": "x"}, **details)).ok
        plan = await runtime.operations.undo_plan(since_us=0)
        done = await runtime.operations.undo(since_us=0)
    assert [step.obstacle for step in plan] == [""] * 5
    assert (shown(done), shelf.items) == (["ok"] * 5, {})


async def test_an_undo_waits_for_a_rate() -> None:
    shelf, clock = Shelf(), ManualClock()
    policy = OPEN + "[[rate]]\nid = 'slow'\ntools = ['undo.shelf']\nrate = '6/minute'\nburst = 2\n"
    async with running(retitle(shelf, []), policy=policy, clock=clock) as runtime:
        await make(runtime, *"abcde")
        assert shown(await runtime.operations.undo(run="r")) == ["ok"] * 5
    assert shelf.items == {}
    assert 20 <= sum(clock.slept) <= 40


async def test_a_rate_that_nobody_waits_for_is_told_and_what_is_left_can_be_taken_back_later() -> None:
    shelf, clock = Shelf(), ManualClock()
    policy = OPEN + "[[rate]]\nid = 'slow'\ntools = ['undo.shelf']\nrate = '1/hour'\nburst = 1\n"
    async with running(retitle(shelf, []), policy=policy, clock=clock) as runtime:
        await make(runtime, "a", "b")
        done = await runtime.operations.undo(run="r")
        clock.advance(3600)
        again = await runtime.operations.undo(run="r")
    assert (sorted(shown(done)), shown(again), shelf.items) == (["denied", "ok"], ["ok"], {})


async def test_an_undo_and_a_replay_end_where_the_other_side_always_answers_too_many_requests() -> None:
    post, clock = Post(), ManualClock()
    async with running(*post.tools(), clock=clock) as runtime:
        await make(runtime, "to x")
        post.fails["unsend x"] = RateLimited("slow down", retry_after_s=0.2)
        done = await asyncio.wait_for(runtime.operations.undo(run="r"), 30)
        assert post.log.count("unsend x begins") == 1
        post.fails.clear()
        assert shown(await runtime.operations.undo(run="r")) == ["ok"]
        post.fails["notify x"] = RateLimited("slow down", retry_after_s=0.2)
        post.log.clear()
        again = await asyncio.wait_for(runtime.operations.replay("r"), 30)
    assert (shown(done), shown(again), post.log) == (["failed"], ["failed"], ["notify x begins"])


async def test_a_rate_whose_tokens_others_take_is_waited_for_a_minute_and_no_longer() -> None:
    clock, asked = ManualClock(), list[float]()

    async def run(call: Call) -> Outcome:
        asked.append(clock.monotonic())
        problem = Problem(reason=Reason.RATE_LIMITED, message="rate", retry_after_s=7.0)
        return Outcome(call.call_id, call.tool, Status.DENIED, problem=problem)

    async with running(retitle(Shelf(), []), clock=clock) as runtime:
        await make(runtime, "a")
        steps = await runtime.operations.undo_plan(run="r")
        done = await asyncio.wait_for(run_undo(run, runtime.operations._ctx, steps, by="ann", name="u"), 30)
    assert shown(done) == ["denied"]
    assert 50 <= asked[-1] - asked[0] <= 61


@pytest.mark.parametrize("again", [False, True])
async def test_steps_of_which_each_changes_what_is_locked_for_the_other_do_not_wait_for_each_other(
    tmp_path: Path, again: bool
) -> None:
    docs = Documents(f"sqlite:///{tmp_path}/d.db", "docs")

    @tool(
        effect="write", key="{child}", resource=docs, locks=lambda given: (given["beside"],), timeout_s=2, deadline_s=4
    )
    async def link(child: str, beside: str, context: Context) -> str:
        """Put a book beside another one, which stays as it is meanwhile."""
        await docs.write(child, {"beside": beside}, context)
        return child

    clock = ManualClock()
    async with running(link, url=f"sqlite:///{tmp_path}/i.db", clock=clock) as runtime:
        for child, beside in (("a", "b"), ("b", "a")):
            assert (await runtime.call("link", {"child": child, "beside": beside}, actor="ann", run="r")).ok
        done = await asyncio.wait_for(runtime.operations.undo(run="r"), 30)
        if again:
            assert await docs.snapshot() == {}
            done = await asyncio.wait_for(runtime.operations.replay("r"), 30)
        left = await docs.snapshot()
    await docs.close()
    assert shown(done) == ["ok", "ok"]
    assert left == ({"a": {"beside": "b"}, "b": {"beside": "a"}} if again else {})


async def test_a_preview_says_what_the_policy_or_a_halt_would_refuse() -> None:
    post = Post()
    shelf = NotedShelf(post.log)
    policy = OPEN + "[[rule]]\nid = 'kept'\ntools = ['undo.shelf']\ndecision = 'deny'\nreason = 'it is kept'\n"
    async with running(retitle(shelf, []), *post.tools(), policy=policy) as runtime:
        await make(runtime, "to x", "a")
        plan = await runtime.operations.undo_plan(run="r")
        done = await runtime.operations.undo(run="r")
        await runtime.operations.halt("tool:unsend")
        (halted,) = await runtime.operations.undo_plan(record=plan[1].record)
    assert plan[0].obstacle.startswith("'undo.shelf' would be refused: ")
    assert "it is kept" in plan[0].obstacle
    assert "came after it and is not taken back" in plan[1].obstacle
    assert (shown(done), post.log[-1]) == (["denied", "left"], "notify x is done")
    assert "halted" in halted.obstacle


async def test_the_preview_of_a_replay_says_which_calls_a_budget_would_refuse() -> None:
    shelf = Shelf()
    policy = f"{OPEN}[[budget]]\nid = 'b'\nper = 'turn'\ncalls = 5\n"
    async with running(retitle(shelf, []), policy=policy) as runtime:
        for key in "abc":
            assert (await runtime.call("title", {"id": key, "title": "x"}, actor="bot", run="r", turn="t")).ok
        await runtime.operations.undo(run="r")
        plan = await runtime.operations.replay_plan("r")
        done = await runtime.operations.replay("r")
    assert [bool(step.obstacle) for step in plan] == [False, False, True]
    assert plan[2].obstacle == (
        "'title' would be refused: budget 'b' will have 0 of 5 calls left, and this call needs 1"
    )
    assert sorted(shown(done)) == ["denied", "ok", "ok"]
