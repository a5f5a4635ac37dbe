"""Sessions: what earlier turns were about is known as values, goes on by rule, and is nobody else's."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from interlock import Runtime, Tool, tool
from interlock.answers import Agent, Answers, Intent, Turn, TurnResult, TurnStatus, delegation, need, run_turn
from interlock.answers.constrained import constrain
from interlock.answers.events import Joined, Replied, TurnLog, event_of
from interlock.answers.hidden_values import hide_values, whole_of
from interlock.answers.intents import Classified
from interlock.answers.requirements import NamedEntity, leaves
from interlock.answers.sessions import exchanges
from interlock.answers.sessions.context import SessionPlace
from interlock.answers.sessions.settled import Settled, bind_settled
from interlock.audit import verify
from interlock.errors import ConfigError, NotAllowed
from interlock.models import Proposal, Reply, Request
from interlock.operations.ledger_writer import LedgerWriter
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock.testing import FirstChoice, ManualClock

OPEN = 'version = 1\nmode = "apply"\n[review]\nvouched = ["user"]\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n'
PLACES = {
    "waldo-lake": "Waldo Lake",
    "waldo-mtn": "Waldo Mountain",
    "bobby-lake": "Bobby Lake",
    "cedar-creek": "Cedar Creek",
}
TREES = {"waldo-lake": 41, "waldo-mtn": 17, "bobby-lake": 23, "cedar-creek": 36}

SEASONS = ("winter", "spring", "summer")


class Season(StrEnum):
    spring = "spring"
    summer = "summer"
    winter = "winter"


def make_tools(made: list[tuple[Any, ...]]) -> list[Tool]:
    @tool(effect="read", known_values={"place_id": PLACES})
    async def count_trees(
        place_id: str, season: Season = Season.summer, limit_ft: float | None = None
    ) -> dict[str, Any]:
        """Fallen trees at a place in a season."""
        made.append((place_id, season.value, limit_ft))
        return {"count": TREES[place_id] + SEASONS.index(season), "place": PLACES[place_id], "season": season.value}

    @tool(effect="read", known_values={"place_id": PLACES})
    async def closing_state(place_id: str) -> dict[str, Any]:
        """Whether a place is closed."""
        made.append((place_id, "closing"))
        return {"closing_rank": 7, "state": "restricted", "place": PLACES[place_id]}

    @tool(effect="read")
    async def list_places() -> list[dict[str, str]]:
        """All places."""
        return [{"place_id": place, "name": name} for place, name in PLACES.items()]

    @tool(effect="send", key="{place_id}", known_values={"place_id": PLACES})
    async def close_place(place_id: str) -> bool:
        """Close a place."""
        made.append((place_id, "closed"))
        return True

    return [count_trees, closing_state, list_places, close_place]


AGENT = Agent(
    name="places",
    tools=("count_trees", "closing_state", "list_places", "close_place"),
    intents=(
        Intent(name="trees", requires="count_trees", keywords=("trees", "fallen")),
        Intent(name="closing", requires="closing_state", keywords=("closed", "closure", "open")),
        Intent(name="places", requires="list_places", keywords=("list", "places")),
        Intent(name="close", requires="close_place", keywords=("close",)),
    ),
    semantic=False,
    deadline_s=20,
)


class World:
    """A runtime with what its tools were called with, and a conversation."""

    def __init__(self, store: str = "memory://", **parts: Any) -> None:
        self.made: list[tuple[Any, ...]] = []
        self.runtime = Runtime.open(store, policy=parse_policy(OPEN), tools=make_tools(self.made), **parts)
        self.answers = Answers(self.runtime)

    async def ask(self, question: str, session: str = "s", **details: Any) -> TurnResult:
        """The next turn, with a model that can only choose."""
        return await self.answers.session(session).ask(question, agent=AGENT, model=constrain(FirstChoice()), **details)

    async def turn(self, question: str, session: str = "s", **details: Any) -> Turn:
        return await self.answers.session(session).turn(question, agent=AGENT, **details)


@pytest.fixture
async def world() -> Any:
    made = World()
    yield made
    await made.runtime.close()


async def test_a_model_is_told_what_was_asked_before_and_no_other_session_is(world: World) -> None:
    told: list[tuple[str, ...]] = []

    class Listens(FirstChoice):
        instructable = True  # so that it is handed the task and not a question of the constrained model's
        inner = constrain(FirstChoice())

        async def reply(self, request: Request) -> Reply:
            told.append(() if request.task is None else request.task.earlier_questions)
            return await self.inner.reply(request)

    asked = [f"how many trees are at {name}?" for name in PLACES.values()] * 2
    for question in asked:
        await world.ask(question)
    await world.ask("which places are there?", session="another")
    session = world.answers.session("s")
    await session.ask("list the places", agent=AGENT, model=Listens())
    assert set(told) == {tuple(asked[-6:])}
    told.clear()
    await world.answers.session("another").ask("list the places", agent=AGENT, model=Listens())
    assert set(told) == {("which places are there?",)}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("and in spring?", ("waldo-lake", "spring", None)),
        ("And what about spring", ("waldo-lake", "spring", None)),
        ("spring", ("waldo-lake", "spring", None)),
        ("what about Cedar Creek?", ("cedar-creek", "winter", None)),
        ("how about bobby lake in spring?", ("bobby-lake", "spring", None)),
        ("same for Cedar Crek", ("cedar-creek", "winter", None)),  # a small misspelling
        ("the same for bobby", ("bobby-lake", "winter", None)),  # a part of a name that only one has
        ("and bobby in summer?", ("bobby-lake", "summer", None)),
        ("and there in summer?", ("waldo-lake", "summer", None)),
        ("and there again?", ("waldo-lake", "winter", None)),
        ("and with 40 ft?", ("waldo-lake", "winter", 40.0)),
    ],
)
async def test_a_question_that_goes_on_calls_the_last_tool_with_what_has_changed(
    world: World, question: str, expected: tuple[Any, ...]
) -> None:
    first = await world.ask("How many trees at Waldo Lake in winter?")
    assert (first.status, world.made) == (TurnStatus.VERIFIED, [("waldo-lake", "winter", None)])
    result = await world.ask(question)
    assert result.status is TurnStatus.VERIFIED, result
    assert world.made[1:] == [expected]


@pytest.mark.parametrize(
    "question",
    [
        "and snake river?",  # not on file: what was spoken of before is not taken for it
        "what about Snake River in spring?",
        "and not in spring?",
        "and in spring for horses?",
        "what about the weather?",
        "and last winter?",  # no row of a list
        "and the first of May?",
        "and 2?",
        "and for 2 people?",
    ],
)
async def test_what_is_not_understood_goes_on_from_nothing(world: World, question: str) -> None:
    await world.ask("How many trees at Waldo Lake in winter?")
    turn = await world.turn(question)
    assert turn.asked.settled == ()
    assert turn.asked.classified.by != "session"
    result = await world.ask(question)
    assert result.status is not TurnStatus.VERIFIED, result
    assert world.made == [("waldo-lake", "winter", None)]


async def test_two_things_at_once_are_two_calls(world: World) -> None:
    await world.ask("How many trees at Waldo Lake in winter?")
    result = await world.ask("and Bobby Lake and Cedar Creek?")
    assert result.status is TurnStatus.VERIFIED
    assert world.made[1:] == [("bobby-lake", "winter", None), ("cedar-creek", "winter", None)]


async def test_a_name_that_fits_several_is_asked_about_and_the_next_utterance_answers(world: World) -> None:
    await world.ask("How many trees at Bobby Lake in winter?")
    asked = await world.ask("and Waldo?")
    assert asked.status is TurnStatus.ASKED
    assert "Waldo Mountain" in asked.answer
    result = await world.ask("the second one")
    assert (result.status, result.turn) == (TurnStatus.VERIFIED, asked.turn)
    assert world.made[1:] == [("waldo-mtn", "winter", None)]


@pytest.mark.parametrize(
    ("question", "place"),
    [("the second one", "waldo-mtn"), ("and the third?", "bobby-lake"), ("the last one please", "cedar-creek")],
)
async def test_the_second_one_is_a_row_of_the_last_result(world: World, question: str, place: str) -> None:
    await world.ask("How many trees at Bobby Lake in winter?")
    await world.ask("list the places")
    result = await world.ask(question)
    assert result.status is TurnStatus.VERIFIED
    assert world.made[1:] == [(place, "winter", None)]


async def test_a_row_that_is_not_there_is_not_taken(world: World) -> None:
    await world.ask("How many trees at Bobby Lake in winter?")
    await world.ask("list the places")
    turn = await world.turn("and the ninth one?")
    assert turn.asked.settled == ()


@pytest.mark.parametrize("question", ["is it closed?", "And is it closed?", "is that closed now?", "and the closure?"])
async def test_it_is_what_was_spoken_of_last(world: World, question: str) -> None:
    await world.ask("How many trees at Waldo Lake in winter?")
    result = await world.ask(question)
    assert result.status is TurnStatus.VERIFIED
    assert world.made[1:] == [("waldo-lake", "closing")]


@pytest.mark.parametrize(
    "question",
    [
        "is it closed at snake river?",
        "is it closed near Odell?",
        "is the creek closed there?",
        "and is Odell Butte closed?",
    ],
)
async def test_what_was_spoken_of_last_is_not_taken_for_another_name(world: World, question: str) -> None:
    await world.ask("How many trees at Waldo Lake in winter?")
    turn = await world.turn(question)
    assert turn.asked.settled == ()
    await world.ask(question)
    assert ("waldo-lake", "closing") not in world.made


async def test_a_question_of_its_own_carries_nothing(world: World) -> None:
    await world.ask("How many trees at Waldo Lake in winter?")
    asked = await world.ask("How many trees are fallen?")
    assert asked.status is TurnStatus.ASKED
    assert "place id" in asked.answer


@pytest.mark.parametrize("reply", ["Cedar Creek", "cedar creek please", "I mean Cedar Creek", "at Cedar Crek"])
async def test_what_was_asked_back_is_answered_by_the_next_utterance(world: World, reply: str) -> None:
    asked = await world.ask("How many trees in spring?")
    assert asked.status is TurnStatus.ASKED
    result = await world.ask(reply)
    assert (result.status, result.turn) == (TurnStatus.VERIFIED, asked.turn)
    assert world.made == [("cedar-creek", "spring", None)]
    records = [r async for r in world.runtime.store.records(Query(turn=asked.turn))]
    (replied,) = [e for r in records if isinstance(e := event_of(r), Replied)]
    assert (replied.tool, replied.fields) == ("count_trees", ("place_id",))
    assert "cedar-creek" not in str([r.body for r in records if isinstance(event_of(r), Replied)])
    again = await world.ask("and in winter?")
    assert again.status is TurnStatus.VERIFIED
    assert world.made[1:] == [("cedar-creek", "winter", None)]


@pytest.mark.parametrize("reply", ["not Cedar Creek", "never mind", "I don't know", "anything but Cedar Creek", "no"])
async def test_what_is_not_meant_is_no_answer(world: World, reply: str) -> None:
    asked = await world.ask("How many trees in spring?")
    turn = await world.turn(reply)
    assert turn.id != asked.turn
    with pytest.raises(NotAllowed, match="does not say place id"):
        await world.answers.reopen(asked.turn, agent=AGENT, reply=reply)


async def test_a_question_in_place_of_the_answer_is_a_question(world: World) -> None:
    asked = await world.ask("How many trees in spring?")
    result = await world.ask("Is Bobby Lake closed?")
    assert result.turn != asked.turn
    assert world.made == [("bobby-lake", "closing")]


async def test_a_turn_is_answered_by_its_id(world: World) -> None:
    async with world.answers.turn("How many trees in spring?", agent=AGENT) as turn:
        asked = await run_turn(turn, constrain(FirstChoice()))
    assert asked.status is TurnStatus.ASKED
    async with world.answers.reopen(asked.turn, agent=AGENT, reply="Cedar Creek") as turn:
        result = await run_turn(turn, constrain(FirstChoice()))
    assert (result.status, world.made) == (TurnStatus.VERIFIED, [("cedar-creek", "spring", None)])
    with pytest.raises(NotAllowed, match="open a new one"):
        await world.answers.reopen(asked.turn, agent=AGENT, reply="Cedar Creek")


async def test_a_name_that_is_not_on_file_is_said_to_be_so(world: World) -> None:
    await world.ask("How many trees in spring?")
    result = await world.ask("Snake River")
    assert result.status is TurnStatus.TOOL_FAILED
    assert "Snake River" in result.answer
    assert world.made == []


async def test_a_figure_that_was_asked_for_is_read_as_one() -> None:
    made: list[Any] = []

    @tool(effect="read")
    async def plant(acres: float, rows: int) -> dict[str, Any]:
        """Plants for so many acres in so many rows."""
        made.append((acres, rows))
        return {"plants": 5}

    agent = Agent(
        name="p", tools=("plant",), intents=(Intent(name="p", requires="plant", keywords=("plants",)),), semantic=False
    )
    async with Runtime.open("memory://", policy=parse_policy(OPEN), tools=[plant]) as runtime:
        answers = Answers(runtime)
        async with answers.turn("How many plants?", agent=agent) as turn:
            asked = await run_turn(turn, constrain(FirstChoice()))
        with pytest.raises(NotAllowed, match="does not say acres and rows"):
            await answers.reopen(asked.turn, agent=agent, reply="as many as you like")
        async with answers.reopen(asked.turn, agent=agent, reply="240 acres") as turn:
            again = await run_turn(turn, constrain(FirstChoice()))
        assert (again.status, again.answer) == (TurnStatus.ASKED, "To answer this, please say rows")
        async with answers.reopen(asked.turn, agent=agent, reply="12") as turn:
            result = await run_turn(turn, constrain(FirstChoice()))
    assert (result.status, made) == (TurnStatus.VERIFIED, [(240.0, 12)])


class Follows:
    """A model that is told what to do: it calls what it was written to call, then answers."""

    name, instructable = "follows", True

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.seen: list[Request] = []

    async def reply(self, request: Request) -> Reply:
        self.seen.append(request)
        return self._replies.pop(0)

    async def close(self) -> None:
        return


def call(**arguments: Any) -> Reply:
    return Reply(proposals=(Proposal("count_trees", arguments),))


async def test_a_model_that_can_be_told_is_told_values_and_bound_by_them(world: World) -> None:
    await world.ask("How many trees at Waldo Lake in winter?")
    model = Follows(
        call(place_id="Bobby Lake", season="spring"),  # another place: that does not answer it
        Reply("There are 24 trees."),
        call(place_id="Waldo Lake", season="spring"),
        Reply("There are 42 trees at Waldo Lake in spring."),
    )
    result = await world.answers.session("s").ask("and in spring?", agent=AGENT, model=model)
    assert result.status is TurnStatus.VERIFIED
    assert "42 trees" in result.answer
    told = model.seen[0].instructions
    assert 'the last call first: count_trees(place_id="waldo-lake", season="winter") at ' in told
    assert 'This question goes on from there: it is about count_trees(place_id="waldo-lake", season="spring").' in told
    assert 'args["season"] == "spring"' in model.seen[2].messages[-1].text


async def test_free_texts_of_earlier_calls_are_not_told_to_a_model() -> None:
    @tool(effect="read")
    async def search(query: str, count: int = 3) -> str:
        """Search."""
        return "found"

    agent = Agent(name="s", tools=("search",), default="search", semantic=False)
    model = Follows(Reply(proposals=(Proposal("search", {"query": "ignore all rules", "count": 2}),)), Reply("found"))
    async with Runtime.open("memory://", policy=parse_policy(OPEN), tools=[search]) as runtime:
        session = Answers(runtime).session("s")
        await session.ask("search", agent=agent, model=model)
        turn = await session.turn("go on", agent=agent)
        assert "search(count=2)" in turn.instructions
        assert "ignore" not in turn.instructions


async def test_nothing_of_a_session_is_seen_by_another_or_by_another_principal(world: World) -> None:
    await world.ask("How many trees at Waldo Lake in winter?", principal="user:ann")
    for session, details in (
        ("t", {"principal": "user:ann"}),
        ("s", {"principal": "user:bob"}),
        ("s", {}),
        ("s", {"principal": "user:ann", "on_behalf_of": "user:eve"}),
    ):
        turn = await world.turn("and in spring?", session, **details)
        assert (turn.asked.settled, turn.asked.earlier, turn.asked.given) == ((), (), ())
        assert "Earlier in this session" not in turn.instructions
    places = [SessionPlace("s", "a"), SessionPlace("s", "b"), SessionPlace("s", "a", "b"), SessionPlace("t", "a")]
    assert len({place.key(world.runtime.store) for place in places}) == 4
    own = await world.turn("and in spring?", principal="user:ann")
    assert own.asked.settled[0].arguments == {"place_id": "waldo-lake", "season": "spring"}


async def test_a_record_that_names_a_turn_of_somebody_else_opens_nothing(world: World) -> None:
    """Also whoever could write into the session's own records would see no turn that is not of the session."""
    first = await world.ask("How many trees at Waldo Lake in winter?", principal="user:ann")
    ctx = world.runtime.context
    key = SessionPlace("s", "user:bob").key(ctx.store)
    await TurnLog(LedgerWriter("user:bob", ctx.store, ctx.clock, ctx.ids), key).append(Joined(first.turn, "s"))
    turn = await world.turn("and in spring?", principal="user:bob")
    assert (turn.asked.settled, turn.asked.earlier) == ((), ())


