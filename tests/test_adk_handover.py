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

from interlock import Runtime  # noqa: E402
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
