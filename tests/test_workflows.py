"""Ways of working: budgets reserved on the path, tools by phase, synthesis only when it is due, an honest end when short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from interlock import Result, Runtime, tool
from interlock.answers import Agent, Answers, TurnResult, all_of, run_turn
from interlock.answers.presets import ingest, quick_lookup, research
from interlock.answers.work.plans import is_plan
from interlock.answers.workflows import Done, Phase, SourceRead, Workflow, WorkflowState, advance, workflow_prompt
from interlock.errors import Permanent
from interlock.models import Proposal, Reply, Request
from interlock.policy import parse_policy
from interlock.ports import Query
from tests.growth import LINEAR, growth

OPEN = 'version = 1\nmode = "apply"\n[review]\nvouched = ["user"]\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n'


def opened() -> Runtime:
    @tool(effect="read")
    async def search(query: str) -> list[str]:
        """Find pages."""
        return [f"https://{host}.example/{query}" for host in ("a", "b", "c", "d")]

    @tool(effect="read")
    async def access(url: str, question: int = 0) -> Result[dict[str, Any]]:
        """Read a page."""
        if "broken" in url:
            raise Permanent("it does not answer")
        host = url.split("/")[2]
        text = f"The survey of {host} counts the glaciers there: 37 of them, and their number falls every year."
        return Result(value={"url": url, "glaciers": 37, "text": text}, sources=(url,))

    @tool(effect="send", key="{text}")
    async def keep(text: str) -> bool:
        """Keep a note."""
        return True

    return Runtime.open("memory://", policy=parse_policy(OPEN), tools=[search, access, keep])


AGENT = Agent(name="argo", tools=("search", "access", "keep"), semantic=False)
PLAN = "1. How many glaciers are there?\n2. Does their number fall?"
RESEARCH = research(("search",), ("access",))


class Model:
    """Answers by a function of the request and how often it was asked."""

    name, instructable = "scripted", True

    def __init__(self, say: Callable[[int, Request], Reply]) -> None:
        self.requests: list[Request] = []
        self._say = say

    async def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        return self._say(len(self.requests), request)

    async def close(self) -> None:
        pass


def call(name: str, **arguments: Any) -> Reply:
    return Reply(proposals=(Proposal(name, arguments),))


async def run(work: Workflow, say: Callable[[int, Request], Reply]) -> tuple[TurnResult, Model, Runtime]:
    runtime, model = opened(), Model(say)
    async with Answers(runtime).turn(
        "How many glaciers are there?", agent=AGENT, requires=all_of(), workflow=work
    ) as turn:
        result = await run_turn(turn, model)
    assert len(model.requests) <= turn.most_replies
    return result, model, runtime


async def calls(runtime: Runtime) -> list[tuple[str, str]]:
    return [(r.tool, r.status) async for r in runtime.store.records(Query()) if r.kind == "call"]


def phase_of(request: Request) -> str:
    return request.instructions.rpartition("Phase now: ")[2].partition(".")[0]


def reads(n: int, request: Request) -> Reply:
    phase = phase_of(request)
    if phase == "plan":
        return Reply(PLAN)
    if phase == "read":
        return call("access", url=f"https://h{n}.example/x")
    return Reply("There are 37 glaciers.")


async def test_research_plans_then_reads_three_sources_then_writes() -> None:
    result, model, runtime = await run(RESEARCH, reads)
    assert result.verified
    assert result.answer == "There are 37 glaciers."
    assert [phase_of(r) for r in model.requests] == ["plan", "read", "read", "read", "synthesis"]
    assert [len(r.tools) for r in model.requests] == [0, 2, 2, 2, 0]
    assert "Different sources read: 2 of 3" in model.requests[3].instructions
    await runtime.close()


async def test_an_agent_has_a_way_of_working_of_its_own() -> None:
    runtime, model = opened(), Model(reads)
    agent = msgspec.structs.replace(AGENT, workflow=RESEARCH)
    async with Answers(runtime).turn("How many glaciers are there?", agent=agent, requires=all_of()) as turn:
        await run_turn(turn, model)
    assert phase_of(model.requests[0]) == "plan"
    await runtime.close()


async def test_a_synthesis_before_its_time_is_not_taken() -> None:
    def hasty(n: int, request: Request) -> Reply:
        return Reply("There are 37 glaciers.") if n in (2, 4) else reads(n, request)

    result, model, runtime = await run(RESEARCH, hasty)
    assert result.verified
    assert [phase_of(r) for r in model.requests].count("read") == 5
    await runtime.close()


async def test_the_same_source_three_times_is_one_and_the_budget_ends_it_honestly() -> None:
    def same(n: int, request: Request) -> Reply:
        if phase_of(request) == "read":
            return call("access", url=f"https://one.example/{n}")
        return reads(n, request)

    result, _, runtime = await run(research(("search",), ("access",), calls=4), same)
    assert len([c for c in await calls(runtime) if c[0] == "access"]) == 4
    assert "partial answer: the 4 calls of research were used up, and 1 of 3 sources were read" in result.answer
    await runtime.close()


async def test_the_budget_is_reserved_before_a_call_is_made() -> None:
    def greedy(n: int, request: Request) -> Reply:
        if n == 1:
            return Reply(proposals=tuple(Proposal("access", {"url": f"https://h{i}.example/x"}) for i in range(6)))
        return Reply("There are 37 glaciers.")

    result, _, runtime = await run(quick_lookup(("search", "access")), greedy)
    assert result.verified
    done = await calls(runtime)
    assert [status for _, status in done].count("ok") == 2
    assert [status for _, status in done].count("denied") == 4
    await runtime.close()


async def test_a_model_that_only_talks_ends_in_a_partial_answer() -> None:
    def talks(n: int, request: Request) -> Reply:
        return Reply(PLAN) if phase_of(request) == "plan" else Reply("Let me look into that for you.")

    result, model, runtime = await run(RESEARCH, talks)
    assert "called none" in result.answer
    assert len(model.requests) < 10
    await runtime.close()


async def test_failures_in_a_row_and_a_tool_that_is_not_offered() -> None:
    def broken(n: int, request: Request) -> Reply:
        if phase_of(request) == "read":
            return call("keep", text="x") if n == 2 else call("access", url=f"https://broken.example/{n}")
        return reads(n, request)

    result, _, runtime = await run(RESEARCH, broken)
    assert ("keep", "denied") in await calls(runtime)
    assert "2 calls in a row came to nothing" in result.answer
    await runtime.close()


async def test_ingest_reads_keeps_and_confirms() -> None:
    def takes_in(n: int, request: Request) -> Reply:
        if n == 1:
            return call("access", url="https://a.example/x")
        kept = "The survey counts 37 glaciers, fewer every year."
        return call("keep", text=kept) if n == 2 else Reply("Kept: the survey counts 37 glaciers, fewer every year.")

    result, model, runtime = await run(ingest(("access",), ("keep",)), takes_in)
    assert result.verified
    assert phase_of(model.requests[-1]) == "confirm"
    await runtime.close()


async def test_what_a_model_is_told_is_what_is_enforced() -> None:
    for mode in (quick_lookup(("a",)), research(("s",), ("a",)), ingest(("a",), ("b",))):
        text = workflow_prompt(mode, WorkflowState(made=1))
        assert f"At most {mode.calls} tool calls in all; {mode.calls - 1} left" in text
        for name in mode.phases[0].tools:
            assert name in text
    assert (quick_lookup(()).calls, RESEARCH.calls, ingest(("a",), ("b",)).calls) == (2, 10, 3)


async def test_one_of_your_own() -> None:
    mine = Workflow(
        name="two looks", calls=5,
        phases=(Phase("look", "look twice", ("search",), Done(calls=2)), Phase("say", "say it", answers=True)),
    )  # fmt: skip

    def twice(n: int, request: Request) -> Reply:
        return call("search", query=f"q{n}") if n < 3 else Reply("There are four pages.")

    result, _, runtime = await run(mine, twice)
    assert result.verified
    await runtime.close()


def source(number: int, *questions: int) -> SourceRead:
    return SourceRead(number, "a", f"https://h{number}.example/", f"h{number}.example", f"d{number}", questions)


def test_phases_only_go_forward() -> None:
    mode = research(("s",), ("a",))
    three = tuple(source(n, 1) for n in range(3))

    def now(state: WorkflowState) -> int:
        return advance(mode, state)

    assert now(WorkflowState()) == 0
    assert now(WorkflowState(plan=True)) == 1
    assert now(WorkflowState(read=three)) == 0
    assert now(WorkflowState(plan=True, questions=("one?",), read=three)) == 2
    assert now(WorkflowState(plan=True, questions=("one?", "two?"), read=three)) == 1
    assert now(WorkflowState(place=2)) == 2
    assert msgspec.json.decode(msgspec.json.encode(mode), type=Workflow) == mode


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (PLAN, True),
        ("- a\n- b", True),
        ("<plan>find it</plan>", True),
        ("</plan><plan>a<plan>b</research_plan>", True),
        ("<plan></plan>", False),
        ("</plan>look<plan>", False),
        ("I will look.", False),
        ("1. only one", False),
    ],
)
def test_what_a_plan_is(text: str, is_one: bool) -> None:
    assert is_plan(text) is is_one


@pytest.mark.parametrize("part", ["\n", " ", "<plan>", "- ", "1", "1.", "</plan>", "<plan>a</plan"])
def test_four_times_the_reply_takes_about_four_times_as_long_to_tell_a_plan(part: str) -> None:
    assert growth(lambda size: is_plan(part * (size // len(part))), 20_000) < LINEAR