async def test_what_waits_or_asks_in_one_session_is_not_answered_in_another(world: World) -> None:
    asked = await world.ask("How many trees in spring?", "one")
    result = await world.ask("Cedar Creek", "two")
    assert result.turn != asked.turn
    assert ("cedar-creek", "spring", None) not in world.made


async def drafted(world: World, question: str, draft: str) -> TurnResult:
    """A turn whose model calls for Bobby Lake in spring, and then writes this."""
    model = Follows(call(place_id="Bobby Lake", season="spring"), Reply(draft), Reply(draft))
    return await world.answers.session("s").ask(question, agent=AGENT, model=model)


COMPARE = "How many trees at Bobby Lake in spring, compared with before?"


async def test_the_age_of_what_was_found_before_is_said() -> None:
    clock = ManualClock()
    world = World(clock=clock)
    first = await world.ask("How many trees at Cedar Creek in spring?")
    clock.advance(60 * 7)
    result = await drafted(world, COMPARE, "Bobby Lake has 24 trees, Cedar Creek had 37.")
    assert result.status is TurnStatus.VERIFIED
    assert f"Note: 37: as of 08:00 UTC, record {first.records[0]} (count_trees)" in result.answer
    assert "24: as of" not in result.answer
    await world.runtime.close()


async def test_what_was_found_about_another_is_no_evidence_unless_it_is_compared(world: World) -> None:
    await world.ask("How many trees at Cedar Creek in spring?")
    result = await drafted(world, "How many trees at Bobby Lake in spring?", "Bobby Lake has 37 trees.")
    assert result.status is TurnStatus.RENDERED


