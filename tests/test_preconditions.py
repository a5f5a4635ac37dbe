"""What a plan must hold beside the rules: invariants of the state it leaves, cooldowns, and leases over several calls."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Compensation, Context, ContractError, PolicyError, Runtime, Status, Tool, tool
from interlock.audit import verify
from interlock.config import Settings
from interlock.engine.heart import Beat, Heart
from interlock.errors import ConfigError, InvalidInput, Locked, NotFound
from interlock.policy import parse_policy
from interlock.ports import Query, SystemClock
from interlock.stores import open_store
from interlock.testing import ManualClock
from tests.conftest import expect
from tests.test_changes import OPEN, Shelf, WholeShelf, error, retitle, running

REST = '\n[[cooldown]]\nid = "rest"\ntools = ["title"]\nwindow = "7d"\nactors = ["ann"]\n'
A_DAY_S = 86_400.0


def guarded(shelf: Shelf, **options: Any) -> Tool:
    """A write whose titles must be unique on the shelf, whoever else writes there."""

    async def unique(arguments: Any, before: Any, after: Any) -> list[str]:
        assert before == {arguments["id"]: shelf.items.get(arguments["id"])}
        taken = [key for key, item in shelf.items.items() if item["title"] == arguments["title"] and key not in after]
        return [f"{taken[0]!r} has this title"] if taken else []

    return retitle(shelf, [], invariants=unique, **options)


async def test_a_plan_that_would_leave_a_wrong_state_is_denied_and_shown() -> None:
    shelf = Shelf(a={"title": "x"}, b={"title": "y"})
    async with running(guarded(shelf)) as runtime:
        for mode in ("dry_run", "apply"):
            outcome = await runtime.call("title", {"id": "a", "title": "y"}, actor="ann", mode=mode, call_id="c1")
            assert (outcome.status, error(outcome)) == (Status.DENIED, "invariant")
            assert outcome.verdict is not None
            assert outcome.verdict.reason == "'b' has this title"
            assert outcome.plan is not None
            assert outcome.plan.after == [{"title": "y"}]
        assert shelf.items["a"] == {"title": "x"}
        assert (await runtime.call("title", {"id": "a", "title": "z"}, actor="ann", call_id="c2")).ok


async def test_invariants_are_asked_again_under_the_lease() -> None:
    shelf = Shelf(a={"title": "x"}, b={"title": "y"})
    asked = []

    async def once(_arguments: Any, _before: Any, _after: Any) -> list[str]:
        asked.append(1)
        return ["somebody was faster"] if len(asked) == 2 else []

    made: list[Any] = []
    async with running(retitle(shelf, made, invariants=once)) as runtime:
        outcome = await runtime.call("title", {"id": "a", "title": "z"}, actor="ann", call_id="c3")
        assert (outcome.status, error(outcome)) == (Status.DENIED, "invariant")
        assert not made
        again = await runtime.call(
            "title", {"id": "a", "title": "z"}, actor="ann", call_id="c4"
        )  # the claim failed, so it may be tried
        assert again.ok


async def test_invariants_that_cannot_be_checked_refuse() -> None:
    async def broken(_arguments: Any, _before: Any, _after: Any) -> list[str]:
        raise NotFound("the index is gone")

    shelf, made = Shelf(a={"title": "x"}), list[Any]()
    async with running(retitle(shelf, made, invariants=broken)) as runtime:
        outcome = await runtime.call("title", {"id": "a", "title": "z"}, actor="ann", call_id="c5")
        assert (outcome.status, error(outcome), made) == (Status.FAILED, "unreadable", [])


def test_invariants_need_a_simulation() -> None:
    async def fine(_arguments: Any, _before: Any, _after: Any) -> list[str]:
        return []

    with pytest.raises(ContractError, match="invariants are an async function"):

        @tool(effect="write", key="{id}", resource=Shelf(), invariants=fine)
        async def write(id: str) -> str:
            return id

    with pytest.raises(ContractError, match="a read changes nothing"):

        @tool(effect="read", invariants=fine)
        async def read(id: str) -> str:
            return id


async def test_a_key_rests_after_a_change_except_for_the_run_that_made_it(durable_url: str) -> None:
    shelf, clock = Shelf(a={"title": "0"}, b={"title": "0"}), ManualClock()
    async with running(retitle(shelf, []), policy=OPEN + REST, url=durable_url, clock=clock) as runtime:

        async def title(text: str, run: str | None, key: str = "a", mode: str = "apply") -> Any:
            own: dict[str, Any] = {"call_id": text} if run is None else {}
            return await runtime.call("title", {"id": key, "title": text}, actor="ann", run=run, mode=mode, **own)

        assert (await title("1", "r1")).ok
        assert (await title("2", "r1")).ok
        for run, mode in (("r2", "apply"), ("r2", "dry_run"), (None, "apply")):
            refused = await title("3", run, mode=mode)
            assert (refused.status, error(refused)) == (Status.DENIED, "cooldown")
            assert "rests until" in refused.problem.message
            assert "by run r1" in refused.problem.message
        assert (await title("3", "r2", key="b")).ok
        person = await runtime.call("title", {"id": "a", "title": "3"}, actor="person", call_id="c6")
        assert person.ok
        assert error(await title("4", "r2")) == "cooldown"  # a person's change rests, too
        clock.advance(7 * A_DAY_S + 1)
        assert (await title("3", "r2")).ok


class Ahead(SystemClock):
    """The clock of another machine."""

    def now_us(self) -> int:
        """Eight days on."""
        return super().now_us() + int(8 * A_DAY_S * 1e6)


async def test_a_key_rests_by_the_clock_of_the_store(durable_url: str) -> None:
    tools, policy = [retitle(Shelf(a={"title": "0"}), [])], parse_policy(OPEN + REST)
    async with (
        Runtime.open(durable_url, policy=policy, tools=tools) as here,
        Runtime.open(open_store(durable_url), policy=policy, tools=tools, clock=Ahead()) as there,
    ):
        assert (await here.call("title", {"id": "a", "title": "1"}, actor="ann", run="r1")).ok
        early = await there.call("title", {"id": "a", "title": "2"}, actor="ann", run="r2")
        assert (early.status, error(early)) == (Status.DENIED, "cooldown")


@pytest.mark.parametrize("other", ["title", "whole"])
async def test_what_a_run_changes_itself_does_not_hide_what_another_has_changed(store_url: str, other: str) -> None:
    """The price of monday rests until next monday, also for tuesday's run that tidies up first."""
    shelf, clock = WholeShelf(a={"title": "0"}), ManualClock()

    @tool(effect="write", key="{id}", resource=shelf)
    async def tidy(id: str, n: int) -> int:
        shelf.items[id] = {**shelf.items[id], "tidied": n}
        return n

    @tool(effect="write", resource=shelf)
    async def whole(title: str) -> str:
        shelf.items["a"] = {"title": title}
        return title

    tools = (retitle(shelf, []), tidy, whole)
    policy = OPEN + REST.replace('["title"]', '["title", "whole"]')
    async with running(*tools, policy=policy, url=store_url, clock=clock) as runtime:

        async def change(name: str, run: str, text: str) -> Any:
            key = {"id": "a"} if name == "title" else {}
            return await runtime.call(name, {**key, "title": text}, actor="ann", run=run)

        assert (await change(other, "monday", "1")).ok
        clock.advance(A_DAY_S)
        for n in range(2):
            assert (await runtime.call("tidy", {"id": "a", "n": n}, actor="ann", run="tuesday")).ok
            for name in ("title", "whole"):
                refused = await change(name, "tuesday", "2")
                assert (error(refused), "by run monday" in refused.summary) == ("cooldown", True), refused.summary
        assert (await runtime.call("whole", {"title": "3"}, actor="bob", run="tuesday")).ok, "people may go on"
        assert error(await change("title", "tuesday", "4")) == "cooldown"
        clock.advance(6 * A_DAY_S + 1)
        assert (await change("title", "tuesday", "4")).ok, "a week after monday"
        assert (await verify(runtime.store)).problems == ()


