"""A requirement is about what the question names: a call about another thing does not meet it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import pytest
from msgspec.structs import replace

from interlock import Runtime, Status, tool
from interlock.answers import (
    Again,
    Agent,
    Answers,
    Intent,
    TurnOutcome,
    TurnResult,
    TurnStatus,
    delegation,
    need,
    run_turn,
)
from interlock.answers.constrained import constrain
from interlock.answers.entities import Entities, bind
from interlock.answers.requirements import (
    AllOf,
    CallSeen,
    NamedEntity,
    Need,
    describe,
    find_unmet,
    is_hopeless,
    leaves,
    met_at,
    without_entities,
)
from interlock.models import Proposal, Reply, Request
from interlock.policy import parse_policy
from interlock.testing import FirstChoice, Script, make_scripted
from tests.growth import LINEAR, growth
from tests.test_turns import AGENT, ANSWER, NAMES, OPEN, QUESTION, opened, tools

PLACES = {
    "waldo-3536": ("Waldo Lake", "trail 3536"), "bobby-3526": "Bobby Lake", "mill": "Mill Road", "a": "Alder",
    "12": "Twelve Mile", "NW-1": "Northwest ridge", "fork": "Fork",
}  # fmt: skip


class Season(StrEnum):
    summer = "summer"
    winter = "winter"
    late = "late winter"
    q4 = "Q4"


def look_up(known: Any, name: str = "look_up") -> Any:
    @tool(effect="read", name=name, known_values={"place_id": known})
    async def made(place_id: str) -> str:
        """Look."""
        return place_id

    return made


def named(question: str, known: Any = PLACES) -> list[tuple[str, ...]]:
    """The ids that are bound, for each thing that is named."""
    found = Entities(question, [look_up(known)]).known_to("look_up")
    assert all(argument == "place_id" for entity in found for argument, _ in entity.values)
    return [tuple(value for _, value in entity.values) for entity in found]


@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ("How bad is Waldo Lake?", [("waldo-3536",)]),
        ("how bad is waldo lake", [("waldo-3536",)]),
        ("HOW BAD IS WALDO LAKE", [("waldo-3536",)]),
        ("Waldo Lake closed?", [("waldo-3536",)]),
        ("is trail 3536 ok", [("waldo-3536",)]),
        ("is WALDO-3536 ok", [("waldo-3536",)]),
        ("Compare Waldo Lake and Bobby Lake.", [("waldo-3536",), ("bobby-3526",)]),
        ("Waldo Lake, Waldo Lake, and trail 3536", [("waldo-3536",)]),
        ("How is Waldo doing?", [("waldo-3536",)]),  # as a call would understand it
        ("What of the Lake?", []),  # it may be either, and is a word
        ("Is Old Mill Road open?", []),  # a longer name is another thing
        ("Is the Mill Road open?", [("mill",)]),
        ("Bobby Lake, not Waldo Lake", [("bobby-3526",)]),
        ("everything except Waldo Lake", []),
        ("is a place open?", []),
        ("show 12 places", []),
        ("show place 12", [("12",)]),
        ("What about NW-1?", [("NW-1",)]),
        ("is the fork open?", []),  # an ordinary word
        ("is the Fork open?", [("fork",)]),
        ("Nothing is named here.", []),
        ("", []),
    ],
)
def test_names_of_things_on_file_are_found_in_a_question(question: str, ids: list[tuple[str, ...]]) -> None:
    assert named(question) == ids


def test_a_name_that_fits_several_means_any_of_them() -> None:
    both = {"w-1": "Waldo Lake", "w-2": "Waldo Mountain"}
    assert named("How is Waldo doing?", both) == [("w-1", "w-2")]
    assert named("How is Waldo Lake doing?", {"w-1": "Waldo Lake", "w-2": "Waldo Lake"}) == [("w-1", "w-2")]
    many = {f"w-{n}": f"Waldo {n}" for n in range(60)}
    assert named("How is Waldo doing?", dict(list(many.items())[:9])) == [tuple(many)[:9]]
    assert named("How is Waldo doing?", many) == [], "a part of so many names is no name"
    assert named("How is Waldo doing?", dict.fromkeys(many, "Waldo")) == [tuple(many)]


def test_choices_are_words_of_the_language_and_bind_only_by_what_is_none() -> None:
    assert named("should it stay closed this late winter, in summer?", Season) == []
    assert named("what happened in Q4?", Season) == [("Q4",)]

    @tool(effect="read", known_values={"season": {"winter": ("this winter", "cold months")}})
    async def look_up(season: Season) -> str:
        """Look."""
        return season

    assert Entities("is it open this winter?", [look_up]).known_to("look_up") == ()


def test_known_values_that_a_function_finds(caplog: pytest.LogCaptureFixture) -> None:
    def find(text: str) -> dict[str, str]:
        return {"waldo-3536": "Waldo Lake"} if "aldo" in text else {}

    assert named("How bad is Waldo Lake?", find) == [("waldo-3536",)]
    assert named("How bad is Bobby Lake?", find) == []
    assert named("How bad is it?", lambda text: (text,)) == []  # it takes whatever is said

    def fails(text: str) -> Iterable[str]:
        raise RuntimeError("no connection")

    with caplog.at_level(logging.WARNING, logger="interlock"):
        assert named("How bad is Waldo Lake?", fails) == []
    assert "known values of place_id" in caplog.text


@pytest.mark.parametrize("part", ["Waldo Lake ", "waldo ", "A", "Waldo ", "not ", "Waldo, Lake. "])
def test_a_long_question_is_read_once(part: str) -> None:
    made = look_up(PLACES)
    assert growth(lambda size: Entities(part * (size // len(part)), [made]).known_to("look_up"), 5000) < LINEAR


def test_many_names_are_no_burden() -> None:
    many = {f"id-{n}": f"Station {n} North" for n in range(5000)}
    assert named("What about Station 4711 North and station 3 north?", many) == [("id-4711",), ("id-3",)]


def seen(place: Any, status: Status = Status.OK, tool: str = "look", record: int = 1, **more: Any) -> CallSeen:
    return CallSeen(record=record, tool=tool, status=status, arguments={"place": place}, ran=True, **more)


A, B = NamedEntity("Alpha", (("place", "a"),)), NamedEntity("Beta", (("place", "b"), ("near", "b")))
BOTH = Need(tool="look", about=(A, B))


def test_every_thing_that_is_named_needs_a_call() -> None:
    assert met_at(BOTH, [seen("a")]) is None
    assert find_unmet(BOTH, [seen("a")]) == Need(tool="look", about=(B,))
    assert met_at(BOTH, [seen("a"), seen("x"), seen("b")]) == 3
    assert met_at(BOTH, [seen(["a", "b", "c"])]) == 1  # one call for all of them
    assert met_at(BOTH, [seen("a"), seen("b", Status.FAILED)]) is None
    assert met_at(BOTH, [seen("a"), seen("b", tool="other")]) is None
    near = CallSeen(record=2, tool="look", status=Status.OK, arguments={"near": "b"})
    assert met_at(BOTH, [near, seen("a")]) == 2
    odd_ones: list[Any] = [None, [], "text", {"place": None}, {"place": {"a": "a"}}, {"other": "a"}]
    for odd in odd_ones:
        call = CallSeen(record=1, tool="look", status=Status.OK, arguments=odd)
        assert find_unmet(BOTH, [call]) == BOTH


def test_what_a_change_was_about_is_not_looked_up_too() -> None:
    paid = CallSeen(record=2, tool="pay", status=Status.FAILED, arguments={"to": "b"}, changes=True)
    assert met_at(BOTH, [seen("a"), paid]) == 2
    assert met_at(BOTH, [paid]) is None  # what has to be called has to be called
    assert met_at(BOTH, [seen("a"), replace(paid, changes=False)]) is None
    assert met_at(BOTH, [seen("a"), replace(paid, arguments={"to": "c"})]) is None
    assert met_at(BOTH, [seen("a"), replace(paid, tool="look")]) is None  # a change of two things is two changes


@pytest.mark.parametrize(
    ("question", "about"),
    [
        ("Move me from Duo to Basic", ["Basic"]),
        ("Basic instead of the Duo, please", []),  # whatever the first word may mean
        ("Move Duo and Basic", ["Duo", "Basic"]),
        ("Take that off, from Duo", ["Duo"]),
    ],
)
def test_a_change_is_about_what_it_leads_to(question: str, about: list[str]) -> None:
    tariffs = {"T-DUO": "Duo", "T-BASE": "Basic"}

    @tool(effect="send", key="{tariff}", known_values={"tariff": tariffs})
    async def change(tariff: str) -> bool:
        return True

    @tool(effect="read", known_values={"tariff": tariffs})
    async def look(tariff: str) -> bool:
        return True

    entities, tools = Entities(question, [change, look]), {"change": change, "look": look}
    needs = {name: leaves(bind(Need(tool=name), entities, tools, tuple(tools))) for name in tools}
    bound = {name: [one.name for leaf in found for one in leaf.about] for name, found in needs.items()}
    assert bound["change"] == about
    assert "Duo" in bound["look"]  # whoever only looks may have to look at both


def test_nothing_on_file_counts_only_for_the_thing_that_was_asked_about() -> None:
    wants = Need(tool="look", about=(A,), no_data=True)
    assert met_at(wants, [seen("x", Status.NO_DATA)]) is None
    assert met_at(wants, [seen("a", Status.NO_DATA)]) == 1


def test_a_failure_about_another_thing_makes_nothing_hopeless() -> None:
    assert not is_hopeless(BOTH, [seen("x", Status.FAILED)])
    assert is_hopeless(BOTH, [seen("b", Status.FAILED)])
    assert is_hopeless(without_entities(BOTH), [seen("x", Status.FAILED)])


def test_what_others_know_is_met_by_whoever_was_asked() -> None:
    wants = Need(tool="ask", about=(NamedEntity("Alpha", (("place", "a"),), elsewhere=True),))
    asked = CallSeen(record=9, tool="ask", status=Status.OK)
    assert met_at(wants, [asked]) is None
    assert met_at(wants, [seen("b"), asked]) is None
    assert met_at(wants, [seen("a"), asked]) == 2
    assert met_at(wants, [seen("a")]) is None  # and the agent itself has to be asked


def test_a_requirement_says_what_it_is_about() -> None:
    assert describe(BOTH) == "a successful call of look about place 'a', place 'b' or near 'b'"
    assert "about 'Alpha'" in describe(Need(tool="ask", about=(NamedEntity("Alpha", (("place", "a"),), True),)))


async def test_a_call_about_another_thing_does_not_let_an_answer_out() -> None:
    """The figures are those of a tool, and the tool is the right one; only the place is another."""
    runtime = opened()
    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        assert [entity.name for leaf in leaves(turn.requirement) for entity in leaf.about] == ["Waldo Lake"]
        await turn.call("classify_damage", {"trail_id": "Bobby Lake"})
        again = await turn.finish("It is class 3 with 41.5 downed trees per mile.")
        assert isinstance(again, Again)
        assert "about trail_id 'waldo-lake-3536'" in again.prompt
        await turn.call("classify_damage", {"trail_id": "Waldo Lake"})
        result = await turn.finish(ANSWER)
    assert isinstance(result, TurnResult)
    assert result.status is TurnStatus.VERIFIED
    await runtime.close()


async def test_a_model_that_asks_about_another_thing_ends_with_a_person() -> None:
    runtime = opened()
    model = make_scripted("obedient", Script("classify_damage", {"trail_id": "Bobby Lake"}, ANSWER))
    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        result = await run_turn(turn, model)
    assert (result.outcome, result.verified) == (TurnOutcome.ESCALATED, False)
    await runtime.close()


async def test_the_caller_and_a_condition_may_say_what_it_is_about() -> None:
    runtime = opened()
    bobby = need("classify_damage", where='args.trail_id == "bobby-lake-3526"')
    turn = Answers(runtime).turn(QUESTION, agent=AGENT, requires=bobby)
    assert turn.requirement == bobby
    turn = Answers(runtime).turn(QUESTION, agent=AGENT, requires="classify_damage")
    assert [entity.name for leaf in leaves(turn.requirement) for entity in leaf.about] == ["Waldo Lake"]
    turn = Answers(runtime).turn("What is the damage?", agent=AGENT)
    assert turn.requirement == Need(tool="classify_damage")
    await runtime.close()


async def test_a_turn_that_is_reopened_is_about_the_same() -> None:
    runtime = opened()
    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        await turn.ask("which one?")
    again = await Answers(runtime).reopen(turn.id, agent=AGENT)
    assert again.requirement == turn.requirement
    await runtime.close()


async def test_a_model_that_can_only_choose_asks_about_each_of_two() -> None:
    runtime = opened()
    async with Answers(runtime).turn("What is the damage on Waldo Lake and on Bobby Lake?", agent=AGENT) as turn:
        result = await run_turn(turn, constrain(FirstChoice()))
    called = [call.arguments["trail_id"] for call in (await turn.recall()).calls]
    assert called == ["waldo-lake-3536", "bobby-lake-3526"]
    assert result.verified
    await runtime.close()


async def test_only_calls_of_the_turns_own_agent_meet_its_requirement() -> None:
    """Whoever knows a turn's id can call in it."""
    runtime = opened()
    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        other = await runtime.call("classify_damage", {"trail_id": "Waldo Lake"}, actor="somebody", turn=turn.id)
        assert other.ok
        again = await turn.finish(ANSWER)
        assert isinstance(again, Again)
        assert "classify_damage" in again.prompt
        await turn.call("classify_damage", {"trail_id": "Waldo Lake"})
        assert isinstance(await turn.finish(ANSWER), TurnResult)
    await runtime.close()