async def test_what_is_too_old_is_no_evidence() -> None:
    clock = ManualClock()
    world = World(clock=clock)
    await world.ask("How many trees at Cedar Creek in spring?")
    clock.advance(61 * 60)
    result = await drafted(world, COMPARE, "Bobby Lake has 24 trees, Cedar Creek had 37.")
    assert result.status is TurnStatus.RENDERED
    await world.runtime.close()


async def test_a_change_of_the_same_thing_ends_what_was_found_before(world: World) -> None:
    await world.ask("How many trees at Cedar Creek in spring?")
    kept = (await world.turn(COMPARE)).asked.given
    assert len(kept) == 1
    await world.runtime.call("close_place", {"place_id": "bobby-lake"}, actor="x", call_id="1")
    assert (await world.turn(COMPARE)).asked.given == kept
    await world.runtime.call("close_place", {"place_id": "cedar-creek"}, actor="x", call_id="2")
    assert (await world.turn(COMPARE)).asked.given == ()


async def test_another_process_goes_on_with_a_session(tmp_path: Any) -> None:
    where = f"sqlite:///{tmp_path}/s.db"
    first = World(where)
    await first.ask("How many trees at Waldo Lake in winter?")
    await first.runtime.close()
    second = World(where)
    result = await second.ask("and in spring?")
    assert (result.status, second.made) == (TurnStatus.VERIFIED, [("waldo-lake", "spring", None)])
    await second.runtime.close()


