"""Changes on the one path: planned, made once, told apart from repetitions, and honest about what nobody knows."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from interlock import Context, ContractError, Outcome, PolicyError, Runtime, Status, Tool, tool
from interlock.audit import verify
from interlock.config import Settings
from interlock.errors import (
    Conflict,
    Forbidden,
    InDoubt,
    NothingLanded,
    StoreError,
    TimedOut,
    Transient,
    Unavailable,
)
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock.state import ClaimState
from interlock.stores import MemoryStore
from interlock.testing import ManualClock
from interlock.tools import Limits, RetryRule
from interlock.transitions import Batch, Receipt
from tests.conftest import expect

OPEN = (
    'version = 1\nmode = "apply"\n[review]\nvouched = ["user", "svc"]\n'
    '[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n'
)


class Shelf:
    """A resource in a dict; `broken` makes it unreadable."""

    name = "shelf"

    def __init__(self, **items: Any) -> None:
        self.items: dict[str, Any] = dict(items)
        self.broken = False
        self.restored: list[tuple[str, Any]] = []

    async def read_state(self, key: str) -> Any:
        if self.broken:
            raise OSError("the shelf is locked")
        return self.items.get(key)

    async def restore(self, key: str, state: Any) -> None:
        self.restored.append((key, state))
        if state is None:
            self.items.pop(key, None)
        else:
            self.items[key] = state


class WholeShelf(Shelf):
    """One that can be looked at as a whole."""

    async def snapshot(self) -> dict[str, Any]:
        return {key: dict(value) for key, value in self.items.items()}


Made = tuple[str, str, Context]
"""What `retitle` notes: id, title, and what it was handed."""


def retitle(shelf: Shelf, made: list[Made], **options: Any) -> Tool:
    """A write tool: sets a title."""

    @tool(
        effect="write",
        key="{id}",
        resource=shelf,
        simulate=lambda state, arguments: {**(state or {}), "title": arguments["title"]},
        **options,
    )
    async def title(id: str, title: str, context: Context) -> str:
        made.append((id, title, context))
        shelf.items[id] = {**shelf.items.get(id, {}), "title": title}
        return title

    return title


def keyed_mailing(made: list[Any], *errors: BaseException) -> Tool:
    """A send tool whose other side honours the idempotency key."""
    left, keys = list(errors), set[str | None]()

    @tool(effect="send", idempotent=True, retry=RetryRule(max_attempts=3, base_s=0.001))
    async def mail(to: str, context: Context) -> str:
        made.append(to)
        keys.add(context.idempotency_key)
        assert len(keys) == 1, "every attempt of a call is made under one key"
        if left:
            raise left.pop(0)
        return "sent"

    return mail


def mailing(made: list[Any], *errors: BaseException, **options: Any) -> Tool:
    """A send tool that raises what it is given first."""
    left = list(errors)

    @tool(effect="send", **{"retry": RetryRule(max_attempts=3, base_s=0.001), **options})
    async def mail(to: str) -> str:
        made.append(to)
        if left:
            raise left.pop(0)
        return "sent"

    return mail


@asynccontextmanager
async def running(*tools: Tool, policy: str = OPEN, url: str = "memory://", **parts: Any) -> AsyncIterator[Runtime]:
    runtime = Runtime.open(url, policy=parse_policy(policy), tools=tools, **parts)
    async with runtime:
        yield runtime


async def kinds(runtime: Runtime) -> list[tuple[str, str]]:
    return [(record.kind, record.status) async for record in runtime.store.records(Query())]


def error(outcome: Outcome) -> str:
    assert outcome.problem is not None, outcome
    return outcome.problem.reason


# Plans and modes


async def test_a_dry_run_is_the_default_and_shows_what_would_change() -> None:
    shelf = Shelf(a={"title": "old", "pages": 9})
    made: list[Made] = []
    async with running(retitle(shelf, made), policy=OPEN.replace('mode = "apply"\n', "")) as runtime:
        outcome = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann")
        assert await kinds(runtime) == [("call", "planned")]
    assert (outcome.status, made, shelf.items["a"]["title"]) == (Status.PLANNED, [], "old")
    plan = outcome.plan
    assert plan is not None
    assert (plan.keys, plan.risk) == (("shelf/a",), "medium")
    assert (plan.before, plan.after) == ([{"title": "old", "pages": 9}], [{"title": "new", "pages": 9}])
    assert plan.diff is not None
    assert '-  "title": "old"' in plan.diff
    assert '+  "title": "new"' in plan.diff


@pytest.mark.parametrize(
    ("before", "after", "risk"),
    [(None, {"x": 1}, "low"), ({"x": 1}, {"x": 2}, "medium"), ({"x": 1}, None, "high"), ({"x": 1}, {"x": 1}, "none")],
)
async def test_risk_comes_from_the_difference(before: Any, after: Any, risk: str) -> None:
    shelf = Shelf(**({} if before is None else {"a": before}))

    @tool(effect="write", key="a", resource=shelf, simulate=lambda _state, _arguments: after)
    async def change() -> None: ...

    async with running(change) as runtime:
        outcome = await runtime.call("change", {}, actor="ann", mode="dry_run")
    assert outcome.plan is not None
    assert outcome.plan.risk == risk


async def test_rules_of_the_policy_say_how_risky_a_plan_is() -> None:
    shelf = Shelf(a={"price": 10}, b={"price": 10}, c={"title": "no price"})
    policy = (
        OPEN
        + '[[risk]]\nid = "dear"\ntools = ["price"]\nlevel = "high"\n'
        + 'when = "plan.after[0].price > plan.before[0].price * 2"\n'
        + '[[risk]]\nid = "small"\ntools = ["price"]\nlevel = "low"\nwhen = "args.price < 15"\n'
        + '[[rule]]\nid = "ask"\ntools = ["price"]\ndecision = "review"\nwhen = "plan.risk == \'high\'"\n'
    )

    @tool(effect="write", key="{id}", resource=shelf, simulate=lambda _state, a: {"price": a["price"]})
    async def price(id: str, price: int) -> int:
        shelf.items[id] = {"price": price}
        return price

    async with running(price, policy=policy) as runtime:
        dear = await runtime.call("price", {"id": "a", "price": 21}, actor="ann", call_id="c1")
        small = await runtime.call("price", {"id": "b", "price": 11}, actor="ann", call_id="c2")
        odd = await runtime.call("price", {"id": "c", "price": 11}, actor="ann", call_id="c3")
    assert (dear.status, expect(dear.plan).risk) == (Status.PARKED, "high")
    assert (small.status, expect(small.plan).risk) == (Status.OK, "low")
    assert (odd.status, expect(odd.plan).risk) == (Status.PARKED, "high")
    for bad in ('level = "huge"\nwhen = "true"', 'level = "low"', 'level = "low"\nwhen = "args.nope > 1"'):
        with pytest.raises(PolicyError, match=r"level is one of|when is missing|no parameter 'nope'"):
            Runtime.open(
                "memory://", policy=parse_policy(f'{OPEN}[[risk]]\nid = "x"\ntools = ["price"]\n{bad}\n'), tools=[price]
            )


async def test_apply_can_demand_the_plan_that_was_looked_at() -> None:
    shelf = Shelf()
    made: list[Made] = []
    async with running(retitle(shelf, made)) as runtime:
        look = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", mode="dry_run", call_id="c4")
        assert look.plan is not None
        digest = look.plan.digest
        other = await runtime.call("title", {"id": "a", "title": "newer"}, actor="ann", plan=digest, call_id="c5")
        shelf.items["a"] = {"title": "somebody else's"}
        late = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", plan=digest, call_id="c6")
        odd = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", plan="nonsense", call_id="c7")
        del shelf.items["a"]
        fine = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", plan=digest, call_id="c8")
    assert (other.status, error(other)) == (Status.DENIED, "plan_moved")
    assert "the arguments changed since" in other.summary
    assert "the resource changed since" in late.summary
    assert "there is no plan 'nonsense'" in odd.summary
    assert fine.ok
    assert len(made) == 1


async def test_a_policy_that_moved_voids_a_plan() -> None:
    shelf = Shelf()
    made: list[Made] = []
    change = retitle(shelf, made)
    async with running(change) as runtime:
        look = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", mode="dry_run", call_id="c9")
        store = runtime.store
        stricter = OPEN + '[[rule]]\nid = "no"\ntools = ["title"]\ndecision = "deny"\nwhen = "args.id == \'b\'"\n'
        changed = Runtime.open(store, policy=parse_policy(stricter), tools=[change])
        assert look.plan is not None
        late = await changed.call(
            "title", {"id": "a", "title": "new"}, actor="ann", plan=look.plan.digest, call_id="c10"
        )
    assert "the policy changed since" in late.summary
    assert made == []


async def test_rules_see_the_plan() -> None:
    shelf = Shelf(a={"title": "keep"})
    made: list[Made] = []
    rule = '[[rule]]\nid = "p"\ntools = ["title"]\ndecision = "deny"\nwhen = "plan.risk == \'medium\'"\n'
    async with running(retitle(shelf, made), policy=OPEN + rule) as runtime:
        denied = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", call_id="c11")
        fine = await runtime.call("title", {"id": "b", "title": "new"}, actor="ann", call_id="c12")
    assert (denied.status, expect(denied.verdict).rule, fine.ok) == (Status.DENIED, "p", True)
    assert [item[0] for item in made] == ["b"]


async def test_redacted_fields_are_in_no_diff() -> None:
    shelf = Shelf(a={"pin": "4711-secret", "title": "x"})
    change = retitle(shelf, [], redact={"pin"})
    async with running(change) as runtime:
        outcome = await runtime.call("title", {"id": "a", "title": "4711-secret?"}, actor="ann", mode="dry_run")
        texts = [record.body async for record in runtime.store.records(Query())]
    assert outcome.plan is not None
    assert outcome.plan.diff is not None
    assert "4711-secret" not in outcome.plan.diff
    assert all('"before"' not in text for text in texts)


# Once


async def test_a_change_leaves_an_intent_and_an_outcome_and_hands_the_tool_its_key_and_token() -> None:
    shelf = Shelf()
    made: list[Made] = []
    async with running(retitle(shelf, made)) as runtime:
        outcome = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", turn="t")
        assert await kinds(runtime) == [("intent", "intent"), ("call", "ok")]
        claim = await runtime.store.claim(expect(outcome.plan).claim)
        (lease,) = await runtime.store.leases(("shelf/a",))
    context = made[0][2]
    assert outcome.plan is not None
    assert (context.idempotency_key, context.tokens) == (outcome.plan.idempotency_key, {"a": lease.token})
    assert claim is not None
    assert (claim.state, claim.intent, claim.record, claim.tokens) == (ClaimState.DONE, 1, 2, (lease.token,))
    assert (lease.holder, lease.changed) == ("", lease.token)


async def test_the_same_content_in_a_turn_is_the_same_change(store_url: str) -> None:
    shelf = Shelf()
    made: list[Made] = []
    async with running(retitle(shelf, made), url=store_url) as runtime:
        first = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", turn="t", call_id="1")
        again = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", turn="t", call_id="2")
        other = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", turn="u", call_id="1")
    assert (first.value, again.value, other.value) == ("new", "new", "new")
    assert len(made) == 2  # another turn is another scope
    assert again.verdict == first.verdict


async def test_a_repetition_after_another_change_of_the_key_is_a_new_change(store_url: str) -> None:
    shelf = Shelf()
    made: list[Made] = []
    async with running(retitle(shelf, made), url=store_url) as runtime:
        for title in ("x", "y", "x", "x"):
            assert (await runtime.call("title", {"id": "a", "title": title}, actor="ann", turn="t")).ok
        redelivered = await runtime.call("title", {"id": "a", "title": "z"}, actor="ann", turn="t", call_id="c")
        await runtime.call("title", {"id": "a", "title": "w"}, actor="ann", turn="t")
        same = await runtime.call("title", {"id": "a", "title": "z"}, actor="ann", turn="t", call_id="c")
    assert [item[1] for item in made] == ["x", "y", "x", "z", "w"]
    assert expect(made[2][2].idempotency_key).endswith(".2")
    assert (redelivered.value, same.value) == ("z", "z")  # a redelivery is the same call, whatever came since


async def test_once_per_sets_the_scope_and_repeatable_lifts_it() -> None:
    made: list[str] = []
    ever = mailing(made, once_per="ever")
    async with running(ever) as runtime:
        for turn in ("a", "b"):
            assert (await runtime.call("mail", {"to": "x"}, actor="ann", turn=turn)).ok
    assert made == ["x"]
    again: list[str] = []
    async with running(mailing(again, repeatable=True)) as runtime:
        for call_id in ("1", "2", "2"):
            assert (await runtime.call("mail", {"to": "x"}, actor="ann", turn="t", call_id=call_id)).ok
        reused = await runtime.call("mail", {"to": "y"}, actor="ann", turn="t", call_id="2")
    assert again == ["x", "x"]
    assert (reused.status, error(reused)) == (Status.DENIED, "call_id_reused")


async def test_callers_at_the_same_time_get_one_effect_and_one_answer(store_url: str) -> None:
    made: list[str] = []

    @tool(effect="send")
    async def slow(to: str) -> str:
        made.append(to)
        await asyncio.sleep(0.05)
        return f"sent to {to}"

    async with running(slow, url=store_url) as runtime:
        calls = [runtime.call("slow", {"to": "x"}, actor="ann", turn="t") for _ in range(12)]
        outcomes = await asyncio.gather(*calls)
    assert {outcome.value for outcome in outcomes} == {"sent to x"}
    assert made == ["x"]


async def test_changes_of_one_key_take_turns_and_several_keys_do_not_deadlock() -> None:
    shelf = Shelf()
    inside: list[list[str]] = []
    most: list[int] = []

    @tool(effect="write", key=lambda a: tuple(a["ids"]), resource=shelf, timeout_s=20)
    async def swap(ids: list[str], n: int) -> int:
        inside.append(ids)
        most.append(sum(1 for other in inside if set(other) & set(ids)))
        await asyncio.sleep(0.001)
        inside.remove(ids)
        return n

    async with running(swap) as runtime:
        pairs = (["a", "b"], ["b", "a"], ["b", "c"])
        calls = [runtime.call("swap", {"ids": pairs[n % 3], "n": n}, actor="ann", call_id=str(n)) for n in range(12)]
        outcomes = await asyncio.gather(*calls)
    assert all(outcome.ok for outcome in outcomes)
    assert max(most) == 1


# What is the same


async def test_a_change_that_nobody_could_recognise_again_is_refused_and_says_what_to_pass(store_url: str) -> None:
    made: list[Any] = []
    shelf = Shelf()
    async with running(mailing(made), retitle(shelf, made), url=store_url) as runtime:
        sent = await runtime.call("mail", {"to": "x"}, actor="ann", evidence=("note",))
        written = await runtime.call("title", {"id": "a", "title": "x"}, actor="ann")
        looked = await runtime.call("title", {"id": "a", "title": "x"}, actor="ann", mode="dry_run")
    for refused in (sent, written):
        assert (refused.status, error(refused)) == (Status.DENIED, "no_call_id")
        assert "pass call_id= (your own id for this request), turn= or run=" in refused.summary
        assert "once_per" in expect(refused.problem).hints[0]
    assert (looked.status, made) == (Status.PLANNED, [])


async def test_a_web_handler_that_tries_again_pays_once(store_url: str) -> None:
    made: list[Any] = []
    async with running(mailing(made), url=store_url) as runtime:
        first = await runtime.call("mail", {"to": "x"}, actor="ann", call_id="order-17")
        again = await runtime.call("mail", {"to": "x"}, actor="ann", call_id="order-17")
        other = await runtime.call("mail", {"to": "y"}, actor="ann", call_id="order-17")
        later = await runtime.call("mail", {"to": "x"}, actor="ann", call_id="order-18")
    assert (first.ok, again.ok, again.value, later.ok) == (True, True, "sent", True)
    assert (other.status, error(other)) == (Status.DENIED, "call_id_reused")
    assert made == ["x", "x"]


async def test_a_redelivery_is_the_same_call_whatever_happened_since(store_url: str) -> None:
    shelf = Shelf(a={"title": "0"})
    made: list[Made] = []
    async with running(retitle(shelf, made), url=store_url) as runtime:
        for title, call in (("1", "c1"), ("2", "c2"), ("1", "c1")):
            assert (await runtime.call("title", {"id": "a", "title": title}, actor="ann", call_id=call)).value == title
        assert shelf.items["a"] == {"title": "2"}
        await runtime.operations.undo(key="shelf/a")
        assert (await runtime.call("title", {"id": "a", "title": "2"}, actor="ann", call_id="c2")).ok
    assert [title for _id, title, _context in made] == ["1", "2"]
    assert shelf.items["a"] != {"title": "2"}


async def test_what_was_made_before_has_not_failed_where_the_second_delivery_cannot_be_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []

    async def full(_batch: Batch) -> Receipt:
        raise StoreError("the disk is full")

    async with running(mailing(made)) as runtime:
        assert (await runtime.call("mail", {"to": "x"}, actor="ann", call_id="1")).ok
        monkeypatch.setattr(runtime.store, "commit", full)
        again = await runtime.call("mail", {"to": "x"}, actor="ann", call_id="1")
        other = await runtime.call("mail", {"to": "x"}, actor="ann", call_id="2")
    assert (again.status, error(again)) == (Status.UNKNOWN, "store_unavailable")
    assert (other.status, error(other)) == (Status.FAILED, "store_unavailable")
    assert made == ["x"]


async def test_once_ever_is_once_whatever_was_sent_in_between(store_url: str) -> None:
    made: list[Any] = []
    async with running(mailing(made, once_per="ever", key="{to}"), url=store_url) as runtime:
        for n, to in enumerate(["x", "y", "x", "y", "x"]):
            assert (await runtime.call("mail", {"to": to}, actor="ann", turn=f"t{n}")).ok
    assert made == ["x", "y"]


async def test_the_same_content_in_a_run_is_the_same_change_unless_call_ids_tell_it_apart() -> None:
    made: list[Any] = []
    async with running(mailing(made)) as runtime:
        told: list[dict[str, Any]] = [{"run": "r"}] * 2 + [{"run": "r", "call_id": "c"}] * 2
        for details in told:
            assert (await runtime.call("mail", {"to": "x"}, actor="ann", **details)).ok
    assert made == ["x", "x"]


# What failed, and what nobody knows


@pytest.mark.parametrize("raised", [NothingLanded("down"), Forbidden("no"), Conflict("moved")])
async def test_failed_is_not_done_and_may_be_tried_again(raised: Exception) -> None:
    made: list[str] = []
    async with running(mailing(made, raised, retry=RetryRule(max_attempts=1))) as runtime:
        failed = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
        again = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
    assert (failed.status, again.status, len(made)) == (Status.FAILED, Status.OK, 2)


@pytest.mark.parametrize(
    "raised",
    [
        InDoubt("lost"), Unavailable("its answer was lost"), Transient("later"), TimedOut("no answer"),
        RuntimeError("crash"), ConnectionResetError("reset"), ConnectionRefusedError("after half of the work"),
        socket.gaierror("no such host"), FileNotFoundError("receipt"), KeyError(1),
    ],
)  # fmt: skip
async def test_what_may_have_landed_is_unknown_and_never_repeated(raised: Exception) -> None:
    made: list[str] = []
    async with running(mailing(made, raised)) as runtime:
        first = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
        again = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
    assert (first.status, error(first)) == (Status.UNKNOWN, "in_doubt")
    assert (again.status, error(again)) == (Status.UNKNOWN, "in_doubt")
    assert made == ["x"]


async def test_nothing_landed_is_retried_and_an_idempotent_tool_may_retry_what_was_lost() -> None:
    made: list[str] = []
    async with running(mailing(made, NothingLanded("down"))) as runtime:
        assert (await runtime.call("mail", {"to": "x"}, actor="ann", call_id="c15")).ok
    lost: list[str] = []
    async with running(keyed_mailing(lost, ConnectionResetError("reset"))) as runtime:
        outcome = await runtime.call("mail", {"to": "x"}, actor="ann", call_id="c14")
    assert outcome.ok
    assert (len(made), len(lost), len(outcome.attempts)) == (2, 2, 2)


@pytest.mark.parametrize(("says", "status"), [(True, Status.OK), (False, Status.FAILED), (None, Status.UNKNOWN)])
async def test_a_probe_settles_a_lost_answer(says: bool | None, status: Status) -> None:
    made: list[str] = []
    asked: list[tuple[dict[str, Any], str | None]] = []

    async def probe(arguments: Any, context: Context) -> bool | None:
        asked.append((dict(arguments), context.idempotency_key))
        return says

    async with running(mailing(made, InDoubt("lost"), probe=probe)) as runtime:
        outcome = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
    assert outcome.status is status
    assert outcome.plan is not None
    assert asked == [({"to": "x"}, outcome.plan.idempotency_key)]


async def test_a_call_that_waits_for_another_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("interlock.engine.waiting._SAY_AFTER_S", 0.0)
    caplog.set_level("INFO", "interlock.waiting")
    shelf, begun, go_on = Shelf(), asyncio.Event(), asyncio.Event()
    both_wait = asyncio.Event()

    def count(_record: logging.LogRecord) -> bool:
        if caplog.text.count("waiting for") == 1:  # it is asked before the second line is kept
            both_wait.set()
        return True

    monkeypatch.setattr(logging.getLogger("interlock.waiting"), "filters", [count])

    @tool(effect="write", key="{id}", resource=shelf)
    async def put(id: str, v: int) -> int:
        begun.set()
        await go_on.wait()
        return v

    async with running(put) as runtime:
        first = asyncio.ensure_future(runtime.call("put", {"id": "a", "v": 1}, actor="ann", call_id="first"))
        await begun.wait()
        again = asyncio.ensure_future(runtime.call("put", {"id": "a", "v": 1}, actor="ann", call_id="first"))
        other = asyncio.ensure_future(runtime.call("put", {"id": "a", "v": 2}, actor="ann", call_id="other"))
        await both_wait.wait()
        go_on.set()
        assert all(outcome.ok for outcome in await asyncio.gather(first, again, other))
    assert caplog.text.count("waiting for call 'first', which has begun this very change: until it ends or") == 1
    assert caplog.text.count("waiting for another change of the same key: until") == 1


async def test_a_resource_that_shows_the_change_settles_it_too(caplog: pytest.LogCaptureFixture) -> None:
    shelf = Shelf()

    @tool(effect="write", key="{id}", resource=shelf, simulate=lambda _s, a: {"v": a["v"]})
    async def put(id: str, v: int, lands: bool) -> int:
        if lands:
            shelf.items[id] = {"v": v}
        raise RuntimeError("the answer is lost")

    async with running(put) as runtime:
        landed = await runtime.call("put", {"id": "a", "v": 1, "lands": True}, actor="ann", turn="t")
        again = await runtime.call("put", {"id": "a", "v": 1, "lands": True}, actor="ann", turn="t")
        not_landed = await runtime.call("put", {"id": "b", "v": 1, "lands": False}, actor="ann", turn="t")
        (kept,) = [r async for r in runtime.store.records(Query()) if r.id == landed.record]
    assert landed.ok
    assert [error(outcome) for outcome in (landed, again, not_landed)] == ["answer_lost", "answer_lost", "in_doubt"]
    assert expect(kept.content().problem).reason == "answer_lost", "whoever reads the ledger sees that nobody heard it"
    assert "RuntimeError" in caplog.text
    assert "put by ann: ok (rule open): answer_lost" in caplog.text
    assert "interlock recover" in not_landed.summary
    assert "it landed (the resource shows it), and its answer is lost: it raised RuntimeError" in landed.summary
    assert not_landed.status is Status.UNKNOWN  # it may still come


async def test_a_result_that_breaks_its_promise_has_landed_all_the_same() -> None:
    made: list[int] = []

    @tool(effect="send")
    async def mail(n: int) -> int:
        made.append(n)
        return "sent"  # type: ignore[return-value]

    async with running(mail) as runtime:
        first = await runtime.call("mail", {"n": 1}, actor="ann", turn="t")
        again = await runtime.call("mail", {"n": 1}, actor="ann", turn="t")
    assert (first.status, error(first), error(again)) == (Status.FAILED, "bad_result", "bad_result")
    assert made == [1]


async def test_a_timed_out_effect_is_unknown_and_its_key_stays_blocked() -> None:
    shelf = Shelf()

    @tool(effect="write", key="{id}", resource=shelf, timeout_s=0.05, deadline_s=0.2)
    async def put(id: str, n: int) -> int:
        await asyncio.sleep(30)
        return n

    async with running(put) as runtime:
        slow = await runtime.call("put", {"id": "a", "n": 1}, actor="ann", turn="t")
        other = await runtime.call("put", {"id": "a", "n": 2}, actor="ann", turn="t")
    assert slow.status is Status.UNKNOWN
    assert (other.status, error(other)) == (Status.FAILED, "blocked")


async def test_a_cancelled_caller_waits_for_the_outcome_and_it_is_recorded() -> None:
    shelf = Shelf()
    made: list[str] = []
    entered = asyncio.Event()

    @tool(effect="write", key="{id}", resource=shelf)
    async def put(id: str) -> str:
        entered.set()
        await asyncio.sleep(0.05)
        shelf.items[id] = {"v": 1}
        made.append(id)
        return id

    async with running(put) as runtime:
        task = asyncio.create_task(runtime.call("put", {"id": "a"}, actor="ann", turn="t"))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert made == ["a"]
        assert await kinds(runtime) == [("intent", "intent"), ("call", "ok")]
        again = await runtime.call("put", {"id": "a"}, actor="ann", turn="t")
    assert (again.ok, made) == (True, ["a"])


async def test_a_resource_that_cannot_be_read_plans_nothing() -> None:
    shelf = Shelf()
    made: list[Made] = []
    shelf.broken = True
    async with running(retitle(shelf, made)) as runtime:
        outcome = await runtime.call("title", {"id": "a", "title": "x"}, actor="ann", call_id="c16")
    assert (outcome.status, error(outcome), made) == (Status.FAILED, "unreadable", [])
    assert "cannot be read: it raised OSError, whose traceback is in the log" in outcome.summary


class FailingStore:
    """A store whose nth commit fails."""

    def __init__(self, inner: Any, fails: int) -> None:
        self._inner, self._fails, self.commits = inner, fails, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def commit(self, batch: Any) -> Any:
        self.commits += 1
        if self.commits == self._fails:
            raise StoreError("the disk is full")
        return await self._inner.commit(batch)


@pytest.mark.parametrize(("fails", "status", "effects"), [(1, Status.FAILED, 0), (2, Status.UNKNOWN, 1)])
async def test_a_store_that_fails_before_or_after_the_effect(fails: int, status: Status, effects: int) -> None:
    made: list[str] = []
    store = FailingStore(MemoryStore(), fails)
    runtime = Runtime.open(store, policy=parse_policy(OPEN), tools=[mailing(made, deadline_s=0.3)])
    outcome = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
    assert (outcome.status, error(outcome), len(made)) == (status, "store_unavailable", effects)
    again = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t")
    assert len(made) == 1
    # The claim of what was sent stays open until it is settled: whoever asks again is not told that it failed.
    assert (again.status, fails) in ((Status.OK, 1), (Status.UNKNOWN, 2))


ORDER: dict[str, Any] = {"actor": "ann", "call_id": "order-1"}


class SilentStore:
    """A store that never answers one kind of question, from the nth time on."""

    def __init__(self, inner: Any, asks: str, first: int = 1) -> None:
        self._inner, self._asks, self._left = inner, asks, first

    def __getattr__(self, name: str) -> Any:
        return self._ask if name == self._asks else getattr(self._inner, name)

    async def _ask(self, *arguments: Any) -> Any:
        self._left -= 1
        if self._left <= 0:
            await asyncio.Event().wait()
        return await getattr(self._inner, self._asks)(*arguments)


class SilentRecords:
    """A store whose records cannot be read."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def records(self, _query: Query) -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield


