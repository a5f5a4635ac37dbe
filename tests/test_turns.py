"""Turns: nothing unverified leaves, whatever the model does; every turn ends within its bound, and its records agree."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interlock import Result, Runtime, Status, ToolError, tool
from interlock.answers import Again, Agent, Answers, Intent, TurnOutcome, TurnResult, TurnStatus, model_calls
from interlock.answers.grounding import Source
from interlock.answers.requirements import CallSeen, Need, all_of, any_of, need, satisfies
from interlock.answers.runner import run_turn
from interlock.audit import verify
from interlock.errors import ConfigError, NotAllowed, NotFound, Permanent
from interlock.models import Message, Proposal, Reply, Request
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock.state import TicketState
from interlock.testing import BEHAVIOURS, Script, make_scripted

OPEN = 'version = 1\nmode = "apply"\n[review]\nvouched = ["user"]\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n'
TRAILS = {"waldo-lake-3536": "Waldo Lake", "waldo-mtn-3540": "Waldo Mountain", "bobby-lake-3526": "Bobby Lake"}
QUESTION = "What is the damage on Waldo Lake?"
ANSWER = "Waldo Lake is class 3 with 41.5 downed trees per mile."
SCRIPT = Script(
    "classify_damage",
    {"trail_id": "Waldo Lake"},
    ANSWER,
    other="list_trails",
    elsewhere={"trail_id": "Bobby Lake"},
)


def tools(ran: list[str] | None = None) -> list[Any]:
    count = ran if ran is not None else []

    @tool(effect="read", known_values={"trail_id": TRAILS})
    async def classify_damage(trail_id: str) -> Result[dict[str, Any]]:
        """Damage class of a trail."""
        count.append(trail_id)
        value = {"trail_id": trail_id, "name": TRAILS[trail_id], "damage_class": 3, "downed_trees_per_mile": 41.5}
        return Result(value=value, confidence=0.8, sources=("survey 2022-10",))

    @tool(effect="read")
    async def list_trails() -> list[str]:
        """All trails."""
        return list(TRAILS)

    @tool(effect="read")
    async def broken(x: int = 0) -> int:
        """Fails."""
        raise Permanent("the imagery service is gone")

    @tool(effect="read")
    async def nothing(x: int = 0) -> int:
        """Finds nothing."""
        raise NotFound("no survey of that")

    @tool(effect="send", key="{to}")
    async def notify(to: str) -> bool:
        """Tell somebody."""
        count.append(f"mail {to}")
        return True

    return [classify_damage, list_trails, broken, nothing, notify]


NAMES = ("classify_damage", "list_trails", "broken", "nothing", "notify")
DAMAGE = Intent(name="damage", requires="classify_damage", keywords=("damage", "downed trees"))
AGENT = Agent(name="trails", tools=NAMES, intents=(DAMAGE,), semantic=False, deadline_s=5)


def opened(policy: str = OPEN, ran: list[str] | None = None, store: str = "memory://") -> Runtime:
    return Runtime.open(store, policy=parse_policy(policy), tools=tools(ran))


async def own_records(runtime: Runtime, turn: str) -> list[Any]:
    return [r async for r in runtime.store.records(Query(turn=turn)) if r.kind == "turn"]


EXPECTED = {
    "obedient": ("PASSED", "verified"),
    "skips once": ("RETRY_SUCCEEDED", "verified"),
    "skips twice": ("RETRY_SUCCEEDED", "verified"),
    "skips until forced": ("FORCED", "verified"),
    "never calls": ("ESCALATED", "escalated"),
    "wrong tool": ("ESCALATED", "escalated"),
    "bad arguments": ("ESCALATED", "escalated"),
    "loops": ("PASSED", "rendered"),
    "claims success": ("ESCALATED", "escalated"),
    "hallucinates": ("RETRY_SUCCEEDED", "rendered"),
    "asks elsewhere": ("ESCALATED", "escalated"),
    "claims effects": ("RETRY_SUCCEEDED", "rendered"),
    "swaps figures": ("RETRY_SUCCEEDED", "rendered"),
    "other scripts": ("RETRY_SUCCEEDED", "rendered"),
    "figures in words": ("RETRY_SUCCEEDED", "rendered"),
    "another language": ("RETRY_SUCCEEDED", "rendered"),
    "roman numerals": ("RETRY_SUCCEEDED", "rendered"),
    "unseen characters": ("RETRY_SUCCEEDED", "rendered"),
    "negates": ("RETRY_SUCCEEDED", "rendered"),
    "cites nothing": ("RETRY_SUCCEEDED", "rendered"),
    "markup in figures": ("RETRY_SUCCEEDED", "rendered"),
    "floods": ("PASSED", "verified"),
    "malformed": ("ESCALATED", "escalated"),
    "refuses": ("BLOCKED", "blocked"),
    "fails": ("NO_REPLY", "no_reply"),
    "literal any": ("PASSED", "verified"),
    "silent": ("ESCALATED", "escalated"),
    "hangs": ("TIMEOUT", "timed_out"),
}


@pytest.mark.parametrize("name", BEHAVIOURS)
async def test_whatever_the_model_does(name: str) -> None:
    runtime, model = opened(), make_scripted(name, SCRIPT)
    agent = AGENT if name != "hangs" else Agent(**{**as_kwargs(AGENT), "deadline_s": 0.2})
    async with Answers(runtime).turn(QUESTION, agent=agent) as turn:
        result = await run_turn(turn, model)
    assert (result.outcome.value, result.status.value) == EXPECTED[name]
    assert model.calls <= model_calls(agent, turn.requirement) == 5
    if result.status is TurnStatus.VERIFIED:
        assert result.answer == ANSWER
        assert all(claim.how == "exact" for claim in result.claims)
        assert result.confidence == 0.8
        assert result.sources == ("survey 2022-10",)
    else:
        assert "class 9" not in result.answer
        assert "fair condition" not in result.answer
        assert "successfully" not in result.answer
    ended = [r for r in await own_records(runtime, turn.id) if r.status == "finished"]
    assert len(ended) == 1
    assert ended[0].content().arguments["outcome"] == result.outcome.value
    assert await Answers(runtime).result(turn.id) == result
    await runtime.close()


@pytest.mark.parametrize("name", BEHAVIOURS)
async def test_whatever_the_model_does_later_in_a_session(name: str) -> None:
    """What an earlier turn has found out is no leave to answer this one from thin air."""
    runtime, model = opened(), make_scripted(name, SCRIPT)
    agent = AGENT if name != "hangs" else Agent(**{**as_kwargs(AGENT), "deadline_s": 0.2})
    session = Answers(runtime).session("s")
    before = await session.ask(QUESTION, agent=AGENT, model=make_scripted("obedient", SCRIPT))
    assert before.status is TurnStatus.VERIFIED
    result = await session.ask(QUESTION, agent=agent, model=model)
    assert (result.outcome.value, result.status.value) == EXPECTED[name]
    assert result.status is not TurnStatus.VERIFIED or result.answer == ANSWER
    await runtime.close()


def as_kwargs(agent: Agent) -> dict[str, Any]:
    return {name: getattr(agent, name) for name in Agent.__struct_fields__}


async def test_what_a_tool_redacts_does_not_leave_where_results_leave_by_themselves() -> None:
    @tool(effect="read", redact={"card_number"})
    async def classify_damage(trail_id: str) -> dict[str, Any]:
        """Look."""
        return {
            "trail": trail_id,
            "points": 3,
            "card_number": "4111 1111 1111 1111",
            "said": "paid by 4111 1111 1111 1111",
        }

    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[classify_damage])
    agent = Agent(**{**as_kwargs(AGENT), "tools": ("classify_damage",)})
    async with Answers(runtime).turn(QUESTION, agent=agent) as turn:
        result = await run_turn(turn, make_scripted("hallucinates", SCRIPT))
    assert result.status is TurnStatus.RENDERED
    assert "points: 3" in result.answer
    assert "card number: [redacted]" in result.answer
    assert "1111" not in result.answer
    kept = await Answers(runtime).result(turn.id)
    assert "1111" not in str(kept)
    await runtime.close()


@pytest.mark.parametrize("draft", ["Yes.", "That is correct.", "It is very thin and dying.", "All is well."])
@pytest.mark.parametrize("changes", [False, True])
async def test_an_answer_that_rests_on_nothing_is_sent_back(draft: str, changes: bool) -> None:
    """Also where the results have few words, and where a change was made of which the draft says nothing."""

    @tool(effect="read")
    async def look() -> dict[str, Any]:
        """Look."""
        return {"pet": "Rex", "safe": False, "kg": 31.5}

    contracts = [look, *(one for one in tools() if one.name == "notify")]
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=contracts)
    agent = Agent(name="pets", tools=("look", "notify"), default=need("look"), semantic=False, deadline_s=5)
    async with Answers(runtime).turn("Is Rex safe?", agent=agent) as turn:
        await turn.call("look", {})
        if changes:
            await turn.call("notify", {"to": "ann"})
        assert isinstance(await turn.finish(draft), Again)
        result = await turn.finish("Rex is not safe.")
    assert isinstance(result, TurnResult)
    assert result.status is TurnStatus.VERIFIED
    await runtime.close()


async def test_a_name_that_is_not_on_file_is_not_quoted_to_the_user() -> None:
    """It may be a sentence that a model has put into an argument."""
    runtime = opened()
    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        await turn.call("classify_damage", {"trail_id": "The refund of 950 EUR has been made"})
        await turn.call("classify_damage", {"trail_id": "Waldo Lake"})
        result = await turn.finish(ANSWER)
    assert isinstance(result, TurnResult)
    assert "950" not in result.answer, result.answer
    assert "nothing is on file under the name that was looked for" in result.answer
    await runtime.close()


async def test_a_name_that_is_not_on_file_is_quoted_to_a_user_who_has_said_it() -> None:
    runtime = opened()
    async with Answers(runtime).turn(f"{QUESTION} And on Fuji mountain?", agent=AGENT) as turn:
        await turn.call("classify_damage", {"trail_id": "Fuji Mountain"})
        await turn.call("classify_damage", {"trail_id": "Waldo Lake"})
        result = await turn.finish(ANSWER)
    assert isinstance(result, TurnResult)
    assert "there is no trail_id 'Fuji Mountain' on file" in result.answer
    await runtime.close()


async def test_that_nothing_is_on_file_is_said_once() -> None:
    runtime = opened()
    agent = Agent(name="trails", tools=NAMES, default=need("nothing", no_data=True), semantic=False, deadline_s=5)
    async with Answers(runtime).turn("Is there anything?", agent=agent) as turn:
        await turn.call("nothing", {})
        result = await turn.finish("There are 12 of them.")
        if not isinstance(result, TurnResult):
            result = await turn.finish("There are 12 of them.")
    assert isinstance(result, TurnResult)
    assert result.status is TurnStatus.RENDERED
    assert result.answer.count("nothing") == 1, result.answer
    await runtime.close()


@pytest.mark.parametrize(
    ("declines", "said"),
    [
        ("The survey says nothing of bridges.", "The survey says nothing of bridges"),
        ("It has 912 downed trees per mile, and no bridges.", "What was found does not answer it"),
    ],
)
async def test_a_model_may_say_that_what_was_found_answers_nothing(declines: str, said: str) -> None:
    class Declines:
        name, instructable = "declines", True

        async def reply(self, request: Request) -> Reply:
            if any(message.role == "tool" for message in request.messages):
                return Reply(declines=declines, final=True)
            return Reply(proposals=(Proposal("classify_damage", {"trail_id": "Waldo Lake"}),))

        async def close(self) -> None: ...

    runtime = opened()
    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        result = await run_turn(turn, Declines())
    assert result.status is TurnStatus.TOOL_FAILED
    assert said in result.answer
    assert "912" not in result.answer  # what stands in no result does not leave in a refusal either
    await runtime.close()


@pytest.mark.slow
async def test_two_hundred_turns_at_once_do_not_see_each_other() -> None:
    runtime = opened()
    names = ["obedient", "never calls", "hallucinates", "skips until forced"]

    async def one(n: int) -> tuple[str, TurnResult]:
        name = names[n % 4]
        async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
            return name, await run_turn(turn, make_scripted(name, SCRIPT))

    for name, result in await asyncio.gather(*map(one, range(200))):
        assert (result.outcome.value, result.status.value) == EXPECTED[name]
        assert len(result.records) <= 1
    await runtime.close()


async def test_a_forced_call_is_one_call_even_if_its_tool_fails() -> None:
    agent = Agent(name="a", tools=NAMES, intents=(Intent(name="x", requires="broken", keywords=("damage",)),),
                  semantic=False, max_retries=0)  # fmt: skip
    runtime = opened()
    async with Answers(runtime).turn(QUESTION, agent=agent) as turn:
        first = await turn.finish("words")
        assert isinstance(first, Again)
        assert first.tool == "broken"
        await turn.propose([Proposal("broken", {})])
        result = await turn.finish("words")
    assert isinstance(result, TurnResult)
    assert (result.outcome, result.confidence, result.ticket) == (TurnOutcome.TOOL_FAILED, 0.0, None)
    assert "the imagery service is gone" in result.answer
    assert "words" not in result.answer
    await runtime.close()


async def test_nothing_on_file_counts_only_where_the_requirement_says_so() -> None:
    runtime = opened()
    for accepts, outcome in ((True, TurnOutcome.PASSED), (False, TurnOutcome.TOOL_FAILED)):
        async with Answers(runtime).turn("x", agent=AGENT, requires=need("nothing", no_data=accepts)) as turn:
            await turn.call("nothing", {})
            result = await turn.finish("There is no survey of that.")
            for _ in range(2 if not accepts else 0):
                assert isinstance(result, Again)
                result = await turn.finish("There is no survey of that.")
        assert isinstance(result, TurnResult)
        assert result.outcome is outcome
        assert "no survey of that" in result.answer
    await runtime.close()


async def test_what_was_denied_or_parked_does_not_count() -> None:
    policy = OPEN + '[[rule]]\nid = "no"\ntools = ["classify_damage"]\ndecision = "deny"\nreason = "not today"\n'
    runtime = opened(policy)
    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        result = await run_turn(turn, make_scripted("obedient", SCRIPT))
    assert result.outcome is TurnOutcome.TOOL_FAILED
    assert ANSWER not in result.answer
    await runtime.close()


@pytest.mark.parametrize("draft", ["I am not allowed to tell the crew.", "I have told the crew."])
async def test_what_a_rule_forbids_is_said_and_not_asked_for_again(draft: str) -> None:
    policy = OPEN + '[[rule]]\nid = "no"\ntools = ["notify"]\ndecision = "deny"\nreason = "not today"\n'
    runtime = opened(policy)
    async with Answers(runtime).turn("tell the crew", agent=AGENT, requires="notify") as turn:
        await turn.propose([Proposal(tool="notify", arguments={"to": "crew"})])
        result = await turn.finish(draft)
    assert isinstance(result, TurnResult), "nothing is left to try"
    assert (result.status, result.outcome) == (TurnStatus.TOOL_FAILED, TurnOutcome.TOOL_FAILED)
    assert result.action == "none"
    assert "notify was not done: not today" in result.answer
    assert draft not in result.answer
    await runtime.close()


async def test_another_call_after_a_forbidden_one_is_not_given_up() -> None:
    policy = OPEN + '[[rule]]\nid = "no"\ntools = ["notify"]\nwhen = "args.to != \'crew\'"\ndecision = "deny"\n'
    runtime = opened(policy + 'reason = "only the crew"\n')
    async with Answers(runtime).turn("tell the crew", agent=AGENT, requires="notify") as turn:
        await turn.propose([Proposal(tool="notify", arguments={"to": "press"})])
        await turn.propose([Proposal(tool="notify", arguments={"to": "crew"})])
        result = await turn.finish("The crew was told: true.")
    assert isinstance(result, TurnResult)
    assert result.verified, result
    await runtime.close()


OF_X, IN_SUMMER = need("look", where='args.trail == "x"'), need("look", where='args.season == "summer"')


@pytest.mark.parametrize(
    ("wanted", "second"),
    [
        (OF_X, {"trail": "x", "season": 7}),
        (OF_X, {"trail": "nowhere", "season": "summer"}),
        (OF_X, {"trail": "y", "season": "summer"}),
        (IN_SUMMER, None),
    ],
)
async def test_a_rule_against_another_way_to_ask_ends_no_turn(wanted: Need, second: dict[str, Any] | None) -> None:
    @tool(effect="read")
    async def look(trail: str, season: str) -> dict[str, Any]:
        if trail == "nowhere":
            raise NotFound("no such trail")
        return {"trail": trail, "damage_class": 3}

    policy = OPEN + '[[rule]]\nid = "no"\ntools = ["look"]\nwhen = "args.season == \'winter\'"\ndecision = "deny"\n'
    runtime = Runtime.open("memory://", policy=parse_policy(policy + 'reason = "not in winter"\n'), tools=[look])
    agent = Agent(name="trails", tools=("look",), semantic=False)
    async with Answers(runtime).turn("how is x in summer?", agent=agent, requires=wanted) as turn:
        await turn.propose([Proposal("look", {"trail": "x", "season": "winter"})])
        if second is not None:
            await turn.propose([Proposal("look", second)])
        assert isinstance(await turn.finish("I cannot tell."), Again)
        await turn.propose([Proposal("look", {"trail": "x", "season": "summer"})])
        result = await turn.finish("x is class 3.")
    assert isinstance(result, TurnResult)
    assert result.verified
    await runtime.close()


async def test_a_parked_call_ends_the_turn_and_it_goes_on_when_it_is_approved() -> None:
    ran: list[str] = []
    policy = OPEN + '[[rule]]\nid = "ask"\ntools = ["notify"]\ndecision = "review"\nreason = "mail"\n'
    runtime = opened(policy, ran)
    script = Script("notify", {"to": "crew"}, "The crew was told: true.")
    async with Answers(runtime).turn("tell the crew", agent=AGENT, requires="notify") as turn:
        result = await run_turn(turn, make_scripted("obedient", script))
    assert result.outcome is TurnOutcome.WAITING
    assert result.ticket is not None
    assert ran == []
    with pytest.raises(NotAllowed, match="asked for this"):
        await Answers(runtime).decide(result.ticket, approve=True)
    await Answers(runtime).decide(result.ticket, approve=True, by="user:boss")
    assert (await runtime.operations.resume(result.ticket)).ok
    again = await Answers(runtime).reopen(turn.id, agent=AGENT)
    async with again:
        result = await run_turn(again, make_scripted("obedient", script))
    assert result.outcome is TurnOutcome.PASSED
    assert ran == ["mail crew"]  # the model proposed it again; it was not sent again
    await runtime.close()


REVIEWED = OPEN + '[[rule]]\nid = "ask"\ntools = ["notify"]\ndecision = "review"\nreason = "mail"\n'
TELL = Script("notify", {"to": "crew"}, "The crew was told: true.")


@pytest.mark.parametrize("behaviour", ["obedient", "loops", "silent"])
async def test_going_on_makes_the_approved_call_itself_and_opens_no_second_ticket(behaviour: str) -> None:
    """The call was parked again under a new ticket, and the turn then waited for that one."""
    ran: list[str] = []
    runtime = opened(REVIEWED, ran)
    async with Answers(runtime).turn("tell the crew", agent=AGENT, requires="notify") as turn:
        left = await run_turn(turn, make_scripted("obedient", TELL))
    assert left.ticket is not None
    again = await Answers(runtime).reopen(turn.id, agent=AGENT)
    async with again:  # before it is decided: it waits for the same ticket, and no model is asked
        waits = await run_turn(again, make_scripted(behaviour, TELL))
    assert (waits.outcome, waits.ticket, waits.model_calls) == (TurnOutcome.WAITING, left.ticket, left.model_calls)
    await Answers(runtime).decide(left.ticket, approve=True, by="user:boss")
    async with Answers(runtime).reopen(turn.id, agent=AGENT) as again:
        done = await run_turn(again, make_scripted(behaviour, TELL))
    assert done.status in (TurnStatus.VERIFIED, TurnStatus.RENDERED)
    assert (ran, done.tools, len(done.records)) == (["mail crew"], ("notify",), 1)
    assert done.answer.count("[record ") <= 1
    tickets = await runtime.store.tickets(None)
    assert [(ticket.id, ticket.state) for ticket in tickets] == [(left.ticket, TicketState.SPENT)]
    await runtime.close()


@pytest.mark.parametrize("behaviour", ["obedient", "loops", "silent"])
async def test_a_denied_call_is_told_to_the_model_and_the_user_and_asked_no_second_time(behaviour: str) -> None:
    ran: list[str] = []
    runtime = opened(REVIEWED, ran)
    answers = Answers(runtime)
    async with answers.turn("tell the crew", agent=AGENT, requires="notify") as turn:
        left = await run_turn(turn, make_scripted("obedient", TELL))
    await answers.decide(left.ticket or "", approve=False, by="user:boss", reason="NO, never")
    seen: list[str] = []

    class Listening:
        name, instructable = "listening", True
        model = make_scripted(behaviour, TELL)

        async def close(self) -> None:
            return

        async def reply(self, request: Request) -> Reply:
            seen.append("\n".join(message.text for message in request.messages if message.role == "tool"))
            return await self.model.reply(request)

    async with answers.reopen(turn.id, agent=AGENT) as again:
        done = await run_turn(again, Listening())
    assert "user:boss denied it: NO, never" in done.answer
    assert (done.outcome, done.verified, ran) == (TurnOutcome.TOOL_FAILED, False, [])
    assert "try again" not in done.answer
    assert "user:boss denied it: NO, never" in seen[0], "as the result of that call"
    assert [ticket.id for ticket in await runtime.store.tickets()] == [left.ticket]
    await runtime.close()


async def test_what_a_person_refused_stands_beside_an_answer_that_did_not_need_it() -> None:
    runtime = opened(REVIEWED)
    answers = Answers(runtime)
    async with answers.turn("hello", agent=AGENT) as turn:
        left = await run_turn(turn, make_scripted("obedient", TELL))
    assert left.outcome is TurnOutcome.WAITING
    await answers.decide(left.ticket or "", approve=False, by="user:boss", reason="NO, never.")
    async with answers.reopen(turn.id, agent=AGENT) as again:
        done = await again.finish("Good morning.")
    assert isinstance(done, TurnResult)
    said = "Good morning.\n\nNote: notify was not done: user:boss denied it: NO, never."
    assert done.answer == f"{said}\n\nRefused: notify (record {done.effects[0].record})."
    await runtime.close()


async def test_an_approval_that_is_good_for_nothing_any_more_does_not_keep_a_turn_waiting(tmp_path: Path) -> None:
    ran: list[str] = []
    async with (
        opened(REVIEWED, ran, f"sqlite:///{tmp_path}/t.db") as runtime,
        Answers(runtime).turn("tell the crew", agent=AGENT, requires="notify") as turn,
    ):
        left = await run_turn(turn, make_scripted("obedient", TELL))
    # Under another policy it would be another plan than the one that was approved.
    async with opened(REVIEWED.replace("mail", "no mail at night"), ran, f"sqlite:///{tmp_path}/t.db") as runtime:
        answers = Answers(runtime)
        await answers.decide(left.ticket or "", approve=True, by="user:boss")
        async with answers.reopen(turn.id, agent=AGENT) as again:
            waits = await run_turn(again, make_scripted("obedient", TELL))
        assert (waits.outcome, ran) == (TurnOutcome.WAITING, [])
        assert waits.ticket not in (None, left.ticket)
        await answers.decide(waits.ticket or "", approve=True, by="user:boss")
        async with answers.reopen(turn.id, agent=AGENT) as again:
            done = await run_turn(again, make_scripted("obedient", TELL))
        assert (done.outcome, ran) == (TurnOutcome.PASSED, ["mail crew"])


async def test_approved_calls_are_left_to_whoever_goes_on_if_he_says_so() -> None:
    ran: list[str] = []
    runtime = opened(REVIEWED, ran)
    async with Answers(runtime).turn("tell the crew", agent=AGENT, requires="notify") as turn:
        left = await run_turn(turn, make_scripted("obedient", TELL))
    await Answers(runtime).decide(left.ticket or "", approve=True, by="user:boss")
    async with Answers(runtime).reopen(turn.id, agent=AGENT, resume=False) as again:
        assert ran == []
        await runtime.operations.resume(left.ticket or "")
        done = await run_turn(again, make_scripted("obedient", TELL))
    assert (done.outcome, ran) == (TurnOutcome.PASSED, ["mail crew"])
    await runtime.close()


async def test_a_turn_that_is_gone_on_with_shows_the_model_what_was_done() -> None:
    runtime = opened(REVIEWED)
    async with Answers(runtime).turn("tell the crew", agent=AGENT, requires="notify") as turn:
        await turn.call("classify_damage", {"trail_id": "Waldo Lake"})
        await turn.call("notify", {"to": "crew"})
        left = await turn.finish(None)
    assert isinstance(left, TurnResult)
    await Answers(runtime).decide(left.ticket or "", approve=True, by="user:boss")
    seen: list[Message] = []

    class Reads:
        name, instructable = "reads", True

        async def reply(self, request: Request) -> Reply:
            seen.extend(request.messages)
            return Reply("Waldo Lake is class 3, and the crew was told.")

        async def close(self) -> None:
            return

    async with Answers(runtime).reopen(turn.id, agent=AGENT) as again:
        done = await run_turn(again, Reads())
    assert [(m.role, m.tool) for m in seen] == [
        ("user", ""), ("assistant", ""), ("tool", "classify_damage"), ("assistant", ""), ("tool", "notify"),
    ]  # fmt: skip
    assert (seen[2].result["status"], seen[2].result["value"]["damage_class"]) == ("ok", 3)
    assert (done.outcome, done.model_calls) == (TurnOutcome.PASSED, 1)
    await runtime.close()


async def test_a_name_that_fits_several_is_asked_and_one_that_fits_none_is_nothing_on_file() -> None:
    runtime = opened()
    for said, outcome, words in (
        ("Waldo", TurnOutcome.ASKED, "Waldo Lake (waldo-lake-3536) or Waldo Mountain (waldo-mtn-3540)"),
        ("Fuji Mountain", TurnOutcome.TOOL_FAILED, "the nearest are Waldo Mountain"),
    ):
        async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
            result: Any = None
            for _ in range(4):
                await turn.call("classify_damage", {"trail_id": said})
                result = await turn.finish(ANSWER)
                if isinstance(result, TurnResult):
                    break
        assert result.outcome is outcome
        assert words in result.answer
    await runtime.close()


async def test_ordered_and_alternative_requirements() -> None:
    runtime = opened()
    ordered = all_of("list_trails", "classify_damage", in_order=True)
    async with Answers(runtime).turn("What is the damage by now?", agent=AGENT, requires=ordered) as turn:
        await turn.call("classify_damage", {"trail_id": "Waldo Lake"})
        first = await turn.finish(ANSWER)
        assert isinstance(first, Again)
        assert "list_trails" in first.prompt
        await turn.call("list_trails", {})
        assert isinstance(await turn.finish(ANSWER), Again)  # the damage has to come after the list
        await turn.call("classify_damage", {"trail_id": "Bobby Lake"})
        result = await turn.finish("Bobby Lake is class 3.")
    assert isinstance(result, TurnResult)
    assert result.verified
    async with Answers(runtime).turn(QUESTION, agent=AGENT, requires=any_of("broken", "list_trails")) as turn:
        await turn.call("broken", {})
        assert isinstance(await turn.finish("x"), Again)
        await turn.call("list_trails", {})
        result = await turn.finish("There are three trails, waldo-lake-3536 among them.")
    assert isinstance(result, TurnResult)
    assert result.verified
    await runtime.close()


@pytest.mark.parametrize("said", ["x\0", "x\0y", "\ud83d", ["x", {"a\0": 1}], {"a": {"b": "\0"}}])
def test_a_condition_that_cannot_be_said_of_arguments_is_not_true(said: Any) -> None:
    """The library for conditions ends a text at NUL, and fails on half of an emoji."""
    for where in ("args.a == 'x'", "size(args.a) > 0", "has(args.a)", "args.a.matches('x')"):
        call = CallSeen(record=1, tool="look", status=Status.OK, arguments={"a": said})
        assert not satisfies(call, need("look", where=where))


async def test_a_predicate_on_arguments() -> None:
    runtime = opened()
    wants = need("classify_damage", where='args.trail_id == "bobby-lake-3526"')
    async with Answers(runtime).turn(QUESTION, agent=AGENT, requires=wants) as turn:
        await turn.call("classify_damage", {"trail_id": "Waldo Lake"})
        assert isinstance(await turn.finish(ANSWER), Again)
        await turn.call("classify_damage", {"trail_id": "Bobby Lake"})
        assert isinstance(await turn.finish("Bobby Lake is class 3."), TurnResult)
    with pytest.raises(ConfigError, match="no condition"):
        need("x", where="args.(")
    with pytest.raises(ConfigError, match="NUL"):
        need("x", where="args.a == 'b\0'")
    with pytest.raises(ConfigError) as error:
        need("x", where="(" * 50_000)
    assert len(str(error.value)) < 500
    await runtime.close()


async def test_observing_lets_everything_out_marked_and_records_what_would_have_been() -> None:
    runtime = opened()
    agent = Agent(**{**as_kwargs(AGENT), "enforcement": "observe"})
    async with Answers(runtime).turn(QUESTION, agent=agent) as turn:
        result = await run_turn(turn, make_scripted("never calls", SCRIPT))
    assert result.status is TurnStatus.UNVERIFIED
    assert not result.verified
    assert "fair condition" in result.answer
    assert "unverified" in result.answer
    assert "retry" in result.reason
    await runtime.close()


async def test_an_answer_may_rest_on_records_and_chunks_that_were_given() -> None:
    runtime = opened()
    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        outcome = await turn.call("classify_damage", {"trail_id": "Waldo Lake"})
        await turn.finish(ANSWER)
    assert outcome.record is not None
    chunk = Source("chunk 7", "The bridge was built in 1931.")
    async with Answers(runtime).turn("And now?", agent=AGENT, requires=all_of(), given=[outcome.record, chunk]) as turn:
        result = await turn.finish("Earlier: class 3, and the bridge is from 1931.")
    assert isinstance(result, TurnResult)
    assert {claim.source for claim in result.claims} == {f"record {outcome.record}", "chunk 7"}
    with pytest.raises(ConfigError, match="no record 99999"):
        async with Answers(runtime).turn("hi", agent=AGENT, given=[99999]):
            pass
    await runtime.close()


async def test_a_child_that_did_not_pass_holds_its_parent_back() -> None:
    runtime = opened()
    async with Answers(runtime).turn("brief me", agent=AGENT, requires=all_of()) as parent:
        async with Answers(runtime).turn(QUESTION, agent=AGENT, parent=parent.id) as child:
            for _ in range(4):
                await child.finish("It is fine.")
        for _ in range(6):
            result = await parent.finish("All is fine.")
            if isinstance(result, TurnResult):
                break
    assert isinstance(result, TurnResult)
    assert result.outcome is TurnOutcome.ESCALATED
    async with Answers(runtime).turn("brief me", agent=AGENT, requires=all_of()) as parent:
        async with Answers(runtime).turn(QUESTION, agent=AGENT, parent=parent.id) as child:
            await child.call("classify_damage", {"trail_id": "Waldo Lake"})
            await child.finish(ANSWER)
        result = await parent.finish(f"The specialist found: {ANSWER}")
    assert isinstance(result, TurnResult)
    assert result.verified
    assert all(claim.source.startswith("record") for claim in result.claims)
    await runtime.close()


async def test_a_tool_that_the_agent_does_not_have_is_refused_on_the_path() -> None:
    runtime = opened()
    agent = Agent(name="a", tools=("list_trails",))
    async with Answers(runtime).turn("hello", agent=agent) as turn:
        outcome = await turn.call("classify_damage", {"trail_id": "Waldo Lake"})
        await turn.finish("hello")
    assert outcome.status is Status.DENIED
    assert outcome.problem is not None
    assert outcome.problem.reason == "not_offered"
    assert outcome.record is not None
    await runtime.close()


async def test_changes_of_one_reply_are_made_in_order_and_reads_side_by_side() -> None:
    ran: list[str] = []
    runtime = opened(ran=ran)
    async with Answers(runtime).turn("hello", agent=AGENT) as turn:
        proposals = [
            Proposal("notify", {"to": "a"}),
            Proposal("list_trails", {}),
            Proposal("no_such", {}),
            Proposal("notify", {"to": "b"}),
        ]
        outcomes = await turn.propose(proposals)
        await turn.finish("done")
    assert [outcome.tool for outcome in outcomes] == ["notify", "list_trails", "no_such", "notify"]
    assert [outcome.status.value for outcome in outcomes] == ["ok", "ok", "denied", "ok"]
    assert ran == ["mail a", "mail b"]
    await runtime.close()


async def test_a_planned_change_satisfies_a_dry_run_and_the_answer_says_so() -> None:
    runtime = opened()
    async with Answers(runtime).turn("tell them", agent=AGENT, requires="notify", mode="dry_run") as turn:
        await turn.call("notify", {"to": "crew"})
        result = await turn.finish("The crew will be told by notify.")
    assert isinstance(result, TurnResult)
    assert result.verified
    assert "only planned; nothing was changed" in result.answer
    await runtime.close()


async def test_an_escalated_draft_is_released_corrected_or_rejected_by_somebody_else() -> None:
    from interlock.answers.answer_review import decide_answer
    from interlock.operations.ledger_writer import LedgerWriter
    from interlock.ports import SystemClock, SystemIds
    from interlock.state import TicketState

    runtime = opened()
    for state, text, status in (
        (TicketState.APPROVED, "", TurnStatus.RELEASED),
        (TicketState.APPROVED, "Class 3, I looked it up.", TurnStatus.CORRECTED),
        (TicketState.DENIED, "", TurnStatus.REJECTED),
    ):
        async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
            result = await run_turn(turn, make_scripted("claims success", SCRIPT))
        assert result.ticket is not None
        own = LedgerWriter(turn.asked.principal, runtime.store, SystemClock(), SystemIds())
        with pytest.raises(NotAllowed, match="somebody else decides"):
            await decide_answer(own, result.ticket, state, "")
        desk = LedgerWriter("os:reviewer", runtime.store, SystemClock(), SystemIds())
        await decide_answer(desk, result.ticket, state, "checked", text)
        after = await Answers(runtime).result(turn.id)
        assert after.status is status
        assert ("successfully" in after.answer) is (status is TurnStatus.RELEASED)
        with pytest.raises(NotAllowed):
            await decide_answer(desk, result.ticket, state, "twice")
    await runtime.close()


def test_an_agent_that_makes_no_sense_is_refused() -> None:
    for changes, words in (
        ({"enforcement": "maybe"}, "enforce or observe"),
        ({"deadline_s": 0}, "above 0"),
        ({"default": "fly"}, "requires fly"),
    ):
        with pytest.raises(ConfigError, match=words):
            Agent(**{**as_kwargs(AGENT), **changes})
    runtime = opened()
    with pytest.raises(ConfigError, match="not registered: fly"):
        Answers(runtime).turn("x", agent=Agent(name="a", tools=("fly",)))
    with pytest.raises(ConfigError, match="question is empty"):
        Answers(runtime).turn("  ", agent=AGENT)


async def test_a_turn_that_is_left_is_abandoned_and_cannot_be_fetched() -> None:
    runtime = opened()
    with pytest.raises(ToolError):
        async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
            raise ToolError("the program failed")
    assert [r.status for r in await own_records(runtime, turn.id)] == ["opened", "abandoned"]
    with pytest.raises(NotAllowed, match="not ended"):
        await Answers(runtime).result(turn.id)
    with pytest.raises(NotAllowed, match="no turn"):
        await Answers(runtime).result("nope")
    await runtime.close()


async def test_instructions_say_what_is_enforced() -> None:
    runtime = opened()
    agent = Agent(name="a", tools=NAMES, intents=(DAMAGE,), default=need("list_trails", no_data=True), semantic=False)
    turn = Answers(runtime).turn(QUESTION, agent=agent)
    for words in ("THINK", "damage → call classify_damage", "anything else about the domain → call list_trails",
                  "Damage class of a trail.", "no tool"):  # fmt: skip
        assert words in turn.instructions
    await runtime.close()


async def test_the_conversation_so_far_is_shown_and_prompts_are_not_kept() -> None:
    runtime = opened()
    seen: list[Any] = []

    class Watching:
        name, instructable = "watching", True

        def __init__(self) -> None:
            self.inner = make_scripted("skips once", SCRIPT)

        async def reply(self, request: Any) -> Any:
            seen.append(request)
            return await self.inner.reply(request)

        async def close(self) -> None:
            await self.inner.close()

    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        await run_turn(turn, Watching(), history=[Message("user", "hello"), Message("assistant", "hi")])
    assert [m.text for m in seen[0].messages] == ["hello", "hi", QUESTION]
    assert "cannot be used yet" in seen[1].messages[-1].text
    assert not any("cannot be used yet" in m.text for m in seen[2].messages)
    assert all(m.role != "system" for request in seen for m in request.messages)
    assert seen[2].messages[-1].role == "tool"
    await runtime.close()


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_draft_that_two_have_to_approve_is_released_once_also_if_they_come_at_once(
    store_url: str, at_once: bool
) -> None:
    runtime = opened(OPEN.replace("[review]\n", "[review]\nquorum = 2\n"), store=store_url)
    answers, people = Answers(runtime), ("user:kim", "user:lee")
    for _ in range(4):
        async with answers.turn(QUESTION, agent=AGENT) as turn:
            held = await run_turn(turn, make_scripted("claims success", SCRIPT))
        decisions = [answers.decide(held.ticket or "", approve=True, by=by) for by in people]
        if at_once:
            await asyncio.gather(*decisions)
        else:
            await decisions[0]
            assert (await answers.result(turn.id)).status is held.status
            await decisions[1]
        assert (await answers.result(turn.id)).status is TurnStatus.RELEASED
        assert [r.status for r in await own_records(runtime, turn.id)].count("reviewed") == 1
    assert (await verify(runtime.store)).problems == ()
    await runtime.close()
