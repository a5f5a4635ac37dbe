"""Review: bound to a plan, decided by somebody else, spent once; and every way around it refused."""

from __future__ import annotations

import asyncio
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from interlock import Outcome, Runtime, Status, Tool, tool
from interlock.answers import Agent, Answers, Intent, TurnStatus
from interlock.audit import verify
from interlock.errors import NotAllowed
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock.state import TicketState
from interlock.testing import ManualClock
from tests.conftest import expect
from tests.test_changes import OPEN, Made, Shelf, error, mailing, retitle, running

ASK = OPEN + '[[rule]]\nid = "ask"\ntools = ["title"]\ndecision = "review"\nreason = "somebody should look"\n'


async def parked(runtime: Runtime, title: str = "new", **details: Any) -> Outcome:
    given = {"turn": "t", "call_id": "c1", **details}
    outcome = await runtime.call("title", {"id": "a", "title": title}, actor="ann", **given)
    assert outcome.status is Status.PARKED, outcome
    return outcome


async def test_an_approved_call_is_made_once_and_the_ticket_is_spent(store_url: str) -> None:
    shelf = Shelf()
    made: list[Made] = []
    async with running(retitle(shelf, made), policy=ASK, url=store_url) as runtime:
        waiting = await parked(runtime)
        assert made == []
        assert waiting.ticket is not None
        await runtime.operations.decide(waiting.ticket, approve=True, by="user:boss", reason="looks right")
        outcomes = await asyncio.gather(*(runtime.operations.resume(waiting.ticket) for _ in range(5)))
        ticket = await runtime.store.ticket(waiting.ticket)
        kinds = [(record.kind, record.status) async for record in runtime.store.records(Query())]
    assert [outcome.value for outcome in outcomes] == ["new"] * 5
    assert len(made) == 1
    assert ticket is not None
    assert (ticket.state, ticket.decided_by, ticket.reason) == (TicketState.SPENT, "user:boss", "looks right")
    assert (ticket.asked_by, ticket.why, ticket.record) == (runtime.principal, "somebody should look", 1)
    assert kinds[:3] == [("call", "parked"), ("ticket", "approved"), ("intent", "intent")]


async def test_a_denial_is_an_outcome_with_its_reason() -> None:
    made: list[Any] = []
    async with running(retitle(Shelf(), made), policy=ASK) as runtime:
        waiting = await parked(runtime)
        assert waiting.ticket is not None
        await runtime.operations.decide(waiting.ticket, approve=False, by="user:boss", reason="not that one")
        denied = await runtime.operations.resume(waiting.ticket)
    assert (denied.status, error(denied), made) == (Status.DENIED, "not_approved", [])
    assert "user:boss denied ticket" in denied.summary
    assert "not that one" in denied.summary


TITLE = {"id": "a", "title": "new"}


@pytest.mark.parametrize(
    ("first", "again", "anew"),
    [
        ({"call_id": "same"}, {"call_id": "same"}, {"call_id": "other"}),
        ({"turn": "t", "call_id": "c1"}, {"turn": "t", "call_id": "c2"}, {"turn": "u", "call_id": "c1"}),
        ({"run": "r"}, {"run": "r"}, {"run": "s"}),
    ],
)
async def test_a_denied_call_hears_so_again_and_nobody_is_asked_a_second_time(
    first: Any, again: Any, anew: Any
) -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(retitle(shelf, []), policy=ASK) as runtime:
        waiting = await runtime.call("title", TITLE, actor="ann", **first)
        await runtime.operations.decide(expect(waiting.ticket), approve=False, by="user:boss", reason="never")
        heard = [await runtime.call("title", TITLE, actor="ann", **again) for _ in range(2)]
        for outcome in heard:
            assert (outcome.status, error(outcome), outcome.ticket) == (Status.DENIED, "not_approved", None)
            assert f"user:boss denied ticket {waiting.ticket!r}: never" in outcome.summary
            assert expect(outcome.verdict).decision.value == "deny"
        assert [ticket.id for ticket in await runtime.store.tickets()] == [waiting.ticket]
        resumed = await runtime.operations.resume(expect(waiting.ticket))
        assert (resumed.status, error(resumed)) == (Status.DENIED, "not_approved")
        # Asked anew, by another name, it is another question.
        other = await runtime.call("title", TITLE, actor="ann", **anew)
        assert (other.status, other.ticket != waiting.ticket) == (Status.PARKED, True)
        mine = await runtime.call("title", TITLE, actor="ben", **first)
        assert mine.status is Status.PARKED, "what ann was denied, ben was not"
    assert shelf.items == {"a": {"title": "old"}}