async def ask_again(first: Any, then: Any, made: list[str]) -> Outcome:
    """A mail that is sent over one store and delivered again, under the same call id, over another."""
    mail = mailing(made, deadline_s=0.3)
    await Runtime.open(first, policy=parse_policy(OPEN), tools=[mail]).call("mail", {"to": "x"}, **ORDER)
    return await Runtime.open(then, policy=parse_policy(OPEN), tools=[mail]).call("mail", {"to": "x"}, **ORDER)


@pytest.mark.slow
@pytest.mark.parametrize("silent", [None, ("claim", 2), ("now_us", 1), ("now_us", 2)])
async def test_while_somebody_may_be_making_the_same_change_nobody_is_told_that_it_failed(
    silent: tuple[str, int] | None,
) -> None:
    made: list[str] = []
    store = MemoryStore()
    first = FailingStore(store, 2)  # it is sent, and what came of it is never written down: its claim stays open
    again = await ask_again(first, store if silent is None else SilentStore(store, *silent), made)
    assert (again.status, error(again), made) == (Status.UNKNOWN, "in_progress", ["x"])
    assert "call 'order-1' is still making this very change" in again.summary


@pytest.mark.parametrize("asks", ["claim", "halts"])
async def test_a_change_that_could_not_be_looked_up_is_not_said_to_be_undone(asks: str) -> None:
    made: list[str] = []
    store = MemoryStore()
    again = await ask_again(store, SilentStore(store, asks), made)
    assert (again.status, error(again), made) == (Status.FAILED, "timeout", ["x"])
    assert "before anything was done" not in again.summary
    assert "whether the same change was made before could not be looked up" in again.summary


