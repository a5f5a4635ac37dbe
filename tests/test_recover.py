"""Changes that somebody settled: what was seen of them then, and what undo makes of that; nothing later is overwritten."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from interlock import Context, Runtime, Status, Tool, tool
from interlock.answers import Answers
from interlock.audit import verify
from interlock.config import Settings
from interlock.errors import InDoubt, NotAllowed
from interlock.operations import UndoStep
from interlock.operations.approvals import decide_ticket
from interlock.policy import parse_policy
from interlock.resources import Documents
from interlock.state import TicketState
from interlock.tools import Compensation
from interlock.values import Versioned
from tests.conftest import expect
from tests.test_changes import OPEN, Shelf, error, running

FORCED = OPEN + '[[rule]]\nid = "forced"\ntools = ["undo.*"]\ndecision = "review"\nwhen = "args.force"\n'


class Numbered(Shelf):
    """A shelf whose items have versions of their own: each time one is put there it has the next."""

    def __init__(self, **items: Any) -> None:
        super().__init__(**items)
        self.version = 1

    def put(self, key: str, value: Any) -> None:
        self.version += 1
        self.items[key] = value

    async def read_state(self, key: str) -> Any:
        state = await super().read_state(key)
        return None if state is None else Versioned(state, str(self.version))

    async def restore(self, key: str, state: Any) -> None:
        await super().restore(key, state)
        self.version += 1


def losing(shelf: Numbered, *, lands: bool = True, says: bool = False, **options: Any) -> Tool:
    """Sets a title, and its answer is lost; the shelf cannot be read after that until somebody mends it."""

    async def probe(_arguments: Any, _context: Any) -> bool | None:
        return True if says and not shelf.broken else None

    simulate = {"simulate": lambda state, arguments: {**(state or {}), "title": arguments["title"]}}

    @tool(effect="write", key="{id}", resource=shelf, probe=probe, **{**simulate, **options})
    async def title(id: str, title: str) -> str:
        if lands:
            shelf.put(id, {"title": title})
        shelf.broken = True
        raise InDoubt("lost")

    return title


async def asked(runtime: Runtime) -> str:
    """The ticket about a change of which nobody knows whether it landed."""
    lost = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", call_id="c1")
    assert lost.status is Status.UNKNOWN, lost
    (found,) = await runtime.operations.recover()
    return expect(found.ticket)


async def undo_step(runtime: Runtime, **how: Any) -> UndoStep:
    (step,) = await runtime.operations.undo_plan(key="shelf/a", **how)
    return step


@pytest.mark.parametrize("quorum", [1, 2])
@pytest.mark.parametrize("through", ["operations", "answers"])
async def test_what_a_person_settles_is_looked_at_and_undone_on_the_version_that_was_seen(
    store_url: str, through: str, quorum: int
) -> None:
    shelf = Numbered(a={"title": "old"})
    terms = OPEN.replace("[review]\n", f"[review]\nquorum = {quorum}\n")
    async with running(losing(shelf), policy=terms, url=store_url) as runtime:
        ticket = await asked(runtime)
        shelf.broken = False
        for by in ("user:boss", "user:lead")[:quorum]:
            decides = Answers(runtime) if through == "answers" else runtime.operations
            await decides.decide(ticket, approve=True, by=by, reason="I looked")
        assert (await undo_step(runtime)).obstacle == ""
        same = dict(shelf.items["a"])
        shelf.put("a", {"title": "theirs"})
        shelf.put("a", same)
        assert "shelf/a has changed since" in (await undo_step(runtime)).obstacle, "also to the same words"
        assert [outcome for _step, outcome in await runtime.operations.undo(key="shelf/a")] == [None]
        assert shelf.items == {"a": {"title": "new"}}
        assert (await verify(runtime.store)).problems == ()


async def test_what_a_person_settles_is_undone_if_nobody_came_after_it(store_url: str) -> None:
    shelf = Numbered(a={"title": "old"})
    async with running(losing(shelf), url=store_url) as runtime:
        ticket = await asked(runtime)
        shelf.broken = False
        await runtime.operations.decide(ticket, approve=True, by="user:boss")
        ((_step, outcome),) = await runtime.operations.undo(key="shelf/a")
        assert expect(outcome).ok, outcome
    assert shelf.items == {"a": {"title": "old"}}


async def test_a_key_in_doubt_is_not_waited_for_and_what_settles_it_is_named(store_url: str) -> None:
    shelf = Numbered(a={"title": "old"})
    async with running(losing(shelf), url=store_url) as runtime:
        lost = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", call_id="c1")
        shelf.broken = False
        assert lost.status is Status.UNKNOWN
        started = time.monotonic()
        blocked = await runtime.call("title", {"id": "a", "title": "other"}, actor="ann", call_id="c2")
        assert (expect(blocked.problem).reason, time.monotonic() - started < 5.0) == ("blocked", True)
        assert expect(blocked.problem).hints == ("interlock recover",)
        (found,) = await runtime.operations.recover()
        if found.ticket is not None:
            blocked = await runtime.call("title", {"id": "a", "title": "other"}, actor="ann", call_id="c2")
            assert expect(blocked.problem).hints == (f"interlock review show {found.ticket}",)
            assert f"ticket {found.ticket} asks a person" in expect(blocked.problem).message


async def test_why_an_untouched_resource_proves_nothing_is_said_as_it_is(tmp_path: Path) -> None:
    documents = Documents(f"sqlite:///{tmp_path}/d.db", "box")

    @tool(effect="write", key="{id}", resource=documents, simulate=lambda _state, _arguments: {"v": 1})
    async def put(id: str) -> str:
        raise InDoubt("lost")

    async with running(put) as runtime:
        await runtime.call("put", {"id": "a"}, actor="ann", call_id="c1")
        (found,) = await runtime.operations.recover()
    await documents.close()
    assert (found.state, "'put' does not take context" in found.how) == ("asked", True)
    assert "does not check fencing tokens" not in found.how


@pytest.mark.parametrize("looks", ["it cannot be read", "it is not there"])
async def test_what_nobody_has_seen_is_not_undone_over_what_came_after(store_url: str, looks: str) -> None:
    """A person says that it landed, and nobody sees it: that its words are there later is perhaps somebody else's doing."""
    shelf = Numbered(a={"title": "old"})
    async with running(losing(shelf, lands=False), policy=FORCED, url=store_url) as runtime:
        ticket = await asked(runtime)
        shelf.broken = looks == "it cannot be read"
        await runtime.operations.decide(ticket, approve=True, by="user:boss", reason="I was told so")
        shelf.broken = False
        assert "shelf/a has changed since" in (await undo_step(runtime)).obstacle
        shelf.put("a", {"title": "new"})  # somebody else's
        obstacle = (await undo_step(runtime)).obstacle
        assert "without anybody having seen what it left at shelf/a; look, and use --force" in obstacle
        assert [outcome for _step, outcome in await runtime.operations.undo(key="shelf/a")] == [None]
        assert shelf.items == {"a": {"title": "new"}}
        ((_step, forced),) = await runtime.operations.undo(key="shelf/a", force=True)
        assert (expect(forced).status, shelf.items) == (Status.PARKED, {"a": {"title": "new"}}), "a person is asked"
        await runtime.operations.decide(expect(expect(forced).ticket), approve=True, by="user:boss")
        assert (await runtime.operations.resume(expect(expect(forced).ticket))).ok
    assert shelf.items == {"a": {"title": "old"}}