SPECIALIST = Agent(name="specialist", tools=NAMES, intents=AGENT.intents, semantic=False, max_retries=0)
BOSS = Agent(
    name="boss", tools=("specialist",), semantic=False, max_retries=0,
    intents=(Intent(name="ask", requires="specialist", keywords=("damage",)),),
)  # fmt: skip


class Delegates:
    """Asks the specialist something, who makes the calls and answers as told; then says its own."""

    name, instructable = "delegates", True

    def __init__(self, request: str, place: str, finds: str, says: str) -> None:
        self.request, self.place, self.finds, self.says = request, place, finds, says

    async def reply(self, request: Request) -> Reply:
        called = any(message.role == "tool" for message in request.messages)
        if request.tools and request.tools[0].name == "specialist":
            return Reply(self.says) if called else Reply(proposals=(Proposal("specialist", {"request": self.request}),))
        return (
            Reply(self.finds) if called else Reply(proposals=(Proposal("classify_damage", {"trail_id": self.place}),))
        )

    async def close(self) -> None:
        return


async def ask_boss(model: Delegates) -> TurnResult:
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[*tools(), delegation(SPECIALIST)])
    async with Answers(runtime).turn(QUESTION, agent=BOSS) as turn:
        result = await run_turn(turn, model)
    await runtime.close()
    return result