async def test_a_change_that_was_made_is_not_said_to_have_failed_because_its_record_cannot_be_read() -> None:
    made: list[str] = []
    store = MemoryStore()
    again = await ask_again(store, SilentRecords(store), made)
    assert (again.status, error(again), made) == (Status.UNKNOWN, "timeout", ["x"])
    assert "call 'order-1' made this very change" in again.summary


class DamagedPayloads:
    """A store whose payloads are something else than was written, or cannot be read at all."""

    def __init__(self, inner: Any, payload: bytes | None) -> None:
        self._inner, self._payload = inner, payload

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def payload(self, _record: int) -> bytes:
        if self._payload is None:
            raise StoreError("the key of the payloads is another one")
        return self._payload


@pytest.mark.parametrize("payload", [None, b'{"value": "another"}', b"\x00"])
async def test_a_change_whose_answer_cannot_be_read_was_made_all_the_same(payload: bytes | None) -> None:
    made: list[str] = []

    @tool(effect="send", redact={"iban"})
    async def wire(iban: str) -> str:
        made.append(iban)
        return "paid"

    store = MemoryStore()
    paid = await Runtime.open(store, policy=parse_policy(OPEN), tools=[wire]).call("wire", {"iban": "DE1"}, **ORDER)
    damaged = Runtime.open(DamagedPayloads(store, payload), policy=parse_policy(OPEN), tools=[wire])
    again = await damaged.call("wire", {"iban": "DE1"}, **ORDER)
    assert (again.status, again.value, again.repeats, made) == (Status.OK, None, paid.record, ["DE1"])
    assert f"made before (record {paid.record})" in again.summary