async def test_what_was_held_and_not_changed_does_not_rest() -> None:
    shelf = Shelf(a={"title": "0"}, b={"title": "0"})

    @tool(
        effect="write",
        name="title",
        key=lambda arguments: (arguments["id"], "b"),
        resource=shelf,
        simulate=lambda state, arguments, key: {"title": arguments["title"]} if key == arguments["id"] else state,
    )
    async def both(id: str, title: str) -> str:
        shelf.items[id] = {"title": title}
        return title

    async with running(both, policy=OPEN + REST) as runtime:
        assert (await runtime.call("title", {"id": "a", "title": "1"}, actor="ann", run="r1")).ok
        assert (await runtime.call("title", {"id": "b", "title": "1"}, actor="ann", run="r2")).ok


@pytest.mark.parametrize(
    ("written", "finding"),
    [
        ('[[cooldown]]\nid = "x"\ntools = ["title"]\nwindow = "soon"\n', "window is written"),
        ('[[cooldown]]\nid = "x"\ntools = ["titel"]\nwindow = "7d"\n', "did you mean 'title'"),
        ('[[cooldown]]\nid = "x"\ntools = ["title"]\nwindow = "7d"\nfor = 1\n', "unknown key 'for'"),
    ],
)
def test_a_wrong_cooldown_is_refused(written: str, finding: str) -> None:
    with pytest.raises(PolicyError, match=finding):
        Runtime.open("memory://", policy=parse_policy(OPEN + written), tools=[retitle(Shelf(), [])])


