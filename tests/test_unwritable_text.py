"""Half a character (a lone surrogate) is no text: wherever it stands, the call is refused with a record, and none raises."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from interlock import Result, RetryRule, Runtime, Status, Tool, tool
from interlock.answers import Agent, Answers, Intent
from interlock.errors import NotFound, Unavailable
from interlock.models import Proposal
from interlock.ports import Query
from tests.conftest import ALLOW, running

HALF = "\ud83d"
SECRET = f"Canary123{HALF}tail"


@tool(effect="read", redact={"ssn"})
async def person(ssn: Any, note: Any = None) -> str:
    """Look somebody up."""
    return "x"


@tool(effect="read")
async def plain(ssn: Any, note: Any = None) -> str:
    """Look somebody up."""
    return "x"


@tool(effect="read", known_values={"trail": {"t1": "Waldo"}}, redact={"trail"})
async def trail(trail: str) -> str:
    """Look at a trail."""
    return "x"


@tool(effect="read", known_values={"trail": {f"t1{HALF}": f"Waldo{HALF}", "t2": "Waldo Lake"}})
async def odd_names(trail: str) -> str:
    """Look at a trail whose names are no text."""
    return "x"


async def _look(arguments: dict[str, Any]) -> str:
    return "x"


described = Tool.from_schema(
    "described", _look, schema={"type": "object", "properties": {"ssn": {}, "note": {}}}, effect="read", redact={"ssn"}
)


class Breaks(dict[str, Any]):
    """Arguments of a class of somebody else's."""

    def items(self) -> Any:
        raise RuntimeError("no items")

    def __iter__(self) -> Any:
        raise RuntimeError("no names")


async def records(runtime: Runtime) -> list[str]:
    return [record.body async for record in runtime.store.records(Query())]


GIVEN: Mapping[str, Any] = {
    "a text": SECRET,
    "nothing else": HALF,
    "many": f"ab{HALF}" * 10,
    "in a list": ["abcdef", [SECRET]],
    "in an object": {"a": {"b": SECRET}},
    "as a name": {SECRET: "abcdef"},
    "as a name, before what is no JSON": {SECRET: object(), "a": object()},
    "a class of somebody else's": Breaks(a=SECRET),
}


@pytest.mark.parametrize("store", ["memory://", "sqlite:///ledger.db"])
@pytest.mark.parametrize("name", ["person", "plain", "described", "trail", "no_such_tool"])
async def test_arguments_with_half_a_character_are_refused_with_a_record(
    name: str, store: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with running(person, plain, described, trail, policy=ALLOW, store=store) as runtime:
        for kind, given in GIVEN.items():
            for arguments in ({"ssn": given}, {"ssn": "abcdef", "note": given}, {"ssn": "abcdef", "extra": given}):
                before = len(await records(runtime))
                outcome = await runtime.call(name, arguments, actor="ann")
                assert outcome.status is Status.DENIED, (kind, arguments)
                assert len(await records(runtime)) == before + 1
                json.dumps(outcome.problem.message).encode()  # type: ignore[union-attr]
        if name != "plain":
            assert "Canary" not in "".join(await records(runtime))


@pytest.mark.parametrize("said", [f"Waldo{HALF}", f"{HALF}Waldo", f"Wald{HALF}", HALF, [f"Waldo{HALF}", "t1"]])
async def test_a_name_with_half_a_character_is_held_against_no_known_value(said: Any) -> None:
    async with running(trail, odd_names, policy=ALLOW) as runtime:
        for name in ("trail", "odd_names"):
            outcome = await runtime.call(name, {"trail": said}, actor="ann")
            assert outcome.status is Status.DENIED
            assert "lone surrogate" in outcome.problem.message  # type: ignore[union-attr]
        assert len(await records(runtime)) == 2


async def test_known_values_that_are_no_text_do_not_raise() -> None:
    async with running(odd_names, policy=ALLOW) as runtime:
        for said in ("Waldo", "Waldo Pass", "xyz"):
            outcome = await runtime.call("odd_names", {"trail": said}, actor="ann")
            assert outcome.status in (Status.DENIED, Status.NO_DATA)
        assert len(await records(runtime)) == 3


RETURNED: Mapping[str, Any] = {
    "a text": f"page {HALF}",
    "a name": {f"a{HALF}": 1},
    "in a list": ["a", [HALF]],
    "an error": {"error": f"no {HALF}", "ssn": SECRET},
    "a failure": {"success": False, "message": f"no {SECRET}", "ssn": SECRET},
    "an error in words": f"Error: {HALF}",
    "what is said": Result(value="x", summary=f"page {HALF}"),
    "a snippet": Result(value="x", snippets=(HALF,)),
    "a source": Result(value="x", sources=(HALF,)),
    "more": Result(value="x", metadata={f"ssn{HALF}": HALF, "ssn": SECRET}),
    "not found": NotFound(f"no {SECRET}", hints=(HALF,)),
    "not there": Unavailable(f"no {SECRET}"),
    "anything else": RuntimeError(f"no {SECRET}"),
}


@pytest.mark.parametrize("redacted", [frozenset[str](), frozenset({"ssn"})])
async def test_results_with_half_a_character_fail_with_a_record(redacted: frozenset[str]) -> None:
    @tool(effect="read", redact=redacted, retry=RetryRule(max_attempts=1))
    async def fetch(what: str, ssn: str = "abc") -> Any:
        """Fetch something."""
        found = RETURNED[what]
        if isinstance(found, Exception):
            raise found
        return found

    async with running(fetch, policy=ALLOW) as runtime:
        for what in RETURNED:
            outcome = await runtime.call("fetch", {"what": what}, actor="ann")
            assert outcome.status in (Status.FAILED, Status.NO_DATA), what
            outcome.problem.message.encode()  # type: ignore[union-attr]
        assert len(await records(runtime)) == len(RETURNED)


async def test_a_turn_outlives_half_a_character_of_a_model() -> None:
    agent = Agent(name="ag", tools=("person",), intents=(Intent(name="p", requires="person", keywords=("person",)),))
    async with (
        running(person, policy=ALLOW) as runtime,
        Answers(runtime).turn("which person?", agent=agent) as turn,
    ):
        (made,) = await turn.propose([Proposal("person", json.loads('{"ssn":"123456789\\ud83d"}'), id="1")])
        assert made.status is Status.DENIED