async def test_a_change_that_failed_after_it_was_made_is_still_that_where_its_answer_is_gone() -> None:
    shelf, store = Shelf(), MemoryStore()
    policy = OPEN.replace('mode = "apply"', 'mode = "apply"\nas_planned = ["*"]')

    @tool(effect="write", key="{id}", resource=shelf, redact={"title"}, simulate=lambda _state, _arguments: {"t": "y"})
    async def title(id: str, title: str) -> str:
        shelf.items[id] = {"t": title}
        return title

    first = Runtime.open(store, policy=parse_policy(policy), tools=[title])
    assert error(await first.call("title", {"id": "a", "title": "x"}, **ORDER)) == "not_as_planned"
    damaged = Runtime.open(DamagedPayloads(store, None), policy=parse_policy(policy), tools=[title])
    again = await damaged.call("title", {"id": "a", "title": "x"}, **ORDER)
    assert (again.status, error(again)) == (Status.FAILED, "not_as_planned")


# Under the lease


async def test_a_resource_that_moved_meanwhile_is_planned_again() -> None:
    shelf = Shelf(a={"title": "old"})
    made: list[Made] = []
    moves = [{"title": "moved", "pages": 3}]

    class Moving(Shelf):
        async def read_state(self, key: str) -> Any:
            found = shelf.items.get(key)
            if moves:
                shelf.items["a"] = moves.pop()
            return found

    change = retitle(shelf, made)
    moving = msgspec.structs.replace(change, resource=Moving())
    async with running(moving) as runtime:
        outcome = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", turn="t")
        records = [record async for record in runtime.store.records(Query())]
        claim = await runtime.store.claim(expect(outcome.plan).claim)
    assert outcome.ok
    assert outcome.plan is not None
    assert outcome.plan.before == [{"title": "moved", "pages": 3}]
    assert [record.kind for record in records] == ["intent", "intent", "call"]
    assert expect(records[-1].content().change).intent == 2  # the intent that says what was really done
    assert claim is not None
    assert claim.intent == 2