# Holds


def shelved(shelf: Shelf, seen: list[Any], **options: Any) -> Tool:
    """A write that is made under the lease of a whole shelf board."""

    @tool(
        effect="write",
        key="{id}",
        locks="board:{board}",
        resource=shelf,
        simulate=lambda _state, arguments: {"board": arguments["board"]},
        **options,
    )
    async def put(id: str, board: str, context: Context) -> str:
        seen.append((id, dict(context.tokens)))
        await asyncio.sleep(0.01)
        shelf.items[id] = {"board": board}
        return board

    return put


async def test_changes_under_one_lease_come_one_after_the_other(durable_url: str) -> None:
    shelf, seen = Shelf(), list[Any]()
    async with running(shelved(shelf, seen), url=durable_url) as runtime:
        calls = [runtime.call("put", {"id": f"k{n}", "board": "top"}, actor="ann", call_id=str(n)) for n in range(5)]
        outcomes = await asyncio.gather(*calls)
        assert all(outcome.ok for outcome in outcomes)
    tokens = [tokens["board:top"] for _id, tokens in seen]
    assert sorted(tokens) == tokens
    assert len(set(tokens)) == 5


async def test_a_caller_that_holds_the_lease_makes_all_its_changes_under_one_token(durable_url: str) -> None:
    shelf, seen = Shelf(), list[Any]()
    async with running(shelved(shelf, seen, deadline_s=0.3), url=durable_url) as runtime:
        async with runtime.lock("shelf/board:top") as locks:
            for n in range(3):
                outcome = await runtime.call("put", {"id": f"k{n}", "board": "top"}, actor="ann", turn="t", locks=locks)
                assert outcome.ok
            busy = await runtime.call("put", {"id": "other", "board": "top"}, actor="bob", call_id="c9")
            assert (busy.status, error(busy)) == (Status.FAILED, "busy")
            with pytest.raises(Locked, match="held by somebody else"):
                async with runtime.lock("shelf/board:top"):
                    pass
        assert {tokens["board:top"] for _id, tokens in seen} == {locks[0].token}
        assert (await runtime.call("put", {"id": "other", "board": "top"}, actor="bob", call_id="c10")).ok
        lost = await runtime.call("put", {"id": "late", "board": "top"}, actor="ann", locks=locks, call_id="c8")
        assert (lost.status, error(lost)) == (Status.FAILED, "lease_lost")
        assert "late" not in shelf.items
        entries = [entry async for entry in runtime.operations.journal(turn="t")]
        assert [entry.lock_tokens["board:top"] for entry in entries] == [locks[0].token] * 3
        assert await runtime.operations.recover() == ()


async def test_the_hold_of_a_dead_process_is_taken_over_when_its_lease_is_over(
    durable_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Heart, "keep", _never_renewed)
    clock, shelf = ManualClock(), Shelf()
    settings = Settings(lease_s=5)
    async with running(shelved(shelf, []), url=durable_url, clock=clock, settings=settings) as runtime:
        dead = runtime.lock("shelf/board:top")
        (first,) = await dead.__aenter__()
        with pytest.raises(Locked):
            async with runtime.lock("shelf/board:top"):
                pass
        clock.advance(6.0)
        async with runtime.lock("shelf/board:top") as (second,):
            assert second.token > first.token
            late = await runtime.call("put", {"id": "a", "board": "top"}, actor="ann", locks=(first,), call_id="c11")
            assert error(late) == "lease_lost"
            assert (
                await runtime.call("put", {"id": "a", "board": "top"}, actor="ann", locks=(second,), call_id="c12")
            ).ok
        await dead.__aexit__(None, None, None)