@pytest.mark.parametrize("denied_first", [True, False])
async def test_of_one_call_asked_for_twice_a_denial_outweighs_an_approval(denied_first: bool) -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(retitle(shelf, []), policy=ASK) as runtime:
        ask = [
            await runtime.call("title", TITLE, actor="ann", turn="t", call_id=str(n), confidence=sure)
            for n, sure in enumerate((0.9, 0.8))
        ]
        one, other = (expect(outcome.ticket) for outcome in ask)
        assert one != other
        for ticket in (other, one) if denied_first else (one, other):
            await runtime.operations.decide(ticket, approve=ticket == one, by="user:boss", reason="not that")
        resumed = await runtime.operations.resume(one)
        assert (resumed.status, error(resumed)) == (Status.DENIED, "not_approved")
        assert "the same call was denied elsewhere" in resumed.summary
    assert shelf.items == {"a": {"title": "old"}}


async def test_a_denial_holds_though_the_world_has_moved_since_and_an_expired_question_is_asked_again() -> None:
    clock, shelf = ManualClock(), Shelf(a={"title": "old"})
    async with running(retitle(shelf, []), policy=ASK, clock=clock) as runtime:
        late = await runtime.call("title", TITLE, actor="ann", call_id="same")
        clock.advance(100 * 86_400)
        waiting = await runtime.call("title", TITLE, actor="ann", call_id="same")
        assert (waiting.status, waiting.ticket != late.ticket) == (Status.PARKED, True)
        await runtime.operations.decide(expect(waiting.ticket), approve=False, by="user:boss", reason="never")
        shelf.items["a"] = {"title": "newer"}
        denied = await runtime.call("title", TITLE, actor="ann", call_id="same")
        assert (denied.status, error(denied)) == (Status.DENIED, "not_approved")
        clock.advance(100 * 86_400)
        assert (await runtime.call("title", TITLE, actor="ann", call_id="same")).status is Status.DENIED
        changed = await runtime.call("title", {**TITLE, "title": "else"}, actor="ann", call_id="same")
        assert changed.status is Status.PARKED, "another question"


SPELLED: list[tuple[Any, Any, Any]] = [
    (int | float, 10, 10.0),
    (float, 0, -0.0),
    (Decimal, "10", "1e1"),
    (datetime, "2026-01-01T11:00:00+01:00", "2026-01-01T10:00:00Z"),
    (set[str], ["a", "b"], ["b", "a"]),
]


@pytest.mark.parametrize("same", [{"turn": "t"}, {"call_id": "c1"}, {"run": "r"}])
@pytest.mark.parametrize("effect", ["send", "read"])
@pytest.mark.parametrize(("kind", "first", "second"), SPELLED)
async def test_a_denial_holds_however_the_values_are_written(
    kind: Any, first: Any, second: Any, effect: Any, same: Any
) -> None:
    async def title(x: Any, y: int) -> str:
        """A title."""
        return "x"

    title.__annotations__["x"] = kind
    # A rule that rewrites the call puts it through its contract once more, and must not lose what is compared.
    low = '[[rule]]\nid = "low"\ntools = ["title"]\ndecision = "clamp"\nset = {y = 1}\n'
    async with running(tool(effect=effect)(title), policy=ASK + low) as runtime:
        waiting = await runtime.call("title", {"x": first, "y": 5}, actor="ann", **same)
        await runtime.operations.decide(expect(waiting.ticket), approve=False, by="user:boss")
        again = await runtime.call("title", {"x": second, "y": 5}, actor="ann", **same)
        assert (again.status, error(again)) == (Status.DENIED, "not_approved")
        assert len(await runtime.store.tickets()) == 1


@pytest.mark.parametrize("same", [{"turn": "t"}, {"call_id": "c1"}, {"run": "r"}])
async def test_a_denial_holds_for_a_repeatable_tool_too(same: Any) -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(retitle(shelf, [], repeatable=True), policy=ASK) as runtime:
        waiting = await runtime.call("title", TITLE, actor="ann", **same)
        await runtime.operations.decide(expect(waiting.ticket), approve=False, by="user:boss")
        again = await runtime.call("title", TITLE, actor="ann", **same)
        assert (again.status, error(again)) == (Status.DENIED, "not_approved")
        assert len(await runtime.store.tickets()) == 1


