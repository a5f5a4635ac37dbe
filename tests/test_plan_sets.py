"""Plan sets: each change is planned on what those before it would leave, and made so or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from interlock import Compensation, Context, Status, Tool, tool
from interlock.audit import verify
from interlock.errors import NotAllowed, NothingLanded
from interlock.operations import Change, PlannedChange
from interlock.resources import Documents
from interlock.tools import RetryRule
from tests.conftest import expect
from tests.test_changes import OPEN, Shelf, WholeShelf, error, mailing, retitle, running

REVIEW = (
    OPEN + "[[rule]]\nid = 'many'\ntools = ['reserve']\ndecision = 'review'\n"
    "when = 'plan.after[0].reserved > 25'\nreason = 'that is a lot'\n"
)


async def not_too_many(_arguments: Any, _before: Any, after: Any) -> list[str]:
    return [f"{key}: more reserved than there is" for key, state in after.items() if state["reserved"] > state["stock"]]


def stock_tools(shelf: Any, spoil: list[int] | None = None) -> list[Tool]:
    """Receive and reserve goods; `spoil` is what a reservation adds without having said so."""

    @tool(effect="write", key="{item}", resource=shelf, simulate=_received, repeatable=True)
    async def receive(item: str, count: int, context: Context) -> str:
        """Take goods in."""
        shelf.items[item] = _received(shelf.items.get(item), {"count": count})
        return "received"

    @tool(effect="write", key="{item}", resource=shelf, simulate=_reserved, invariants=not_too_many)
    async def reserve(item: str, count: int, context: Context) -> str:
        """Set goods aside."""
        shelf.items[item] = _reserved(shelf.items[item], {"count": count + (spoil.pop() if spoil else 0)})
        return "reserved"

    return [receive, reserve]


def _received(state: Any, arguments: Any) -> Any:
    held = state or {"stock": 0, "reserved": 0}
    return {**held, "stock": held["stock"] + arguments["count"]}


def _reserved(state: Any, arguments: Any) -> Any:
    return {**state, "reserved": state["reserved"] + arguments["count"]}


def reserves(*counts: int, item: str = "bolt") -> list[Change]:
    return [Change("reserve", {"item": item, "count": count}) for count in counts]


def diffs(planned: Sequence[PlannedChange]) -> list[list[str]]:
    """The lines that go and come, of each change."""
    return [
        [line for line in (item.diff or "").splitlines() if line[:1] in "-+" and line[:3] not in ("---", "+++")]
        for item in planned
    ]


async def test_each_change_is_planned_on_what_the_one_before_it_would_leave(store_url: str) -> None:
    shelf = Shelf(bolt={"stock": 50, "reserved": 17})
    async with running(*stock_tools(shelf), url=store_url) as runtime:
        planned, wrong = await runtime.operations.plan_set(reserves(1, 2), actor="ann")
        assert wrong is None
        assert diffs(planned) == [
            ['-  "reserved": 17', '+  "reserved": 18'],
            ['-  "reserved": 18', '+  "reserved": 20'],
        ]
        outcomes = await runtime.operations.apply_set("s", planned, actor="ann")
    assert [outcome.status.value for outcome in outcomes] == ["ok", "ok"]
    assert [expect(outcome.plan).after for outcome in outcomes] == [
        [{"stock": 50, "reserved": 18}],
        [{"stock": 50, "reserved": 20}],
    ]


async def test_what_an_earlier_change_creates_is_there_for_a_later_one(store_url: str) -> None:
    shelf = Shelf()
    changes = [Change("receive", {"item": "pallet", "count": 9}), *reserves(4, item="pallet")]
    async with running(*stock_tools(shelf), url=store_url) as runtime:
        planned, wrong = await runtime.operations.plan_set(changes, actor="ann")
        assert wrong is None
        outcomes = await runtime.operations.apply_set("s", planned, actor="ann")
        (_unplanned, alone) = await runtime.operations.plan_set(reserves(1, item="box"), actor="ann")
    assert [outcome.ok for outcome in outcomes] == [True, True]
    assert shelf.items == {"pallet": {"stock": 9, "reserved": 4}}
    assert "cannot say what it would do" in expect(alone).summary


async def test_changes_that_together_break_an_invariant_or_ask_a_person_are_not_planned_as_if_they_did_not() -> None:
    shelf = Shelf(bolt={"stock": 30, "reserved": 20})
    async with running(*stock_tools(shelf), policy=REVIEW) as runtime:
        planned, wrong = await runtime.operations.plan_set(reserves(4, 5), actor="ann")
        assert (wrong, [bool(item.notes) for item in planned]) == (None, [False, True])
        assert planned[1].notes == (
            "a person will be asked: that is a lot (rule 'many'); the set stops there until then",
        )
        planned, wrong = await runtime.operations.plan_set(reserves(4, 7), actor="ann")
    assert (len(planned), error(expect(wrong))) == (1, "invariant")


async def test_the_same_change_twice_is_planned_once_as_it_is_made(store_url: str) -> None:
    shelf = Shelf(bolt={"stock": 50, "reserved": 0})
    changes = reserves(1, 1, 2, 1)
    async with running(*stock_tools(shelf), url=store_url) as runtime:
        planned, wrong = await runtime.operations.plan_set(changes, actor="ann")
        outcomes = await runtime.operations.apply_set("s", planned, actor="ann")
    assert wrong is None
    # The last one is a change of its own, as another one has changed the key since.
    assert [lines[-1:] for lines in diffs(planned)] == [
        ['+  "reserved": 1'],
        [],
        ['+  "reserved": 3'],
        ['+  "reserved": 4'],
    ]
    assert planned[1].notes == ("the same as change 1 of the set, and made once with that",)
    assert [outcome.repeats is None for outcome in outcomes] == [True, False, True, True]
    assert ([outcome.ok for outcome in outcomes], shelf.items["bolt"]["reserved"]) == ([True] * 4, 4)


async def test_what_is_left_otherwise_than_planned_stops_what_was_planned_on_it() -> None:
    shelf = Shelf(bolt={"stock": 50, "reserved": 0}, nut={"stock": 5, "reserved": 0})
    changes = [*reserves(1), *reserves(1, item="nut"), *reserves(2)]
    async with running(*stock_tools(shelf, [10])) as runtime:
        planned, _wrong = await runtime.operations.plan_set(changes, actor="ann")
        outcomes = await runtime.operations.apply_set("s", planned, actor="ann")
        again = await runtime.operations.apply_set("s", planned, actor="ann")
    assert [outcome.status.value for outcome in outcomes] == ["ok", "ok", "denied"]
    assert outcomes[0].deviates == ("shelf/bolt",)
    assert error(outcomes[2]) == "plan_moved"
    assert outcomes[2].summary == (
        "an earlier change of the set left shelf/bolt otherwise than planned, and this one was planned on that; see what"
        " is there, and plan what is left as a set with another name"
    )
    assert [outcome.status.value for outcome in again] == ["ok", "ok", "denied"]
    assert (shelf.items["bolt"]["reserved"], shelf.items["nut"]["reserved"]) == (11, 1)


async def test_a_set_that_ended_half_way_goes_on_as_it_was_planned_then() -> None:
    shelf, sent = Shelf(bolt={"stock": 17, "reserved": 0}), list[Any]()
    changes = [*reserves(10), Change("mail", {"to": "x"}), *reserves(5)]
    mail = mailing(sent, NothingLanded("down"), retry=RetryRule(max_attempts=1))
    async with running(*stock_tools(shelf), mail) as runtime:
        planned, _wrong = await runtime.operations.plan_set(changes, actor="ann", name="s")
        first = await runtime.operations.apply_set("s", planned, actor="ann")
        # Planned anew, the first one would be refused: 20 of 17.
        stored, wrong = await runtime.operations.plan_set(changes, actor="ann", name="s")
        again = await runtime.operations.apply_set("s", stored, actor="ann")
    assert [outcome.status.value for outcome in first] == ["ok", "failed"]
    assert (stored, wrong) == (planned, None)
    assert ([outcome.ok for outcome in again], shelf.items["bolt"]["reserved"]) == ([True] * 3, 15)


async def test_a_tool_that_cannot_say_what_it_leaves_is_named_beside_what_is_planned_after_it() -> None:
    shelf = Shelf(a={"title": "old"})

    @tool(effect="write", key="{id}", resource=shelf)
    async def stamp(id: str) -> str:
        """Stamp it."""
        shelf.items[id] = {**shelf.items[id], "stamped": True}
        return "stamped"

    changes = [Change("stamp", {"id": "a"}), Change("title", {"id": "a", "title": "new"})]
    async with running(stamp, retitle(shelf, [])) as runtime:
        planned, _wrong = await runtime.operations.plan_set(changes, actor="ann")
        outcomes = await runtime.operations.apply_set("s", planned, actor="ann")
    assert (planned[0].notes, len(planned[1].notes)) == ((), 1)
    assert planned[1].notes[0] == (
        "planned on shelf/a as it is now, and made on what change 1 of the set leaves of it: 'stamp' cannot say that"
        " beforehand (it has no simulate)"
    )
    assert ([outcome.ok for outcome in outcomes], shelf.items["a"]) == ([True] * 2, {"title": "new", "stamped": True})


async def test_a_whole_resource_and_its_parts_are_planned_and_made_on_each_other() -> None:
    shelf = WholeShelf(a={"title": "old"})

    @tool(effect="write", resource=shelf, simulate=lambda state, _arguments: {k: {"title": "all"} for k in state})
    async def retitle_all() -> str:
        """Give everything one title."""
        for key in shelf.items:
            shelf.items[key] = {"title": "all"}
        return "done"

    changes = [
        Change("title", {"id": "b", "title": "new"}),
        Change("retitle_all", {}),
        Change("title", {"id": "b", "title": "newer"}),
    ]
    async with running(retitle_all, retitle(shelf, [])) as runtime:
        planned, wrong = await runtime.operations.plan_set(changes, actor="ann")
        assert wrong is None
        assert "--- shelf/b before" in (planned[1].diff or "")
        assert diffs(planned)[2] == ['-  "title": "all"', '+  "title": "newer"']
        outcomes = await runtime.operations.apply_set("s", planned, actor="ann")
        planned, wrong = await runtime.operations.plan_set(changes[:2], actor="ann")
        spoilt = runtime.operations.apply_set("t", planned, actor="ann")
        shelf.items["c"] = {"title": "by hand"}
        moved = await spoilt
    assert [outcome.status.value for outcome in outcomes] == ["ok"] * 3
    assert [outcome.status.value for outcome in moved] == ["ok", "denied"]
    assert shelf.items == {"a": {"title": "all"}, "b": {"title": "new"}, "c": {"title": "by hand"}}


async def test_documents_with_versions_are_chained_too(tmp_path: Any) -> None:
    documents = Documents(f"sqlite:///{tmp_path / 'shelf.db'}", "shelf")

    @tool(effect="write", key="{id}", resource=documents, simulate=lambda s, a: {"n": (s or {"n": 0})["n"] + a["by"]})
    async def count(id: str, by: int, context: Context) -> str:
        """Count."""
        found = await documents.read_state(id)
        await documents.write(id, {"n": (found.value if found else {"n": 0})["n"] + by}, context)
        return "counted"

    changes = [Change("count", {"id": "a", "by": by}) for by in (1, 2, 3)]
    async with running(count) as runtime:
        planned, _wrong = await runtime.operations.plan_set(changes, actor="ann")
        outcomes = await runtime.operations.apply_set("s", planned, actor="ann")
        assert [outcome.ok for outcome in outcomes] == [True] * 3
        assert [lines[-1] for lines in diffs(planned)] == ['+  "n": 1', '+  "n": 3', '+  "n": 6']
        assert await documents.get("a") == {"n": 6}
    await documents.close()


async def test_a_send_with_a_key_can_be_part_of_a_set() -> None:
    sent: list[str] = []

    @tool(effect="send", key="{to}")
    async def letter(to: str) -> str:
        """Send a letter."""
        sent.append(to)
        return "sent"

    async with running(letter) as runtime:
        planned, _wrong = await runtime.operations.plan_set([Change("letter", {"to": "x"})] * 2, actor="ann")
        outcomes = await runtime.operations.apply_set("s", planned, actor="ann")
    assert ([outcome.ok for outcome in outcomes], sent) == ([True, True], ["x"])


@pytest.mark.parametrize(("answer", "ends"), [([], "no_data"), (7, "failed")], ids=["empty", "of another type"])
async def test_a_set_goes_on_after_a_change_that_was_made_whatever_it_answered(
    store_url: str, answer: Any, ends: str
) -> None:
    shelf, made = Shelf(), list[str]()

    @tool(effect="write", key="{id}", resource=shelf, simulate=lambda _s, a: {"id": a["id"]})
    async def put(id: str) -> list[str]:
        """Put; what is odd about it."""
        made.append(id)
        shelf.items[id] = {"id": id}
        return answer  # type: ignore[no-any-return]

    changes = [Change("put", {"id": "a"}), Change("put", {"id": "b"})]
    async with running(put, url=store_url) as runtime:
        planned, _wrong = await runtime.operations.plan_set(changes, actor="ann", name="s")
        for _ in range(2):
            outcomes = await runtime.operations.apply_set("s", planned, actor="ann")
            assert ([outcome.status.value for outcome in outcomes], made) == ([ends, ends], ["a", "b"])


async def test_a_set_stops_where_a_change_was_not_made_as_planned_and_the_policy_wants_that() -> None:
    shelf = Shelf(bolt={"stock": 50, "reserved": 0})
    policy = OPEN.replace('mode = "apply"', 'mode = "apply"\nas_planned = ["*"]')
    changes = [*reserves(1), Change("receive", {"item": "nut", "count": 1})]
    async with running(*stock_tools(shelf, [5]), policy=policy) as runtime:
        planned, _wrong = await runtime.operations.plan_set(changes, actor="ann", name="s")
        for _ in range(2):
            (outcome,) = await runtime.operations.apply_set("s", planned, actor="ann")
            assert (error(outcome), "nut" in shelf.items) == ("not_as_planned", False)


@pytest.mark.parametrize("options", [{"repeatable": True}, {"once_per": "actor"}], ids=str)
async def test_only_the_actor_who_began_a_set_goes_on_with_it(store_url: str, options: dict[str, Any]) -> None:
    """What another one asks for would be calls of their own, and be made beside the first."""
    sent, shelf = list[Any](), Shelf(bolt={"stock": 50, "reserved": 20})
    changes = [Change("mail", {"to": "x"}), *reserves(9)]
    async with running(mailing(sent, **options), *stock_tools(shelf), policy=REVIEW, url=store_url) as runtime:
        planned, _wrong = await runtime.operations.plan_set(changes, actor="ann", name="s")
        first = await runtime.operations.apply_set("s", planned, actor="ann")
        assert [outcome.status.value for outcome in first] == ["ok", "parked"]
        anothers = "'s' was begun by 'ann', and only that actor goes on with it"
        with pytest.raises(NotAllowed, match=anothers):
            await runtime.operations.plan_set(changes, actor="ben", name="s")
        with pytest.raises(NotAllowed, match=anothers):
            await runtime.operations.apply_set("s", planned, actor="ben")
        await runtime.operations.decide(expect(first[1].ticket), approve=True, by="user:boss")
        assert (await runtime.operations.resume(expect(first[1].ticket))).ok
        last = await runtime.operations.apply_set("s", planned, actor="ann")
    assert ([outcome.ok for outcome in last], sent) == ([True, True], ["x"])


async def test_a_change_that_was_undone_stops_its_set_until_it_is_made_again(store_url: str) -> None:
    shelf, sent = Shelf(bolt={"stock": 17, "reserved": 0}), list[Any]()
    changes = [*reserves(2, item="bolt"), Change("mail", {"to": "x"})]
    mail = mailing(sent, NothingLanded("down"), retry=RetryRule(max_attempts=1))
    async with running(*stock_tools(shelf), mail, url=store_url) as runtime:
        planned, _wrong = await runtime.operations.plan_set(changes, actor="ann", name="s")
        first = await runtime.operations.apply_set("s", planned, actor="ann")
        assert [outcome.status.value for outcome in first] == ["ok", "failed"]
        await runtime.operations.undo(turn="set:s")
        stored, wrong = await runtime.operations.plan_set(changes, actor="ann", name="s")
        again = await runtime.operations.apply_set("s", stored, actor="ann")
        assert (wrong, [outcome.status.value for outcome in again], sent) == (None, ["denied"], ["x"])
        assert shelf.items["bolt"]["reserved"] == 0
        (stopped,) = again
        assert (error(stopped), stopped.undone, stopped.summary) == ("moved", True, stored[0].notes[-1])
        assert "change 1 of the set was made" in stopped.summary
        assert "interlock replay --run set:s" in stopped.summary
        assert "another name" in stopped.summary
        await runtime.operations.replay("set:s")
        assert (shelf.items["bolt"]["reserved"], len(sent)) == (2, 2)
        stored, _wrong = await runtime.operations.plan_set(changes, actor="ann", name="s")
        last = await runtime.operations.apply_set("s", stored, actor="ann")
    assert ([outcome.ok for outcome in last], stored[0].notes, len(sent)) == ([True, True], (), 2)


@pytest.mark.parametrize("first_of_all", [True, False])
async def test_a_change_that_was_made_before_its_set_and_undone_since_stops_it(
    store_url: str, first_of_all: bool
) -> None:
    """Made once ever, by another call: the set was answered from its record, and what follows rests on it."""
    booked, sent = list[int](), list[Any]()

    @tool(effect="send", once_per="ever", compensate=Compensation("refund", lambda asked, _value: dict(asked)))
    async def pay(amount: int) -> str:
        booked.append(amount)
        return "paid"

    @tool(effect="send")
    async def refund(amount: int) -> str:
        booked.append(-amount)
        return "refunded"

    tools = pay, refund, mailing(sent, NothingLanded("down"), retry=RetryRule(max_attempts=1))
    changes = [Change("pay", {"amount": 1}), Change("mail", {"to": "x"})]
    async with running(*tools, url=store_url) as runtime:
        operations = runtime.operations
        before = await runtime.call("pay", {"amount": 1}, actor="ann", call_id="order-1")
        planned, _ = await operations.plan_set(changes, actor="ann", name="s")
        paid, failed = await operations.apply_set("s", planned, actor="ann")
        assert (paid.repeats, failed.status) == (before.record, Status.FAILED)
        await operations.undo(record=before.record)
        if not first_of_all:  # somebody has made it again, and that is another one
            assert (await runtime.call("pay", {"amount": 1}, actor="ann", call_id="order-2")).ok
        made = list(booked)
        stored, _ = await operations.plan_set(changes, actor="ann", name="s")
        (stopped,) = await operations.apply_set("s", stored, actor="ann")
        report = await verify(runtime.store)
    assert (error(stopped), stopped.undone, stopped.call_id) == ("moved", True, "set:s.0")
    assert f"was made (record {before.record}) and undone since" in stopped.summary
    assert (stopped.summary, "replay" in stopped.summary) == (stored[0].notes[-1], False)
    assert (booked, sent) == (made, ["x"])
    assert report.intact, report


async def test_a_set_goes_on_where_a_change_that_was_made_before_it_was_undone_and_stands_again(store_url: str) -> None:
    shelf, sent = Shelf(), list[Any]()
    tools = retitle(shelf, [], once_per="ever"), mailing(sent, NothingLanded("down"), retry=RetryRule(max_attempts=1))
    changes = [Change("title", {"id": "a", "title": "t"}), Change("mail", {"to": "x"})]
    async with running(*tools, url=store_url) as runtime:
        operations = runtime.operations
        before = await runtime.call("title", {"id": "a", "title": "t"}, actor="ann", call_id="1")
        planned, _ = await operations.plan_set(changes, actor="ann", name="s")
        made, failed = await operations.apply_set("s", planned, actor="ann")
        assert (made.repeats, failed.status) == (before.record, Status.FAILED)
        ((_step, undone),) = await operations.undo(record=before.record)
        assert [error(outcome) for outcome in await operations.apply_set("s", planned, actor="ann")] == ["moved"]
        await operations.undo(record=expect(undone).record)
        outcomes = await operations.apply_set("s", planned, actor="ann")
    assert [(outcome.ok, outcome.repeats) for outcome in outcomes] == [(True, before.record), (True, None)]
    assert (shelf.items["a"], sent) == ({"title": "t"}, ["x", "x"])


async def test_a_change_that_was_settled_and_then_undone_stops_its_set_too() -> None:
    shelf = Shelf(bolt={"stock": 17, "reserved": 0}, nut={"stock": 17, "reserved": 0})
    lost = [True]

    @tool(effect="write", key="{item}", resource=shelf, simulate=_reserved, retry=RetryRule(max_attempts=1))
    async def take(item: str, count: int) -> str:
        """Set goods aside; its first answer is lost."""
        shelf.items[item] = _reserved(shelf.items[item], {"count": count})
        if lost and lost.pop():
            raise ConnectionError("the line is dead")
        return "taken"

    changes = [Change("take", {"item": item, "count": 1}) for item in ("bolt", "nut")]
    async with running(take) as runtime:
        planned, _wrong = await runtime.operations.plan_set(changes, actor="ann", name="s")
        await runtime.operations.apply_set("s", planned, actor="ann")
        await runtime.operations.recover()
        await runtime.operations.undo(turn="set:s")
        before = {key: dict(state) for key, state in shelf.items.items()}
        again = await runtime.operations.apply_set("s", planned, actor="ann")
    assert ([outcome.status.value for outcome in again], shelf.items) == (["denied"], before)


ASKED = OPEN + "[[rule]]\nid = 'ask'\ntools = ['put', 'sweep']\ndecision = 'review'\nwhen = 'args.f == \"y\"'\n"


def fielded(documents: Documents) -> tuple[Tool, Tool]:
    """Set a field of a document, by its key or as a change of the whole resource."""

    async def set_field(k: str, f: str, context: Context) -> str:
        found = await documents.read_state(k)
        await documents.write(k, {**(found.value if found else {}), f: 1}, context)
        return f

    @tool(effect="write", key="{k}", resource=documents, simulate=lambda state, a: {**(state or {}), a["f"]: 1})
    async def put(k: str, f: str, context: Context) -> str:
        """Set a field."""
        return await set_field(k, f, context)

    def swept(states: Any, a: Any) -> Any:
        return {**states, a["k"]: {**states.get(a["k"], {}), a["f"]: 1}}

    @tool(effect="write", resource=documents, simulate=swept)
    async def sweep(k: str, f: str, context: Context) -> str:
        """Set a field of whatever it finds."""
        return await set_field(k, f, context)

    return put, sweep


@pytest.mark.parametrize("first", ["put", "sweep"])
@pytest.mark.parametrize("second", ["put", "sweep"])
@pytest.mark.parametrize("edited", [False, True])
async def test_a_set_goes_on_where_a_change_of_it_was_undone_and_stands_again(
    tmp_path: Path, store_url: str, first: str, second: str, edited: bool
) -> None:
    """It is held to what has made the change again, and so to nobody's edit after that."""
    documents = Documents(f"sqlite:///{tmp_path}/d.db", "docs")
    changes = [
        Change(first, {"k": "a", "f": "x"}),
        Change(second, {"k": "a", "f": "y"}),
        Change(first, {"k": "a", "f": "z"}),
    ]
    async with running(*fielded(documents), policy=ASKED, url=store_url) as runtime:
        await documents.write("b", {"other": 1})
        planned, faults = await runtime.operations.plan_set(changes, actor="ann", name="n")
        assert not faults
        made = await runtime.operations.apply_set("n", planned, actor="ann")
        assert [outcome.status for outcome in made] == [Status.OK, Status.PARKED]
        last = made[0]
        for _ in range(4):
            ((_step, outcome),) = await runtime.operations.undo(record=expect(last.record))
            last = expect(outcome)
            assert last.ok
        if edited:
            await documents.write("a", {"x": 1})
        again = await runtime.operations.apply_set("n", planned, actor="ann")
        if edited:
            assert (again[0].status, error(again[1])) == (Status.OK, "plan_moved")
            await documents.close()
            return
        ticket = expect(again[1].ticket)
        await runtime.operations.decide(ticket, approve=True, by="user:boss")
        assert (await runtime.operations.resume(ticket)).ok
        ended = await runtime.operations.apply_set("n", planned, actor="ann")
        assert [outcome.status for outcome in ended] == [Status.OK] * 3
        assert await documents.get("a") == {"x": 1, "y": 1, "z": 1}
        assert (await verify(runtime.store)).problems == ()
    await documents.close()
