"""The five agents: every tool through its agent, what their answers need, delegation, and what goes wrong."""

from __future__ import annotations

import asyncio
import json

import pytest

from interlock import Runtime
from interlock.answers import Answers, App, TurnOutcome, TurnResult, TurnStatus, run_turn
from interlock.answers.events import Opened, event_of
from interlock.answers.requirements import AllOf, Need, leaves
from interlock.models import Proposal, Reply, Request
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock_ranger.agents import DEFAULTS, SPECIALISTS, TOOLS
from interlock_ranger.app import build_app
from interlock_ranger.fires import Fires
from ranger_parts import TODAY, Case, policy_text, problem
from scripted import PLANS, Competent

CASES = [(agent, case) for agent, own in json.loads(PLANS.read_text()).items() for case in own]


def ids(value: object) -> str:
    return value["q"][:40] if isinstance(value, dict) else str(value)


def test_fifteen_computing_tools_and_four_delegations(app: App) -> None:
    computing = {name for own in TOOLS.values() for name in own} | {"portfolio_triage"}
    assert len(computing) == 15
    assert {tool.name for tool in app.tools} == computing | set(SPECIALISTS)
    assert [agent.name for agent in app.agents] == ["coordinator", *SPECIALISTS]


def test_the_plans_reach_every_tool() -> None:
    called = {call["name"] for _, case in CASES for call in case["calls"]}
    assert called == {name for own in TOOLS.values() for name in own} | {"portfolio_triage", *SPECIALISTS}


@pytest.mark.parametrize(("agent", "case"), CASES, ids=ids)
async def test_each_tool_is_called_through_its_agent(app: App, answers: Answers, agent: str, case: Case) -> None:
    async with answers.turn(case["q"], agent=app.agent(agent)) as turn:
        result = await run_turn(turn, Competent())
    assert result.outcome in (TurnOutcome.PASSED, TurnOutcome.SKIPPED_NO_REQUIREMENTS), result
    assert result.status is TurnStatus.VERIFIED
    assert set(result.tools) == {call["name"] for call in case["calls"]}
    assert result.claims
    assert all(claim.how != "unsupported" for claim in result.claims)
    assert result.confidence is not None


@pytest.mark.parametrize(("agent", "case"), [c for c in CASES if c[0] != "coordinator"], ids=ids)
async def test_and_directly_with_the_same_result(app: App, runtime: Runtime, agent: str, case: Case) -> None:
    for call in case["calls"]:
        found = await runtime.call(call["name"], call["args"], actor="operator")
        assert found.ok
        evidence = found.value["evidence"]
        assert evidence["reasoning"]
        assert found.confidence == evidence["confidence"]["score"]
        again = await runtime.call(call["name"], call["args"], actor="operator")
        assert again.value == found.value  # the same answer twice


class Wordy:
    """A model that answers from thin air."""

    name, instructable = "wordy", True

    async def reply(self, request: Request) -> Reply:
        return Reply("Trails in such areas are usually in fair condition, about 12 % are closed.")

    async def close(self) -> None:
        return


@pytest.mark.parametrize("agent", [*SPECIALISTS, "coordinator"])
async def test_an_answer_from_thin_air_never_leaves(app: App, answers: Answers, agent: str) -> None:
    question = next(case["q"] for name, case in CASES if name == agent)
    async with answers.turn(question, agent=app.agent(agent)) as turn:
        result = await run_turn(turn, Wordy())
    assert not result.verified
    assert "12 %" not in result.answer
    assert result.status is TurnStatus.ESCALATED


@pytest.mark.parametrize("agent", SPECIALISTS)
def test_what_is_not_recognised_needs_the_default_tool(app: App, agent: str) -> None:
    known = app.agent(agent)
    assert known.default == Need(tool=DEFAULTS[agent], no_data=True)
    assert all(need.no_data for intent in known.intents for need in leaves(intent.requirement))


@pytest.mark.parametrize("agent", [*SPECIALISTS, "coordinator"])
def test_small_talk_needs_no_tool_and_what_names_the_field_is_no_small_talk(app: App, agent: str) -> None:
    classifier = app.agent(agent).classifier()
    for text in ("Thanks a lot!", "Good morning, team", "¿Qué puedes hacer?"):
        assert classifier.classify(text).chat, text
    for text in (
        "Thanks, the burn summary was great!",
        "So it's safe then?",
        "lol is it closed",
        "¿Está cerrado el sendero?",
        "What can you tell me about Waldo Lake?",
    ):
        assert leaves(classifier.classify(text).requirement), text


def test_a_full_briefing_needs_all_four(app: App) -> None:
    found = app.agent("coordinator").classifier().classify("Give me the full briefing on Cedar Creek.")
    assert isinstance(found.requirement, AllOf)
    assert {part.tool for part in leaves(found.requirement)} == set(SPECIALISTS)


def test_the_prompt_has_the_decision_tree_of_the_same_intents(app: App, answers: Answers) -> None:
    for name in SPECIALISTS:
        told = answers.turn("hello", agent=app.agent(name)).instructions
        assert [told.index(step) for step in ("THINK:", "CALL:", "REASON:", "RESPOND:")] == sorted(
            told.index(step) for step in ("THINK:", "CALL:", "REASON:", "RESPOND:")
        )
        for intent in app.agent(name).intents:
            assert f"{intent.name.replace('_', ' ')} (such as" in told
            (needed,) = leaves(intent.requirement)
            assert f"call {needed.tool} (nothing on file is an answer too)" in told


