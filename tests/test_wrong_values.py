"""Values of a wrong kind where a program calls Interlock: a sentence that says what is meant, and nothing is done."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from interlock import ConfigError, Runtime
from interlock.answers import Agent, Answers, Intent, need
from interlock.audit import verify
from interlock.errors import InterlockError, NotAllowed
from interlock.models import open_model
from interlock.policy import parse_policy
from interlock.ports import Query
from tests.conftest import ALLOW, echo, running


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
        ({"evidence": "survey 12"}, "evidence= is a tuple, not 'survey 12'"),
        ({"evidence": (3,)}, "3 cannot be the name"),
        ({"offered": "echo"}, "offered= is a tuple, not 'echo'"),
        ({"locks": "shelf/a"}, "locks= is a tuple"),
        ({"budgets": {"id": "b"}}, "budgets= is a tuple"),
        ({"turn": 3}, "3 cannot be the name"),
    ],
)
async def test_a_detail_of_a_wrong_kind_is_refused_and_the_ledger_stays_readable(
    runtime: Any, details: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigError) as error:
        await runtime.call("echo", {"text": "x"}, actor="ann", **details)
    assert sentence in str(error.value)
    assert [record async for record in runtime.store.records(Query())] == []
    assert (await verify(runtime.store)).intact


async def test_a_tool_is_called_by_its_name(runtime: Any) -> None:
    with pytest.raises(ConfigError, match="by its name, such as 'echo', not by Tool"):
        await runtime.call(echo, {"text": "x"}, actor="ann")


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"settings": {"mode": "apply"}}, "settings= is interlock.config.Settings, not dict"),
        ({"observers": print}, "observers= is a list of functions"),
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
    agent = Agent(name="trails", tools=("echo",))
    for requires in ("ecko", need("ecko", where="args.text == 'x'")):
        with pytest.raises(ConfigError, match=r"needs 'ecko', which is none of its tools; did you mean 'echo'\?"):
            Answers(runtime).turn("?", agent=agent, requires=requires)


def test_keywords_are_several_texts() -> None:
    careless: Any = Intent
    with pytest.raises(ConfigError, match=r"keywords are several texts, such as \('damage',\)"):
        careless(name="damage", requires="echo", keywords="damage")


def test_a_model_file_that_is_not_there_is_a_sentence() -> None:
    with pytest.raises(InterlockError, match=r"there is no file nope\.gguf"):
        open_model("local:nope.gguf")