async def test_without_a_look_at_the_resource_nothing_is_believed_to_have_been_seen() -> None:
    """As from the command line, where the tools of an application are not at hand."""
    shelf = Numbered(a={"title": "old"})
    async with running(losing(shelf), policy=FORCED) as runtime:
        ticket = await asked(runtime)
        shelf.broken = False
        writer = await runtime.operations.decider(ticket, "user:boss", None)
        await decide_ticket(writer, ticket, TicketState.APPROVED, "I looked")
        assert "without anybody having seen" in (await undo_step(runtime)).obstacle
        assert (await undo_step(runtime, force=True)).arguments["force"] is True


async def test_a_change_without_simulate_that_a_person_settled_is_put_back_only_by_force() -> None:
    shelf = Numbered(a={"title": "old"})
    async with running(losing(shelf, simulate=None)) as runtime:
        ticket = await asked(runtime)
        shelf.broken = False
        await runtime.operations.decide(ticket, approve=True, by="user:boss")
        assert "its tool does not say what it was to leave" in (await undo_step(runtime)).obstacle
        ((_step, outcome),) = await runtime.operations.undo(key="shelf/a")
        assert (outcome, shelf.items) == (None, {"a": {"title": "new"}})
        step = await undo_step(runtime, force=True)
    assert step.arguments["states"] == {"a": {"title": "old"}}


