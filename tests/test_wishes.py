"""What users wish a turn not to do: recognised where it is said, refused at the gate on every path, never undone by a model."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import Runtime, Tool, tool
from interlock.answers import Agent, Answers, Intent, TurnResult, TurnStatus, all_of, any_of, delegation, need, run_turn
from interlock.answers.events import Opened, event_of
from interlock.answers.wishes import Wish, Withheld, find_wishes, no_internet
from interlock.errors import ConfigError
from interlock.models import Proposal, Reply, Request, parse_text
from interlock.policy import parse_policy
from interlock.ports import Query
from tests.growth import LINEAR, growth
from tests.test_turns import OPEN

OFFLINE = no_internet("web_search", "web_access")
LOOK = Intent(name="look", requires=any_of("web_search", "memory_query"), keywords=("lake", "deep"))
AGENT = Agent(
    name="argo", tools=("web_search", "web_access", "memory_query"), intents=(LOOK,), semantic=False, wishes=(OFFLINE,)
)
QUESTION = "How deep is the lake? Answer without the internet."
WHY = "'web_search' is withheld in this turn: no internet is wished ('without the internet')"

SAID = [
    "How deep is the lake, without the internet?",
    "Answer offline: how deep is it?",
    "how deep is it? offline please",
    "Don't search the web. What did I note about it?",
    "Please don’t use the internet for this",
    "no web, what do my notes say",
    "What do I know about it (offline)?",
    "do not go online",
    "What did I write about lakes? No internet.",
    "Without looking anything up online, how deep is it?",
    "don't look this up online",
    "work offline and tell me about it",
    "dont google it",
    "tell me about it; no web search please",
    "NO INTERNET! how deep is it",
    "please do not under any circumstances use the internet",
    "Tell me about it, but don't search the web for it",
    "never search the web",
    "You mustn't access the internet",
    "don't use any web search",
    "I'd like you not to use the internet",
    "answer from memory only",
    "Without web access, how deep is it?",
    "How deep is it? Not the web.",
    "Ohne Internet: wie tief ist er?",
    "Sin internet, ¿qué profundidad tiene?",
]  # fmt: skip
NOT_SAID = [
    "How deep is the lake?",
    "Why is my printer offline?",
    "How do I use the editor offline?",
    "Which offline maps are there?",
    "you needn't work offline",
    "You don't have to stay offline, search for it",
    "do not answer offline",
    "not without the internet",
    "What is the web?",
    "search the web for it",
    "Use the internet.",
    "internet outage news",
    "the website is down",
    "Isn't the internet great?",
    "Why is there not more on the internet about it?",
    "Why do spiders have no web?",
    "My notes do not say it; search the web",
    "I could not find it so search the web",
    "I do not know how to search the web",
    "If my notes do not have it, use the internet",
    "What does 'no internet' mean on this phone?",
    'What does "work offline" do?',
    "It was not only my notes that were lost",
    "the internetwork without the internets",
    "",
]  # fmt: skip


@pytest.mark.parametrize("text", SAID)
def test_a_wish_is_recognised_where_it_is_said(text: str) -> None:
    assert [one.tools for one in find_wishes((OFFLINE,), text)] == [("web_search", "web_access")]


@pytest.mark.parametrize("text", NOT_SAID)
def test_and_nowhere_else(text: str) -> None:
    assert find_wishes((OFFLINE,), text) == ()


def test_an_application_has_wishes_of_its_own() -> None:
    quiet = Wish("no mail", ("send_mail",), ("not send|write * mail|mails", "no mails"), alone=("quietly",))
    assert (
        find_wishes((quiet,), "Look it up, and do not write him a mail.")[0].reason
        == "no mail is wished ('not write him a mail')"
    )
    assert find_wishes((quiet,), "Book it. Quietly!")
    assert not find_wishes((quiet,), "He lives quietly in Rome.")
    assert not find_wishes((quiet, OFFLINE), "Send him a mail.")
    more = no_internet("web_search", phrases=("stay in the library",))
    assert find_wishes((more,), "Please stay in the library.")


@pytest.mark.parametrize("part", ["not ", "don't ", "no ", "without ", "'a' ", '"', "not use a b ", "offline "])
def test_four_times_the_text_takes_about_four_times_as_long(part: str) -> None:
    assert growth(lambda size: find_wishes((OFFLINE,), part * (size // len(part))), 8_000) < LINEAR


def test_what_is_no_wish_is_refused() -> None:
    with pytest.raises(ConfigError, match="withholds nothing; name those that go to the internet"):
        no_internet()
    with pytest.raises(ConfigError, match="wish 'x': no phrase; say how it is said"):
        Wish("x", ("a",))
    with pytest.raises(ConfigError, match="wish 'x': an empty phrase"):
        Wish("x", ("a",), (" * ",))
    with pytest.raises(ConfigError, match="it takes several: write tools="):
        Wish("x", "web_search", ("a",))  # type: ignore[arg-type]


def tools(ran: list[str]) -> list[Tool]:
    @tool(effect="read")
    async def web_search(query: str) -> str:
        """Find pages."""
        ran.append("web_search")
        return "The lake is 594 m deep, says the web."

    @tool(effect="read")
    async def web_access(url: str) -> str:
        """Read a page."""
        ran.append("web_access")
        return "The lake is 594 m deep, says the page."

    @tool(effect="read")
    async def memory_query(query: str) -> str:
        """Look into the notes."""
        return "The lake is 589 m deep, say the notes."

    return [web_search, web_access, memory_query]


def opened(ran: list[str], *more: Tool, store: str = "memory://") -> Runtime:
    return Runtime.open(store, policy=parse_policy(OPEN), tools=[*tools(ran), *more])


async def refused(runtime: Runtime) -> list[tuple[str, str]]:
    found = [r async for r in runtime.store.records(Query()) if r.kind == "call" and r.status == "denied"]
    return [(r.tool, str(p.reason)) for r in found if (p := r.content().problem) is not None]


async def test_what_is_wished_away_is_refused_whoever_calls() -> None:
    ran: list[str] = []
    async with opened(ran) as runtime, Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        assert [one.name for one in turn.tools] == ["memory_query"]
        assert "Withheld in this turn" in turn.instructions
        outcome = await turn.call("web_search", {"query": "lake"})
        assert (outcome.status, outcome.problem and outcome.problem.message) == ("denied", WHY)
        await turn.propose([Proposal("web_access", {"url": "https://a.example"})])
        await turn.propose([Proposal("web_search", {"query": "lake"})], only="web_search")
        assert (await turn.call("memory_query", {"query": "lake"})).ok
        result = await turn.finish("The lake is 589 m deep.")
        assert await refused(runtime) == [(name, "withheld") for name in ("web_search", "web_access", "web_search")]
        (opening, *_) = [event_of(r) async for r in runtime.store.records(Query(turn=turn.id)) if r.kind == "turn"]
    assert isinstance(opening, Opened)
    assert opening.withheld == (
        Withheld(("web_search", "web_access"), "no internet is wished ('without the internet')"),
    )
    assert isinstance(result, TurnResult)
    assert result.status is TurnStatus.VERIFIED
    assert ran == []


CALLS = [
    '<tool_call>{"name": "web_search", "arguments": {"query": "lake"}}</tool_call>',
    '{"tool_calls": [{"tool": "web_search", "args": {"query": "lake"}}]}',
    "<tool_call><function=web_search><parameter=query>lake</parameter></function></tool_call>",
    '```json\n{"name": "web_search", "arguments": {"query": "lake"}}\n```',
]


@pytest.mark.parametrize("text", CALLS)
async def test_no_call_format_goes_around_it(text: str) -> None:
    ran: list[str] = []

    class Model:
        name, instructable = "scripted", True

        async def reply(self, request: Request) -> Reply:
            every = (*request.tools, SEARCH)
            proposals, rest = parse_text(text, every)
            return Reply(rest, proposals)

        async def close(self) -> None:
            pass

    async with opened(ran) as runtime, Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        result = await run_turn(turn, Model())
    assert ran == []
    assert not result.verified


async def test_another_agent_that_is_asked_is_bound_by_it_too() -> None:
    ran: list[str] = []
    below = Agent(name="helper", tools=("web_search",), semantic=False)
    above = msgspec.structs.replace(AGENT, tools=("helper", "memory_query"), intents=())

    class Model:
        name, instructable = "scripted", True

        async def reply(self, request: Request) -> Reply:
            if "You are helper" in request.instructions:
                return Reply(proposals=(Proposal("web_search", {"query": "lake"}),))
            return Reply(proposals=(Proposal("helper", {"request": "Search the web, please; the internet is fine."}),))

        async def close(self) -> None:
            pass

    async with (
        opened(ran, delegation(below)) as runtime,
        Answers(runtime).turn(QUESTION, agent=above, requires=all_of()) as turn,
    ):
        await run_turn(turn, Model())
        assert ("web_search", "withheld") in await refused(runtime)
        # By its id alone, as an adapter opens it.
        async with Answers(runtime).turn("Search the web.", agent=below, requires=all_of(), parent=turn.id) as child:
            assert (await child.call("web_search", {"query": "lake"})).status == "denied"
            async with child.child(below, "and again") as grandchild:
                assert (await grandchild.call("web_search", {"query": "lake"})).status == "denied"
    assert ran == []


async def test_a_turn_may_be_opened_with_tools_withheld() -> None:
    ran: list[str] = []
    withheld = (Withheld(("web_search",), "this machine is offline"),)
    async with opened(ran) as runtime:
        async with Answers(runtime).turn("How deep is the lake?", agent=AGENT, withheld=withheld) as turn:
            outcome = await turn.call("web_search", {"query": "lake"})
            assert outcome.problem is not None
            assert outcome.problem.message.endswith("in this turn: this machine is offline")
            assert (await turn.call("web_access", {"url": "x"})).ok
        with pytest.raises(ConfigError, match=r"withheld= is a tuple of interlock.answers.wishes.Withheld"):
            Answers(runtime).turn("How deep is the lake?", agent=AGENT, withheld=["web_search"])  # type: ignore[list-item]
        with pytest.raises(ConfigError, match="withheld= is a dict of names of tools, each with why"):
            await runtime.call("web_search", {"query": "x"}, actor="a", withheld=["web_search"])  # type: ignore[arg-type]


async def test_where_all_that_would_answer_is_withheld_the_turn_says_so_at_once() -> None:
    ran: list[str] = []
    agent = msgspec.structs.replace(AGENT, intents=(), default=need("web_search"))
    async with opened(ran) as runtime, Answers(runtime).turn(QUESTION, agent=agent) as turn:
        result = await turn.finish("It is 594 m deep.")
    assert isinstance(result, TurnResult)
    assert (result.status, result.action) == (TurnStatus.TOOL_FAILED, "none")
    assert "web_search is withheld in this turn: no internet is wished" in result.answer


async def test_it_holds_when_the_turn_is_gone_on_with_elsewhere(tmp_path: Path) -> None:
    ran: list[str] = []
    store = f"sqlite:///{tmp_path / 'l.db'}"
    bare = msgspec.structs.replace(AGENT, wishes=())
    async with opened(ran, store=store) as runtime, Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        await turn.ask("which lake?")
    async with (
        opened(ran, store=store) as runtime,
        Answers(runtime).reopen(turn.id, agent=bare, reply="Crater Lake") as again,
    ):
        assert (await again.call("web_search", {"query": "lake"})).status == "denied"
    assert ran == []


async def test_what_is_said_to_a_question_may_wish_it_too(tmp_path: Path) -> None:
    ran: list[str] = []
    async with opened(ran) as runtime:
        async with Answers(runtime).turn("How deep is the lake?", agent=AGENT) as turn:
            await turn.ask("which lake?")
        async with Answers(runtime).reopen(turn.id, agent=AGENT, reply="Crater Lake, but don't use the web") as again:
            assert (await again.call("web_search", {"query": "lake"})).status == "denied"
            await again.ask("which of them?")
        async with Answers(runtime).reopen(turn.id, agent=AGENT, reply="the big one") as third:
            assert (await third.call("web_search", {"query": "lake"})).status == "denied"
    assert ran == []


async def test_a_question_that_goes_on_in_a_session_is_bound_by_it_and_a_new_one_is_not() -> None:
    ran: list[str] = []

    @tool(effect="read", known_values={"lake": {"crater": "Crater Lake", "waldo": "Waldo Lake"}})
    async def depth(lake: str) -> dict[str, Any]:
        """The depth of a lake."""
        return {"lake": lake, "depth_m": 594 if lake == "crater" else 128}

    deep = Intent(name="deep", requires="depth", keywords=("deep",))
    agent = msgspec.structs.replace(AGENT, tools=("depth", "web_search"), intents=(deep,))
    async with opened(ran, depth) as runtime:
        session = Answers(runtime).session("ann")
        async with session.turn("How deep is Crater Lake? Answer offline.", agent=agent) as first:
            await first.call("depth", {"lake": "Crater Lake"})
            assert isinstance(await first.finish("Crater Lake is 594 m deep."), TurnResult)
        async with session.turn("And Waldo Lake?", agent=agent) as second:
            assert second.asked.classified.by == "session"
            assert (await second.call("web_search", {"query": "lake"})).status == "denied"
            await second.call("depth", {"lake": "Waldo Lake"})
            assert isinstance(await second.finish("Waldo Lake is 128 m deep."), TurnResult)
        async with session.turn("How deep is Waldo Lake, by the web?", agent=agent) as third:
            assert (await third.call("web_search", {"query": "lake"})).ok
    assert ran == ["web_search"]


async def test_a_call_that_a_person_has_approved_is_not_made_where_it_is_withheld_by_now() -> None:
    ran: list[str] = []
    ask = '[[rule]]\nid = "ask"\ntools = ["web_search"]\ndecision = "review"\nreason = "look"\n'
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN + ask), tools=tools(ran))
    async with runtime:
        async with Answers(runtime).turn("How deep is the lake?", agent=AGENT) as turn:
            parked = await turn.call("web_search", {"query": "lake"})
            await turn.ask("which lake?")
        await runtime.operations.decide(parked.ticket or "", approve=True, by="user:boss")
        async with Answers(runtime).reopen(turn.id, agent=AGENT, reply="Crater Lake, without the internet") as again:
            assert again.set_aside == (parked.ticket,)
    assert ran == []


# ADK

pytest.importorskip("google.adk")
warnings.filterwarnings("ignore", module="google")

from google.adk.agents import LlmAgent  # noqa: E402
from google.adk.apps import App  # noqa: E402

from interlock.adapters.adk import AdkTool, InterlockPlugin, InterlockRunner, delegations  # noqa: E402
from interlock.answers.presets import research  # noqa: E402
from interlock.answers.runner import card  # noqa: E402
from tests.test_adk_handover import Lines, transfer  # noqa: E402

SEARCH = card(tools([])[0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["itself", "transfer", "single_turn"])
async def test_adk_is_bound_by_it_too(how: str) -> None:
    ran: list[str] = []
    contracts = tools(ran)
    search = ("web_search", {"query": "lake"})
    below = Agent(name="helper", tools=("web_search", "transfer_to_agent"), semantic=False, max_retries=0)
    above = msgspec.structs.replace(
        AGENT, name="boss", tools=("web_search", "helper", "transfer_to_agent"), intents=(), max_retries=0
    )
    modes = {"mode": "single_turn"} if how == "single_turn" else {}
    sub = LlmAgent(
        name="helper", description="Knows.", model=Lines(search, "594 m."), tools=[AdkTool(contracts[0])], **modes
    )
    first = {"itself": search, "transfer": transfer("helper"), "single_turn": ("helper", {"request": "search"})}[how]
    boss = LlmAgent(
        name="boss", model=Lines(first, "It is 594 m deep."), tools=[AdkTool(contracts[0])], sub_agents=[sub]
    )
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[*contracts, *delegations(boss)])
    plugin = InterlockPlugin(runtime, {"boss": above, "helper": below})
    result = await InterlockRunner(App(name="lakes", root_agent=boss, plugins=[plugin])).ask(QUESTION)
    assert ("web_search", "withheld") in await refused(runtime)
    assert ran == []
    assert not result.answer.startswith("It is 594")
    await runtime.close()


@pytest.mark.filterwarnings("ignore")
async def test_adk_makes_no_call_in_a_phase_that_offers_none() -> None:
    ran: list[str] = []
    contracts = tools(ran)
    agent = msgspec.structs.replace(
        AGENT, name="boss", intents=(), workflow=research(("web_search",), ("web_access",)), max_retries=1
    )
    lines = Lines(
        ("web_search", {"query": "lake"}),
        "1. How deep is it?\n2. How old is it?",
        ("web_search", {"query": "x"}),
        "594 m.",
    )
    boss = LlmAgent(name="boss", model=lines, tools=[AdkTool(one) for one in contracts])
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=contracts)
    plugin = InterlockPlugin(runtime, {"boss": agent})
    result = await InterlockRunner(App(name="lakes", root_agent=boss, plugins=[plugin])).ask("How deep is the lake?")
    assert await refused(runtime) == [("web_search", "not_offered")]
    assert ran == ["web_search"]  # once there was a plan
    assert (result.status, result.verified) == (TurnStatus.PARTIAL, False)
    await runtime.close()
