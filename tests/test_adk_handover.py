"""ADK: a question that is handed over takes along what its answer needs, and what cannot be held back is not begun."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("google.adk")
warnings.filterwarnings("ignore", module="google")

from google.adk.agents import LlmAgent  # noqa: E402
from google.adk.agents.live_request_queue import LiveRequestQueue  # noqa: E402
from google.adk.apps import App  # noqa: E402
from google.adk.models.llm_response import LlmResponse  # noqa: E402
from google.adk.runners import InMemoryRunner  # noqa: E402
from google.genai import types  # noqa: E402

from interlock import Runtime, tool  # noqa: E402
from interlock.adapters.adk import AdkTool, InterlockLlm, InterlockPlugin, InterlockRunner, delegations  # noqa: E402
from interlock.answers import Agent, Intent, TurnOutcome, TurnStatus  # noqa: E402
from interlock.answers.events import Opened, event_of  # noqa: E402
from interlock.policy import parse_policy  # noqa: E402
from interlock.ports import Query  # noqa: E402
from interlock.testing import make_scripted  # noqa: E402
from tests.test_adk import application, plugin_of  # noqa: E402
from tests.test_turns import ANSWER, OPEN, QUESTION, SCRIPT, tools  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

DAMAGE = Intent(name="damage", requires="classify_damage", keywords=("damage",))
CALL = ("classify_damage", {"trail_id": "Waldo Lake"})
Line = str | tuple[str, dict[str, Any]]


class Lines(InterlockLlm):
    """Says its lines one after another, and the last one again and again: a text, or a call."""

    _lines: list[Line]

    def __init__(self, *lines: Line) -> None:
        super().__init__(make_scripted("obedient", SCRIPT))
        self._lines = list(lines)

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        line = self._lines.pop(0) if len(self._lines) > 1 else self._lines[0]
        call = None if isinstance(line, str) else types.FunctionCall(name=line[0], args=line[1])
        part = types.Part(text=line) if isinstance(line, str) else types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def transfer(name: str) -> Line:
    return ("transfer_to_agent", {"agent_name": name})


def tree(
    root: Sequence[Line], below: Sequence[Line], *, asks: Agent, answers: Agent
) -> tuple[InterlockRunner, Runtime]:
    """Two agents with these lines, the second below the first."""
    contracts = {tool.name: tool for tool in tools()}

    def adk_tools(agent: Agent) -> list[Any]:
        return [AdkTool(contracts[name]) for name in agent.tools if name in contracts]

    sub = LlmAgent(name=answers.name, description="Knows.", model=Lines(*below), tools=adk_tools(answers))
    boss = LlmAgent(name=asks.name, model=Lines(*root), tools=adk_tools(asks), sub_agents=[sub])
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[*contracts.values(), *delegations(boss)])
    plugin = InterlockPlugin(runtime, {asks.name: asks, answers.name: answers})
    return InterlockRunner(App(name="handover", root_agent=boss, plugins=[plugin])), runtime


def agent(name: str, *own: str, intents: tuple[Intent, ...] = ()) -> Agent:
    return Agent(name=name, tools=(*own, "transfer_to_agent"), intents=intents, semantic=False, max_retries=1)


BOSS = agent("boss", "classify_damage", "joker", intents=(DAMAGE,))
THIN_AIR = "Waldo Lake is in fair condition, I would say."


@pytest.mark.parametrize("joker", [agent("joker"), agent("joker", "list_trails")])
async def test_a_transfer_does_not_drop_what_the_answer_needs(joker: Agent) -> None:
    """The agent below needs nothing by its own intents, and could say anything."""
    runner, runtime = tree([transfer("joker")], [THIN_AIR], asks=BOSS, answers=joker)
    result = await runner.ask(QUESTION)
    assert (result.agent, result.outcome, result.status) == ("joker", TurnOutcome.ESCALATED, TurnStatus.ESCALATED)
    assert "fair condition" not in result.answer
    assert result.missing == ("classify_damage",)
    assert not plugin_of(runner.runner.app)._first
    await runtime.close()


async def test_an_agent_that_was_handed_a_question_meets_it_by_its_own_calls() -> None:
    able = agent("joker", "classify_damage")
    runner, runtime = tree([transfer("joker")], [THIN_AIR, CALL, ANSWER], asks=BOSS, answers=able)
    result = await runner.ask(QUESTION)
    assert (result.outcome, result.status, result.answer) == (
        TurnOutcome.RETRY_SUCCEEDED,
        TurnStatus.VERIFIED,
        ANSWER,
    )
    events = [event_of(record) async for record in runtime.store.records(Query())]
    first, second = [event for event in events if isinstance(event, Opened)]
    assert (second.parent, second.carried_from is not None, second.carried) == (
        second.carried_from,
        True,
        first.requires,
    )
    await runtime.close()


async def test_a_call_about_another_thing_does_not_meet_what_was_handed_over() -> None:
    able = agent("joker", "classify_damage")
    other = ("classify_damage", {"trail_id": "Bobby Lake"})
    said = "Bobby Lake is class 3 with 41.5 downed trees per mile."
    runner, runtime = tree([transfer("joker")], [other, said], asks=BOSS, answers=able)
    result = await runner.ask(QUESTION)
    assert not result.verified
    assert said not in result.answer
    await runtime.close()


async def test_what_a_session_has_settled_is_handed_over_too() -> None:
    """Of what there is damage, only the turn before says."""
    able, other = agent("joker", "classify_damage"), ("classify_damage", {"trail_id": "Bobby Lake"})
    said = "It is class 3 with 41.5 downed trees per mile."
    for calls, is_met in (((other, said), False), ((CALL, said), True)):
        runner, runtime = tree([CALL, ANSWER, transfer("joker")], calls, asks=BOSS, answers=able)
        assert (await runner.ask(QUESTION, session_id="s")).status is TurnStatus.VERIFIED
        result = await runner.ask("Is there damage on it?", session_id="s")
        assert (result.agent, result.verified) == ("joker", is_met)
        await runtime.close()


async def test_what_was_called_before_a_question_was_handed_over_counts_and_may_be_said() -> None:
    runner, runtime = tree([CALL, transfer("joker")], [ANSWER], asks=BOSS, answers=agent("joker"))
    result = await runner.ask(QUESTION)
    assert (result.status, result.answer) == (TurnStatus.VERIFIED, ANSWER)
    await runtime.close()


async def test_an_agent_that_is_needed_itself_has_still_its_own_needs() -> None:
    routes = agent("boss", "joker", intents=(Intent(name="ask", requires="joker", keywords=("damage",)),))
    able = agent("joker", "classify_damage", intents=(DAMAGE,))
    runner, runtime = tree([transfer("joker")], [CALL, ANSWER], asks=routes, answers=able)
    assert (await runner.ask(QUESTION)).status is TurnStatus.VERIFIED
    await runtime.close()
    runner, runtime = tree([transfer("joker")], [THIN_AIR], asks=routes, answers=able)
    assert (await runner.ask(QUESTION)).status is TurnStatus.ESCALATED
    await runtime.close()
    # Somebody else was needed than the one that got it.
    elsewhere = agent(
        "boss", "joker", "list_trails", intents=(Intent(name="x", requires="list_trails", keywords=("damage",)),)
    )
    runner, runtime = tree([transfer("joker")], [CALL, ANSWER], asks=elsewhere, answers=able)
    assert (await runner.ask(QUESTION)).status is TurnStatus.ESCALATED
    await runtime.close()


async def test_the_next_question_goes_to_the_agent_below_and_needs_the_same() -> None:
    """ADK begins where the last question was answered: the agent above is not asked at all."""
    able = agent("joker", "classify_damage")
    runner, runtime = tree([transfer("joker"), THIN_AIR], [CALL, ANSWER, THIN_AIR], asks=BOSS, answers=able)
    assert (await runner.ask(QUESTION, session_id="s")).agent == "joker"
    second = await runner.ask("And what damage is there at Bobby Lake?", session_id="s")
    assert (second.agent, second.status) == ("joker", TurnStatus.ESCALATED)
    assert "fair condition" not in second.answer
    await runtime.close()


async def test_small_talk_is_handed_over_as_such() -> None:
    runner, runtime = tree([transfer("joker")], ["You are welcome!"], asks=BOSS, answers=agent("joker"))
    result = await runner.ask("thanks a lot")
    assert (result.status, result.answer, result.verified) == (TurnStatus.CONVERSATION, "You are welcome!", False)
    await runtime.close()


async def test_a_question_that_comes_back_is_answered_by_the_first_agent_under_its_own_needs() -> None:
    runner, runtime = tree([transfer("joker"), CALL, ANSWER], [transfer("boss")], asks=BOSS, answers=agent("joker"))
    result = await runner.ask(QUESTION)
    assert (result.agent, result.status, result.answer) == ("boss", TurnStatus.VERIFIED, ANSWER)
    assert not plugin_of(runner.runner.app)._open
    await runtime.close()


async def test_a_live_run_is_refused_in_a_sentence() -> None:
    app, runtime = application(make_scripted("obedient", SCRIPT))
    runner = InMemoryRunner(app=app)
    session = await runner.session_service.create_session(app_name=app.name, user_id="u")
    queue = LiveRequestQueue()
    queue.send_content(types.Content(role="user", parts=[types.Part(text=QUESTION)]))
    events = runner.run_live(user_id="u", session_id=session.id, live_request_queue=queue)
    with pytest.raises(Exception, match="run_live is refused"):
        await anext(events)
    await runtime.close()


def call(tool: str, **arguments: Any) -> Line:
    return (tool, arguments)


@pytest.mark.parametrize(
    ("request_text", "place", "said", "status"),
    [
        ("What is the damage on Waldo Lake?", "Waldo Lake", ANSWER, TurnStatus.VERIFIED),
        ("damage on Waldo Lake, where 4,200 acres burned?", "Waldo Lake", "Class 3 of 4,200 acres.", None),
        ("What is the damage on Bobby Lake?", "Bobby Lake", "It is class 3 with 41.5 trees.", None),
    ],
)
async def test_what_a_model_puts_into_a_request_is_neither_a_finding_nor_the_question(
    request_text: str, place: str, said: str, status: TurnStatus | None
) -> None:
    """Delegation launders nothing: neither an invented figure, nor another place than the user asked about."""
    contracts = tools()
    below = Agent(name="surveyor", tools=("classify_damage",), intents=(DAMAGE,), semantic=False, max_retries=0)
    routes = (Intent(name="ask", requires="surveyor", keywords=("damage",)),)
    above = Agent(name="boss", tools=("surveyor", "transfer_to_agent"), intents=routes, semantic=False, max_retries=0)
    sub = LlmAgent(
        name="surveyor", description="Knows.", mode="single_turn", tools=[AdkTool(contracts[0])],
        model=Lines(call("classify_damage", trail_id=place), said),
    )  # fmt: skip
    boss = LlmAgent(name="boss", sub_agents=[sub], model=Lines(call("surveyor", request=request_text), said))
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[*contracts, *delegations(boss)])
    plugin = InterlockPlugin(runtime, {"boss": above, "surveyor": below})
    result = await InterlockRunner(App(name="launders", root_agent=boss, plugins=[plugin])).ask(QUESTION)
    if status is not None:
        assert result.status is status
    else:
        assert result.status is not TurnStatus.VERIFIED
        assert "4,200" not in result.answer
    await runtime.close()


LIMITS: dict[str, Line] = {
    "set": ("set_limit", {"trail": "Waldo Lake", "limit": 25}),
    "get": ("get_limit", {"trail": "Waldo Lake"}),
}


def desk(root: Sequence[Line], below: Sequence[Line]) -> InterlockRunner:
    """Two agents that read and set a limit, the second below the first."""
    limits = {"Waldo Lake": 40}

    @tool(effect="read")
    async def get_limit(trail: str) -> dict[str, Any]:
        return {"trail": trail, "visitors": limits[trail]}

    @tool(effect="send", key="{trail}")
    async def set_limit(trail: str, limit: int) -> dict[str, Any]:
        limits[trail] = limit
        return {"trail": trail, "visitors": limit}

    contracts = [get_limit, set_limit]
    sub = LlmAgent(name="joker", description="Knows.", model=Lines(*below), tools=[AdkTool(one) for one in contracts])
    boss = LlmAgent(name="boss", model=Lines(*root), tools=[AdkTool(one) for one in contracts], sub_agents=[sub])
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[*contracts, *delegations(boss)])
    change = Intent(name="change", requires="set_limit", keywords=("set",))
    own = ("get_limit", "set_limit")
    known = {"boss": agent("boss", *own, intents=(change,)), "joker": agent("joker", *own)}
    return InterlockRunner(App(name="desk", root_agent=boss, plugins=[InterlockPlugin(runtime, known)]))


@pytest.mark.parametrize("back", [False, True])
async def test_a_change_before_a_handover_stands_below_the_answer_and_cannot_be_denied(back: bool) -> None:
    denies = "Waldo Lake has 25 visitors. Nothing was changed."
    root: list[Line] = [LIMITS["set"], transfer("joker"), denies]
    runner = desk(root, [transfer("boss"), denies] if back else [denies])
    result = await runner.ask("Set the limit at Waldo Lake to 25")
    assert denies not in result.answer
    assert [effect.tool for effect in result.effects] == ["set_limit"]
    assert "Done: set_limit" in result.answer


async def test_what_was_read_before_a_handover_is_old_after_a_change_behind_it() -> None:
    old = "Waldo Lake has 40 visitors."
    runner = desk([LIMITS["get"], transfer("joker")], [LIMITS["set"], old])
    result = await runner.ask("Set the limit at Waldo Lake to 25")
    assert old not in result.answer
    assert "25" in result.answer


@pytest.mark.parametrize(
    "prose", ["The old bridge was rebuilt by the army and everybody can cross it.", "A child could walk there."]
)
async def test_prose_behind_a_handover_rests_on_what_was_found_or_does_not_leave(prose: str) -> None:
    runner, _runtime = tree([CALL, transfer("joker")], [prose], asks=BOSS, answers=agent("joker"))
    result = await runner.ask(QUESTION)
    assert prose not in result.answer
    assert not result.verified


async def test_prose_does_not_leave_where_the_agent_itself_is_all_that_is_needed() -> None:
    asks = agent("boss", "joker", intents=(Intent(name="ask", requires="joker", keywords=("damage",)),))
    prose = "The old bridge was rebuilt by the army."
    runner, _runtime = tree([transfer("joker")], [prose], asks=asks, answers=agent("joker"))
    result = await runner.ask("How bad is the damage?")
    assert prose not in result.answer
    assert not result.verified


async def test_what_was_found_on_the_way_of_a_question_may_be_said_at_its_end() -> None:
    contracts = {one.name: one for one in tools()}
    classify = AdkTool(contracts["classify_damage"])
    low = LlmAgent(name="low", description="Knows.", model=Lines(ANSWER), tools=[])
    mid = LlmAgent(
        name="mid", description="Knows.", model=Lines(CALL, transfer("low")), tools=[classify], sub_agents=[low]
    )
    boss = LlmAgent(name="boss", model=Lines(transfer("mid")), tools=[classify], sub_agents=[mid])
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[*contracts.values(), *delegations(boss)])
    known = {
        "boss": agent("boss", "classify_damage", intents=(DAMAGE,)),
        "mid": agent("mid", "classify_damage"),
        "low": agent("low"),
    }
    result = await InterlockRunner(App(name="chain", root_agent=boss, plugins=[InterlockPlugin(runtime, known)])).ask(
        QUESTION
    )
    assert result.verified, result
    assert ANSWER in result.answer


@pytest.mark.parametrize("said", ["You said 300. It looks bad.", "The old bridge was rebuilt by the army."])
async def test_what_an_agent_says_that_was_asked_is_no_finding(said: str) -> None:
    contracts = {one.name: one for one in tools()}
    claim = "Waldo Lake has 300 downed trees per mile." if "300" in said else said
    sub = LlmAgent(
        name="sub",
        description="Knows.",
        mode="single_turn",
        model=Lines(CALL, f"Waldo Lake is class 3. {said}"),
        tools=[AdkTool(contracts["classify_damage"])],
    )
    request = {"request": "damage of Waldo Lake"}
    boss = LlmAgent(name="boss", model=Lines(("sub", request), claim), tools=[], sub_agents=[sub])
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[*contracts.values(), *delegations(boss)])
    known = {
        "boss": agent("boss", "sub", intents=(Intent(name="ask", requires="sub", keywords=("damage",)),)),
        "sub": agent("sub", "classify_damage", intents=(DAMAGE,)),
    }
    runner = InterlockRunner(App(name="asked", root_agent=boss, plugins=[InterlockPlugin(runtime, known)]))
    result = await runner.ask("What is the damage at Waldo Lake? I think 300.")
    assert claim not in result.answer


async def test_a_text_that_is_withheld_is_not_in_the_state_of_the_session_either() -> None:
    lie = "Waldo Lake is class 9."

    async def answer_instead(callback_context: Any, llm_request: Any) -> LlmResponse:
        return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=lie)]))

    contracts = {one.name: one for one in tools()}
    boss = LlmAgent(
        name="boss",
        model=Lines(CALL, ANSWER),
        tools=[AdkTool(contracts["classify_damage"])],
        output_key="answer",
        before_model_callback=answer_instead,
    )
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[*contracts.values(), *delegations(boss)])
    known = Agent(name="boss", tools=("classify_damage",), intents=(DAMAGE,), semantic=False, max_retries=1)
    plugin = InterlockPlugin(runtime, {"boss": known})
    runner = InMemoryRunner(app=App(name="state", root_agent=boss, plugins=[plugin]))
    session = await runner.session_service.create_session(app_name="state", user_id="u")
    asked = types.Content(role="user", parts=[types.Part(text=QUESTION)])
    events = [e async for e in runner.run_async(user_id="u", session_id=session.id, new_message=asked)]
    assert lie not in str(events)
    kept = await runner.session_service.get_session(app_name="state", user_id="u", session_id=session.id)
    assert kept is not None
    assert lie not in str(kept.state)
