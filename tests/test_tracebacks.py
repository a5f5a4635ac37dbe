"""Who wrote a tool sees its bugs: tracebacks in the log and beside the record. Who calls it hears the class alone."""

from __future__ import annotations

import base64
import logging
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel, field_validator

from interlock import ConfigError, RetryRule, Runtime, Status, tool
from interlock.audit import verify
from interlock.errors import WHERE_LOGGED, Permanent, Unavailable
from interlock.ports import Query
from interlock.tools import Redactor
from interlock.tools.tracebacks import format_traceback
from tests.conftest import ALLOW, expect, running

APPLY = 'mode = "apply"\n' + ALLOW
SAID = "postgresql://admin:hunter2@10.0.0.7/trails"


def look_up(name: str) -> str:
    raise LookupError(f"{name}: cannot connect to {SAID}")


async def beside(runtime: Runtime, number: int) -> dict[str, Any]:
    payload = await runtime.store.payload(number)
    return dict(msgspec.json.decode(expect(payload)))


@pytest.mark.parametrize(("effect", "status"), [("read", Status.FAILED), ("send", Status.UNKNOWN)])
@pytest.mark.parametrize("threaded", [False, True])
async def test_a_bug_is_in_the_log_and_beside_the_record_and_not_in_the_outcome(
    durable_url: str, caplog: pytest.LogCaptureFixture, effect: str, status: Status, threaded: bool
) -> None:
    def sync(name: str) -> str:
        return look_up(name)

    async def plain(name: str) -> str:
        return look_up(name)

    survey = tool(effect=effect, name="survey")(sync if threaded else plain)
    async with running(survey, policy=APPLY, store=durable_url) as runtime:
        outcome = await runtime.call("survey", {"name": "waldo"}, actor="a", call_id="c1")
        records = [record async for record in runtime.store.records(Query())]
        kept = await beside(runtime, records[-1].id)
        assert (await verify(runtime.store)).intact
    assert outcome.status is status
    assert "it raised LookupError, whose traceback is in the log" in expect(outcome.problem).message
    for text in (msgspec.json.encode(outcome).decode(), *(record.body for record in records)):
        assert SAID not in text
    for text in (kept["traceback"], caplog.text):
        assert f"LookupError: waldo: cannot connect to {SAID}" in text
        assert 'File "tests/test_tracebacks.py", line ' in text
        assert "in look_up" in text
        assert "interlock/engine" not in text
    assert "tool 'survey' in attempt 1 of call c1 raised LookupError" in caplog.text


async def test_a_traceback_is_redacted_in_every_spelling(caplog: pytest.LogCaptureFixture) -> None:
    @tool(effect="read", redact={"token"})
    async def login(token: str) -> str:
        try:
            raise KeyError(token)
        except KeyError as error:
            raise ValueError(base64.b64encode(f"user:{token}".encode()).decode()) from error

    async with running(login) as runtime:
        await runtime.call("login", {"token": "hunter2-hunter2"}, actor="a")
        payload = await beside(runtime, 1)
        assert (await verify(runtime.store)).intact
    assert payload["arguments"] == {"token": "hunter2-hunter2"}
    for text in (payload["traceback"], caplog.text):
        assert "KeyError: '[redacted]'" in text
        assert "ValueError: dXNlcj[redacted]" in text
        assert "hunter2" not in text
        assert "direct cause" in text


@pytest.mark.parametrize("error", [Permanent("it is closed"), Unavailable("later"), ConfigError("set SURVEY_KEY")])
async def test_what_our_own_errors_say_reaches_the_caller(caplog: pytest.LogCaptureFixture, error: Exception) -> None:
    @tool(effect="read", retry=RetryRule(max_attempts=1))
    async def survey() -> str:
        raise error

    async with running(survey) as runtime:
        outcome = await runtime.call("survey", {}, actor="a")
        assert await runtime.store.payload(1) is None
    assert expect(outcome.problem).message == str(error)
    assert "Traceback" not in caplog.text


class Unsayable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "error", [Unsayable(), ValueError("x" * 100_000), ValueError("\ud800"), ExceptionGroup("g", [KeyError(1)])]
)
async def test_any_exception_has_a_traceback_of_a_bounded_length(error: Exception) -> None:
    @tool(effect="read")
    async def survey() -> str:
        raise error

    async with running(survey) as runtime:
        outcome = await runtime.call("survey", {}, actor="a")
        kept = (await beside(runtime, 1))["traceback"]
    said = f"it raised {type(error).__name__}, whose traceback is in the log {WHERE_LOGGED}"
    assert expect(outcome.problem).message == said
    assert type(error).__name__ in kept
    assert len(kept) < 8100


def test_a_long_text_is_redacted_before_it_is_cut_and_a_long_chain_ends() -> None:
    error: Exception = ValueError("y" * 3990 + "hunter2" * 2 + "z" * 9000)
    text = format_traceback(error, Redactor(frozenset({"t"}), {"t": "hunter2"}))
    assert "characters left out" in text
    assert "hun" not in text
    for number in range(50):
        error.__cause__, error = None, _caused_by(error, number)
    assert len(format_traceback(error, None)) < 8100


def _caused_by(cause: Exception, number: int) -> Exception:
    error = ValueError(str(number))
    error.__cause__ = cause
    return error