@pytest.mark.parametrize("same", [{"turn": "t"}, {"call_id": "c1"}, {"run": "r"}])
async def test_a_denial_holds_though_the_policy_or_the_resource_has_moved_since(tmp_path: Path, same: Any) -> None:
    url, shelf = f"sqlite:///{tmp_path}/i.db", Shelf(a={"title": "old"})
    async with running(retitle(shelf, []), policy=ASK, url=url) as runtime:
        waiting = await runtime.call("title", TITLE, actor="ann", **same)
        await runtime.operations.decide(expect(waiting.ticket), approve=False, by="user:boss")
        shelf.items["a"] = {"title": "newer"}
        moved = await runtime.call("title", TITLE, actor="ann", **same)
        assert (moved.status, error(moved)) == (Status.DENIED, "not_approved")
    async with running(retitle(shelf, []), policy=ASK.replace("should look", "must look"), url=url) as runtime:
        moved = await runtime.call("title", TITLE, actor="ann", **same)
        assert (moved.status, error(moved)) == (Status.DENIED, "not_approved")
        anew = await runtime.call("title", {**TITLE, "title": "else"}, actor="ann", **same)
        assert anew.status is Status.PARKED, "another question"


async def test_a_denied_read_is_not_asked_for_again_either() -> None:
    @tool(effect="read")
    async def title() -> str:
        """A title."""
        return "x"

    async with running(title, policy=ASK) as runtime:
        waiting = await runtime.call("title", {}, actor="ann", turn="t")
        await runtime.operations.decide(expect(waiting.ticket), approve=False, by="user:boss")
        denied = await runtime.call("title", {}, actor="ann", turn="t")
    assert (denied.status, error(denied)) == (Status.DENIED, "not_approved")
    assert "no reason given; the same call is not asked for again in this turn" in denied.summary


async def test_the_same_question_is_asked_once() -> None:
    async with running(retitle(Shelf(), []), policy=ASK) as runtime:
        first, again = await parked(runtime), await parked(runtime, call_id="c2")
        other = await parked(runtime, title="newer", call_id="c3")
        tickets = await runtime.store.tickets(TicketState.OPEN)
    assert first.ticket == again.ticket != other.ticket
    assert len(tickets) == 2


async def test_tickets_expire_and_escalate_and_leave_records(store_url: str) -> None:
    clock = ManualClock()
    made: list[Made] = []
    times = ASK.replace("[review]\n", '[review]\nexpires = "100s"\nescalate = "10s"\n')
    async with running(retitle(Shelf(), made), policy=times, url=store_url, clock=clock) as runtime:
        waiting = await parked(runtime)
        clock.advance(11)
        await runtime.operations.recover()
        await runtime.operations.recover()
        assert waiting.ticket is not None
        escalated = await runtime.store.ticket(waiting.ticket)
        clock.advance(100)
        with pytest.raises(NotAllowed, match="is expired, not open"):
            await runtime.operations.decide(waiting.ticket, approve=True, by="user:boss")
        late = await runtime.operations.resume(waiting.ticket)
        await runtime.operations.recover()
        expired = await runtime.store.ticket(waiting.ticket)
        again = await parked(runtime, call_id="c2")
        states = [record.status async for record in runtime.store.records(Query()) if record.kind == "ticket"]
    assert escalated is not None
    assert expired is not None
    assert (escalated.escalated, expired.state, made) == (True, TicketState.EXPIRED, [])
    assert "has expired" in late.summary
    assert states == ["escalated", "expired"]
    assert again.ticket != waiting.ticket


# Attacks


class Attack:
    """A runtime with an approved ticket for one change."""

    def __init__(self, runtime: Runtime, ticket: str, shelf: Shelf, made: list[Any], change: Tool) -> None:
        self.runtime, self.ticket, self.shelf, self.made, self.change = runtime, ticket, shelf, made, change

    async def call(self, title: str = "new", **details: Any) -> Outcome:
        given: dict[str, Any] = {"actor": "ann", "turn": "t", "call_id": "c9", "ticket": self.ticket, **details}
        return await self.runtime.call("title", {"id": "a", "title": title}, **given)


async def edited(attack: Attack) -> Outcome:
    return await attack.call(title="newer")


async def other_turn(attack: Attack) -> Outcome:
    return await attack.call(turn="u")


async def other_actor(attack: Attack) -> Outcome:
    return await attack.call(actor="bob")


async def other_tool(attack: Attack) -> Outcome:
    return await attack.runtime.call("mail", {"to": "x"}, actor="ann", turn="t", ticket=attack.ticket)


async def no_ticket(attack: Attack) -> Outcome:
    return await attack.call(ticket="made-up")


async def resource_changed(attack: Attack) -> Outcome:
    attack.shelf.items["a"] = {"title": "somebody else's"}
    return await attack.call()


