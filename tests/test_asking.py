"""Asking back in place of guessing, and asking another agent: what a turn does when a question is not clear."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from interlock import Context, Runtime, Tool, tool
from interlock.answers import Agent, Answers, App, Intent, TurnStatus, delegation, need, run_turn
from interlock.answers.constrained import ConstrainedModel
from interlock.answers.constrained.argument_extraction import extract_arguments
from interlock.answers.constrained.unused_values import unused_values
from interlock.answers.grounding import default_vocabulary
from interlock.answers.intents.spelling import Spelling
from interlock.answers.runner import card
from interlock.cli.main import COMMANDS, main
from interlock.errors import Ambiguous, ConfigError
from interlock.models import Message, Proposal, Reply, Request, open_model
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock.testing import FirstChoice
from tests.conftest import running


class Rule(StrEnum):
    scribner = "scribner"
    doyle = "doyle"


class Species(StrEnum):
    bull_trout = "bull_trout"
    owl = "owl"


class Effect(BaseModel):
    species: Species
    height_ft: float


RULES = {"scribner": (), "doyle": ()}
FIRES = {"cedar-creek-2022": ("Cedar Creek", "2022 fire"), "bootleg-2021": ("Bootleg",)}
SECTORS = {"NW-1": ("Northwest ridge",), "B-04": ("Whisky Creek",), "SW-1": ("Salmon Creek canyon",)}


@tool(effect="read", known_values={"fire": FIRES, "sector": SECTORS, "rule": RULES})
async def look(
    acres: float,
    fire: str | None = None,
    sector: str | None = None,
    rule: Rule = Rule.scribner,
    temp_road_miles: float | None = None,
    road_miles: float | None = None,
    error_pct: float | None = None,
    rules: list[Rule] | None = None,
    effects: list[Effect] | None = None,
) -> str:
    """Look."""
    return f"{acres}"


def said(text: str) -> dict[str, Any]:
    return {
        name: values for name, values in extract_arguments(card(look), text, default_vocabulary()).items() if values
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("240 acres with 0.3 miles of temporary road", {"acres": (240.0,), "temp_road_miles": (0.3,)}),
        ("240 acres", {"acres": (240.0,)}),  # no figure goes to an argument of another unit
        ("20 acres, 3.5 road miles", {"acres": (20.0,), "road_miles": (3.5,)}),
        ("8 stands, 20 acres, within 3 percent", {"acres": (20.0,), "error_pct": (3.0,)}),
        ("20 acres, half a percent", {"acres": (20.0,), "error_pct": (0.5,)}),
        ("20 acres by doyle, not scribner", {"acres": (20.0,), "rule": ("doyle",), "rules": (["doyle"],)}),
        ("5 acres on the 2022 fire", {"acres": (5.0,), "fire": ("cedar-creek-2022",)}),
        ("5 acres of Cedar Creek", {"acres": (5.0,), "fire": ("cedar-creek-2022",)}),  # and no Whisky Creek
        ("5 acres in B-14 of Bootleg", {"acres": (5.0,), "fire": ("bootleg-2021",), "sector": ("B-14",)}),
        ("5 acres of the Holiday Farm fire", {"acres": (5.0,), "fire": ("Holiday Farm",)}),
        ("5 acres at Bootlegg", {"acres": (5.0,), "fire": ("bootleg-2021",)}),
    ],
)
def test_figures_and_names_go_where_they_belong(text: str, expected: dict[str, Any]) -> None:
    assert said(text) == expected


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("20 acres for $5,000", ("$5,000",)),
        ("20 acres as of 2023-09-30", ("2023-09-30",)),
        ("20 acres with trees of 30 ft or more", ("30 ft",)),
        ("20 acres, bull trout there", ("bull trout",)),
        ('20 acres {"type": "Polygon"}', ("the data in brackets",)),
        ("20 acres, over 15 stems", ("15",)),
        ("20 acres in 3 stands of Cedar Creek", ()),
    ],
)
def test_what_a_call_would_leave_out_is_noticed(text: str, left: tuple[str, ...]) -> None:
    @tool(effect="read")
    async def pay(budget_usd: int) -> str:
        """Pay."""
        return ""

    words = default_vocabulary()
    given = extract_arguments(card(look), text, words)
    found = unused_values(card(look), [card(look), card(pay)], text, given, words)
    assert tuple(re.sub(r" or more$", "", item) for item in found) == left


def test_words_of_an_agent_are_recognised_when_misspelled() -> None:
    spelling = Spelling(["perimeter", "MTBS"], ["the checklist please", "a checklist for the sale"])
    assert spelling.correct("is the perimiter valid, MTSB, cheklist") == "is the perimeter valid, Mtbs, checklist"
    assert spelling.correct("the parameter of a paddle") == "the parameter of a paddle"  # those are words


class Does:
    """A model that follows a script of replies."""

    name, instructable = "does", True

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)

    async def reply(self, request: Request) -> Reply:
        return self._replies.pop(0)

    async def close(self) -> None:
        return


AGENT = Agent(
    name="looker", tools=("look",), intents=(Intent(name="look", requires="look", keywords=("look", "acres")),)
)


async def test_a_constrained_model_asks_about_what_it_would_leave_out() -> None:
    question = "look at 20 acres as of 2023-09-30, 7.5 ft"
    async with running(look) as runtime, Answers(runtime).turn(question, agent=AGENT) as turn:
        result = await run_turn(turn, ConstrainedModel(FirstChoice()))
    assert result.status is TurnStatus.ASKED
    assert "2023-09-30" in result.answer
    assert result.tools == ()


async def test_what_nobody_said_is_not_invented() -> None:
    async with running(look) as runtime, Answers(runtime).turn("look at Bootleg", agent=AGENT) as turn:
        result = await run_turn(turn, ConstrainedModel(FirstChoice()))
    assert result.status is TurnStatus.ASKED
    assert result.answer == "To answer this, please say acres"


async def test_a_tool_may_ask_which_is_meant() -> None:
    @tool(effect="read")
    async def find() -> str:
        """Find."""
        raise Ambiguous("which fire is meant: A or B?")

    agent = Agent(name="finder", tools=("find",), default="find")
    async with running(find) as runtime, Answers(runtime).turn("find it", agent=agent) as turn:
        result = await run_turn(turn, Does(Reply(proposals=(Proposal("find", {}),)), Reply("It is A.")))
    assert result.status is TurnStatus.ASKED
    assert result.answer == "Which fire is meant: A or B?"


async def test_a_turn_may_ask_by_itself() -> None:
    async with running(look) as runtime, Answers(runtime).turn("look", agent=AGENT) as turn:
        asked = await turn.ask("which acres?")
        assert await turn.ask("again?") is asked
        assert await turn.finish("20 acres") is asked
    assert asked.status is TurnStatus.ASKED
    assert asked.answer == "Which acres?"


BELOW = Agent(name="below", tools=("count",), default=need("count"))
ABOVE = Agent(name="above", tools=("below",), default=need("below"))


@tool(effect="read")
async def count(things: int) -> dict[str, int]:
    """Count."""
    return {"things": things}


@pytest.fixture
def both() -> tuple[Tool, ...]:
    return (count, delegation(BELOW, description="Ask the one below."))


async def test_another_agent_is_asked_as_a_tool_in_a_turn_of_its_own(both: tuple[Tool, ...]) -> None:
    replies = Does(
        Reply(proposals=(Proposal("below", {"request": "count to 7"}),)),
        Reply(proposals=(Proposal("count", {"things": 7}),)),
        Reply("There are 7 things."),
        Reply("It counted 7 things."),
    )
    async with running(*both) as runtime:
        async with Answers(runtime).turn("how many?", agent=ABOVE, on_behalf_of="kim", run="r") as turn:
            result = await run_turn(turn, replies)
        opened = [r.content().arguments async for r in runtime.store.records(Query()) if r.status == "opened"]
    assert result.verified
    assert result.claims[0].path == "$.value.things"  # where it was computed, not who passed it on
    child = next(what for what in opened if what.get("parent") == turn.id)
    assert (child["agent"], child["root_turn"], child["on_behalf_of"], child["run"]) == ("below", turn.id, "kim", "r")


async def test_a_delegation_that_did_not_succeed_is_no_answer(both: tuple[Tool, ...]) -> None:
    lazy = [Reply(proposals=(Proposal("below", {"request": "count"}),)), *[Reply("It is 7, I think.")] * 12]
    async with running(*both) as runtime:
        async with Answers(runtime).turn("how many?", agent=ABOVE) as turn:
            result = await run_turn(turn, Does(*lazy))
        alone = await runtime.call("below", {"request": "count"}, actor="x")
    assert not result.verified
    assert "only by a turn that a model is working on" in (alone.problem.message if alone.problem else "")


async def test_what_is_delegated_counts_against_the_budget_of_who_asked(both: tuple[Tool, ...]) -> None:
    policy = 'version = 1\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n[[budget]]\nid = "b"\nper = "turn"\ncalls = 1\n'
    replies = [
        Reply(proposals=(Proposal("below", {"request": "count"}),)),
        Reply(proposals=(Proposal("count", {"things": 7}),)),
        *[Reply("7")] * 12,
    ]
    runtime = Runtime.open("memory://", policy=parse_policy(policy, "p"), tools=both)
    async with runtime, Answers(runtime).turn("how many?", agent=ABOVE) as turn:
        result = await run_turn(turn, Does(*replies))
    assert not result.verified


def test_a_model_of_your_own_is_named_by_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent))
    assert open_model("python:interlock.testing:FirstChoice").name == "first choice"
    for name, words in (
        ("python:nowhere:X", "cannot be imported"),
        ("python:tests.test_asking:Nobody", "cannot be imported"),
        ("python:tests.test_asking:AGENT", "is no model"),
    ):
        with pytest.raises(ConfigError, match=words):
            open_model(name)


def test_an_application_brings_commands_and_what_is_shown_beside_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = """
from tests.test_asking import AGENT, look
from interlock.answers import App
from interlock.answers.constrained import constrain