@pytest.mark.slow
async def test_a_heartbeat_keeps_the_claim_alive_and_a_lost_one_gives_the_effect_up() -> None:
    from interlock.transitions import Batch, RenewClaim, ResolveClaim

    shelf = Shelf()
    renewed: list[RenewClaim] = []
    settings = Settings(lease_s=1.0)
    gone = asyncio.Event()

    @tool(effect="write", key="{id}", resource=shelf, timeout_s=20)
    async def put(id: str) -> str:
        await gone.wait()
        return id

    async with running(put, settings=settings) as runtime:
        renew = runtime.store.renew

        def watching(claims: Sequence[RenewClaim], here_us: int) -> tuple[str, ...]:
            renewed.extend(claims)
            if len(renewed) == 2:
                settled = ResolveClaim(renewed[0].name, renewed[0].holder, ClaimState.FAILED)
                asyncio.run(runtime.store.commit(Batch(here_us + 10_000_000, (settled,))))
            return renew(claims, here_us)

        runtime.store.renew = watching  # type: ignore[method-assign]
        outcome = await asyncio.wait_for(runtime.call("put", {"id": "a"}, actor="ann", turn="t"), 10)
        gone.set()
    assert len(renewed) >= 2
    assert (outcome.status, error(outcome)) == (Status.UNKNOWN, "lease_lost")