def swapping(docs: Documents, *, simulates: bool) -> Tool:
    """Swaps the depots of two cars, and breaks between the two writes where it is told to."""

    options: dict[str, Any] = {"redact": {"pin"}}
    if simulates:
        options["simulate"] = lambda state, given, key: {**state, "depot": "B" if key == given["a"] else "A"}

    @tool(effect="write", key=lambda given: (given["a"], given["b"]), resource=docs, **options)
    async def swap(a: str, b: str, breaks: bool, context: Context) -> str:
        one, other = await docs.get(a), await docs.get(b)
        await docs.write(a, {**one, "depot": other["depot"]}, context)
        if breaks:
            raise RuntimeError("the line is gone")
        await docs.write(b, {**other, "depot": one["depot"]}, context)
        return "swapped"

    return swap


CARS = {"c1": {"depot": "A", "pin": "4711-22"}, "c2": {"depot": "B", "pin": "0815-33"}}


@pytest.mark.parametrize("simulates", [True, False])
async def test_a_change_of_which_a_part_landed_is_shown_and_not_settled_as_one_that_did_not(
    tmp_path: Path, simulates: bool
) -> None:
    docs = Documents(f"sqlite:///{tmp_path}/d.db", "cars")
    await docs.write_all(CARS)
    async with running(swapping(docs, simulates=simulates)) as runtime:
        given = {"a": "c1", "b": "c2", "breaks": True}
        assert (await runtime.call("swap", given, actor="ann", call_id="c")).status is Status.UNKNOWN
        (found,) = await runtime.operations.recover()
        ticket = expect(found.ticket)
        assert found.how.endswith("can say: cars/c1 moved since it was planned, cars/c2 did not")
        one, other = await runtime.operations.key_states(ticket)
        mark = "[redacted]"
        assert (one.before, one.now) == ({"depot": "A", "pin": mark}, {"depot": "B", "pin": mark})
        assert one.planned == ({"depot": "B", "pin": mark} if simulates else None)
        assert other.before == other.now == {"depot": "B", "pin": mark}
        with pytest.raises(NotAllowed, match=r"cars/c1 is not what it was before it.* put that back and then say"):
            await runtime.operations.decide(ticket, approve=False, by="user:boss")
        writer = await runtime.operations.decider(ticket, "user:boss", None)
        with pytest.raises(NotAllowed, match=r"were not what they were before it, and its resource is not at hand"):
            await decide_ticket(writer, ticket, TicketState.DENIED, "I did not look")
        await runtime.operations.decide(ticket, approve=True, by="user:boss")
        ((_step, undone),) = await runtime.operations.undo(key="cars/c1", force=True)
        again = expect(expect(undone).ticket)  # what is forced a person sees first
        await runtime.operations.decide(again, approve=True, by="user:boss")
        assert (await runtime.operations.resume(again)).ok
        assert await docs.snapshot() == CARS
    await docs.close()


async def test_what_landed_in_part_and_was_put_back_is_settled_as_one_that_did_not_land(tmp_path: Path) -> None:
    docs = Documents(f"sqlite:///{tmp_path}/d.db", "cars")
    await docs.write_all(CARS)
    async with running(swapping(docs, simulates=True)) as runtime:
        given = {"a": "c1", "b": "c2", "breaks": True}
        await runtime.call("swap", given, actor="ann", call_id="c", run="r")
        (found,) = await runtime.operations.recover()
        await docs.write("c1", CARS["c1"])
        await runtime.operations.decide(expect(found.ticket), approve=False, by="user:boss")
        (step,) = await runtime.operations.replay_plan("r")
    await docs.close()
    assert (step.tool, step.obstacle) == ("swap", "")