def fit(model):
    print(f"made fit: {model.name}")
    return constrain(model)


APP = App(
    name="mine", agents=(AGENT,), tools=(look,), present=lambda found: [f"beside: {found[0].value}"], constrain=fit
)
"""
    (tmp_path / "mine.py").write_text(module)
    (tmp_path / "policy.toml").write_text('version = 1\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n')
    (tmp_path / "interlock.toml").write_text(
        'apps = ["mine:APP"]\nmodel = "python:interlock.testing:FirstChoice"\nstore = "memory://"\n'
    )
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent))
    monkeypatch.chdir(tmp_path)
    assert main(["ask", "mine", "look at 20 acres"]) == 0
    told = capsys.readouterr()
    assert "beside: 20.0" in told.out
    assert "made fit: " in told.err  # what an application prints keeps out of the answer
    assert COMMANDS == "interlock.commands"
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "ranger" in capsys.readouterr().out
    assert isinstance(App(name="x", agents=(AGENT,)).present, type(None))


WORKS = """
from interlock import tool
from interlock.answers import Agent, App
from interlock.answers.presets import ingest, quick_lookup, research
from tests.test_phases import Researcher, URLS, tools

READER = Agent(
    name="reader", tools=("search", "access", "keep"), default="access", semantic=False,
    works=(quick_lookup(("search", "access")), research(("search",), ("access",)), ingest(("access",), ("keep",))),
)
APP = App(name="lakes", agents=(READER,), tools=tuple(tools()))
MODEL, SHORT = Researcher(*URLS), Researcher(*URLS[:2])
"""


def test_ask_chooses_a_way_of_working_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lakes.py").write_text(WORKS)
    (tmp_path / "policy.toml").write_text(
        'version = 1\nmode = "apply"\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n'
    )
    (tmp_path / "interlock.toml").write_text('apps = ["lakes:APP"]\nstore = "sqlite:///l.db"\n')
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent))
    monkeypatch.chdir(tmp_path)
    asked = ["ask", "lakes", "How deep and old is the lake?"]
    assert main([*asked, "--work", "research", "--model", "python:lakes:MODEL"]) == 0
    told = capsys.readouterr()
    assert "594 m deep" in told.out
    assert "confidence 0.88" in " ".join(told.out.split())
    for line in (
        "phase 1 of 3: plan",
        "1. How deep is the lake?",
        "source 3 of 3: https://h2.example/x",
        "phase 3 of 3",
    ):
        assert line in told.err
    turn = told.out.split("turns show ")[1].split()[0]
    assert main(["turns", "show", turn]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "planned How deep is the lake?; How old is the lake?" in shown
    assert "https://h0.example/x (h0.example, record " in shown
    assert "for sub-question 1, 2" in shown
    assert main([*asked, "--work", "research", "--model", "python:lakes:SHORT", "--quiet"]) == 0
    assert "Note: this is a partial answer: " in capsys.readouterr().out
    assert main([*asked, "--work", "deep"]) == 2
    assert "'reader' has no way of working 'deep'; it offers ingest, quick, research" in capsys.readouterr().err
    assert main([*asked[:2], "--turn", turn, "--work", "quick"]) == 2
    assert "which knows its way of working; leave out --work" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["ask", "--help"])
    told_help = " ".join(capsys.readouterr().out.split())
    assert "one of the ways of working that the agent offers" in told_help
    assert "how far changes go (a way of working is --work)" in told_help


async def test_a_context_names_the_turn_that_asks() -> None:
    @tool(effect="read")
    async def whose(context: Context) -> str:
        """Whose."""
        return context.turn or ""

    async with running(whose) as runtime:
        found = await runtime.call("whose", {}, actor="a", turn="t-1")
    assert found.value == "t-1"
    assert Message("user", "x").role == "user"