async def test_a_tool_that_touches_what_it_finds_is_told_by_comparison() -> None:
    shelf = WholeShelf(a={"n": 1}, b={"n": 2})

    @tool(effect="write", resource=shelf)
    async def bump(above: int) -> int:
        touched = [key for key, item in shelf.items.items() if item["n"] > above]
        for key in touched:
            shelf.items[key] = {"n": shelf.items[key]["n"] + 10}
        return len(touched)

    async with running(bump) as runtime:
        outcome = await runtime.call("bump", {"above": 1}, actor="ann", run="r")
        assert outcome.plan is not None
        assert outcome.plan.keys == ("shelf/*",)

        ((step, undone),) = await runtime.operations.undo(run="r")
    assert step.keys == ("shelf/b",)
    assert undone is not None
    assert undone.ok
    assert shelf.items == {"a": {"n": 1}, "b": {"n": 2}}


# Halts


async def test_a_halt_stops_a_tool_an_actor_a_run_or_everything_in_another_process_too(store_url: str) -> None:
    clock = ManualClock()
    made: list[str] = []
    async with running(mailing(made, repeatable=True), url=store_url, clock=clock) as runtime:
        other = Runtime.open(
            runtime.store, policy=parse_policy(OPEN), tools=[mailing(made, repeatable=True)], clock=clock
        )
        for scope in ("all", "tool:mail", "actor:ann", "run:r"):
            assert (await other.call("mail", {"to": "x"}, actor="ann", run="r")).ok
            await runtime.operations.halt(scope, reason="look first", by="user:boss")
            clock.advance(0.6)
            denied = await other.call("mail", {"to": "x"}, actor="ann", run="r")
            assert (denied.status, error(denied)) == (Status.DENIED, "halted")
            assert "halted by user:boss: look first" in denied.summary
            await runtime.operations.unhalt(scope)
            clock.advance(0.6)
    assert len(made) == 4


