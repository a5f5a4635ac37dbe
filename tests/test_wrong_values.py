"""Values of a wrong kind where a program calls Interlock: a sentence that says what is meant, and nothing is done."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from interlock import ConfigError, Runtime, Status
from interlock.answers import Agent, Answers, Intent, all_of, any_of, need
from interlock.answers.runner import run_turn
from interlock.audit import verify
from interlock.config import Settings
from interlock.errors import InterlockError, NotAllowed
from interlock.models import Proposal, open_model
from interlock.policy import parse_policy
from interlock.ports import Query, SystemClock
from interlock.resources.documents import Documents
from interlock.stores import open_store
from interlock.tools.egress import Egress
from interlock.values import Budget
from tests.conftest import ALLOW, echo, running

PLAIN = Agent(name="plain", tools=("echo",), semantic=False)


careless: Any = Settings
"""The same struct for values that its types do not allow."""


@pytest.fixture
async def runtime() -> AsyncIterator[Any]:
    async with running(echo) as made:
        yield made


@pytest.mark.parametrize(
    ("details", "sentence"),
    [
        ({"mode": "aply"}, "mode is apply, dry_run, shadow, not 'aply'"),
        ({"confidence": "high"}, "confidence is a number between 0 and 1, not 'high'"),
        ({"confidence": 5}, "confidence is a number between 0 and 1, not 5"),
        ({"confidence": float("nan")}, "confidence is a number between 0 and 1, not nan"),
        ({"confidence": True}, "confidence is a number between 0 and 1, not True"),
        ({"evidence": "survey 12"}, "evidence= is a tuple of texts, not 'survey 12'"),
        ({"evidence": (3,)}, "evidence= is a tuple of texts, not (3,)"),
        ({"evidence": ("",)}, "'' cannot be the name"),
        ({"offered": "echo"}, "offered= is a tuple of names of tools, not 'echo'"),
        ({"offered": [3]}, "offered= is a tuple of names of tools, not [3]"),
        ({"locks": "shelf/a"}, "locks= is a tuple of what `runtime.lock` gives, not 'shelf/a'"),
        ({"locks": ("shelf/a",)}, "locks= is a tuple of what `runtime.lock` gives"),
        ({"budgets": {"id": "b"}}, "budgets= is a tuple of budgets (interlock.values.Budget)"),
        ({"budgets": (3,)}, "budgets= is a tuple of budgets (interlock.values.Budget), not (3,)"),
        ({"turn": 3}, "3 cannot be the name"),
        ({"actor": []}, "[] cannot be the name of an actor"),
        ({"actor": {}, "turn": "t"}, "{} cannot be the name of an actor"),
        ({"actor": None}, "None cannot be the name of an actor"),
        *(
            ({name: "x" * 1001}, f"'{'x' * 40}'… has 1,001 characters and cannot be the name of an actor, turn or call")
            for name in ("actor", "turn", "run", "call_id", "parent", "root_turn", "ticket", "plan")
        ),
        ({"evidence": ("a", "x" * 5_000_000)}, "has 5,000,000 characters"),
        ({"principal": "user:" + "x" * 5_000_000}, "characters"),
        ({"on_behalf_of": "user:" + "x" * 500}, "at most 256 characters"),
        ({"turn": "\n" * 900}, "cannot be the name of an actor, turn or call: use printable text"),
        ({"foo": 1}, "Runtime.call takes no 'foo'; it takes budgets, call_id"),
        ({"confidense": 0.5}, "Runtime.call takes no 'confidense'; did you mean 'confidence'?"),
        # A value of the call that only the library sets: to a program it is no option.
        ({"undoes": "claim"}, "Runtime.call takes no 'undoes'"),
        ({"id_is_ours": True}, "Runtime.call takes no 'id_is_ours'"),
    ],
)
async def test_a_detail_of_a_wrong_kind_is_refused_and_the_ledger_stays_readable(
    runtime: Any, details: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigError) as error:
        await runtime.call("echo", {"text": "x"}, **{"actor": "ann", **details})
    assert sentence in str(error.value)
    assert len(str(error.value)) < 400
    assert [record async for record in runtime.store.records(Query())] == []
    assert (await verify(runtime.store)).intact


async def test_a_tool_is_called_by_its_name(runtime: Any) -> None:
    with pytest.raises(ConfigError, match="by its name, such as 'echo', not by Tool"):
        await runtime.call(echo, {"text": "x"}, actor="ann")
    for strange in (3, None, ["echo"]):
        with pytest.raises(ConfigError, match=r"by its name, such as 'echo', not by"):
            await runtime.call(strange, {"text": "x"}, actor="ann")


async def test_a_list_does_for_a_tuple(runtime: Any) -> None:
    budgets = [Budget(id="b", per="turn", calls=1)]
    said = {"turn": "t", "evidence": ["survey 12"], "offered": ["echo"], "budgets": budgets, "locks": []}
    first = await runtime.call("echo", {"text": "x"}, actor="ann", **said)
    second = await runtime.call("echo", {"text": "y"}, actor="ann", **said)
    assert (first.status, second.status) == (Status.OK, Status.DENIED)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"settings": {"mode": "apply"}}, "settings= is interlock.config.Settings, not dict"),
        ({"settings": Settings(threads=0)}, "Settings: threads must be at least 1"),
        ({"settings": careless(lease_s="x")}, "Settings: lease_s: Expected `float`, got `str`"),
        ({"settings": careless(repeats="never")}, "Settings: repeats is answer, stop or allow, not 'never'"),
        ({"observers": print}, "observers= is a list of functions"),
        ({"packs": 3}, "packs= is one interlock.policy.Pack or several, not 3"),
        ({"packs": [3]}, "packs= is one interlock.policy.Pack or several, not 3"),
        ({"lists": 3}, "lists= is a dict"),
        ({"lists": {"a": ["x"]}}, "lists= is a dict of functions that return the values of a list, not {'a': ['x']}"),
        ({"faults": 3}, "faults= is an object with the method at"),
        ({"clock": 3}, "clock= is an object with the methods now_us, monotonic and sleep"),
        ({"clock": SystemClock}, "clock= is an object with the methods"),
        ({"ids": 3}, "ids= is an object with the methods new and uniform"),
        ({"principal": 3}, "3 cannot be a name"),
        ({"clocks": 1}, "Runtime.open takes no 'clocks'; did you mean 'clock'?"),
        ({"store": Path("ledger.db")}, "is no store: name one, such as 'sqlite:///interlock.db'"),
    ],
)
def test_a_part_of_a_wrong_kind_is_refused(parts: dict[str, Any], sentence: str) -> None:
    store = parts.pop("store", "memory://")
    with pytest.raises(ConfigError) as error:
        Runtime.open(store, policy=parse_policy(ALLOW), tools=[echo], **parts)
    assert sentence in str(error.value)


@pytest.mark.parametrize("approve", ["no", "yes", 1, None])
async def test_what_only_looks_like_a_yes_decides_nothing(runtime: Any, approve: Any) -> None:
    with pytest.raises(NotAllowed, match="approve is True or False"):
        await runtime.operations.decide("ticket", approve=approve, by="user:boss")
    with pytest.raises(NotAllowed, match="approve is True or False"):
        await Answers(runtime).decide("ticket", approve=approve, by="user:boss")


@pytest.mark.parametrize("which", [{"record": "seven"}, {"since_us": "yesterday"}, {"turn": 3}, {"run": ["r"]}])
async def test_a_selection_of_a_wrong_kind_undoes_nothing_and_says_so(runtime: Any, which: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"undo which changes\?"):
        await runtime.operations.undo(**which)


async def test_a_kill_switch_that_would_stop_nothing_is_refused(runtime: Any) -> None:
    with pytest.raises(ConfigError, match=r"there is no tool 'ecko' to halt; did you mean 'echo'\?"):
        await runtime.operations.halt("tool:ecko")
    assert await runtime.store.halts() == ()


async def test_an_answer_cannot_need_a_tool_that_its_agent_does_not_have(runtime: Any) -> None:
    for requires in ("ecko", need("ecko", where="args.text == 'x'")):
        with pytest.raises(ConfigError, match=r"needs 'ecko', which is none of its tools; did you mean 'echo'\?"):
            Answers(runtime).turn("?", agent=PLAIN, requires=requires)


def test_keywords_are_several_texts() -> None:
    loose: Any = Intent
    with pytest.raises(ConfigError, match=r"keywords are several texts, such as \('damage',\)"):
        loose(name="damage", requires="echo", keywords="damage")


def test_a_model_file_that_is_not_there_is_a_sentence() -> None:
    with pytest.raises(InterlockError, match=r"there is no file nope\.gguf"):
        open_model("local:nope.gguf")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"requries": "echo"}, "Answers.turn takes no 'requries'; did you mean 'requires'?"),
        ({"deadline": 3}, "Answers.turn takes no 'deadline'; it takes carried, given, mode"),
        ({"requires": 3}, "requires= is the name of a tool or a requirement such as need('lookup'), not 3"),
        ({"requires": ("echo",)}, "requires= is the name of a tool or a requirement"),
        ({"agent": "plain"}, "agent= is an interlock.answers.Agent, not 'plain'"),
        ({"question": 3}, "the question is a text, not 3"),
        ({"workflow": "slow"}, "workflow= is an interlock.answers.workflows.Workflow, not 'slow'"),
        ({"given": 7}, "given= is a tuple of numbers of records and sources, not 7"),
        ({"given": ("record 7",)}, "given= is a tuple of numbers of records and sources"),
        ({"mode": "aply"}, "mode is apply, dry_run, shadow, not 'aply'"),
        ({"run": 3}, "3 cannot be the name"),
        ({"parent": "a\nb"}, "cannot be the name"),
        ({"principal": 3}, "3 cannot be"),
        ({"principal": "os:somebody-else"}, "'os:somebody-else' cannot be given"),
        ({"on_behalf_of": []}, "[] cannot be"),
    ],
)
async def test_a_turn_that_says_something_odd_is_not_opened(runtime: Any, said: dict[str, Any], sentence: str) -> None:
    said = {"question": "Good morning", "agent": PLAIN, **said}
    with pytest.raises(ConfigError) as error:
        Answers(runtime).turn(said.pop("question"), **said)
    assert sentence in str(error.value)
    assert [record async for record in runtime.store.records(Query())] == []


async def test_an_agent_is_no_name_wherever_one_is_taken(runtime: Any) -> None:
    answers: Any = Answers(runtime)
    with pytest.raises(ConfigError, match=r"agent= is an interlock\.answers\.Agent, not 'plain'"):
        await answers.prepare("plain")
    with pytest.raises(ConfigError, match=r"agent= is an interlock\.answers\.Agent, not 'plain'"):
        answers.classify("plain", "Good morning")
    with pytest.raises(ConfigError, match=r"agent= is an interlock\.answers\.Agent, not 'plain'"):
        answers.reopen("turn", agent="plain")
    with pytest.raises(ConfigError, match="what Answers is made with is an open Runtime, not 'memory://'"):
        Answers("memory://")  # type: ignore[arg-type]
    async with answers.turn("Good morning", agent=PLAIN) as turn:
        with pytest.raises(ConfigError, match=r"agent= is an interlock\.answers\.Agent, not 'plain'"):
            turn.child("plain", "And you?")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"tools": "echo"},
            "agent 'plain': tools: Expected `array`, got `str`; it takes several: write tools=['echo']",
        ),
        ({"tools": 3}, "agent 'plain': tools: Expected `array`, got `int`"),
        ({"tools": (3,)}, "agent 'plain': tools: Expected `str`, got `int`"),
        ({"intents": Intent(name="i", requires="echo")}, "it takes several: write intents=[Intent(name='i'"),
        ({"default": 3}, "agent 'plain': default: Expected"),
        ({"deadline_s": "30"}, "agent 'plain': deadline_s: Expected `float`, got `str`"),
        ({"workflow": "slow"}, "agent 'plain': workflow: Expected"),
    ],
)
def test_an_agent_of_wrong_parts_is_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        Agent(**{"name": "plain", "tools": ("echo",), **fields})
    assert sentence in str(error.value)


async def test_an_agent_takes_lists_and_can_be_asked(runtime: Any) -> None:
    tools: Any = ["echo"]
    async with Answers(runtime).turn("Good morning", agent=Agent(name="plain", tools=tools, semantic=False)) as turn:
        assert [tool.name for tool in turn.tools] == ["echo"]


async def test_what_a_turn_is_given_is_of_the_right_kind(runtime: Any) -> None:
    turn: Any
    async with Answers(runtime).turn("Good morning", agent=PLAIN) as turn:
        with pytest.raises(
            ConfigError, match=r"what propose takes is a tuple of the calls of one reply, \[Proposal\(…\), …\], not"
        ):
            await turn.propose(Proposal(id="1", tool="echo", arguments={}))
        with pytest.raises(ConfigError, match="a draft is a text, or None where the model gave none, not 3"):
            await turn.finish(3)
        with pytest.raises(
            ConfigError, match=r"a model is one of interlock\.models\.open_model\('local'\), .* not 'loc"
        ):
            await run_turn(turn, "local")  # type: ignore[arg-type]
        assert turn.replies == 0


def test_a_requirement_names_tools() -> None:
    loose: Any
    for loose in (need, all_of, any_of):
        with pytest.raises(ConfigError, match=r"a requirement is the name of a tool, .* not 3"):
            loose(3)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ((3,), "a lock is of a key RESOURCE/KEY, such as 'shelf/a', not 3"),
        (("abc",), "a lock is of a key RESOURCE/KEY, such as 'shelf/a', not 'abc'"),
        (("/abc",), "a lock is of a key RESOURCE/KEY"),
        (("shelf/",), "a lock is of a key RESOURCE/KEY"),
        ((["shelf/a"],), "a lock is of a key RESOURCE/KEY"),
    ],
)
async def test_a_lock_that_locks_nothing_is_refused(runtime: Any, keys: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        async with runtime.lock(*keys):
            pass
    assert sentence in str(error.value)


@pytest.mark.parametrize("wait_s", ["3", -1, float("nan"), None, True])
async def test_a_wait_for_a_lock_is_a_number_of_seconds(runtime: Any, wait_s: Any) -> None:
    with pytest.raises(ConfigError, match="wait_s is a number of seconds, 0 or more, not"):
        async with runtime.lock("shelf/a", wait_s=wait_s):
            pass


@pytest.mark.parametrize("scope", [3, None, ["all"], "everything"])
async def test_only_a_scope_is_halted(runtime: Any, scope: Any) -> None:
    for work in (runtime.operations.halt, runtime.operations.unhalt):
        with pytest.raises(ConfigError, match="cannot be halted: say all, tool:NAME, actor:NAME or run:NAME"):
            await work(scope)
    assert await runtime.store.halts() == ()


@pytest.mark.parametrize("which", [{"turns": "t"}, {"record": "seven"}])
async def test_a_journal_of_a_wrong_selection_is_a_sentence(runtime: Any, which: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"journal"):
        [entry async for entry in runtime.operations.journal(**which)]
    if "turns" in which:
        for work in (runtime.operations.undo, runtime.operations.undo_plan):
            with pytest.raises(ConfigError, match=r"takes no 'turns'; did you mean 'turn'\?"):
                await work(**which)


def test_an_address_or_a_text_of_a_wrong_kind_is_a_sentence() -> None:
    loose: Any
    loose = open_store
    with pytest.raises(ConfigError, match="store 3 is not one of memory://, sqlite:///FILE"):
        loose(3)
    loose = Documents
    with pytest.raises(ConfigError, match="store 3 is not one of memory://, sqlite:///FILE"):
        loose(3, "things")
    with pytest.raises(ConfigError, match="3 cannot be the name of a table"):
        loose("sqlite:///x.db", 3)
    loose = open_model
    with pytest.raises(ConfigError, match="model 3: write local, provider:name"):
        loose(3)
    loose = parse_policy
    with pytest.raises(ConfigError, match=r"what parse_policy takes is the text of a policy \(.*\), not 3"):
        loose(3)
    loose = Egress
    for name in ("hosts", "schemes", "networks"):
        for wrong in (3, "example.org", [3]):
            with pytest.raises(ConfigError, match=f"Egress: {name}= is a tuple of"):
                loose(**{name: wrong})
    with pytest.raises(ConfigError, match="Egress: 'here' is no network"):
        loose(networks=["here"])
