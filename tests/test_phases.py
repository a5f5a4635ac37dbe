"""Phases and budgets hold whoever calls: a model's loop, a program's own, a forced call, another agent, ADK."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import Outcome, Result, Runtime, Tool, tool
from interlock.answers import Again, Agent, Answers, Turn, TurnResult, TurnStatus, all_of, delegation, need, run_turn
from interlock.answers.constrained import constrain
from interlock.answers.events import PhaseBegun, Planned, Sourced, Talked, event_of
from interlock.answers.presets import ingest, quick_lookup, research
from interlock.answers.runner import PhaseEntered, PlanMade, Progress, SourceFound
from interlock.answers.workflows import Done, Phase, SourceRule, Workflow
from interlock.errors import ConfigError, NotAllowed
from interlock.models import Proposal, Reply, Request
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock.testing import BEHAVIOURS, FirstChoice, ManualClock, Script, make_scripted
from tests.conftest import expect
from tests.test_turns import OPEN

PLAN = "1. How deep is the lake?\n2. How old is the lake?"
ANSWER = "The lake is 594 m deep and 7700 years old."
WORK = research(("search",), ("access",))
AGENT = Agent(name="reader", tools=("search", "access", "keep"), semantic=False, deadline_s=20)


def tools(ran: list[str] | None = None) -> list[Tool]:
    count = [] if ran is None else ran

    @tool(effect="read")
    async def search(query: str) -> Result[list[str]]:
        """Find pages."""
        count.append(f"search {query}")
        hits = tuple(f"https://{host}.example/" for host in ("a", "b", "c"))
        return Result(value=list(hits), sources=hits)

    @tool(effect="read")
    async def access(url: str, question: str = "") -> Result[dict[str, Any]]:
        """Read a page."""
        count.append(f"access {url}")
        text = f"According to {url} the lake is 594 m deep, and it is 7700 years old, which was found in 1886."
        return Result(value={"url": url, "text": text}, sources=(url,))

    @tool(effect="send", key="{text}")
    async def keep(text: str) -> bool:
        """Keep a note."""
        count.append(f"keep {text}")
        return True

    return [search, access, keep]


def opened(ran: list[str] | None = None, store: str = "memory://", *more: Tool) -> Runtime:
    return Runtime.open(store, policy=parse_policy(OPEN), tools=[*tools(ran), *more])


def turn_of(runtime: Runtime, workflow: Workflow = WORK, **details: Any) -> Turn:
    return Answers(runtime).turn(
        "How deep and old is the lake?", agent=AGENT, **{"requires": all_of(), **details}, workflow=workflow
    )


def fetch(number: int) -> Proposal:
    return Proposal("access", {"url": f"https://h{number}.example/x"})


async def calls(runtime: Runtime) -> list[tuple[str, str]]:
    return [(r.tool, r.status) async for r in runtime.store.records(Query()) if r.kind == "call"]


async def events(runtime: Runtime, turn: str) -> list[Any]:
    return [event_of(r) async for r in runtime.store.records(Query(turn=turn)) if r.kind == "turn"]


# Whoever calls


@pytest.mark.parametrize("how", ["call", "propose", "force", "force another"])
async def test_a_phase_that_offers_nothing_makes_no_call(how: str) -> None:
    ran: list[str] = []
    async with opened(ran) as runtime, turn_of(runtime) as turn:
        assert turn.tools == ()
        if how == "call":
            outcome = await turn.call("access", {"url": "https://a.example/"})
        else:
            only = {"propose": None, "force": "access", "force another": "search"}[how]
            (outcome,) = await turn.propose([fetch(1)], only=only)
        assert isinstance(outcome, Outcome)
        assert (outcome.status, outcome.problem and outcome.problem.reason) == ("denied", "not_offered")
        assert await calls(runtime) == [("access", "denied")]
    assert ran == []


async def test_a_tool_that_is_needed_is_not_forced_in_a_phase_that_does_not_have_it() -> None:
    ran: list[str] = []

    class Stubborn:
        name, instructable = "stubborn", True

        async def reply(self, request: Request) -> Reply:
            return Reply(proposals=(Proposal("keep", {"text": "x"}),))

        async def close(self) -> None:
            pass

    async with opened(ran) as runtime, turn_of(runtime, requires=need("keep")) as turn:
        result = await run_turn(turn, Stubborn())
    assert result.status is TurnStatus.ESCALATED
    assert ran == []


async def test_the_plan_and_the_calls_of_a_programs_own_loop_move_the_phase() -> None:
    async with opened() as runtime, turn_of(runtime) as turn:
        first = await turn.finish("The lake is deep.")
        assert isinstance(first, Again)
        assert "An answer is not taken in this phase." in first.prompt
        planned = await turn.finish(PLAN)
        assert isinstance(planned, Again)
        assert "Phase now: read." in planned.prompt
        assert planned.stays
        for number in (1, 2):
            assert (await turn.call("access", fetch(number).arguments)).ok
        held = await turn.finish(ANSWER)
        assert isinstance(held, Again)
        assert "Different sources read: 2 of 3." in held.prompt
        assert (await turn.call("access", fetch(3).arguments)).ok
        assert turn.phase is not None
        assert turn.phase.name == "synthesis"
        assert "Phase now: synthesis." in turn.instructions
        assert (await turn.call("access", fetch(4).arguments)).status == "denied"
        result = await turn.finish(ANSWER)
        found = await events(runtime, turn.id)
    assert isinstance(result, TurnResult)
    assert (result.status, result.answer) == (TurnStatus.VERIFIED, ANSWER)
    assert [e.questions for e in found if isinstance(e, Planned)] == [("How deep is the lake?", "How old is the lake?")]
    assert [e.name for e in found if isinstance(e, PhaseBegun)] == ["read", "synthesis"]
    assert [(e.site, e.questions) for e in found if isinstance(e, Sourced)] == [
        (f"h{n}.example", (1, 2)) for n in (1, 2, 3)
    ]
    assert sum(isinstance(e, Talked) for e in found) == 2


async def test_a_turn_in_another_process_stands_where_the_records_say(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'l.db'}"
    async with opened(store=store) as runtime, turn_of(runtime) as turn:
        await turn.finish(PLAN)
        await turn.call("access", fetch(1).arguments)
        await turn.finish("Let me look into that.")
        await turn.ask("which lake?")
    async with opened(store=store) as runtime, Answers(runtime).reopen(turn.id, agent=AGENT, reply="this one") as again:
        assert again.phase is not None
        assert (again.phase.name, again.work and again.work.state.idle) == ("read", 1)
        assert [tool.name for tool in again.tools] == ["search", "access"]
        # The first turn knows nothing of these calls but by the ledger.
        async with Answers(runtime).reopen(turn.id, agent=AGENT) as other:
            await other.propose([fetch(2), fetch(3)])
        assert (await again.call("search", {"query": "x"})).status == "denied"
        assert again.phase.name == "synthesis"


async def test_a_program_that_repeats_one_call_is_stopped_at_the_budget() -> None:
    ran: list[str] = []
    async with opened(ran) as runtime, turn_of(runtime, quick_lookup(("search", "access"))) as turn:
        for _ in range(30):
            await turn.call("search", {"query": "x"})
        assert len(ran) == 1  # the same read again is answered from its record
        outcomes = [await turn.call("search", {"query": f"x{n}"}) for n in range(30)]
    assert (len(ran), sum(outcome.ok for outcome in outcomes)) == (2, 1)


async def test_calls_side_by_side_stay_within_the_budget() -> None:
    ran: list[str] = []
    async with opened(ran) as runtime, turn_of(runtime, quick_lookup(("search", "access"))) as turn:
        await asyncio.gather(*(turn.call("search", {"query": f"q{n}"}) for n in range(12)))
    assert len(ran) == 2


async def test_what_is_delegated_spends_the_budget_of_the_turn_above() -> None:
    ran: list[str] = []
    below = Agent(name="helper", tools=("search",), semantic=False)
    above = msgspec.structs.replace(AGENT, tools=("helper",), workflow=quick_lookup(("helper",), calls=3))

    class Model:
        name, instructable = "scripted", True

        def __init__(self) -> None:
            self.asked = 0

        async def reply(self, request: Request) -> Reply:
            self.asked += 1
            if "You are helper" in request.instructions:
                return Reply(proposals=(Proposal("search", {"query": f"q{self.asked}"}),))
            return Reply(proposals=(Proposal("helper", {"request": f"look {self.asked}"}),))

        async def close(self) -> None:
            pass

    async with (
        opened(ran, "memory://", delegation(below)) as runtime,
        Answers(runtime).turn("How deep?", agent=above, requires=all_of()) as turn,
    ):
        await run_turn(turn, Model())
    assert 1 <= len(ran) < 3


async def test_another_agents_own_way_of_working_is_counted_for_each_turn_of_it() -> None:
    ran: list[str] = []
    below = Agent(name="helper", tools=("search",), semantic=False, workflow=quick_lookup(("search",), calls=1))
    async with opened(ran) as runtime, Answers(runtime).turn("How deep?", agent=AGENT, requires=all_of()) as turn:
        for number in range(3):
            async with turn.child(below, f"look {number}") as child:
                assert (await child.call("search", {"query": f"q{number}"})).ok
                assert (await child.call("search", {"query": f"r{number}"})).status == "denied"
    assert len(ran) == 3


async def test_what_another_agent_has_fetched_is_a_source_of_the_turn_that_asked() -> None:
    below = Agent(name="helper", tools=("access",), semantic=False)
    async with opened() as runtime, turn_of(runtime) as turn:
        await turn.finish(PLAN)
        for number in range(3):
            async with turn.child(below, "How old is the lake?") as child:
                await child.call("access", fetch(number).arguments)
                await child.finish("The lake is 7700 years old.")
        assert isinstance(await turn.finish("So far so good."), Again)
        assert turn.phase is not None
        assert turn.phase.name == "synthesis"


async def test_a_partial_answer_of_another_agent_makes_this_one_partial() -> None:
    below = msgspec.structs.replace(AGENT, name="helper", workflow=WORK)
    async with opened() as runtime, Answers(runtime).turn("How deep?", agent=AGENT, requires=all_of()) as turn:
        async with turn.child(below, "How deep is the lake?") as child:
            await child.finish(PLAN)
            await child.call("access", fetch(1).arguments)
            await child.call("access", {"url": 1})
            await child.call("access", {"url": 2})
            inner = await child.finish("The lake is 594 m deep.")
        result = await turn.finish("The lake is 594 m deep.")
    assert isinstance(inner, TurnResult)
    assert isinstance(result, TurnResult)
    assert (inner.status, result.status, result.verified) == (TurnStatus.PARTIAL, TurnStatus.PARTIAL, False)
    assert "helper gave only a partial answer" in result.gaps


# Every model that misbehaves, in every way of working that is ready

SCRIPT = Script(
    "access", {"url": "https://a.example/x"}, "The lake is 594 m deep.", other="search", elsewhere={"url": "x"}
)
PRESETS = {
    "quick": quick_lookup(("search", "access")),
    "research": WORK,
    "ingest": ingest(("access",), ("keep",)),
}


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", BEHAVIOURS)
async def test_whatever_the_model_does_it_ends_within_its_budgets(name: str, preset: str, required: bool) -> None:
    ran: list[str] = []
    work, model = PRESETS[preset], make_scripted(name, SCRIPT)
    agent = AGENT if name != "hangs" else msgspec.structs.replace(AGENT, deadline_s=0.2)
    requires = need("access") if required else all_of()
    async with opened(ran) as runtime:
        async with Answers(runtime).turn(
            "How deep is the lake?", agent=agent, requires=requires, workflow=work
        ) as turn:
            result = await run_turn(turn, model)
        assert len(ran) <= work.calls
        assert model.calls <= turn.most_replies
        assert "class 9" not in result.answer
        assert "fair condition" not in result.answer
        if preset != "quick":  # none of them plans, or keeps what it has read
            assert result.status not in (TurnStatus.VERIFIED, TurnStatus.RENDERED)
            assert not result.verified


# A plan that is worked off


class Researcher:
    """Plans, reads what it was given in order, and writes."""

    name, instructable = "researcher", True

    def __init__(self, *urls: str, answer: str = ANSWER, plan: str = PLAN) -> None:
        self.urls, self.answer, self.plan = list(urls), answer, plan
        self.asked: list[Request] = []

    async def reply(self, request: Request) -> Reply:
        self.asked.append(request)
        if "Phase now: plan." in request.instructions:
            return Reply(self.plan)
        if "Phase now: read." in request.instructions and self.urls:
            return Reply(proposals=(Proposal("access", {"url": self.urls.pop(0)}),))
        return Reply(self.answer)

    async def close(self) -> None:
        pass


URLS = tuple(f"https://h{n}.example/x" for n in range(3))


async def research_with(model: Researcher, *more: Tool, **terms: Any) -> tuple[TurnResult, list[Progress]]:
    seen: list[Progress] = []
    workflow = research(("search",), ("access",), **terms)
    async with (
        Runtime.open("memory://", policy=parse_policy(OPEN), tools=more or tools()) as runtime,
        turn_of(runtime, workflow) as turn,
    ):
        return await run_turn(turn, model, watch=seen.append), seen


async def test_whoever_watches_is_told_the_phase_the_plan_and_each_source() -> None:
    result, seen = await research_with(Researcher(*URLS))
    assert result.verified
    phases = [(p.name, p.number, p.of) for p in seen if isinstance(p, PhaseEntered)]
    assert phases == [("plan", 1, 3), ("read", 2, 3), ("synthesis", 3, 3)]
    assert [p.questions for p in seen if isinstance(p, PlanMade)] == [("How deep is the lake?", "How old is the lake?")]
    found = [(p.source.name, p.distinct, p.wanted) for p in seen if isinstance(p, SourceFound)]
    assert found == [(url, number, 3) for number, url in enumerate(URLS, 1)]


async def test_a_claim_is_as_sure_as_the_distinct_sources_that_say_it() -> None:
    result, _ = await research_with(Researcher(*URLS), rule=SourceRule(("h1.example",)))
    deep = next(claim for claim in result.claims if claim.text.startswith("594"))
    assert deep.sites == ("h0.example", "h1.example", "h2.example")
    assert deep.confidence == result.confidence == 1 - 0.5 * 0.25 * 0.5
    assert result.status is TurnStatus.VERIFIED


async def test_a_model_types_no_confidence_and_one_source_is_half_sure() -> None:
    def page(number: int) -> str:
        return "The lake is 594 m deep, they say there." if number == 1 else "The lake is 7700 years old, they all say."

    @tool(effect="read")
    async def access(url: str) -> Result[str]:
        """Read a page."""
        number = int(url.removeprefix("https://h")[0])
        return Result(value=f"{page(number)} So writes {url} at length.", sources=(url,), metadata={"confidence": 1.0})

    said = "The lake is 594 m deep and 7700 years old."
    result, _ = await research_with(Researcher(*URLS, answer=said), access, *tools()[::2])
    sure = {claim.text.split()[0]: (len(claim.sites), claim.confidence) for claim in result.claims}
    assert sure == {"594": (1, 0.5), "7700": (2, 0.75)}
    assert result.confidence == 0.5


async def test_a_sub_question_without_a_source_is_a_gap_that_the_answer_names() -> None:
    plan = f"{PLAN}\n3. Which fish were stocked by the ranger in spring?"
    result, _ = await research_with(Researcher(*URLS, plan=plan), calls=3)
    assert (result.status, result.partial, result.verified) == (TurnStatus.PARTIAL, True, False)
    assert result.gaps == (
        "1 of 3 sub-questions has no source",
        "no source: “Which fish were stocked by the ranger in spring?”",
    )
    assert result.answer.startswith(ANSWER)
    assert (
        "Note: this is a partial answer: the 3 calls of research were used up, and 1 of 3 sub-questions has no source;"
        " no source was read for “Which fish were stocked by the ranger in spring?”"
    ) in result.answer


async def test_what_a_plan_claims_does_not_leave_in_the_note_about_it() -> None:
    plan = f"{PLAN}\n3. Why did 4321 fish die in the flood of 1999?"
    result, _ = await research_with(Researcher(*URLS, plan=plan), calls=3)
    assert result.partial
    assert "4321" not in result.answer
    assert "no source: sub-question 3 of the plan" in result.gaps


@pytest.mark.parametrize(
    ("said", "covered"), [("3", True), (3, True), ("Which fish live in the bay?", True), ("4", False)]
)
async def test_a_model_may_say_which_sub_question_a_call_is_for(said: Any, covered: bool) -> None:
    @tool(effect="read")
    async def access(url: str, question: str | int = "") -> Result[str]:
        """Read a page."""
        fish = "trout and salmon that somebody put there; some of the fish are very large, and all of them are shy"
        return Result(value=f"{url}: {fish}", sources=(url,))

    plan = f"{PLAN}\n3. Which fish live in the northern bay?"
    async with (
        Runtime.open("memory://", policy=parse_policy(OPEN), tools=[access, *tools()[::2]]) as runtime,
        turn_of(runtime) as turn,
    ):
        await turn.finish(plan)
        await turn.call("access", {"url": "https://a.example/", "question": said})
        found = [event for event in await events(runtime, turn.id) if isinstance(event, Sourced)]
    assert [event.questions for event in found] == [(3,) if covered else ()]


async def test_what_a_model_says_a_page_is_for_counts_for_nothing_if_the_page_has_no_word_of_it() -> None:
    async with opened() as runtime, turn_of(runtime) as turn:
        await turn.finish(f"{PLAN}\n3. Which trout hatcheries closed?")
        await turn.call("access", {"url": "https://a.example/", "question": "3"})
        found = [event for event in await events(runtime, turn.id) if isinstance(event, Sourced)]
    assert [event.questions for event in found] == [(1, 2)]


async def test_a_turn_whose_time_is_up_while_it_reads_is_partial() -> None:
    clock = ManualClock()
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=tools(), clock=clock)
    async with runtime, turn_of(runtime) as turn:
        await turn.finish(PLAN)
        await turn.call("access", fetch(1).arguments)
        clock.advance(AGENT.deadline_s)
        result = await turn.finish("It is 594 m deep.")
    assert isinstance(result, TurnResult)
    assert (result.status, result.verified) == (TurnStatus.PARTIAL, False)
    assert "the turn ended before that, and 1 of 3 sources were read" in result.answer


async def test_the_plan_itself_never_leaves_as_an_answer() -> None:
    class Planner(Researcher):
        async def reply(self, request: Request) -> Reply:
            return Reply("1. The lake has 99 fish.\n2. The lake has 98 boats.")

    result, _ = await research_with(Planner())
    assert result.status is TurnStatus.PARTIAL
    assert "99" not in result.answer


# Taking something in


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("the page", "2 words are none"),
        ("LONG", "in at most half of its"),
        ("Bananas ripen fastest in brown paper bags near apples.", "most words of this do not stand in it"),
    ],
)
async def test_only_a_summary_of_what_was_read_is_kept(text: str, why: str) -> None:
    ran: list[str] = []
    page = "The lake is deep and old and clear. " * 20

    @tool(effect="read")
    async def read(path: str) -> str:
        """Read a file."""
        return page

    work = ingest(("read",), ("keep",))
    agent = msgspec.structs.replace(AGENT, tools=("read", "keep"))
    async with (
        opened(ran, "memory://", read) as runtime,
        Answers(runtime).turn("Keep lake.txt.", agent=agent, requires=all_of(), workflow=work) as turn,
    ):
        before = await turn.call("keep", {"text": "The lake is deep and old."})
        assert (before.status, ran) == ("denied", [])  # nothing was read yet
        assert (await turn.call("read", {"path": "lake.txt"})).ok
        outcome = await turn.call("keep", {"text": page if text == "LONG" else text})
        assert outcome.problem is not None
        assert why in outcome.problem.message
        assert ran == []


async def test_a_summary_is_kept_and_confirmed_in_three_calls() -> None:
    ran: list[str] = []
    async with opened(ran) as runtime, turn_of(runtime, PRESETS["ingest"]) as turn:
        await turn.call("access", fetch(1).arguments)
        held = await turn.finish("I have kept it.")
        assert isinstance(held, Again)
        assert "Phase now: keep." in held.prompt
        kept = "The lake is 594 m deep and 7700 years old."
        assert (await turn.call("keep", {"text": kept})).ok
        result = await turn.finish(f"Kept: {kept}")
    assert isinstance(result, TurnResult)
    assert result.status is TurnStatus.VERIFIED
    assert len(ran) == 2


async def test_what_was_not_kept_is_not_said_to_be_taken_in() -> None:
    async with opened() as runtime, turn_of(runtime, PRESETS["ingest"]) as turn:
        await turn.call("access", fetch(1).arguments)
        while not isinstance(step := await turn.finish("The page was taken in."), TurnResult):
            pass
    assert (step.status, step.verified) == (TurnStatus.PARTIAL, False)
    assert "0 of 1 calls succeeded" in step.gaps


# A model that can only choose


async def test_a_model_that_can_only_choose_plans_with_the_parts_of_the_question() -> None:
    async with opened() as runtime:
        question = "How deep is the lake? How old is it; and who found it?"
        async with Answers(runtime).turn(question, agent=AGENT, requires=need("access"), workflow=WORK) as turn:
            result = await run_turn(turn, constrain(FirstChoice()))
            task = (await turn.task()).work
        found = [event.questions for event in await events(runtime, turn.id) if isinstance(event, Planned)]
    assert found == [("How deep is the lake?", "How old is it?", "and who found it?")]
    assert not result.verified
    assert task is not None
    assert (task.phase, task.plan, task.answers) == ("synthesis", False, True)


async def test_a_model_is_told_as_values_where_the_work_stands() -> None:
    model = Researcher(*URLS)
    await research_with(model)
    tasks = [expect(expect(request.task).work) for request in model.asked]
    assert [(task.phase, task.plan, len(task.sources), task.calls_left) for task in tasks] == [
        ("plan", True, 0, 10), ("read", False, 0, 10), ("read", False, 1, 9), ("read", False, 2, 8), ("synthesis", False, 3, 7),
    ]  # fmt: skip
    assert [task.open_questions for task in tasks] == [(), (1, 2), (), (), ()]


async def test_a_turn_whose_way_of_working_is_none_any_more_says_so(tmp_path: Path) -> None:
    work, store = research(("search",), ("access",)), f"sqlite:///{tmp_path / 'l.db'}"
    msgspec.structs.force_setattr(work.phases[1].done, "of", ())  # as it could be written once
    async with opened(store=store) as runtime, turn_of(runtime, work) as turn:
        await turn.ask("which lake?")
    async with opened(store=store) as runtime:
        with pytest.raises(NotAllowed, match=r"with what is no way of working any more: .*; open a new one"):
            await Answers(runtime).reopen(turn.id, agent=AGENT, reply="this one")


# By name


async def test_an_agent_offers_ways_of_working_by_name() -> None:
    agent = msgspec.structs.replace(AGENT, works=tuple(PRESETS.values()), workflow=PRESETS["quick"])
    async with opened() as runtime:
        answers = Answers(runtime)
        turn = answers.turn("How deep?", agent=agent, requires=all_of(), work="research")
        assert turn.asked.workflow == WORK
        assert answers.turn("How deep?", agent=agent, requires=all_of()).asked.workflow == PRESETS["quick"]
        async with answers.session("s").turn("How deep?", agent=agent, requires=all_of(), work="ingest") as turn:
            assert turn.phase is not None
            assert turn.phase.name == "read"
        with pytest.raises(ConfigError, match="has no way of working 'deep'; it offers ingest, quick, research"):
            answers.turn("How deep?", agent=agent, work="deep")
        with pytest.raises(ConfigError, match="give work= or workflow=, not both"):
            answers.turn("How deep?", agent=agent, work="quick", workflow=WORK)
        with pytest.raises(ConfigError, match=r"it offers none \(Agent.works\)"):
            answers.turn("How deep?", agent=AGENT, work="quick")


def test_two_ways_of_working_do_not_share_a_name() -> None:
    with pytest.raises(ConfigError, match="two of its ways of working have one name: quick, quick"):
        msgspec.structs.replace(AGENT, works=(PRESETS["quick"], PRESETS["quick"])).__post_init__()


async def test_conversation_needs_no_way_of_working() -> None:
    agent = msgspec.structs.replace(AGENT, workflow=WORK)
    async with opened() as runtime, Answers(runtime).turn("Hi, thanks a lot!", agent=agent) as turn:
        result = await turn.finish("Hello!")
    assert isinstance(result, TurnResult)
    assert result.status is TurnStatus.CONVERSATION


@pytest.mark.parametrize(
    ("phases", "why"),
    [
        ((), "has no phase"),
        ((Phase("read", "read", ("access",), Done(calls=1)),), "no answer may be given in its last"),
    ],
)
def test_a_way_of_working_that_leads_to_no_answer_is_refused(phases: tuple[Phase, ...], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Workflow("mine", 3, phases)


async def test_a_turn_that_has_ended_is_called_in_no_more() -> None:
    async with opened() as runtime, turn_of(runtime, PRESETS["quick"]) as turn:
        await turn.finish("The lake is a lake.")
        with pytest.raises(NotAllowed):
            await turn.propose([fetch(1)])