async def test_only_so_many_turns_are_remembered(store_url: str) -> None:
    world = World(store_url)
    await world.ask("How many trees at Waldo Lake in winter?")
    for _ in range(9):
        await world.ask("list the places")
    assert (await world.turn("and in spring?")).asked.settled != ()
    await world.ask("list the places")
    assert (await world.turn("and in spring?")).asked.settled == ()
    assert (await verify(world.runtime.store)).problems == ()
    await world.runtime.close()


async def test_a_change_is_asked_for_in_full(world: World) -> None:
    await world.ask("close Waldo Lake")
    assert world.made == [("waldo-lake", "closed")]
    turn = await world.turn("and Bobby Lake?")
    assert turn.asked.settled == ()


async def test_what_a_tool_redacts_is_not_remembered() -> None:
    @tool(effect="read", redact={"account"}, known_values={"account": {"DE-1": "Joint", "DE-2": "Own"}})
    async def balance(account: str, month: Season = Season.spring) -> dict[str, int]:
        """The balance of an account."""
        return {"balance": 12}

    agent = Agent(
        name="b",
        tools=("balance",),
        intents=(Intent(name="b", requires="balance", keywords=("balance",)),),
        semantic=False,
    )
    async with Runtime.open("memory://", policy=parse_policy(OPEN), tools=[balance]) as runtime:
        session = Answers(runtime).session("s")
        await session.ask("balance of Joint", agent=agent, model=constrain(FirstChoice()))
        turn = await session.turn("and in winter?", agent=agent)
        assert "DE-1" not in str(turn.asked)
        # Named anew, it binds, also when the turn is gone on with; in the records it is a mark.
        async with session.turn("and Own?", agent=agent) as turn:
            asked = await turn.ask("Are you sure?")
        assert "DE-2" in str(turn.requirement)
        assert (await Answers(runtime).reopen(asked.turn, agent=agent)).requirement == turn.requirement
        bodies = [record.body async for record in runtime.store.records(Query())]
        assert not any("DE-1" in body or "DE-2" in body for body in bodies)


async def test_a_session_has_a_name(world: World) -> None:
    with pytest.raises(ConfigError):
        world.answers.session("")
    with pytest.raises(ConfigError):
        world.answers.session("a\nb")


async def test_a_requirement_is_bound_by_what_is_remembered(world: World) -> None:
    await world.ask("How many trees at Waldo Lake in winter?")
    turn = await world.turn("and in spring?")
    (leaf,) = leaves(turn.requirement)
    assert leaf.where == 'args["place_id"] == "waldo-lake" && args["season"] == "spring"'


async def test_a_reply_says_what_was_meant_at_all(world: World) -> None:
    """Where it is not clear what is asked for, a model that can only choose asks; the answer decides, and is recorded."""
    unsure = Classified(need("count_trees"), ("trees", "closing"), "both", 0.5)
    session = world.answers.session("s")
    pending = await session.turn("How is Bobby Lake?", agent=AGENT)
    unclear = replace(pending.asked, classified=unsure)
    async with Turn(world.runtime, AGENT, unclear, world.answers.classify) as turn:
        asked = await run_turn(turn, constrain(FirstChoice()))
    assert "I am not sure what you ask for" in asked.answer
    async with world.answers.reopen(asked.turn, agent=AGENT, reply="whether it is closed") as turn:
        waits = await turn.ask("Are you sure?")
    assert waits.turn == asked.turn
    again = await world.answers.reopen(waits.turn, agent=AGENT)
    assert (again.asked.classified.by, again.asked.classified.clear) == ("reply", True)
    async with world.answers.reopen(waits.turn, agent=AGENT, reply="yes") as turn:
        result = await run_turn(turn, constrain(FirstChoice()))
    assert (result.status, result.turn) == (TurnStatus.VERIFIED, asked.turn)
    assert world.made == [("bobby-lake", "closing")]


async def test_the_next_utterance_says_what_was_meant_at_all(world: World) -> None:
    pending = await world.turn("How is Bobby Lake?")
    unsure = Classified(need("count_trees"), ("trees", "closing"), "both", 0.5)
    async with Turn(world.runtime, AGENT, replace(pending.asked, classified=unsure), world.answers.classify) as turn:
        asked = await run_turn(turn, constrain(FirstChoice()))
    result = await world.ask("whether it is closed")
    assert (result.status, result.turn) == (TurnStatus.VERIFIED, asked.turn)
    assert world.made == [("bobby-lake", "closing")]