async def policy_changed(attack: Attack) -> Outcome:
    stricter = ASK + '[[rule]]\nid = "no"\ntools = ["title"]\ndecision = "deny"\nwhen = "args.id == \'z\'"\n'
    changed = Runtime.open(attack.runtime.store, policy=parse_policy(stricter), tools=[attack.change])
    given: dict[str, Any] = {"actor": "ann", "turn": "t", "ticket": attack.ticket}
    return await changed.call("title", {"id": "a", "title": "new"}, **given)


@pytest.mark.parametrize(
    ("attack", "sentence"),
    [
        (edited, "the arguments changed since the plan was approved"),
        (other_turn, "belongs to another turn"),
        (other_actor, "was asked for by 'ann', not by 'bob'"),
        (other_tool, "is for 'title', not for 'mail'"),
        (no_ticket, "there is no ticket 'made-up'"),
        (resource_changed, "the resource changed since the plan was approved"),
        (policy_changed, "the policy changed since the plan was approved"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_an_approval_is_good_for_what_was_approved_and_nothing_else(attack: Any, sentence: str) -> None:
    shelf = Shelf()
    made: list[Made] = []
    change = retitle(shelf, made)
    async with running(change, mailing(made), policy=ASK) as runtime:
        waiting = await parked(runtime)
        assert waiting.ticket is not None
        await runtime.operations.decide(waiting.ticket, approve=True, by="user:boss")
        outcome = await attack(Attack(runtime, waiting.ticket, shelf, made, change))
    assert (outcome.status, error(outcome), made) == (Status.DENIED, "not_approved", [])
    assert sentence in outcome.summary


ASK_MAIL = OPEN + '[[rule]]\nid = "ask"\ntools = ["mail"]\ndecision = "review"\n'


async def approved_mail(runtime: Runtime, **given: Any) -> str:
    """The ticket of a mail that waited and was approved."""
    waiting = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t", **given)
    await runtime.operations.decide(expect(waiting.ticket), approve=True, by="user:boss")
    return expect(waiting.ticket)


async def test_a_spent_ticket_buys_no_second_change() -> None:
    made: list[Any] = []
    async with running(mailing(made, repeatable=True), policy=ASK_MAIL) as runtime:
        ticket = await approved_mail(runtime, call_id="c1")
        first = await runtime.operations.resume(ticket)
        again = await runtime.call("mail", {"to": "x"}, actor="ann", turn="t", call_id="c2", ticket=ticket)
    assert (first.ok, again.status, made) == (True, Status.DENIED, ["x"])
    assert "was spent already" in again.summary


async def test_two_at_once_cannot_both_spend_a_ticket() -> None:
    made: list[Any] = []
    async with running(mailing(made, repeatable=True), policy=ASK_MAIL) as runtime:
        ticket = await approved_mail(runtime)
        outcomes = await asyncio.gather(
            *(runtime.call("mail", {"to": "x"}, actor="ann", turn="t", ticket=ticket) for _ in range(6))
        )
    assert sorted(outcome.status.value for outcome in outcomes) == ["denied"] * 5 + ["ok"]
    assert made == ["x"]


async def test_nobody_approves_what_he_proposed_unless_that_is_the_setting() -> None:
    async with running(retitle(Shelf(), []), policy=ASK) as runtime:
        waiting = await parked(runtime, principal="svc:bot")
        assert waiting.ticket is not None
        with pytest.raises(NotAllowed, match="svc:bot asked for this, so somebody else decides"):
            await runtime.operations.decide(waiting.ticket, approve=True, by="svc:bot")
        await runtime.operations.decide(waiting.ticket, approve=False, by="svc:bot")  # but may withdraw it
    alone = ASK.replace("[review]\n", "[review]\nself_approval = true\n")
    async with running(retitle(Shelf(), []), policy=alone) as runtime:
        waiting = await parked(runtime)
        assert waiting.ticket is not None
        await runtime.operations.decide(waiting.ticket, approve=True)
        assert (await runtime.operations.resume(waiting.ticket)).ok


@pytest.mark.parametrize("principal", [None, "svc:web"])
async def test_an_actor_that_goes_by_the_name_of_a_principal_does_not_approve_its_own_call(
    principal: str | None,
) -> None:
    async with running(retitle(Shelf(), []), policy=ASK) as runtime:
        call: dict[str, Any] = {"actor": "user:ann", "turn": "t", "principal": principal}
        name = expect((await runtime.call("title", {"id": "a", "title": "new"}, **call)).ticket)
        with pytest.raises(NotAllowed, match="user:Ann asked for this, so somebody else decides"):
            await runtime.operations.decide(name, approve=True, by="user:Ann")
        await runtime.operations.decide(name, approve=True, by="user:boss")


@pytest.mark.parametrize("options", [{}, {"repeatable": True}])
async def test_two_requests_of_equal_content_under_two_ids_are_two_questions(
    store_url: str, options: dict[str, Any]
) -> None:
    """Without review each id is a change of its own; with it, one approval would answer for both, and make one."""
    made: list[Any] = []
    async with running(mailing(made, **options), policy=ASK_MAIL, url=store_url) as runtime:

        async def ask(name: str, **more: Any) -> Outcome:
            return await runtime.call("mail", {"to": "x"}, actor="ann", call_id=name, **more)

        first, second = [expect((await ask(f"order-{n}")).ticket) for n in (1, 2)]
        assert (await ask("order-1")).ticket == first, "the same request is asked about once"
        await runtime.operations.decide(first, approve=True, by="user:boss")
        borrowed = await ask("order-2", ticket=first)
        assert (borrowed.status, made) == (Status.DENIED, [])
        assert "the call id, the run" in borrowed.summary
        assert (await runtime.operations.resume(first)).ok
        assert (await runtime.operations.resume(second)).status is Status.PARKED
        await runtime.operations.decide(second, approve=True, by="user:boss")
        assert (await runtime.operations.resume(second)).ok
        assert (await verify(runtime.store)).problems == ()
    assert made == ["x", "x"]


async def test_in_a_turn_equal_content_is_one_question_whatever_the_ids() -> None:
    made: list[Any] = []
    async with running(mailing(made), policy=ASK_MAIL) as runtime:
        asked = [await runtime.call("mail", {"to": "x"}, actor="ann", turn="t", call_id=name) for name in "ab"]
        assert asked[0].ticket == asked[1].ticket


async def test_an_answer_that_waits_is_decided_where_it_is_released(store_url: str) -> None:
    agent = Agent(name="desk", tools=("look",), intents=(Intent(name="state", requires="look", keywords=("state",)),))

    @tool(effect="read")
    async def look(item: str) -> dict[str, int]:
        """How an item is."""
        return {"state": 3}

    async with running(look, url=store_url) as runtime:
        answers = Answers(runtime)
        async with answers.turn("What is the state of it?", agent=agent) as turn:
            while turn.result is None:
                await turn.finish("It is fine.")
        name = expect(turn.result.ticket)
        for approve in (True, False):
            with pytest.raises(NotAllowed, match=r"decide it with answers\.decide"):
                await runtime.operations.decide(name, approve=approve, by="user:boss")
        assert expect(await runtime.store.ticket(name)).state is TicketState.OPEN
        await answers.decide(name, approve=True, by="user:boss")
        assert (await answers.result(turn.result.turn)).status is TurnStatus.RELEASED
        assert (await verify(runtime.store)).problems == ()


async def test_a_ticket_says_how_many_approvals_it_still_needs() -> None:
    two = ASK.replace("[review]\n", "[review]\nquorum = 2\n")
    async with running(retitle(Shelf(), []), policy=two) as runtime:
        waiting = expect((await parked(runtime)).ticket)
        assert "has not been decided yet" in (await runtime.operations.resume(waiting)).summary
        await runtime.operations.decide(waiting, approve=True, by="user:one")
        assert "has 1 of the 2 approvals that it needs" in (await runtime.operations.resume(waiting)).summary


async def test_a_ticket_is_decided_once() -> None:
    async with running(retitle(Shelf(), []), policy=ASK) as runtime:
        waiting = await parked(runtime)
        assert waiting.ticket is not None
        await runtime.operations.decide(waiting.ticket, approve=False, by="user:boss")
        with pytest.raises(NotAllowed, match="is denied, not open"):
            await runtime.operations.decide(waiting.ticket, approve=True, by="user:other")
        with pytest.raises(NotAllowed, match="there is no ticket 'nope'"):
            await runtime.operations.decide("nope", approve=True, by="user:boss")
        with pytest.raises(NotAllowed, match="there is no ticket 'nope'"):
            await runtime.operations.resume("nope")


async def test_a_read_can_wait_for_a_person_too() -> None:
    from tests.conftest import echo

    policy = 'version = 1\n[review]\nvouched = ["user"]\n[[rule]]\nid = "ask"\ntools = ["echo"]\ndecision = "review"\n'
    async with running(echo, policy=policy) as runtime:
        waiting = await runtime.call("echo", {"text": "x"}, actor="ann")
        assert waiting.ticket is not None
        await runtime.operations.decide(waiting.ticket, approve=True, by="user:boss")
        first, again = await runtime.operations.resume(waiting.ticket), await runtime.operations.resume(waiting.ticket)
    assert (first.value, again.status) == ("x", Status.DENIED)
    assert "was spent already" in again.summary