def _never_renewed(heart: Heart, claim: str, holder: str, since_s: float, on_lost: Any) -> Beat:
    """The heart of a process that died."""
    return Beat(heart, claim, holder, since_s, on_lost)


# The journal


async def test_the_journal_tells_what_was_made_planned_and_refused() -> None:
    shelf = Shelf(a={"title": "x"}, b={"title": "y"})
    async with running(guarded(shelf)) as runtime:
        more: dict[str, Any] = {"actor": "ann", "turn": "t", "run": "r", "evidence": ("seen",), "confidence": 0.9}
        await runtime.call("title", {"id": "a", "title": "z"}, **more)
        await runtime.call("title", {"id": "b", "title": "w"}, mode="dry_run", **more)
        await runtime.call("title", {"id": "b", "title": "z"}, **more)
        entries = [entry async for entry in runtime.operations.journal(turn="t")]
        made, planned, denied = entries
        assert (made.status, made.op_type, made.target_ids) == ("done", "title", ("a",))
        assert (made.before, made.after) == ({"a": {"title": "x"}}, {"a": {"title": "z"}})
        assert (made.evidence, made.confidence, made.actor, made.mode, made.run) == (
            ("seen",),
            0.9,
            "ann",
            "apply",
            "r",
        )
        assert made.idempotency_key.endswith(".1")
        (lease,) = await runtime.store.leases(("shelf/a",))
        assert made.lock_tokens == {"a": lease.token}
        assert (planned.status, planned.mode, planned.after) == ("planned", "dry_run", {"b": {"title": "w"}})
        assert (denied.status, denied.rule, denied.reason) == ("denied", "invariant", "'a' has this title")
        await runtime.operations.undo(run="r")
        assert [entry.status async for entry in runtime.operations.journal(run="r")] == ["undone"]


async def test_a_change_that_was_made_undone_and_made_again_is_told_each_time() -> None:
    shelf = Shelf(a={"title": "x"})
    async with running(guarded(shelf)) as runtime:
        more: dict[str, Any] = {"actor": "ann", "turn": "t", "run": "r"}
        await runtime.call("title", {"id": "a", "title": "z"}, **more)
        await runtime.operations.undo(run="r")
        await runtime.call("title", {"id": "a", "title": "z"}, **more)
        entries = [entry async for entry in runtime.operations.journal(run="r")]
        assert [(entry.status, entry.idempotency_key[-2:]) for entry in entries] == [("undone", ".1"), ("done", ".2")]
        assert [step.keys for step in await runtime.operations.undo_plan(run="r")] == [("shelf/a",)]
        assert await runtime.operations.replay_plan("r") == []


async def test_a_refusal_under_the_lease_is_told_with_its_rule_and_changes_nothing() -> None:
    asked: list[int] = []

    async def second(_arguments: Any, _before: Any, _after: Any) -> str:
        asked.append(1)
        return "somebody was faster" if len(asked) == 2 else ""

    shelf = Shelf(a={"title": "x"})
    async with running(retitle(shelf, [], invariants=second)) as runtime:
        outcome = await runtime.call("title", {"id": "a", "title": "z"}, actor="ann", turn="t")
        assert outcome.verdict is not None
        assert (outcome.verdict.rule, outcome.verdict.reason) == ("invariant", "somebody was faster")
        (entry,) = [entry async for entry in runtime.operations.journal(turn="t")]
        assert (entry.status, entry.before, entry.after) == ("failed", {"a": {"title": "x"}}, {"a": {"title": "x"}})


# What a careful reader tried