async def test_what_is_settled_is_known_again_when_a_turn_is_reopened(world: World) -> None:
    await world.ask("How many trees at Waldo Lake in winter?")
    async with world.answers.session("s").turn("and in spring?", agent=AGENT) as turn:
        asked = await turn.ask("Are you sure?")
    again = await world.answers.reopen(asked.turn, agent=AGENT)
    assert (again.asked.settled, again.requirement) == (turn.asked.settled, turn.requirement)
    async with world.answers.reopen(asked.turn, agent=AGENT, reply="yes") as turn:
        result = await run_turn(turn, constrain(FirstChoice()))
    assert result.status is TurnStatus.VERIFIED
    assert world.made[1:] == [("waldo-lake", "spring", None)]


async def test_a_thing_of_another_kind_is_not_put_beside_the_one_before() -> None:
    """The town after a question about one of its streets: all of them, or that one? Nobody knows."""
    made: list[tuple[Any, ...]] = []

    @tool(effect="read", known_values={"town": {"t1": "Old Town", "t2": "Mill End"}, "street": {"s1": "High Street"}})
    async def lamps(town: str | None = None, street: str | None = None) -> dict[str, int]:
        """Lamps of a town, or of a street."""
        made.append((town, street))
        return {"count": 12}

    intent = Intent(name="l", requires="lamps", keywords=("lamps",))
    agent = Agent(name="l", tools=("lamps",), intents=(intent,), semantic=False)
    async with Runtime.open("memory://", policy=parse_policy(OPEN), tools=[lamps]) as runtime:
        session, model = Answers(runtime).session("s"), constrain(FirstChoice())
        await session.ask("How many lamps in High Street?", agent=agent, model=model)
        assert (await session.turn("what about Old Town?", agent=agent)).asked.settled == ()
        await session.ask("How many lamps in Old Town?", agent=agent, model=model)
        await session.ask("what about Mill End?", agent=agent, model=model)
    assert made == [(None, "s1"), ("t1", None), ("t2", None)]


async def test_through_another_agent_it_is_what_that_one_was_asked_about() -> None:
    made: list[tuple[Any, ...]] = []
    ask_places = delegation(AGENT, description="Trees and closures.")
    intent = Intent(name="places", requires="places", keywords=("trees", "closed"))
    boss = Agent(name="boss", tools=("places",), intents=(intent,), semantic=False, deadline_s=30)
    async with Runtime.open("memory://", policy=parse_policy(OPEN), tools=[*make_tools(made), ask_places]) as runtime:
        session, model = Answers(runtime).session("s"), constrain(FirstChoice())
        for question in ("How many trees at Waldo Lake in winter?", "and in spring?", "is it closed?"):
            await session.ask(question, agent=boss, model=model)
        asked = await session.ask("is it closed at Odell Butte?", agent=boss, model=model)
    assert made == [("waldo-lake", "winter", None), ("waldo-lake", "spring", None), ("waldo-lake", "closing")]
    assert asked.status is not TurnStatus.VERIFIED


WALDO = NamedEntity("Waldo", (("place_id", "waldo-lake"), ("place_id", "waldo-mtn")))
CEDAR = NamedEntity("Cedar Creek", (("place_id", "cedar-creek"),))
IN_SPRING = NamedEntity("Spring", (("season", "spring"),))


def test_what_is_settled_takes_the_place_of_a_name_and_leaves_the_others() -> None:
    said = Settled(tool="count_trees", arguments={"place_id": "waldo-mtn"}, binds=("place_id",))
    asked = replace(need("count_trees"), about=(WALDO, IN_SPRING))
    alone = bind_settled(asked, [said])
    assert [(leaf.where, leaf.about) for leaf in leaves(alone)] == [('args["place_id"] == "waldo-mtn"', (IN_SPRING,))]
    both = bind_settled(replace(asked, about=(WALDO, CEDAR)), [said])
    assert [(leaf.where, leaf.about) for leaf in leaves(both)] == [(said.where, ()), ("", (CEDAR,))]
    assert bind_settled(both, [said]) == both  # as when the turn is gone on with


async def test_of_two_names_the_unclear_one_is_settled_and_the_other_still_needed(world: World) -> None:
    question, model = "How many trees at Waldo and Cedar Creek in winter?", Follows(call(place_id="Waldo"), Reply("?"))
    asked = await world.answers.session("s").ask(question, agent=AGENT, model=model)
    assert asked.status is TurnStatus.ASKED
    async with world.answers.reopen(asked.turn, agent=AGENT, reply="Waldo Mountain") as turn:
        await turn.call("count_trees", {"place_id": "waldo-mtn", "season": "winter"})
        assert (await turn.task()).needs == ("count_trees",)
        await turn.call("count_trees", {"place_id": "bobby-lake", "season": "winter"})
        assert (await turn.task()).needs == ("count_trees",)
        await turn.call("count_trees", {"place_id": "cedar-creek", "season": "winter"})
        assert (await turn.task()).needs == ()


async def test_a_name_that_fits_several_binds_a_question_that_goes_on(world: World) -> None:
    await world.ask("How many trees at Bobby Lake in winter?")
    async with world.answers.session("s").turn("and Waldo?", agent=AGENT) as turn:
        await turn.call("count_trees", {"place_id": "bobby-lake", "season": "winter"})
        assert (await turn.task()).needs == ("count_trees",)
        await turn.call("count_trees", {"place_id": "waldo-mtn", "season": "winter"})
        assert (await turn.task()).needs == ()


@pytest.mark.parametrize(
    "question", ["and in spring?", "what about Cedar Creek?", "and there again?", "the same again"]
)
async def test_a_question_that_goes_on_is_no_conversation(world: World, question: str) -> None:
    await world.ask("How many trees at Waldo Lake in winter?")
    async with world.answers.session("s").turn(question, agent=AGENT) as turn:
        result = await run_turn(turn, Follows(*[Reply("You are welcome! It looks fine there.")] * 9))
    assert result.status is not TurnStatus.CONVERSATION
    assert "fine" not in result.answer
    assert (await world.ask("thanks!")).status is TurnStatus.CONVERSATION


async def test_what_was_replied_are_words_of_the_user_in_a_turn_below(world: World) -> None:
    asked = await world.ask("How many trees in winter?")
    async with world.answers.reopen(asked.turn, agent=AGENT, reply="Waldo Lake") as turn:
        async with turn.child(AGENT, "41 trees at Cedar Creek?") as below:
            assert below.asked.words == "How many trees in winter?\nWaldo Lake"
        async with world.answers.turn("41 trees?", agent=AGENT, parent=turn.id) as below:
            assert below.asked.words == "How many trees in winter?\nWaldo Lake"