@pytest.mark.parametrize("how", [{"call_id": "o1"}, {"turn": "t", "call_id": "o1"}, {"run": "r"}])
async def test_who_asks_again_for_what_is_halted_hears_that_it_was_made(store_url: str, how: Any) -> None:
    made: list[str] = []
    async with running(mailing(made), url=store_url) as runtime:
        first = await runtime.call("mail", {"to": "x"}, actor="ann", **how)
        await runtime.operations.halt("tool:mail", reason="look first", by="user:boss")
        again = await runtime.call("mail", {"to": "x"}, actor="ann", **how)
        assert (again.status, error(again), made) == (Status.DENIED, "halted", ["x"])
        said = f"the same change was made before, by call {first.call_id!r} (record {first.record}): it stands"
        assert said in again.summary, again.summary
        assert said in expect(again.verdict).reason
        other = {**how, **({"call_id": "o2"} if "call_id" in how else {})}
        new = await runtime.call("mail", {"to": "y"}, actor="ann", **other)
        assert (error(new), "made before" in new.summary) == ("halted", False)


@pytest.mark.parametrize(("halted", "calls"), [("bob", "Bob"), ("Bob", "bob"), ("Bob", "Bob"), ("bob", "BOB")])
async def test_a_halt_stops_an_actor_however_its_name_is_written(halted: str, calls: str) -> None:
    async with running(retitle(Shelf(), [])) as runtime:
        await runtime.operations.halt(f"actor:{halted}")
        given: Any = {"actor": calls, "turn": "t"}
        stopped = await runtime.call("title", {"id": "a", "title": "x"}, **given)
        assert (stopped.status, error(stopped)) == (Status.DENIED, "halted")
        await runtime.operations.unhalt(f"actor:{calls}")
        assert (await runtime.call("title", {"id": "a", "title": "x"}, **given)).ok
        assert (await verify(runtime.store)).problems == ()