async def test_a_denial_says_in_the_log_why(caplog: pytest.LogCaptureFixture) -> None:
    policy = ALLOW + '[[rule]]\nid = "no"\ntools = ["echo"]\ndecision = "deny"\nreason = "not\\non Sundays"\n'
    with caplog.at_level(logging.INFO, logger="interlock"):
        async with running(policy=policy) as runtime:
            await runtime.call("echo", {"text": "a"}, actor="ann", call_id="c1")
            await runtime.call("echo", {"text": 3}, actor="ann", call_id="c2")
    assert "call c1 of echo by ann: denied (rule no): not on Sundays" in caplog.text
    assert "call c2 of echo by ann: denied (rule contract): the arguments do not fit 'echo': text: " in caplog.text


class Shelf:
    name = "shelf"

    def __init__(self, breaks: str) -> None:
        self.breaks = breaks
        self.held: dict[str, Any] = {"title": "x"}

    async def read_state(self, key: str) -> Any:
        if self.breaks == "resource":
            raise OSError(SAID)
        return self.held

    async def restore(self, key: str, state: Any) -> None: ...


@pytest.mark.parametrize("breaks", ["resource", "simulate", "invariants"])
@pytest.mark.parametrize("redacts", [frozenset(), frozenset({"title"})])
async def test_what_a_tool_brings_along_may_break_as_quietly(
    caplog: pytest.LogCaptureFixture, breaks: str, redacts: frozenset[str]
) -> None:
    def simulate(state: Any, arguments: Any) -> Any:
        if breaks == "simulate":
            raise OSError(SAID)
        return {"title": arguments["title"]}

    async def invariants(*_given: Any) -> tuple[str, ...]:
        raise OSError(SAID)

    @tool(
        effect="write", key="{id}", resource=Shelf(breaks), simulate=simulate, invariants=invariants, redact=redacts,
    )  # fmt: skip
    async def retitle(id: str, title: str) -> bool:
        return True

    async with running(retitle, policy=APPLY) as runtime:
        outcome = await runtime.call("retitle", {"id": "a", "title": "b"}, actor="a", call_id="c")
        body = "".join([record.body async for record in runtime.store.records(Query())])
    assert outcome.status is not Status.OK
    assert "it raised OSError, whose traceback is in the log" in expect(outcome.problem).message
    assert SAID not in body
    assert "Traceback" in caplog.text
    assert (SAID in caplog.text) is not (breaks == "resource" and bool(redacts))


async def test_a_probe_and_a_validator_that_break_are_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    class Order(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def check(cls, number: int) -> int:
            if number == 0:
                raise LookupError(SAID)
            return number

    async def probe(_arguments: Any, _context: Any) -> bool:
        raise OSError(SAID)

    @tool(effect="send", probe=probe)
    async def charge(order: Order) -> bool:
        raise TimeoutError

    async with running(charge, policy=APPLY) as runtime:
        wrong = await runtime.call("charge", {"order": {"number": 0}}, actor="a", call_id="c1")
        outcome = await runtime.call("charge", {"order": {"number": 1}}, actor="a", call_id="c2")
    assert (wrong.status, outcome.status) == (Status.DENIED, Status.UNKNOWN)
    assert SAID not in expect(wrong.problem).message + expect(outcome.problem).message
    for line in ("a validator of 'charge' raised LookupError", "the probe of 'charge' raised OSError"):
        assert line in caplog.text


@pytest.mark.parametrize("fails", ["tool", "probe", "recovery"])
async def test_a_traceback_that_quotes_the_state_is_redacted(
    durable_url: str, caplog: pytest.LogCaptureFixture, fails: str
) -> None:
    people = Shelf("nothing")
    people.held = {"ssn": "078-05-1120", "n": 1}

    async def probe(_arguments: Any, _context: Any) -> bool:
        raise OSError(f"cannot look at {people.held}")

    @tool(
        effect="write", key="{id}", resource=people, redact={"ssn"}, probe=None if fails == "tool" else probe,
        simulate=lambda state, _given: {**state, "n": 2},
    )  # fmt: skip
    async def put(id: str) -> str:
        raise ValueError(f"cannot save {people.held}")

    async with running(put, policy=APPLY, store=durable_url) as runtime:
        await runtime.call("put", {"id": "k"}, actor="a", call_id="c")
        if fails == "recovery":
            caplog.clear()
            await runtime.operations.recover()
        record = [record async for record in runtime.store.records(Query(call="c"))][-1]
        kept = (await beside(runtime, record.id))["traceback"]
    assert "cannot save {'ssn': '[redacted]', 'n': 1}" in kept
    assert ("cannot save" if fails == "tool" else "cannot look at {'ssn': '[redacted]', 'n': 1}") in caplog.text
    assert "078-05" not in caplog.text + kept


async def test_a_resource_that_fails_is_logged_without_the_key_of_a_tool_that_redacts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @tool(effect="write", key="{iban}", resource=Shelf("resource"), redact={"iban"})
    async def put(iban: str) -> str:
        return "put"

    async with running(put, policy=APPLY) as runtime:
        outcome = await runtime.call("put", {"iban": "DE89370400440532013000"}, actor="a", call_id="c")
        body = "".join([record.body async for record in runtime.store.records(Query())])
    assert "'shelf/DE89370400440532013000' cannot be read" in expect(outcome.problem).message
    assert "the resource of 'put', asked for a key that the record names, raised RuntimeError" in caplog.text
    assert "DE89" not in caplog.text + body
    assert "'shelf/[redacted]' cannot be read" in body