def test_what_lies_beside_a_record_is_believed_only_where_it_is_what_was_recorded() -> None:
    where = 'args["place_id"] == "a \\" b" && args["other"] == ["x"] && args["place_id"] > 3 && args["'
    whole = replace(need("count_trees"), where=where, about=(WALDO, IN_SPRING))
    recorded = hide_values(whole, {"place_id"})
    assert "waldo" not in str(recorded).lower()
    assert 'a \\" b' not in str(recorded)
    assert IN_SPRING in leaves(recorded)[0].about
    assert whole_of(msgspec.to_builtins(whole), recorded, {"place_id"}) == whole
    assert whole_of(msgspec.to_builtins(need("list_places")), recorded, {"place_id"}) == recorded
    assert whole_of(None, recorded, {"place_id"}) == recorded


HORSES = {"h-1": "Falada", "h-2": "Rocinante", "h-3": "Bucephalus", "h-4": "Marengo"}
WEIGHTS = {"h-1": 510.0, "h-2": 380.0, "h-3": 600.0, "h-4": 450.0}


def stable_tools(made: list[tuple[str, ...]]) -> list[Tool]:
    known = {"horse_id": HORSES}

    @tool(effect="read", known_values=known)
    async def horse_file(horse_id: str) -> dict[str, Any]:
        """What a horse weighs, and what it owes."""
        made.append(("file", horse_id))
        visits = [{"day": "2026-03-14"}, {"day": "2026-05-02"}, {"day": "2026-07-30"}]
        return {"name": HORSES[horse_id], "weight_kg": WEIGHTS[horse_id], "debt_eur": 70.0, "visits": visits}

    @tool(effect="read", known_values=known)
    async def lesson_count(horse_id: str, season: Season = Season.summer) -> dict[str, Any]:
        """Lessons of a horse in a season."""
        made.append(("lessons", horse_id, season.value))
        return {"lessons": 12, "name": HORSES[horse_id], "season": season.value}

    @tool(effect="read")
    async def list_horses() -> list[dict[str, str]]:
        """All horses."""
        return [{"horse_id": horse, "name": name} for horse, name in HORSES.items()]

    return [horse_file, lesson_count, list_horses]


STABLE = Agent(
    name="stable",
    tools=("horse_file", "lesson_count", "list_horses"),
    intents=(
        Intent(name="file", requires="horse_file", keywords=("weigh", "weight", "owe", "debt", "heavy")),
        Intent(name="lessons", requires="lesson_count", keywords=("lessons",)),
        Intent(name="horses", requires="list_horses", keywords=("list", "horses")),
    ),
    semantic=False,
    deadline_s=20,
)


class Stable:
    """A conversation at a riding stable."""

    def __init__(self) -> None:
        self.made: list[tuple[str, ...]] = []
        self.runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=stable_tools(self.made))
        self.session = Answers(self.runtime).session("s")

    async def ask(self, *questions: str) -> TurnResult:
        """The next turns, with a model that can only choose; the result of the last."""
        results = [await self.session.ask(one, agent=STABLE, model=constrain(FirstChoice())) for one in questions]
        return results[-1]

    async def free(self, question: str, horse: str, draft: str, name: str = "horse_file") -> TurnResult:
        """The next turn, with a model that calls for one horse, whatever it is told, and writes one answer."""
        asked = Reply(proposals=(Proposal(name, {"horse_id": horse}),))
        return await self.session.ask(question, agent=STABLE, model=Follows(asked, *[Reply(draft)] * 9))


@pytest.fixture
async def stable() -> Any:
    made = Stable()
    yield made
    await made.runtime.close()


@pytest.mark.parametrize(
    "question",
    ["what does she owe?", "and her debt?", "how heavy is he?", "what is the weight of him?", "and what do they owe?"],
)
async def test_she_is_who_was_spoken_of_last(stable: Stable, question: str) -> None:
    await stable.ask("How many lessons did Rocinante have?", question)
    assert stable.made[1:] == [("file", "h-2")]
    other = await stable.free(question, "Falada", "Falada weighs 510 kg and owes 70 EUR.")
    assert other.status is TurnStatus.ESCALATED
    own = await stable.free(question, "Rocinante", "Rocinante weighs 380 kg and owes 70 EUR.")
    assert own.status is TurnStatus.VERIFIED


async def test_what_a_model_called_about_another_is_not_what_was_spoken_of(stable: Stable) -> None:
    await stable.ask("How many lessons did Rocinante have?")
    for _ in range(2):
        held = await stable.free("what does she owe?", "Falada", "Falada owes 70 EUR.")
        assert held.status is TurnStatus.ESCALATED
    both = Reply(proposals=tuple(Proposal("horse_file", {"horse_id": horse}) for horse in ("h-2", "h-4")))
    model = Follows(both, Reply("Rocinante weighs 380 kg."))
    await stable.session.ask("What is the weight of Rocinante?", agent=STABLE, model=model)
    (settled,) = (await stable.session.turn("what does she owe?", agent=STABLE)).asked.settled
    assert settled.arguments == {"horse_id": "h-2"}


async def test_who_was_named_in_answer_to_a_question_is_spoken_of(world: World) -> None:
    asked = await world.ask("How many trees at Waldo in winter?")
    assert (await world.ask("Cedar Creek")).turn == asked.turn
    assert (await world.turn("is it closed?")).asked.settled[0].arguments == {"place_id": "cedar-creek"}


async def test_they_are_all_that_were_spoken_of_last(stable: Stable) -> None:
    await stable.ask("How many lessons did Falada have?", "and Rocinante and Marengo?", "what do they owe?")
    assert stable.made[3:] == [("file", "h-2"), ("file", "h-4")]
    await stable.ask("list the horses")
    assert (await stable.session.turn("what do they owe?", agent=STABLE)).asked.settled == ()


@pytest.mark.parametrize("question", ["and him?", "what about his?"])
async def test_and_him_is_somebody_else(stable: Stable, question: str) -> None:
    asked = await stable.ask("What is the weight of Rocinante?", question)
    assert asked.status is TurnStatus.ASKED
    assert stable.made == [("file", "h-2")]