@pytest.mark.parametrize("point", ["lock.take", "lock.release"])
async def test_a_cancelled_caller_leaves_no_hold_and_loses_no_outcome(durable_url: str, point: str) -> None:
    shelf, seen, task = Shelf(), list[Any](), list[asyncio.Task[Any]]()

    class Cancels:
        def at(self, name: str) -> None:
            if name == point and task and not task[0].cancelling():
                task[0].cancel()

    async with running(shelved(shelf, seen), url=durable_url, faults=Cancels()) as runtime:
        task.append(asyncio.ensure_future(runtime.call("put", {"id": "a", "board": "top"}, actor="ann", call_id="c13")))
        with pytest.raises(asyncio.CancelledError):
            await task[0]
        records = [(r.kind, r.status) async for r in runtime.store.records(Query())]
        made = point == "lock.release"
        assert records == ([("intent", "intent"), ("call", "ok")] if made else [("call", "failed")])
        assert bool(seen) is made
        async with runtime.lock("shelf/board:top"):
            pass


async def test_a_dead_hold_does_not_block_its_key_for_ever(durable_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Heart, "keep", _never_renewed)
    shelf, clock = Shelf(a={"title": "x"}), ManualClock()
    async with running(retitle(shelf, []), url=durable_url, clock=clock, settings=Settings(lease_s=5)) as runtime:
        held = runtime.lock("shelf/a")
        await held.__aenter__()
        clock.advance(6.0)
        assert (await runtime.call("title", {"id": "a", "title": "z"}, actor="ann", call_id="c14")).ok
        again = runtime.lock("shelf/a")
        await again.__aenter__()
        clock.advance(6.0)
        assert await runtime.operations.recover() == ()
        assert all(not lease.holder for lease in await runtime.store.leases(("shelf/a",)))
        for one in (held, again):
            await one.__aexit__(None, None, None)


async def test_a_hold_that_is_lost_before_the_effect_stops_it(
    durable_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Heart, "keep", _never_renewed)
    shelf, seen, clock = Shelf(), list[Any](), ManualClock()
    began: list[bool] = []

    class Sleeps:
        def at(self, name: str) -> None:
            if name == "write.begun" and not began:
                began.append(True)
                clock.advance(6.0)  # a long sleep after the claim

    async with running(
        shelved(shelf, seen), url=durable_url, clock=clock, faults=Sleeps(), settings=Settings(lease_s=5)
    ) as runtime:
        other = Runtime.open(
            durable_url,
            policy=parse_policy(OPEN),
            tools=[shelved(Shelf(), [])],
            clock=clock,
            settings=Settings(lease_s=5),
        )
        held = runtime.lock("shelf/board:top")
        locks = await held.__aenter__()
        clock.advance(6.0)
        async with other.lock("shelf/board:top"):
            outcome = await runtime.call("put", {"id": "a", "board": "top"}, actor="ann", locks=locks, call_id="c15")
        assert (outcome.status, error(outcome), seen) == (Status.FAILED, "lease_lost", [])
        await held.__aexit__(None, None, None)
        await other.close()


async def test_a_tool_may_be_called_hold_and_is_still_recovered() -> None:
    @tool(effect="send", name="hold", key="{to}")
    async def mail(to: str) -> str:
        raise RuntimeError("lost")

    async with running(mail) as runtime:
        assert (await runtime.call("hold", {"to": "x"}, actor="ann", call_id="c16")).status is Status.UNKNOWN
        (found,) = await runtime.operations.recover()
        assert found.state == "asked"


async def test_tokens_of_another_resource_say_nothing(durable_url: str) -> None:
    shelf, seen = Shelf(), list[Any]()
    async with (
        running(shelved(shelf, seen), url=durable_url) as runtime,
        runtime.lock("elsewhere/a", "shelf/b") as locks,
    ):
        assert (await runtime.call("put", {"id": "a", "board": "top"}, actor="ann", locks=locks, call_id="c17")).ok
        (lease,) = [lease for lease in await runtime.store.leases(("shelf/a",)) if lease.key == "shelf/a"]
    assert set(seen[0][1]) == {"a", "b", "board:top"}
    assert seen[0][1]["a"] == lease.token > locks[0].token


async def test_an_undo_is_made_under_the_same_lease(durable_url: str) -> None:
    shelf, seen = Shelf(a={"board": "low"}), list[Any]()
    async with running(shelved(shelf, seen), url=durable_url) as runtime:
        assert (await runtime.call("put", {"id": "a", "board": "top"}, actor="ann", run="r")).ok
        async with runtime.lock("shelf/board:top"):
            undoing = asyncio.ensure_future(runtime.operations.undo(run="r"))
            await asyncio.sleep(0.1)
            assert shelf.items["a"] == {"board": "top"}
        ((_step, outcome),) = await undoing
        assert outcome is not None
        assert outcome.ok
        assert shelf.items["a"] == {"board": "low"}