async def undo_settled(pay: Any) -> tuple[Any, Any]:
    """What undo makes of a payment whose answer was lost, and which a person says has landed."""

    @tool(effect="send")
    async def refund(order: str) -> str:
        return order

    async with running(pay, refund) as runtime:
        assert (await runtime.call("pay", {"order": "1"}, actor="ann", call_id="c1", run="r")).status is Status.UNKNOWN
        (found,) = await runtime.operations.recover()
        await runtime.operations.decide(expect(found.ticket), approve=True, by="user:boss")
        ((step, outcome),) = await runtime.operations.undo(run="r")
    return step, outcome


async def test_a_send_that_a_person_settled_is_compensated_without_the_value_that_was_lost() -> None:
    handed: list[Any] = []

    def arguments(given: Any, value: Any) -> dict[str, Any]:
        handed.append(value)
        return {"order": given["order"]}

    @tool(effect="send", compensate=Compensation("refund", arguments))
    async def pay(order: str) -> str:
        raise InDoubt("lost")

    _step, outcome = await undo_settled(pay)
    assert (expect(outcome).value, handed) == ("1", [None])


async def test_a_compensation_that_cannot_do_without_the_lost_answer_is_refused_in_a_sentence() -> None:
    @tool(effect="send", compensate=Compensation("refund", lambda _given, value: {"order": value["id"]}))
    async def pay(order: str) -> dict[str, str]:
        raise InDoubt("lost")

    step, outcome = await undo_settled(pay)
    assert outcome is None
    assert step.obstacle == (
        "what makes the arguments of its compensation 'refund' failed (TypeError); its own answer was lost or empty, so"
        " that its compensation was handed None; look at the change, and make 'refund' yourself"
    )


async def test_what_recovery_settled_is_undone_on_the_version_that_it_saw(store_url: str) -> None:
    shelf = Numbered(a={"title": "old"})
    async with running(losing(shelf, says=True), url=store_url) as runtime:
        lost = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", call_id="c1")
        assert lost.status is Status.UNKNOWN
        shelf.broken = False
        (found,) = await runtime.operations.recover()
        assert (found.state, (await undo_step(runtime)).obstacle) == ("done", "")
        shelf.put("a", {"title": "new"})  # the same words once more, by somebody who leaves no record
        assert "shelf/a has changed since" in (await undo_step(runtime)).obstacle
        await runtime.operations.undo(key="shelf/a")
    assert shelf.items == {"a": {"title": "new"}}


TWO_DECIDE = OPEN.replace("[review]\n", "[review]\nquorum = 2\n")


class Payments:
    """A payment whose answer is lost, and what a look at it says."""

    def __init__(self) -> None:
        self.says: bool | None = None
        self.meanwhile: Any = None

    def tool(self) -> Tool:
        async def probe(_arguments: Any, _context: Any) -> bool | None:
            said, meanwhile, self.meanwhile = self.says, self.meanwhile, None
            if meanwhile is not None:
                await meanwhile()
            return said

        @tool(effect="send", probe=probe)
        async def pay(order: str) -> str:
            raise InDoubt("lost")

        return pay

    async def lose(self, runtime: Runtime) -> str:
        """Make one; the ticket that asks whether it landed."""
        await self.attempt(runtime)
        (found,) = await runtime.operations.recover()
        return expect(found.ticket)

    async def attempt(self, runtime: Runtime) -> Any:
        return await runtime.call("pay", {"order": "1"}, actor="ann", call_id="c1")