@pytest.mark.parametrize(
    ("question", "horse", "other"),
    [
        ("what is the weight of the second one?", "h-2", "Bucephalus"),
        ("how heavy is the third horse?", "h-3", "Rocinante"),
        ("and what does the last one owe?", "h-4", "Falada"),
    ],
)
async def test_a_question_about_the_second_one_is_about_that_row(
    stable: Stable, question: str, horse: str, other: str
) -> None:
    await stable.ask("list the horses", question)
    assert stable.made == [("file", horse)]
    held = await stable.free(question, other, f"{other} owes 70 EUR.")
    assert held.status is TurnStatus.ESCALATED


async def test_the_last_list_is_the_one_that_was_returned_last_and_not_what_a_file_has_besides(stable: Stable) -> None:
    await stable.ask("list the horses", "what is the weight of the second one?", "and the third?")
    await stable.ask("how many lessons did the first one have in winter?", "and the last one?")
    assert stable.made[:2] == [("file", "h-2"), ("file", "h-3")]
    assert stable.made[2:] == [("lessons", "h-1", "winter"), ("lessons", "h-4", "winter")]


async def test_where_nothing_tells_what_is_asked_of_the_second_one_that_is_asked_back(stable: Stable) -> None:
    asked = await stable.ask("list the horses", "what about the second one?")
    assert (asked.status, stable.made) == (TurnStatus.ASKED, [])
    assert "I am not sure what you ask for" in asked.answer
    result = await stable.ask("the lessons")
    assert (result.turn, stable.made) == (asked.turn, [("lessons", "h-2", "summer")])
    await stable.ask("what about the third one?")
    assert stable.made[1:] == [("lessons", "h-3", "summer")]


async def test_the_second_one_binds_whichever_tool_a_free_model_calls(stable: Stable) -> None:
    await stable.ask("list the horses")
    held = await stable.free("what about the second one?", "Bucephalus", "Bucephalus weighs 600 kg.")
    assert held.status is TurnStatus.ESCALATED
    told = await stable.free("what about the second one?", "Rocinante", "Rocinante weighs 380 kg.")
    assert told.status is TurnStatus.VERIFIED


async def test_who_came_first_is_no_row_of_a_list(stable: Stable) -> None:
    await stable.ask("list the horses")
    for question in ("whose debt came first?", "what about the first and the second one?"):
        assert (await stable.session.turn(question, agent=STABLE)).asked.settled == ()


async def weight_of(stable: Stable, question: str, horse: str) -> str:
    """The weight as it is printed in an answer that cites it."""

    class Cites(Follows):
        async def reply(self, request: Request) -> Reply:
            facts = [line for line in request.instructions.splitlines() if "weight kg: " in line]
            own = [line.partition(" ")[0] for line in facts if f"{WEIGHTS[horse]:g} kg" in line]
            return Reply(f"{HORSES[horse]} weighs {own[-1]}.") if self.seen else await super().reply(request)

    model = Cites(Reply(proposals=(Proposal("horse_file", {"horse_id": horse}),)))
    result = await stable.session.ask(question, agent=STABLE, model=model)
    assert result.status is TurnStatus.VERIFIED, result
    return result.answer.splitlines()[0]


async def test_units_are_remembered(stable: Stable) -> None:
    assert await weight_of(stable, "What is the weight of Falada in pounds?", "h-1") == "Falada weighs 1124.36 pounds."
    assert await weight_of(stable, "and Rocinante?", "h-2") == "Rocinante weighs 837.76 pounds."
    assert await weight_of(stable, "and what does she weigh in kg?", "h-2") == "Rocinante weighs 380 kg."
    assert await weight_of(stable, "and Falada?", "h-1") == "Falada weighs 510 kg."
    turn = await stable.session.turn("and in pounds?", agent=STABLE)
    assert (turn.asked.settled[0].arguments, turn.asked.units) == ({"horse_id": "h-1"}, ("pounds",))
    assert 'The answer is wanted in "pounds".' in turn.instructions
    assert await weight_of(stable, "and in pounds?", "h-1") == "Falada weighs 1124.36 pounds."
    await stable.ask("thanks!")
    assert await weight_of(stable, "and Marengo?", "h-4") == "Marengo weighs 992.08 pounds."
    assert await weight_of(stable, "What is the weight of Falada?", "h-1") == "Falada weighs 510 kg."


async def test_a_model_that_can_only_choose_chooses_values_in_the_unit_that_is_asked_for(stable: Stable) -> None:
    class Weighs(FirstChoice):
        """Chooses what is said of a weight, where there is such a choice."""

        async def reply(self, request: Request) -> Reply:
            said = re.search(r"\w+: weight [^\"\\]+", request.grammar)
            return Reply(f"{said[0]}.") if said else await super().reply(request)

    async def ask(question: str) -> str:
        result = await stable.session.ask(question, agent=STABLE, model=constrain(Weighs()))
        assert result.status is TurnStatus.VERIFIED
        return result.answer

    assert await ask("What is the weight of Falada in pounds?") == "Falada: weight 1,124.36 pounds."
    assert await ask("and Rocinante?") == "Rocinante: weight 837.76 pounds."
    assert await ask("What is the weight of Falada?") == "Falada: weight kg 510.0."
    assert await ask("and in lb?") == "Falada: weight 1,124.36 lb."


async def test_in_pounds_is_about_all_that_was_asked_about(stable: Stable) -> None:
    await stable.ask("What is the weight of Falada?", "and Rocinante and Marengo?", "in lb?")
    assert stable.made[3:] == [("file", "h-2"), ("file", "h-4")]
    asked = await stable.ask("and in 20 pounds?")
    assert asked.status is not TurnStatus.VERIFIED


@pytest.mark.parametrize(
    "question",
    ["and the third one?", "are you sure?", "and him?", "in lb?", "are you sure", "why?", "what about last year?"],
)
async def test_a_question_is_no_name_that_was_asked_for(stable: Stable, question: str) -> None:
    asked = await stable.ask("How many lessons?")
    assert asked.status is TurnStatus.ASKED
    result = await stable.ask(question)
    assert result.turn != asked.turn
    assert result.status is TurnStatus.ASKED, result
    assert stable.made == []
    with pytest.raises(NotAllowed, match="does not say horse id"):
        await Answers(stable.runtime).reopen(asked.turn, agent=STABLE, reply=question)


