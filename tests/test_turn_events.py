"""Events of a turn: each survives being written and read, and a turn that is reopened elsewhere knows what it knew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from interlock import Result, Runtime, tool
from interlock.answers import Agent, Answers, Turn, TurnOutcome, TurnResult, TurnStatus, all_of, any_of, need, run_turn
from interlock.answers.enforcement import enforcement
from interlock.answers.events import (
    TURN,
    Abandoned,
    AskedBack,
    Delegated,
    Finished,
    Forced,
    Joined,
    Judged,
    Noted,
    Offered,
    Opened,
    PhaseBegun,
    Planned,
    Reopened,
    Replied,
    Retried,
    Reviewed,
    Sourced,
    Talked,
    TurnEvent,
    TurnLog,
    event_of,
    status_of,
)
from interlock.answers.presets import research
from interlock.answers.wishes import Withheld
from interlock.errors import NotAllowed
from interlock.models import Proposal, Reply, Request, Usage
from interlock.operations.ledger_writer import LedgerWriter
from interlock.policy import parse_policy
from interlock.ports import Query, Store, SystemClock, SystemIds
from interlock.values import Budget, Mode
from tests.conftest import running
from tests.test_turns import OPEN

USAGE = Usage(input_tokens=120, output_tokens=7, cost_micros=450)
EVENTS: tuple[TurnEvent, ...] = (
    Opened(
        agent="trails",
        intents=("damage", "closure"),
        by="both",
        certainty=0.75,
        requires=all_of(need("a"), any_of("b", "c")),
        enforcement="observe",
        most_model_calls=5,
        parent="p",
        root_turn="r",
        on_behalf_of="bob",
        workflow="research",
        mode=Mode.DRY_RUN,
        run="run-1",
        session="ann-42",
        withheld=(Withheld(("web",), "no internet is wished"),),
        budgets=(Budget(id="workflow research", per="turn", calls=10),),
    ),
    Opened(agent="trails"),
    Joined(turn="t1", session="ann-42"),
    Reopened(agent="trails"),
    Reopened(agent="trails", withheld=(Withheld(("web",), "no internet is wished"),)),
    Replied(tool="a", fields=("place",)),
    Replied(intents=("damage",), requires=need("a", where="args.x == 1")),
    Judged(by="judge", sentences=3, disputed=1, usage=USAGE),
    Retried(called=("a",), missing=("b", "c"), unsupported=2, usage=USAGE, model_calls=3),
    Forced(tool="a", called=("b",), usage=USAGE, model_calls=4),
    Delegated(child="t2", agent="surveyor"),
    Planned(steps=3),
    Planned(steps=2, questions=("How deep?", "How old?"), usage=USAGE, model_calls=1),
    Talked(usage=USAGE, model_calls=2),
    Sourced(record=4, tool="a", name="https://a.example/x", site="a.example", digest="d", questions=(1, 2)),
    PhaseBegun(name="read", why="no call was left"),
    Noted(text="this is a partial answer: „half“ 🌲\n"),
    Offered(tools=()),
    Offered(tools=("a", "b")),
    Finished(
        agent="trails",
        outcome=TurnOutcome.ASKED,
        status=TurnStatus.ESCALATED,
        verified=False,
        attempts=2,
        model_calls=4,
        overhead_us=1200,
        usage=USAGE,
        tools=("a",),
        missing=("b",),
        reason="why",
        ticket="k1",
        enforced=False,
        required=False,
        intents=("damage",),
        asks=AskedBack(tool="a", fields=("place",), intents=("damage",)),
    ),
    Abandoned(reason="CancelledError"),
    Reviewed(status=TurnStatus.RELEASED, outcome=TurnOutcome.ESCALATED, agent="trails", ticket="k1", reason="fine"),
)


async def test_every_event_survives_being_written_and_read(store: Store) -> None:
    assert {type(event) for event in EVENTS} == set(get_args(TurnEvent))
    log = TurnLog(LedgerWriter("ann", store, SystemClock(), SystemIds()), "t")
    for event in EVENTS:
        await log.append(event)
    records = [record async for record in store.records(Query(turn="t"))]
    assert [event_of(record) for record in records] == list(EVENTS)
    assert [record.status for record in records] == [status_of(type(event)) for event in EVENTS]
    assert {(record.kind, record.tool) for record in records} == {("turn", TURN)}


def test_each_event_has_a_status_of_its_own() -> None:
    statuses = [status_of(kind) for kind in get_args(TurnEvent)]
    assert len(set(statuses)) == len(statuses)


async def test_what_is_no_record_of_a_turn_is_no_event() -> None:
    async with running() as runtime:
        await runtime.call("echo", {"text": "a"}, actor="ann", turn="t")
        assert [event_of(record) async for record in runtime.store.records(Query())] == [None]


# A turn that is gone on with in another process

ASK = '[[rule]]\nid = "ask"\ntools = ["keep"]\ndecision = "review"\nreason = "somebody has to look"\n'
AGENT = Agent(name="argo", tools=("search", "access", "keep"), semantic=False)
WORK = research(("search", "keep"), ("access",), calls=6)
PLAN = "1. How many glaciers are there?\n2. How many glaciers were there?"


def opened(file: Path) -> Runtime:
    @tool(effect="read")
    async def search(query: str) -> list[str]:
        return [f"https://{query}.example"]

    @tool(effect="read")
    async def access(url: str) -> Result[dict[str, Any]]:
        return Result(
            value={"glaciers": 37, "text": f"Of {url}: there are 37 glaciers, and once there were more of them."},
            sources=(f"https://{url}.example/",),
        )

    @tool(effect="send", key="{text}")
    async def keep(text: str) -> bool:
        return True

    return Runtime.open(f"sqlite:///{file}", policy=parse_policy(OPEN + ASK), tools=[search, access, keep])


class Model:
    """Replies by a script, and costs the same each time."""

    name, instructable = "scripted", True

    def __init__(self, *replies: Reply) -> None:
        self.requests: list[Request] = []
        self._replies = list(replies)

    async def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        return self._replies.pop(0)

    async def close(self) -> None:
        pass


def call(name: str, **arguments: Any) -> Reply:
    return Reply(proposals=(Proposal(name, arguments),), usage=USAGE)


def line(request: Request, begins: str) -> str:
    return next(line for line in request.instructions.splitlines() if line.startswith(begins))


def asking(runtime: Runtime) -> Turn:
    return Answers(runtime).turn("How many?", agent=AGENT, requires=need("access"))


async def leave(file: Path, between: Callable[[Turn], Any]) -> tuple[TurnResult, str]:
    """A turn of research that reads a source, and then waits for a person."""
    runtime = opened(file)
    model = Model(Reply(PLAN, usage=USAGE), call("access", url="one"), call("keep", text="x"))
    async with (
        runtime,
        Answers(runtime).turn("How many glaciers are there?", agent=AGENT, requires=all_of(), workflow=WORK) as turn,
    ):
        await between(turn)
        left = await run_turn(turn, model)
    return left, turn.id


async def test_a_turn_reopened_on_the_same_file_knows_what_it_knew(tmp_path: Path) -> None:
    left, name = await leave(tmp_path / "l.db", lambda turn: turn.note("only two of the pages were open"))
    assert (left.outcome, left.model_calls, left.usage) == (TurnOutcome.WAITING, 3, USAGE + USAGE + USAGE)

    runtime = opened(tmp_path / "l.db")
    async with runtime:
        await runtime.operations.decide(left.ticket or "", approve=True, by="user:boss")
        assert (await runtime.operations.resume(left.ticket or "")).ok
        async with Answers(runtime).reopen(name, agent=AGENT) as turn:
            assert (turn.replies, [tool.name for tool in turn.tools]) == (3, ["search", "access", "keep"])
            assert turn.asked.workflow == WORK
            model = Model(call("access", url="two"), call("access", url="three"), Reply("37 glaciers.", usage=USAGE))
            done = await run_turn(turn, model)
        events = [event_of(r) async for r in runtime.store.records(Query(turn=name)) if r.kind == "turn"]
    first, last = model.requests[0], model.requests[-1]
    assert (
        line(first, "Phase now")
        == "Phase now: read. Find and read at least 3 different sources, one for each question."
    )  # the plan stands
    assert line(first, "Different sources") == "Different sources read: 1 of 3."
    assert line(first, "Workflow: research").endswith("4 left.")
    assert line(last, "Phase now").startswith("Phase now: synthesis.")
    assert (done.verified, done.model_calls) == (True, 6)
    assert done.usage == Usage(input_tokens=720, output_tokens=42, cost_micros=2700)
    assert "only two of the pages were open" in done.answer
    assert [type(event).__name__ for event in events if isinstance(event, Reopened | Finished)] == [
        "Finished", "Reopened", "Finished",
    ]  # fmt: skip


async def test_what_was_offered_last_is_offered_again(tmp_path: Path) -> None:
    async with opened(tmp_path / "l.db") as runtime, asking(runtime) as turn:
        await turn.offer(["access"])
        await turn.note("a note")
        turn.count_usage(USAGE)
        asked = await turn.ask("which glacier?")
    assert asked.outcome is TurnOutcome.ASKED
    async with opened(tmp_path / "l.db") as runtime, Answers(runtime).reopen(turn.id, agent=AGENT) as again:
        assert [tool.name for tool in again.tools] == ["access"]
        denied = await again.call("search", {"query": "x"})
        found = await again.call("access", {"url": "one"})
        result = await again.finish("There are 37 glaciers.")
    assert (denied.status.value, found.ok) == ("denied", True)
    assert isinstance(result, TurnResult)
    assert result.usage == USAGE
    assert "a note" in result.answer


async def test_retries_that_were_used_stay_used(tmp_path: Path) -> None:
    async with opened(tmp_path / "l.db") as runtime, asking(runtime) as turn:
        await turn.finish("There are 99 glaciers.")
        await turn.ask("which glacier?")
        before = turn.replies
    async with opened(tmp_path / "l.db") as runtime, Answers(runtime).reopen(turn.id, agent=AGENT) as again:
        assert again.replies == before
        assert again.asked.before is not None
        assert again.asked.before.retries == 1


async def test_a_turn_that_has_ended_is_not_reopened(tmp_path: Path) -> None:
    async with opened(tmp_path / "l.db") as runtime:
        async with asking(runtime) as turn:
            await turn.call("access", {"url": "one"})
            await turn.finish("There are 37.")
        with pytest.raises(NotAllowed, match="has ended as PASSED; open a new one"):
            await Answers(runtime).reopen(turn.id, agent=AGENT)


async def test_a_turn_that_was_left_remembers_what_it_has_spent(tmp_path: Path) -> None:
    async with opened(tmp_path / "l.db") as runtime, asking(runtime) as turn:
        await turn.propose([Proposal("access", {"url": "one"})])
        turn.count_usage(USAGE)
    async with opened(tmp_path / "l.db") as runtime, Answers(runtime).reopen(turn.id, agent=AGENT) as again:
        result = await again.finish("There are 37 glaciers.")
    assert isinstance(result, TurnResult)
    assert (result.usage, result.model_calls) == (USAGE, 2)


async def test_a_turn_is_gone_on_with_by_its_own_agent_and_no_more_tools_than_that_has(tmp_path: Path) -> None:
    async with opened(tmp_path / "l.db") as runtime:
        async with asking(runtime) as turn:
            await turn.offer(["search", "access"])
            await turn.ask("which glacier?")
        with pytest.raises(NotAllowed, match=f"is one of {AGENT.name}, not of somebody"):
            await Answers(runtime).reopen(turn.id, agent=msgspec.structs.replace(AGENT, name="somebody"))
        fewer = msgspec.structs.replace(AGENT, tools=("access",))
        again = await Answers(runtime).reopen(turn.id, agent=fewer)
    assert [tool.name for tool in again.tools] == ["access"]


async def test_a_turn_that_waited_counts_once_as_it_ended_last(tmp_path: Path) -> None:
    async with opened(tmp_path / "l.db") as runtime:
        async with asking(runtime) as turn:
            await turn.call("access", {"url": "one"})
            await turn.ask("which glacier?")
        async with Answers(runtime).reopen(turn.id, agent=AGENT) as again:
            await again.finish("There are 37 glaciers.")
        (line,) = await enforcement(runtime.store.records(Query()))
    assert (line.turns, line.outcomes, line.alarms) == (1, {"PASSED": 1}, ())