async def test_an_undo_of_several_says_which_of_them_somebody_else_holds() -> None:
    shelf, held = Shelf(a={"board": "low"}, b={"board": "low"}), Settings(lease_s=3600)
    async with running(shelved(shelf, []), clock=ManualClock(), settings=held) as runtime:
        for item, board in (("a", "top"), ("b", "middle")):
            assert (await runtime.call("put", {"id": item, "board": board}, actor="ann", run="r")).ok
        async with runtime.lock("shelf/board:top"):
            done = await runtime.operations.undo(run="r")
        told = {step.keys[0]: expect(outcome) for step, outcome in done}
        assert (told["shelf/a"].status, error(told["shelf/a"])) == (Status.FAILED, "busy")
        assert told["shelf/b"].ok
        assert shelf.items == {"a": {"board": "top"}, "b": {"board": "low"}}
        ((_step, outcome),) = await runtime.operations.undo(run="r")
        assert expect(outcome).ok
    assert shelf.items["a"] == {"board": "low"}


async def test_an_undo_that_waited_for_a_person_is_made_under_the_same_lease_too() -> None:
    shelf, reviewed = Shelf(a={"board": "low"}), '[[rule]]\nid = "look"\ntools = ["undo.*"]\ndecision = "review"\n'
    clock, held = ManualClock(), Settings(lease_s=3600)
    async with running(shelved(shelf, []), policy=OPEN + reviewed, clock=clock, settings=held) as runtime:
        assert (await runtime.call("put", {"id": "a", "board": "top"}, actor="ann", run="r")).ok
        ((_step, parked),) = await runtime.operations.undo(run="r")
        ticket = expect(expect(parked).ticket)
        await runtime.operations.decide(ticket, approve=True, by="user:boss")
        async with runtime.lock("shelf/board:top"):
            busy = await runtime.operations.resume(ticket)
            assert (busy.status, error(busy), shelf.items["a"]) == (Status.FAILED, "busy", {"board": "top"})
        assert (await runtime.operations.resume(ticket)).ok
    assert shelf.items["a"] == {"board": "low"}


HELD: dict[str, Any] = {"settings": Settings(lease_s=3600)}
"""For clocks that run through a deadline without anybody waiting: no lease ends meanwhile."""
LOOK = '[[rule]]\nid = "look"\ntools = ["title"]\ndecision = "review"\n'


@pytest.mark.parametrize("redact", [(), ("title",)])
async def test_a_call_that_parked_under_a_lock_is_made_under_it_or_not_at_all(
    durable_url: str, redact: tuple[str, ...]
) -> None:
    shelf = Shelf(a={"title": "x"})
    put = retitle(shelf, [], deadline_s=0.2, redact=redact)  # the key of the lock has the title in it
    async with running(put, policy=OPEN + LOOK, url=durable_url, clock=ManualClock(), **HELD) as runtime:
        async with runtime.lock("shelf/board:upper") as locks:
            parked = await runtime.call("title", {"id": "a", "title": "upper"}, actor="ann", call_id="c", locks=locks)
        ticket = expect(parked.ticket)
        await runtime.operations.decide(ticket, approve=True, by="user:boss")
        async with runtime.lock("shelf/board:upper"):
            busy = await runtime.operations.resume(ticket)
        assert (busy.status, error(busy), shelf.items["a"]) == (Status.FAILED, "busy", {"title": "x"})
        assert (await runtime.operations.resume(ticket)).ok
    assert shelf.items["a"] == {"title": "upper"}