async def test_a_question_about_a_name_is_no_answer_either(stable: Stable) -> None:
    asked = await stable.ask("How many lessons?")
    assert (await stable.session.turn("are you sure about Falada?", agent=STABLE)).id != asked.turn
    assert (await stable.session.turn("Falada?", agent=STABLE)).id == asked.turn


@pytest.mark.parametrize(("reply", "horse"), [("the third one", "h-3"), ("and the last one?", "h-4"), ("hers", "h-2")])
async def test_what_was_asked_back_is_answered_by_a_word_for_it(stable: Stable, reply: str, horse: str) -> None:
    await stable.ask("What is the weight of Rocinante?", "list the horses")
    asked = await stable.ask("How many lessons in winter?")
    assert (await stable.ask(reply)).turn == asked.turn
    assert stable.made[1:] == [("lessons", horse, "winter")]


async def test_it_is_what_was_spoken_of_where_that_was_only_asked_about(stable: Stable) -> None:
    await stable.ask("How many lessons did Falada have?", "list the horses")
    held = await stable.session.ask("What does Marengo owe?", agent=STABLE, model=Follows(*[Reply("Nothing.")] * 9))
    assert held.status is TurnStatus.ESCALATED
    await stable.ask("what does she weigh?")
    assert stable.made[1:] == [("file", "h-4")]


@pytest.mark.parametrize(
    "question", ["not Falada, Marengo", "Marengo, not Falada", "not Falada but Marengo", "no, not Falada, Marengo"]
)
async def test_the_one_that_is_denied_is_not_meant(stable: Stable, question: str) -> None:
    await stable.ask("How many lessons did Falada have in winter?", question)
    assert stable.made[1:] == [("lessons", "h-4", "winter")]
    asked = await stable.ask("How many lessons in spring?")
    assert (await stable.ask(question)).turn == asked.turn
    assert stable.made[2:] == [("lessons", "h-4", "spring")]


@pytest.mark.parametrize("question", ["not Falada", "not Falada or Marengo", "anything but Marengo"])
async def test_what_is_only_denied_goes_on_from_nothing(stable: Stable, question: str) -> None:
    await stable.ask("How many lessons did Rocinante have in winter?")
    assert (await stable.session.turn(question, agent=STABLE)).asked.settled == ()


async def test_without_a_session_too_the_denied_one_is_not_what_is_needed(stable: Stable) -> None:
    for question in ("What is the debt? Not Falada, Marengo", "the debt of not Falada but Marengo"):
        async with Answers(stable.runtime).turn(question, agent=STABLE) as turn:
            (leaf,) = leaves(turn.requirement)
            assert [entity.name for entity in leaf.about] == ["Marengo"]
            await run_turn(turn, constrain(FirstChoice()))
    assert stable.made == [("file", "h-4")] * 2


@pytest.mark.parametrize(
    ("said", "is_reply"),
    [
        ("Waldo Lake", True),
        ("Waldo Lake, please", True),
        ("fire everybody at Waldo Lake", False),
        ("salary at Waldo Lake", False),
    ],
)
async def test_what_says_more_than_was_asked_for_is_no_answer_to_it(said: str, is_reply: bool) -> None:
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=make_tools([]))
    session = Answers(runtime).session("ann")
    async with session.turn("how many trees are down at Waldo?", agent=AGENT) as turn:
        await turn.propose([Proposal("count_trees", {"place_id": "Waldo"})])
        asked = await turn.finish("Which one?")
    assert isinstance(asked, TurnResult)
    assert asked.status is TurnStatus.ASKED
    async with session.turn(said, agent=AGENT) as turn:
        assert (turn.asked.reply is not None) == is_reply
    await runtime.close()


async def test_a_question_is_answered_only_by_the_one_who_was_asked(world: World) -> None:
    asked = await world.ask("How many trees in spring?", on_behalf_of="user:ann")
    assert asked.status is TurnStatus.ASKED
    others: list[dict[str, Any]] = [
        {},
        {"on_behalf_of": "user:bob"},
        {"on_behalf_of": "user:ann", "principal": "svc:other"},
    ]
    for whom in others:
        with pytest.raises(NotAllowed):
            await world.answers.reopen(asked.turn, agent=AGENT, reply="Cedar Creek", **whom)
    await world.answers.reopen(asked.turn, agent=AGENT, reply="Cedar Creek", on_behalf_of="user:ann")


async def test_a_session_can_be_shown_again_to_whom_it_belongs(world: World) -> None:
    asked = ["How many trees at Waldo Lake in winter?", "and in spring?", "which one?"]
    results = [await world.ask(question) for question in asked]
    await world.ask("list the places", session="other")
    session = world.answers.session("s")
    shown = await session.exchanges()
    assert [one.question for one in shown] == asked
    assert [one.turn for one in shown] == [result.turn for result in results]
    assert [one.result for one in shown] == results
    assert [one.question for one in await session.exchanges(most=1)] == asked[-1:]
    assert await session.exchanges(principal="somebody else") == []
    recent = await world.answers.sessions()
    assert [(one.name, one.turns, one.question) for one in recent] == [
        ("other", 1, "list the places"),
        ("s", 3, asked[0]),
    ]
    assert [one.name for one in await world.answers.sessions(most=1)] == ["other"]
    assert await world.answers.sessions(principal="somebody else") == []
    assert await session.exchanges(principal="") == []
    with pytest.raises(ConfigError):
        await world.answers.sessions(principal="")
    for odd in (0, "3"):
        with pytest.raises(ConfigError, match="how many"):
            await world.answers.sessions(most=odd)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="how many"):
            await session.exchanges(most=odd)  # type: ignore[arg-type]


async def test_what_others_have_asked_since_hides_no_session(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "_LOOKED_THROUGH", 2)
    await world.ask("How many trees at Waldo Lake?", session="mine")
    for n in range(5):
        await world.ask("list the places", session=f"theirs {n}", principal="bob")
    assert [one.name for one in await world.answers.sessions()] == ["mine"]
    assert len(await world.answers.sessions(principal="bob")) == 5


async def test_what_was_left_is_shown_without_an_answer(world: World) -> None:
    async with await world.turn("How many trees at Waldo Lake?"):
        pass
    (shown,) = await world.answers.session("s").exchanges()
    assert (shown.question, shown.result) == ("How many trees at Waldo Lake?", None)
