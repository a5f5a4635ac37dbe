"""Agents that are asked by others, and turns that have ended: what they said, failed at or still try is no result."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Runtime, tool
from interlock.answers import (
    Again,
    Agent,
    Answers,
    TurnOutcome,
    TurnResult,
    TurnStatus,
    delegation,
    run_turn,
)
from interlock.answers.requirements import all_of
from interlock.answers.statements.effects import EffectState
from interlock.errors import NotAllowed, Permanent
from interlock.models import Proposal, Reply, Request
from interlock.policy import parse_policy
from tests.test_turns import OPEN, REVIEWED

PLACES = {"w1": "Waldo Lake", "b1": "Bobby Lake"}


class Script:
    """Says its lines one after another, whoever asks."""

    name, instructable = "script", True

    def __init__(self, *lines: str | Proposal | list[Proposal]) -> None:
        self._lines = list(lines)

    async def reply(self, _request: Request) -> Reply:
        line = self._lines.pop(0) if len(self._lines) > 1 else self._lines[0]
        if isinstance(line, str):
            return Reply(line)
        return Reply(proposals=tuple(line) if isinstance(line, list) else (line,))

    async def close(self) -> None:
        """Nothing is held."""


@tool(effect="read", redact=["ssn"], known_values={"place": PLACES})
async def look(place: str) -> dict[str, Any]:
    """Damage of a place."""
    return {"place": place, "name": PLACES[place], "damage_class": 3, "ssn": "123-45-6789"}


@tool(effect="read", known_values={"place": PLACES})
async def bridge(place: str) -> dict[str, Any]:
    """Rating of a bridge."""
    if place == "w1":
        raise Permanent("the service is gone")
    return {"place": place, "name": PLACES[place], "rating": 5}


@tool(effect="send", key="{to}")
async def notify(to: str) -> dict[str, Any]:
    """Tell somebody."""
    return {"told": to}


def see(tool_name: str, place: str) -> Proposal:
    return Proposal(tool_name, {"place": place})


def ask(request: str) -> Proposal:
    return Proposal("below", {"request": request})


def opened(below: Agent) -> Runtime:
    return Runtime.open("memory://", policy=parse_policy(OPEN), tools=[look, bridge, notify, delegation(below)])


async def test_results_that_are_shown_have_no_words_of_the_agent_that_was_asked() -> None:
    below = Agent(name="below", tools=("look",), default="look", semantic=False, max_retries=0)
    above = Agent(name="above", tools=("below",), default="below", semantic=False)
    runtime = opened(below)
    prose = "Waldo Lake is class 3. The old bridge was rebuilt by the army. The ssn is 123-45-6789."
    model = Script(ask("How is Waldo Lake?"), see("look", "Waldo Lake"), prose, "It is class 9.")
    async with Answers(runtime).turn("How is Waldo Lake?", agent=above) as turn:
        result = await run_turn(turn, model)
    assert result.status is TurnStatus.RENDERED
    assert "damage class: 3" in result.answer
    assert "army" not in result.answer
    assert "123-45-6789" not in result.answer
    await runtime.close()


async def test_what_a_tool_redacts_is_a_mark_where_a_person_is_asked_first() -> None:
    agent = Agent(name="one", tools=("look", "notify"), default=all_of("look", "notify"), semantic=False, max_retries=0)
    runtime = opened(Agent(name="below", tools=("look",), default="look", semantic=False))
    async with Answers(runtime).turn("How is Waldo Lake?", agent=agent) as turn:
        result = await run_turn(turn, Script(see("look", "Waldo Lake"), "Fine."))
    assert result.status is TurnStatus.ESCALATED
    assert "damage class: 3" in result.answer
    assert "123-45-6789" not in result.answer
    await runtime.close()


@pytest.mark.parametrize(("second", "ends"), [("Bobby Lake", TurnStatus.TOOL_FAILED), ("", TurnStatus.TOOL_FAILED)])
async def test_success_with_another_thing_makes_up_for_no_failure(second: str, ends: TurnStatus) -> None:
    needs = all_of("look", "bridge")
    below = Agent(name="below", tools=("look", "bridge"), default=needs, semantic=False, max_retries=0)
    above = Agent(name="above", tools=("below",), default="below", semantic=False, max_retries=0)
    runtime = opened(below)
    lines: list[str | Proposal | list[Proposal]] = [
        ask("How is Waldo Lake?"),
        [see("look", "Waldo Lake"), see("bridge", "Waldo Lake")],
        "I cannot tell.",
    ]
    if second:
        both = [see("look", second), see("bridge", second)]
        lines += [ask(f"How is {second}?"), both, "Bobby Lake is class 3 with a rating of 5."]
    async with Answers(runtime).turn("How is Waldo Lake?", agent=above) as turn:
        result = await run_turn(turn, Script(*lines, "Waldo Lake is class 3."))
    assert result.status is ends
    assert "the service is gone" in result.answer
    await runtime.close()


async def test_nothing_is_called_in_a_turn_that_has_ended() -> None:
    runtime = opened(Agent(name="below", tools=("look",), default="look", semantic=False))
    agent = Agent(name="one", tools=("look", "notify"), default="look", semantic=False)
    async with Answers(runtime).turn("How is Waldo Lake?", agent=agent) as turn:
        await turn.propose([see("look", "Waldo Lake")])
        assert isinstance(await turn.finish("Waldo Lake is class 3."), TurnResult)
        with pytest.raises(NotAllowed, match="has ended"):
            await turn.propose([Proposal("notify", {"to": "crew"})])
    await runtime.close()


async def test_prose_beside_any_call_does_not_leave_though_nothing_is_needed() -> None:
    runtime = opened(Agent(name="below", tools=("look",), default="look", semantic=False))
    prose = "The old bridge was rebuilt by the army and everybody can cross."
    async with Answers(runtime).turn("Is the bridge safe?", agent=Agent(name="one", tools=("look",))) as turn:
        await turn.propose([see("look", "Waldo Lake")])
        assert isinstance(await turn.finish(prose), Again)
        result = await turn.finish(prose)
    assert isinstance(result, TurnResult)
    assert prose not in result.answer
    await runtime.close()


async def test_a_question_of_a_model_cannot_say_what_was_done() -> None:
    runtime = opened(Agent(name="below", tools=("look",), default="look", semantic=False))
    agent = Agent(name="one", tools=("look", "notify"), default="look", semantic=False)
    for question, leaves in (("I have notified the crew. Anything else?", False), ("Which lake do you mean?", True)):
        async with Answers(runtime).turn("How is it?", agent=agent) as turn:
            result = await turn.ask(question)
        assert result.status is TurnStatus.ASKED
        assert (question in result.answer) == leaves
    await runtime.close()


async def wait_below(runtime: Runtime, above: Agent) -> tuple[str, TurnResult]:
    """A turn whose specialist has proposed what a person has to allow."""
    model = Script(ask("Tell the crew."), Proposal("notify", {"to": "crew"}), "It waits for a person.")
    async with Answers(runtime).turn("Tell the crew.", agent=above) as turn:
        return turn.id, await run_turn(turn, model)


@pytest.mark.parametrize("approve", [True, False])
async def test_what_was_decided_below_is_known_above(approve: bool) -> None:
    below = Agent(name="below", tools=("notify",), default="notify", semantic=False, max_retries=0)
    above = Agent(name="above", tools=("below",), default="below", semantic=False, max_retries=0)
    runtime = Runtime.open("memory://", policy=parse_policy(REVIEWED), tools=[notify, delegation(below)])
    turn_id, left = await wait_below(runtime, above)
    assert left.status is TurnStatus.WAITING
    async with Answers(runtime).reopen(turn_id, agent=above) as turn:  # nobody has decided yet
        waits = await run_turn(turn, Script("The crew was told."))
    assert (waits.status, waits.ticket) == (TurnStatus.WAITING, left.ticket)
    await Answers(runtime).decide(left.ticket or "", approve=approve, by="user:boss", reason="NO, never.")
    async with Answers(runtime).reopen(turn_id, agent=above) as turn:
        done = await run_turn(turn, Script("The crew was notified."))
    if approve:
        assert (done.outcome, done.verified) == (TurnOutcome.PASSED, True)
        assert [(effect.tool, effect.state) for effect in done.effects] == [("notify", EffectState.DONE)]
    else:
        assert done.status is TurnStatus.TOOL_FAILED
        assert "user:boss denied it: NO, never" in done.answer
    await runtime.close()
