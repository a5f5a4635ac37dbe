"""Answers that cite: `{f12}` is printed from the result, and checked like any other figure."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Runtime, tool
from interlock.answers import Agent, Answers, TurnStatus, run_turn
from interlock.answers.citations import list_facts, number_facts, print_citations
from interlock.answers.grounding import Source
from interlock.answers.grounding.kept_evidence import KeptEvidence
from interlock.answers.requirements import need
from interlock.models import Proposal, Reply, Request
from interlock.policy import parse_policy
from tests.test_turns import OPEN

TRAILS = {
    "trails": [
        {"fee_usd": 12, "length_km": 32.4, "name": "Waldo Lake", "trail_id": "waldo-3536"},
        {"fee_usd": 0, "length_km": 7.2, "name": "Bobby Lake", "trail_id": "bobby-3526"},
    ]
}
FACTS = number_facts([Source("record 2", {"value": TRAILS})], None, 10**6)
NAMES = {(fact.about, fact.field): fact.name for fact in FACTS}
LONG, SHORT, FEE = (NAMES["waldo lake", "length_km"], NAMES["bobby lake", "length_km"], NAMES["waldo lake", "fee_usd"])


def test_every_value_of_a_result_has_a_number_a_unit_a_thing_and_a_path() -> None:
    fact = next(fact for fact in FACTS if fact.name == LONG)
    assert (fact.text, fact.unit, fact.field, fact.about) == ("32.4", "km", "length_km", "waldo lake")
    assert (fact.source, fact.path) == ("record 2", "$.value.trails[0].length_km")
    assert [fact.name for fact in FACTS] == [f"f{n}" for n in range(1, len(FACTS) + 1)]
    assert f"{{{LONG}}} waldo lake, length km: 32.4 km" in list_facts(FACTS)


def test_numbers_stay_when_more_is_returned() -> None:
    more = number_facts([Source("record 2", {"value": TRAILS}), Source("record 3", {"value": {"x": 5}})], None, 10**6)
    assert more[: len(FACTS)] == FACTS
    assert len(more) == len(FACTS) + 1


def test_numbers_stay_when_what_comes_later_is_read_first() -> None:
    """What a child turn returns stands before what its parent has read."""
    kept, mine = KeptEvidence(), Source("record 2", {"value": TRAILS})
    told = number_facts([mine], None, 10**6, kept=kept)
    later = number_facts([Source("record 5", {"value": {"length_km": 9.9}}), mine], None, 10**6, kept=kept)
    assert {fact.name: fact.text for fact in told}.items() <= {fact.name: fact.text for fact in later}.items()
    assert len({fact.name for fact in later}) == len(told) + 1


@pytest.mark.parametrize(
    ("draft", "question", "printed"),
    [
        (f"It is {{{LONG}}} miles long.", "How long is it?", "It is 20.13 miles long."),
        (f"It is {{{LONG}}} km long.", "How many miles is it?", "It is 32.4 km long."),
        (f"It is {{{LONG}}} hours long.", "How long is it?", f"It is {{{LONG}}} hours long."),
        (f"It is {{{LONG} in miles}} km long.", "How long is it?", f"It is {{{LONG} in miles}} km long."),
        (f"It is {{{LONG}}} long.", "How long is it?", "It is 32.4 km long."),
        (f"It is {{{LONG}}} km long.", "How long is it?", "It is 32.4 km long."),
        (f"It is {{{LONG}}} long.", "How many miles is it?", "It is 20.13 miles long."),
        (f"It is {{{LONG} in m}} long.", "How long is it?", "It is 32,400 m long."),
        (f"The fee is {{{FEE}}}.", "What does it cost?", "The fee is $12."),
        ("It is {f999} long.", "How long is it?", "It is {f999} long."),
        ("Keep {this} and {f}.", "", "Keep {this} and {f}."),
        (f"It is {{{LONG}}} long.", "How long is it in winter?", "It is 32.4 km long."),
    ],
)
def test_a_reference_is_printed_in_the_unit_that_is_asked_for(draft: str, question: str, printed: str) -> None:
    assert print_citations(draft, FACTS, question) == printed


def test_what_somebody_else_says_is_marked_where_it_is_printed() -> None:
    facts = number_facts(
        [Source("record 1", {"value": {"rent_usd": 2950}}, tool="read_mail", trusted=False)], None, 999
    )
    assert print_citations("The rent is {f1}.", facts, "") == "The rent is $2950 (according to read_mail)."


class Drafting:
    """Calls once, then gives its drafts one after another; keeps what it was told."""

    name, instructable = "drafting", True

    def __init__(self, *drafts: str) -> None:
        self._drafts, self.told = list(drafts), list[str]()

    async def reply(self, request: Request) -> Reply:
        self.told.append(request.instructions)
        if not any(message.role == "tool" for message in request.messages):
            return Reply(proposals=(Proposal("list_trails", {}),))
        return Reply(text=self._drafts.pop(0) if len(self._drafts) > 1 else self._drafts[0])

    async def close(self) -> None:
        pass


async def answer(model: Drafting) -> Any:
    @tool(effect="read")
    async def list_trails() -> dict[str, Any]:
        """All trails with their length."""
        return TRAILS

    agent = Agent(name="trails", tools=("list_trails",))
    async with Runtime.open("memory://", policy=parse_policy(OPEN), tools=[list_trails]) as runtime:
        question, requires = "How long is Waldo Lake?", need("list_trails")
        async with Answers(runtime).turn(question, agent=agent, requires=requires) as turn:
            return await run_turn(turn, model)


async def test_a_model_that_can_be_told_is_told_the_facts_and_its_references_are_printed() -> None:
    model = Drafting(f"Waldo Lake is {{{LONG}}} long.")
    result = await answer(model)
    assert (result.status, result.answer) == (TurnStatus.VERIFIED, "Waldo Lake is 32.4 km long.")
    [claim] = [claim for claim in result.claims if claim.kind == "number"]
    assert (result.answer[claim.start : claim.end], claim.fact) == ("32.4 km", LONG)
    assert (claim.source, claim.path) == ("record 2", "$.value.trails[0].length_km")
    assert "Facts that the tools have returned" not in model.told[0]
    assert f"{{{LONG}}} waldo lake" in model.told[1]


@pytest.mark.parametrize("wrong", [f"Waldo Lake is {{{SHORT}}} long.", "Waldo Lake is {f999} long.", "It is {f0}."])
async def test_a_reference_to_another_thing_or_to_nothing_is_held(wrong: str) -> None:
    result = await answer(Drafting(wrong))
    assert result.status is TurnStatus.RENDERED
    assert "{f" not in result.answer


async def test_a_figure_without_a_reference_is_checked_and_has_the_number_of_its_fact() -> None:
    result = await answer(Drafting("Waldo Lake is 32.4 km long."))
    assert result.status is TurnStatus.VERIFIED
    assert [claim.fact for claim in result.claims if claim.kind == "number"] == [LONG]