async def test_whoever_has_the_lock_of_a_parked_call_hands_it_over() -> None:
    shelf, made = Shelf(a={"title": "x"}), list[Any]()
    async with running(retitle(shelf, made), policy=OPEN + LOOK, clock=ManualClock(), **HELD) as runtime:
        async with runtime.lock("shelf/board:top") as locks:
            parked = await runtime.call("title", {"id": "a", "title": "z"}, actor="ann", call_id="c", locks=locks)
            ticket = expect(parked.ticket)
            await runtime.operations.decide(ticket, approve=True, by="user:boss")
            with pytest.raises(ConfigError, match=r"async with runtime\.lock"):
                await runtime.operations.resume(ticket, locks=locks[0])  # type: ignore[arg-type]
            assert (await runtime.operations.resume(ticket, locks=locks)).ok
        ((_id, _title, context),) = made
        assert context.tokens["board:top"] == locks[0].token


async def test_what_was_handed_over_and_is_lost_makes_no_call() -> None:
    shelf = Shelf(a={"title": "x"})
    async with running(retitle(shelf, []), policy=OPEN + LOOK, clock=ManualClock(), **HELD) as runtime:
        async with runtime.lock("shelf/board:top") as locks:
            parked = await runtime.call("title", {"id": "a", "title": "z"}, actor="ann", call_id="c", locks=locks)
            await runtime.operations.decide(expect(parked.ticket), approve=True, by="user:boss")
        lost = await runtime.operations.resume(expect(parked.ticket), locks=locks)
        assert (error(lost), shelf.items["a"]) == ("lease_lost", {"title": "x"})
        assert (await runtime.operations.resume(expect(parked.ticket))).ok


async def test_a_replay_is_made_under_the_lock_of_its_change(durable_url: str) -> None:
    shelf, down = Shelf(a={"title": "x"}), [True]

    @tool(effect="write", key="{id}", resource=shelf, deadline_s=0.2)
    async def put(id: str, title: str) -> str:
        if down[0]:
            raise InvalidInput("not today")
        shelf.items[id] = {"title": title}
        return title

    async with running(put, url=durable_url, clock=ManualClock(), **HELD) as runtime:
        async with runtime.lock("shelf/board:top") as locks:
            made = await runtime.call("put", {"id": "a", "title": "z"}, actor="ann", run="r", locks=locks)
        assert made.status is Status.FAILED
        down.clear()
        down.append(False)
        async with runtime.lock("shelf/board:top"):
            ((step, busy),) = await runtime.operations.replay("r")
            assert (step.locks, error(expect(busy)), shelf.items["a"]) == (
                ("shelf/board:top",),
                "busy",
                {"title": "x"},
            )
        async with runtime.lock("shelf/board:top") as locks:
            ((_step, again),) = await runtime.operations.replay("r", locks=locks)
        assert expect(again).ok
    assert shelf.items["a"] == {"title": "z"}


def till(back: list[int], **options: Any) -> tuple[Tool, Tool]:
    """A payment under the lease of its till, and the call that makes up for it."""

    @tool(effect="send", deadline_s=0.2, **options)
    async def refund(number: int) -> int:
        back.append(number)
        return number

    @tool(
        effect="send",
        locks=lambda _arguments: ("till",),
        compensate=Compensation("refund", lambda arguments, _value: {"number": arguments["number"]}),
    )
    async def pay(number: int) -> int:
        return number

    return pay, refund


async def test_a_compensation_is_called_under_the_lock_of_what_it_makes_up_for(durable_url: str) -> None:
    back: list[int] = []
    async with running(*till(back), url=durable_url, clock=ManualClock(), **HELD) as runtime:
        assert (await runtime.call("pay", {"number": 1}, actor="ann", run="r")).ok
        async with runtime.lock("pay/till"):
            ((_step, busy),) = await runtime.operations.undo(run="r")
            assert (error(expect(busy)), back) == ("busy", [])
        async with runtime.lock("pay/till") as locks:
            ((_step, outcome),) = await runtime.operations.undo(run="r", locks=locks)
        assert (expect(outcome).status, back) == (Status.OK, [1])