async def test_nothing_on_file_is_an_answer_that_says_so(app: App, answers: Answers) -> None:
    class Asks:
        name, instructable = "asks", True

        async def reply(self, request: Request) -> Reply:
            if any(m.role == "tool" for m in request.messages):
                return Reply("There is no such trail on file; the nearest are listed.")
            return Reply(proposals=(Proposal("classify_damage", {"trail_id": "Fuji Mountain"}),))

        async def close(self) -> None:
            return

    async with answers.turn("How bad is the damage on Fuji Mountain?", agent=app.agent("trail_assessor")) as turn:
        result = await run_turn(turn, Asks())
    assert result.verified
    assert "there is no trail_id 'Fuji Mountain' on file" in result.answer


async def test_no_fire_is_named_so_it_asks(app: App, answers: Answers) -> None:
    class Vague:
        name, instructable = "vague", True

        async def reply(self, request: Request) -> Reply:
            return Reply(proposals=(Proposal("assess_severity", {}),))

        async def close(self) -> None:
            return

    async with answers.turn("How bad was the burn severity?", agent=app.agent("burn_analyst")) as turn:
        result = await run_turn(turn, Vague())
    assert result.status is TurnStatus.ASKED
    assert result.answer == "Which fire is meant: Cedar Creek (cedar-creek-2022) or Bootleg (bootleg-2021)?"


BRIEFING = "Give me the full briefing on Cedar Creek: burn, trails, timber and compliance."


async def test_delegations_are_child_turns_in_the_same_trail(app: App, answers: Answers) -> None:
    async with answers.turn(BRIEFING, agent=app.agent("coordinator"), on_behalf_of="the supervisor") as turn:
        result = await run_turn(turn, Competent())
    assert set(result.tools) == set(SPECIALISTS)
    events = [event_of(record) async for record in answers.runtime.store.records(Query())]
    children = [event for event in events if isinstance(event, Opened) and event.parent == turn.id]
    assert {child.agent for child in children} == set(SPECIALISTS)
    assert all(child.root_turn == turn.id and child.on_behalf_of == "the supervisor" for child in children)
    sources = {claim.source for claim in result.claims}
    assert len(sources) > 3  # figures of the parent's answer stand in the children's records


async def test_what_is_delegated_is_paid_from_the_budget_of_who_asked(app: App) -> None:
    text = policy_text(app).replace("calls = 24", "calls = 5")
    async with Runtime.open("memory://", policy=parse_policy(text, "policy.toml"), tools=app.tools) as runtime:
        async with Answers(runtime).turn(BRIEFING, agent=app.agent("coordinator")) as turn:
            result = await run_turn(turn, Competent())
        denied = [r async for r in runtime.store.records(Query()) if r.kind == "call" and r.status == "denied"]
    assert not result.verified
    assert denied  # four delegations and one call are all that five pay for
    problems = [record.content().problem for record in denied]
    assert all(found is not None and found.reason == "budget_exhausted" for found in problems)


async def test_an_approval_below_holds_up_the_answer_above(app: App) -> None:
    review = '[[rule]]\nid = "look-first"\ntools = ["evaluate_closure"]\ndecision = "review"\nreason = "a person looks at closures first"\n'
    text = policy_text(app) + "\n" + review
    async with Runtime.open("memory://", policy=parse_policy(text, "policy.toml"), tools=app.tools) as runtime:
        question = "Ask the trail people which trails near Waldo Lake should stay closed this winter."
        async with Answers(runtime).turn(question, agent=app.agent("coordinator")) as turn:
            result = await run_turn(turn, Competent())
    assert result.status is TurnStatus.WAITING
    assert result.ticket is not None


async def test_an_agent_may_not_use_the_tools_of_another(runtime: Runtime) -> None:
    found = await runtime.call("decide_pathway", {"action": "salvage_harvest", "acres": 1.0}, actor="trail_assessor")
    assert found.status == "denied"
    alone = await runtime.call("trail_assessor", {"request": "hello"}, actor="operator")
    assert "only by a turn that a model is working on" in problem(alone).message


@pytest.mark.slow
async def test_a_hundred_questions_at_once_do_not_mix(app: App, answers: Answers) -> None:
    work = [CASES[n % len(CASES)] for n in range(100)]

    async def ask(agent: str, case: Case) -> tuple[Case, TurnResult]:
        async with answers.turn(case["q"], agent=app.agent(agent)) as turn:
            return case, await run_turn(turn, Competent())

    alone = {}
    for agent, case in CASES:
        alone[case["q"]] = (await ask(agent, case))[1]
    for case, result in await asyncio.gather(*(ask(*item) for item in work)):
        first = alone[case["q"]]
        assert set(result.tools) == {call["name"] for call in case["calls"]}
        assert result.answer == first.answer
        assert result.turn != first.turn


async def test_the_clock_is_injected(fires: Fires) -> None:
    from datetime import date

    young = build_app(fires, today=lambda: date(2023, 9, 1))
    async with Runtime.open("memory://", policy=young.policy or "", tools=young.tools) as runtime:
        found = await runtime.call("assess_severity", {"fire_id": "cedar-creek-2022"}, actor="operator")
        closure = await runtime.call("evaluate_closure", {"fire_id": "cedar-creek-2022"}, actor="operator")
    assert found.value["evidence"]["confidence"]["freshness"] == 1.0
    assert closure.value["season"] == "fall"
    assert date(2026, 11, 15) == TODAY