async def test_a_halt_that_came_a_moment_ago_stops_a_change_at_its_begin() -> None:
    clock = ManualClock()
    made: list[str] = []
    async with running(mailing(made), clock=clock) as runtime:
        other = Runtime.open(runtime.store, policy=parse_policy(OPEN), tools=[mailing(made)], clock=clock)
        assert (
            await other.call("mail", {"to": "x"}, actor="ann", call_id="c18")
        ).ok  # it has looked at the halts just now
        await runtime.operations.halt("tool:mail", reason="now")
        denied = await other.call("mail", {"to": "y"}, actor="ann", call_id="c17")
    assert (denied.status, error(denied), made) == (Status.DENIED, "halted", ["x"])


async def test_a_halt_is_seen_before_every_further_attempt() -> None:
    made: list[str] = []
    clock = ManualClock()

    @tool(effect="read", retry=RetryRule(max_attempts=5, base_s=1.0))
    async def shaky() -> str:
        made.append("x")
        await runtime.operations.halt("tool:shaky", reason="enough")
        raise Unavailable("down")

    async with running(shaky, clock=clock) as runtime:
        outcome = await runtime.call("shaky", {}, actor="ann")
    assert (outcome.status, error(outcome), len(made)) == (Status.FAILED, "halted", 1)


# Contracts


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"effect": "write", "resource": Shelf()}, "names its key, or its resource 'shelf' has snapshot"),
        ({"effect": "write", "key": "{id}", "resource": object()}, "a resource has a name"),
        ({"effect": "send", "resource": Shelf()}, "a send has no state to put back"),
        ({"effect": "send", "once_per": "week"}, "once_per is one of turn, run, actor, ever"),
        ({"effect": "read", "resource": Shelf()}, "a read changes nothing"),
        ({"effect": "read", "repeatable": True}, "a read changes nothing"),
    ],
)
def test_an_effect_that_cannot_be_planned_is_refused_at_registration(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ContractError, match=sentence):

        @tool(**options)
        async def body(id: str) -> str:
            return id


@pytest.mark.parametrize("key", ["", "*", "a\nb", "x" * 600])
async def test_a_key_that_is_none_is_refused(key: str) -> None:
    made: list[Any] = []
    async with running(retitle(Shelf(), made)) as runtime:
        outcome = await runtime.call("title", {"id": key, "title": "x"}, actor="ann")
    assert (outcome.status, made) == (Status.DENIED, [])
    assert "a key is printable text" in outcome.summary


async def test_a_concurrency_limit_gives_its_places_back() -> None:
    made: list[Any] = []
    change = retitle(Shelf(), made, limits=Limits(concurrency=1))
    async with running(change) as runtime:
        calls = [runtime.call("title", {"id": f"k{n}", "title": "x"}, actor="ann", call_id=str(n)) for n in range(5)]
        assert all(outcome.ok for outcome in await asyncio.gather(*calls))
    assert len(made) == 5