@pytest.mark.parametrize("key", [None, "{id}"])
async def test_a_tool_whose_locks_are_among_what_it_changes_does_not_shut_itself_out(
    store_url: str, key: str | None
) -> None:
    shelf = WholeShelf(a={"title": "0"})

    @tool(effect="write", key=key, resource=shelf, locks=lambda arguments: (arguments["id"],), deadline_s=30)
    async def put(id: str, title: str) -> str:
        shelf.items[id] = {"title": title}
        return title

    async with running(put, url=store_url) as runtime:
        made = await runtime.call("put", {"id": "a", "title": "1"}, actor="ann", call_id="1")
        assert (made.ok, shelf.items) == (True, {"a": {"title": "1"}}), made.summary
        async with runtime.lock("shelf/a") as locks:
            began_s = asyncio.get_running_loop().time()
            shut = await runtime.call("put", {"id": "a", "title": "2"}, actor="ann", call_id="2", locks=locks)
            assert asyncio.get_running_loop().time() - began_s < 20, "not waited for until its deadline"
        assert (shut.status, error(shut)) == (Status.FAILED, "busy")
        assert "its caller has locked what it changes itself" in shut.summary
        assert (await runtime.call("put", {"id": "a", "title": "2"}, actor="ann", call_id="2")).ok
        undone = await runtime.operations.undo(record=expect(made.record), force=True)
        assert len(undone) == 1


async def test_a_compensation_does_not_lock_what_it_changes_itself() -> None:
    back: list[int] = []
    pay, refund = till(back, key="till")
    async with running(pay, refund, clock=ManualClock(), **HELD) as runtime:
        async with runtime.lock("refund/till") as locks:
            assert (await runtime.call("pay", {"number": 1}, actor="ann", run="r", locks=locks)).ok
        ((_step, outcome),) = await runtime.operations.undo(run="r")
    assert (expect(outcome).status, back) == (Status.OK, [1])


async def test_a_cooldown_holds_for_sends_at_once_and_never_for_taking_back() -> None:
    made: list[str] = []

    @tool(effect="send", name="title", key="{to}", once_per="run")
    async def mail(to: str) -> str:
        await asyncio.sleep(0.01)
        made.append(to)
        return "sent"

    everything = REST.replace('["title"]', '["*"]').replace('actors = ["ann"]\n', "")
    async with running(mail, policy=OPEN + everything) as runtime:
        outcomes = await asyncio.gather(
            *(runtime.call("title", {"to": "x"}, actor="ann", run=f"r{n}") for n in range(3))
        )
        assert sorted(outcome.status.value for outcome in outcomes) == ["denied", "denied", "ok"]
        assert made == ["x"]
    shelf = Shelf(a={"title": "0"})
    async with running(retitle(shelf, []), policy=OPEN + everything) as runtime:
        assert (await runtime.call("title", {"id": "a", "title": "1"}, actor="ann", turn="t")).ok
        assert (await runtime.call("title", {"id": "a", "title": "2"}, actor="ann", turn="t")).ok
        done = await runtime.operations.undo(turn="t")
        assert all(outcome is not None and outcome.ok for _step, outcome in done)


async def test_a_cooldown_sees_changes_of_the_whole_resource() -> None:
    shelf = WholeShelf(a={"title": "0"}, b={"title": "0"})

    @tool(
        effect="write",
        name="all",
        resource=shelf,
        simulate=lambda state, arguments: {**state, "a": {"title": arguments["title"]}},
    )
    async def everything(title: str) -> str:
        shelf.items["a"] = {"title": title}
        return title

    rest = REST.replace('["title"]', '["title", "all"]')
    async with running(retitle(shelf, []), everything, policy=OPEN + rest) as runtime:
        assert (await runtime.call("title", {"id": "a", "title": "1"}, actor="ann", run="r1")).ok
        assert error(await runtime.call("all", {"title": "2"}, actor="ann", run="r2")) == "cooldown"
        assert (await runtime.call("all", {"title": "2"}, actor="bob", run="r2")).ok
        assert error(await runtime.call("title", {"id": "a", "title": "3"}, actor="ann", run="r3")) == "cooldown"
        assert (await runtime.call("title", {"id": "b", "title": "3"}, actor="ann", run="r3")).ok  # nobody touched it


async def test_a_repetition_that_changed_nothing_still_counts_as_one() -> None:
    """set x, somebody sets y past the gate, set y (which changes nothing), set x: it is x in the end."""
    shelf = Shelf(a={"title": "0"})
    async with running(retitle(shelf, [])) as runtime:
        for title, outside in (("x", "y"), ("y", None), ("x", None)):
            assert (await runtime.call("title", {"id": "a", "title": title}, actor="ann", turn="t")).ok
            if outside is not None:
                shelf.items["a"] = {"title": outside}
        assert shelf.items["a"] == {"title": "x"}