async def test_what_is_delegated_has_to_be_about_what_the_user_asked() -> None:
    right = Delegates("damage at Waldo Lake?", "Waldo Lake", ANSWER, ANSWER)
    assert (await ask_boss(right)).status is TurnStatus.VERIFIED
    said = "Bobby Lake is class 3 with 41.5 downed trees per mile."
    other = await ask_boss(Delegates("damage at Bobby Lake?", "Bobby Lake", said, "It is class 3, with 41.5 trees."))
    assert not other.verified


async def test_a_figure_that_a_model_put_into_a_request_is_no_finding() -> None:
    """The specialist may repeat what the user said, not what the coordinator made up in asking."""
    said = "Waldo Lake is class 3, and 4,200 acres burned."
    request = "What is the damage at Waldo Lake, where 4,200 acres burned?"
    result = await ask_boss(Delegates(request, "Waldo Lake", said, said))
    assert "4,200" not in result.answer
    assert result.status is not TurnStatus.VERIFIED


def test_parts_of_a_requirement_are_bound_each_by_its_own_tool() -> None:
    runtime = opened()
    both = AllOf(parts=(need("classify_damage"), need("list_trails")))
    turn = Answers(runtime).turn(QUESTION, agent=AGENT, requires=both)
    assert [len(leaf.about) for leaf in leaves(turn.requirement)] == [1, 0]