@pytest.mark.parametrize("landed", [True, False])
@pytest.mark.parametrize("approved", [0, 1])
async def test_what_the_world_shows_settles_a_change_and_its_question_whatever_the_quorum(
    store_url: str, approved: int, landed: bool
) -> None:
    payments = Payments()
    async with running(payments.tool(), policy=TWO_DECIDE, url=store_url) as runtime:
        name = await payments.lose(runtime)
        for _ in range(approved):
            await runtime.operations.decide(name, approve=True, by="user:boss")
        before = expect(await runtime.store.ticket(name))
        payments.says = landed
        (found,) = await runtime.operations.recover(by="user:boss")
        assert found.state == ("done" if landed else "failed")
        after = expect(await runtime.store.ticket(name))
        assert (after.state, after.decided_by, after.reason) == (
            TicketState.SETTLED,
            "",
            "nobody had to say it: its probe says so",
        )
        assert after.approvals == before.approvals, "nobody has approved it by that"
        assert await runtime.store.tickets(TicketState.OPEN) == ()
        with pytest.raises(NotAllowed, match="was found out: nobody had to say it"):
            await runtime.operations.decide(name, approve=True, by="user:lead")
        if landed:
            assert (await payments.attempt(runtime)).ok
        assert (await verify(runtime.store)).problems == ()


async def test_the_next_attempt_has_a_question_of_its_own(store_url: str) -> None:
    payments = Payments()
    async with running(payments.tool(), policy=TWO_DECIDE, url=store_url) as runtime:
        first = await payments.lose(runtime)
        payments.says = False
        await runtime.operations.recover()
        payments.says = None
        second = await payments.lose(runtime)
        await runtime.operations.decide(second, approve=True, by="user:boss")
        payments.says = True
        assert [one.state for one in await runtime.operations.recover()] == ["done"]
        states = [expect(await runtime.store.ticket(name)).state for name in (first, second)]
        assert states == [TicketState.SETTLED] * 2
        assert (await verify(runtime.store)).problems == ()


async def test_nobody_is_asked_about_what_somebody_else_settles_meanwhile(store_url: str) -> None:
    payments = Payments()
    async with running(payments.tool(), policy=TWO_DECIDE, url=store_url) as runtime:
        assert (await payments.attempt(runtime)).status is Status.UNKNOWN

        async def settle_meanwhile() -> None:
            payments.says = True
            assert [one.state for one in await runtime.operations.recover()] == ["done"]

        payments.meanwhile = settle_meanwhile
        assert await runtime.operations.recover() == ()
        assert await runtime.store.tickets() == ()
        assert (await verify(runtime.store)).problems == ()


@pytest.mark.parametrize("quorum", [1, 2])
async def test_what_enough_people_have_approved_stays_their_word(store_url: str, quorum: int) -> None:
    payments = Payments()
    terms = TWO_DECIDE if quorum == 2 else OPEN
    async with running(payments.tool(), policy=terms, url=store_url) as runtime:
        name = await payments.lose(runtime)
        for by in ("user:boss", "user:lead")[:quorum]:
            await runtime.operations.decide(name, approve=True, by=by)
        ticket = expect(await runtime.store.ticket(name))
        assert (ticket.state, len(ticket.approvals)) == (TicketState.APPROVED, quorum)
        assert await runtime.operations.recover() == ()
        assert (await verify(runtime.store)).problems == ()


async def test_what_a_dead_predecessor_left_under_way_is_settled_once_its_lease_is_over(store_url: str) -> None:
    """Its successor began while that lease still ran, and is told of nobody's death."""
    landed, entered, never = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def probe(_arguments: Any, _context: Any) -> bool:
        return landed.is_set()

    @tool(effect="send", probe=probe, timeout_s=60)
    async def mail(to: str) -> str:
        landed.set()
        entered.set()
        await never.wait()
        return to

    dead = Runtime.open(store_url, policy=parse_policy(OPEN), tools=[mail], settings=Settings(lease_s=1))
    under_way = asyncio.create_task(dead.call("mail", {"to": "x"}, actor="ann", call_id="c1"))
    await entered.wait()
    await asyncio.to_thread(dead.context.heart.close)  # as its process would: nobody renews its lease
    async with Runtime.open(dead.store, policy=parse_policy(OPEN), tools=[mail], settings=Settings(lease_s=1)) as after:
        (left,) = await after.operations.under_way()
        again = await after.call("mail", {"to": "x"}, actor="ann", call_id="c1")
        while not again.ok:
            assert error(again) == "in_progress", again
            again = await after.call("mail", {"to": "x"}, actor="ann", call_id="c1")
        under_way.cancel()
        await asyncio.gather(under_way, return_exceptions=True)
    assert left.call == "c1"
    assert "settled that it landed" in again.said, again
