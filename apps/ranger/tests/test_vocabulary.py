"""Words of forestry belong to RANGER: its agents know them, and everyday English does not."""

from __future__ import annotations

from decimal import Decimal

import pytest

from interlock import Runtime
from interlock.answers import Answers, App, TurnResult, TurnStatus, run_turn
from interlock.answers.grounding import Source, default_vocabulary, ground
from interlock.models import Proposal, Reply, Request
from interlock_ranger.agents import ranger_vocabulary

QUESTION = "How much timber volume is on Cedar Creek?"


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("4,500 MBF", 4_500, "mbf"),
        ("4,500 thousand board feet", 4_500_000, "board_foot"),
        ("4.5 MMBF", "4.5", "mmbf"),
        ("312 board feet", 312, "board_foot"),
        ("312 bf", 312, "board_foot"),
        ("12 CCF", 12, "ccf"),
    ],
)
def test_units_of_timber_are_recognised(text: str, number: int | str, unit: str) -> None:
    (claim,) = ranger_vocabulary().claims(f"The stand holds {text}.")
    assert claim.number == Decimal(number)
    assert unit in claim.units
    assert all(unit not in claim.units for claim in default_vocabulary().claims(f"The stand holds {text}."))


@pytest.mark.parametrize("citation", ["FSH 1909.15", "FSM 2520", "FSH 2409.12"])
def test_directives_of_the_forest_service_are_citations(citation: str) -> None:
    (claim,) = ranger_vocabulary().claims(f"It follows {citation} in every point.")
    assert (claim.kind, claim.text) == ("citation", citation)
    assert all(claim.kind != "citation" for claim in default_vocabulary().claims(f"It follows {citation}."))


def test_every_agent_has_them(app: App) -> None:
    assert all(agent.vocabulary is ranger_vocabulary() for agent in app.agents)


def test_a_figure_is_traced_by_its_unit() -> None:
    """14,400 stands in the record in MBF: it supports MBF, and neither acres nor board feet."""
    record = Source("record 1", {"total_net_mbf": 14_400, "acres": 3_200})

    def supports(answer: str) -> bool:
        return ground(answer, [record], ranger_vocabulary()).is_supported

    assert supports("There are 14,400 MBF on 3,200 acres.")
    assert not supports("There are 14,400 acres.")
    assert not supports("There are 3,200 MBF.")
    assert not supports("There are 14,400 board feet.")


class Teller:
    """Estimates the volume of Cedar Creek, and says of it what it was told to say."""

    name, instructable = "teller", True

    def __init__(self, unit: str) -> None:
        self._unit = unit

    async def reply(self, request: Request) -> Reply:
        results = [message.result for message in request.messages if message.role == "tool"]
        if not results:
            return Reply(proposals=(Proposal("estimate_volume", {"fire_id": "cedar-creek-2022"}),))
        total = results[0]["value"]["total_net_mbf"]
        return Reply(f"SYNTHETIC DATA. Cedar Creek holds {total:,.0f} {self._unit}.")

    async def close(self) -> None:
        return


async def ask(app: App, runtime: Runtime, unit: str) -> TurnResult:
    async with Answers(runtime).turn(QUESTION, agent=app.agent("cruising_assistant")) as turn:
        return await run_turn(turn, Teller(unit))


async def test_an_answer_in_mbf_is_verified_and_one_in_the_wrong_unit_is_not(app: App, runtime: Runtime) -> None:
    right = await ask(app, runtime, "MBF")
    assert right.status is TurnStatus.VERIFIED
    (claim,) = right.claims
    assert claim.text.endswith("MBF")
    assert claim.path.endswith("total_net_mbf")
    for unit in ("board feet", "acres", "CCF"):
        wrong = await ask(app, runtime, unit)
        assert f"{unit}." not in wrong.answer, unit
        assert wrong.status is not TurnStatus.VERIFIED
