"""Turns: what an adversarial review tried, and stays mended."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
import pytest

from interlock.answers import Again, Answers, TurnOutcome, TurnResult, TurnStatus, need, run_turn
from interlock.answers.grounding import Source, ground, ground_safely
from interlock.answers.presets import quick_lookup
from interlock.answers.requirements import all_of
from interlock.errors import NotAllowed
from interlock.models import Proposal, Reply, parse_text
from interlock.tools import Unclear, resolve
from tests.test_turns import AGENT, ANSWER, OPEN, QUESTION, SCRIPT, opened, own_records

ASKING = [Proposal("classify_damage", {})]


async def test_a_reopened_turn_is_still_a_dry_run_of_the_same_person_with_the_same_budget() -> None:
    ran: list[str] = []
    runtime = opened(ran=ran)
    work = quick_lookup(("classify_damage", "notify", "list_trails"))
    details: dict[str, Any] = {"mode": "dry_run", "principal": "alice", "workflow": work, "run": "r"}
    async with Answers(runtime).turn(QUESTION, agent=AGENT, **details) as turn:
        await turn.propose([Proposal("classify_damage", {"trail_id": "Waldo"})])
        left = await turn.finish("x")
        assert isinstance(left, TurnResult)
        assert left.outcome is TurnOutcome.ASKED
    async with Answers(runtime).reopen(turn.id, agent=AGENT) as again:
        assert (again.asked.principal, again.asked.mode, again.asked.run) == ("alice", "dry_run", "r")
        assert again.asked.workflow == work
        assert (await again.call("notify", {"to": "crew"})).status.value == "planned"
        assert ran == []
        outcomes = [await again.call("list_trails", {}, call_id=f"c{n}") for n in range(4)]
        assert any(outcome.status.value == "denied" for outcome in outcomes) or len({o.record for o in outcomes}) == 4
        for _ in range(8):
            if isinstance(result := await again.finish("x"), TurnResult):
                break
    assert isinstance(result, TurnResult)
    if result.ticket is not None:
        with pytest.raises(NotAllowed, match="somebody else decides"):
            await Answers(runtime).decide(result.ticket, approve=True, by="alice")
    await runtime.close()


async def test_what_a_model_said_proves_nothing() -> None:
    runtime = opened()
    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        await turn.call("classify_damage", {"trail_id": "Waldo Lake"})
        await turn.call("classify_damage", {"trail_id": "class 9, 4,200 acres burned on July 4, 2023"})
        assert isinstance(await turn.finish("It is class 9: 4,200 acres burned on July 4, 2023."), Again)
    async with Answers(runtime).turn(QUESTION, agent=AGENT, mode="dry_run") as turn:
        await turn.call("classify_damage", {"trail_id": "Waldo Lake"})
        await turn.call("notify", {"to": "4,200 acres"})
        assert isinstance(await turn.finish("Class 3; 4,200 acres."), Again)
        assert isinstance(
            await turn.finish("Class 3, and 80 % of it."), TurnResult
        )  # rendered: confidence is no result
    await runtime.close()


@pytest.mark.parametrize(
    "text",
    ["_9999_ acres", "__9999__", "acres...9999", "面积为9999公顷", "97. downed trees", "# 97 downed trees", "Zero injuries",
     "½ of it", "1e9 acres", "3 quadrillion", "3 lakh", "१२३४ acres", "12 thouſand", "ſeptember 3, 2024",
     "41.5 () - 3 = 38.5"],
)  # fmt: skip
def test_figures_in_disguise_are_seen(text: str) -> None:
    assert not ground_safely(text, [Source("record 1", {"n": 41.5, "m": 3})]).is_supported


@pytest.mark.parametrize(
    ("text", "value"),
    [("4.5 billion", {"revenue_mn": 4.5}), ("4.5 million", {"height_m": 4.5}), ("1 million acres", {"acres": 500_000}),
     ("more than 10,000 acres", {"acres": 5000}), ("under 10 trees", {"trees": 14}), ("about 100", {"n": 150})],
)  # fmt: skip
def test_rounding_moves_a_figure_only_a_little(text: str, value: Any) -> None:
    assert not ground(text, [Source("record 1", value)]).is_supported


def test_whatever_a_text_holds_it_is_checked_or_held_back() -> None:
    for text in ("\ud83d half", "9" * 5000, "\x00 5"):
        assert ground_safely(text.encode(errors="replace").decode(), [Source("record 1", {"²": 5})]) is not None


@pytest.mark.parametrize(
    ("said", "known"),
    [("South Fork", ["North Fork"]), ("West Lake", ["East Lake"]), ("prod-east", ["prod-west"]), ("Austria", ["Australia"]),
     ("Niger", ["Nigeria"]), ("female", ["male"]), ("inactive", ["active"]), ("Phase III", ["Phase II"]),
     ("Bob Smith", ["Rob Smith"]), ("Station B", ["Station A"]), ("not Waldo Lake", ["Waldo Lake"]), ("delete all", ["delete"]),
     ("anything except Waldo Lake", ["Waldo Lake"]), ("Sector 12", {"sec-12": "Sector 7"}), ("C#", ["C"]),
     ("x > 5", ["x < 5"]), ("-5", ["5"])],
)  # fmt: skip
def test_another_thing_is_not_taken_for_a_misspelling(said: str, known: Any) -> None:
    assert isinstance(resolve({"x": known}, {"x": said}), Unclear)


def test_no_text_takes_long() -> None:
    """Bounded by construction: twice the text takes about twice as long, not four times."""
    for part in ("{", '{"', "§", "\n", ":", "a_", "9", "```\n{"):
        started = time.process_time()
        text = part * (20_000 // len(part))
        parse_text(text, [])
        ground_safely(text, [])
        assert time.process_time() - started < 20  # it was minutes


async def test_an_order_whose_later_tool_failed_first() -> None:
    runtime = opened()
    async with Answers(runtime).turn(
        QUESTION, agent=AGENT, requires=all_of("list_trails", "broken", in_order=True)
    ) as turn:
        await turn.call("broken", {})
        assert isinstance(await turn.finish("x"), Again)
        await turn.call("list_trails", {})
        result = await turn.finish("x")
        for _ in range(5):
            result = await turn.finish("x")
    assert isinstance(result, TurnResult)
    await runtime.close()


async def test_odd_ids_and_arguments_of_a_model_are_refused_not_raised() -> None:
    runtime = opened()
    odd = [
        Proposal("classify_damage", {"trail_id": "Waldo Lake"}, "call\n1"),
        Proposal("classify_damage", {"trail_id": "\ud83d"}),
        Proposal("classify_damage", None),
        Proposal("", {}),
    ]

    class Model:
        name, instructable = "odd", True

        async def reply(self, request: Any) -> Reply:
            done = any(m.role == "tool" for m in request.messages)
            return Reply(ANSWER) if done else Reply(proposals=tuple(odd))

        async def close(self) -> None:
            pass

    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        result = await run_turn(turn, Model())
    assert result.verified
    await runtime.close()


async def test_a_denied_ticket_is_not_waited_for() -> None:
    policy = OPEN + '[[rule]]\nid = "ask"\ntools = ["notify"]\ndecision = "review"\nreason = "mail"\n'
    runtime = opened(policy)
    async with Answers(runtime).turn("tell", agent=AGENT, requires="notify") as turn:
        await turn.call("notify", {"to": "crew"})
        waiting = await turn.finish(None)
    assert isinstance(waiting, TurnResult)
    assert waiting.ticket is not None
    early = await runtime.operations.resume(waiting.ticket)
    assert not early.ok
    async with Answers(runtime).reopen(turn.id, agent=AGENT) as again:
        still = await again.finish(None)
    assert isinstance(still, TurnResult)
    assert still.outcome is TurnOutcome.WAITING
    await Answers(runtime).decide(waiting.ticket, approve=False, by="user:boss")
    async with Answers(runtime).reopen(turn.id, agent=AGENT) as again:
        for _ in range(6):
            if isinstance(after := await again.finish("x"), TurnResult):
                break
    assert isinstance(after, TurnResult)
    assert after.outcome is not TurnOutcome.WAITING
    await runtime.close()


async def test_children_bring_their_notes_and_none_makes_up_for_another() -> None:
    runtime = opened()
    async with Answers(runtime).turn("brief", agent=AGENT, requires=all_of()) as parent:
        async with Answers(runtime).turn(
            "tell", agent=AGENT, requires="notify", parent=parent.id, mode="dry_run"
        ) as child:
            await child.call("notify", {"to": "crew"})
            await child.finish("The crew would be told by notify.")
        assert isinstance(await parent.finish("The crew was told."), Again)
        result = await parent.finish("The crew would be told.")
    assert isinstance(result, TurnResult)
    assert "only planned" in result.answer
    async with Answers(runtime).turn("brief", agent=AGENT, requires=all_of()) as parent:
        async with Answers(runtime).turn(QUESTION, agent=AGENT, parent=parent.id) as child:
            for _ in range(4):
                await child.finish("fine")
        async with Answers(runtime).turn("thanks!", agent=AGENT, parent=parent.id) as child:
            await child.finish("welcome")
        for _ in range(8):
            step = await parent.finish("All is fine.")
            assert not isinstance(step, Again) or step.tool is None
            if isinstance(step, TurnResult):
                break
    assert isinstance(step, TurnResult)
    assert not step.verified
    await runtime.close()


async def test_a_forced_reply_makes_no_other_call() -> None:
    ran: list[str] = []
    runtime = opened(ran=ran)

    class Model:
        name, instructable = "other", True

        async def reply(self, request: Any) -> Reply:
            return Reply(proposals=(Proposal("notify", {"to": "all"}),)) if request.force else Reply("words")

        async def close(self) -> None:
            pass

    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        result = await run_turn(turn, Model())
    assert ran == []
    assert result.outcome is TurnOutcome.ESCALATED
    await runtime.close()


async def test_finish_at_the_same_time_and_the_ticket_of_an_answer(tmp_path: Any) -> None:
    runtime = opened(store=f"sqlite:///{tmp_path}/t.db")
    agent = msgspec.structs.replace(AGENT, max_retries=0)
    async with Answers(runtime).turn(QUESTION, agent=agent, requires=need("broken")) as turn:
        steps = await asyncio.gather(*(turn.finish("words") for _ in range(10)))
    results = {step.turn for step in steps if isinstance(step, TurnResult)}
    assert len(results) <= 1
    assert [r.status for r in await own_records(runtime, turn.id)].count("finished") <= 1
    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        from interlock.testing import make_scripted

        model = make_scripted("claims success", SCRIPT)
        result = await run_turn(turn, model)
    assert result.ticket is not None
    assert result.model_calls == model.calls
    await Answers(runtime).decide(result.ticket, approve=True, by="user:boss")
    assert (await Answers(runtime).result(turn.id)).status is TurnStatus.RELEASED
    await runtime.close()
