"""What a tool gives: one result contract, honest failure, honest nothing."""

from __future__ import annotations

import itertools
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from interlock import Limits, Result, Status, Trust, tool
from interlock.tools.results import Output, read_result
from interlock.values import one_line
from tests.conftest import running

ANY = Output(Any, "test")


def read(raw: Any, output: Output = ANY, **options: Any) -> Any:
    return read_result(raw, output, **{"nothing_is_ok": False, "max_bytes": 1000, **options})


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"success": False}, "the tool reported failure"),
        ({"success": False, "message": "no such row"}, "no such row"),
        ({"error": "boom"}, "boom"),
        ({"error": {"message": "deep"}}, "deep"),
        ({"error": ["a"]}, "['a']"),
        ({"isError": True, "content": [{"type": "text", "text": "bad"}]}, "bad"),
        ({"is_error": True}, "the tool reported failure"),
        ("Error: no route", "Error: no route"),
        ("ValueError: bad", "ValueError: bad"),
        ("error 404: gone", "error 404: gone"),
        ("Traceback (most recent call last):\n  x", "Traceback (most recent call last):\n  x"),
    ],
)
def test_a_failure_that_is_returned_instead_of_raised_is_failed(raw: Any, message: str) -> None:
    reading = read(raw)
    assert (reading.status, reading.problem.reason, reading.problem.message) == (
        Status.FAILED,
        "reported_failure",
        message,
    )


def test_an_in_band_failure_counts_even_where_another_type_was_promised() -> None:
    class Damage(BaseModel):
        damage_class: int

    reading = read({"error": "not surveyed"}, Output(Damage, "test"))
    assert reading.problem.message == "not surveyed"


@pytest.mark.parametrize(
    "raw",
    [
        {"success": True, "error": None},
        {"error": ""},
        {"errors": []},
        "errors are human",
        "Error analysis: all fine",
        "x",
    ],
)
def test_words_that_only_look_like_failure_are_not(raw: Any) -> None:
    assert read(raw).status is Status.OK


@pytest.mark.parametrize("raw", [None, "", "  ", [], {}, (), set(), Result(), Result(value=[1], no_data=True)])
def test_nothing_is_no_data(raw: Any) -> None:
    reading = read(raw)
    assert (reading.status, reading.value, reading.said) == (Status.NO_DATA, None, "nothing found")


def test_zero_and_false_are_answers() -> None:
    assert read(0).value == 0
    assert read(False).value is False


def test_a_result_carries_everything_and_needs_nothing() -> None:
    made = Result(
        value={"a": 1},
        summary="s",
        snippets=("x",),
        metadata={"m": 1},
        confidence=0.5,
        sources=("f",),
        cost_usd=0.1,
    )
    reading = read(made)
    assert (reading.said, reading.snippets, reading.metadata) == ("s", ("x",), {"m": 1})
    assert (reading.confidence, reading.sources, reading.cost_micros) == (0.5, ("f",), 100_000)
    assert Result().value is None


def test_typed_values_are_written_as_json() -> None:
    class Row(BaseModel):
        day: date
        amount: Decimal

    reading = read(Row(day=date(2026, 1, 2), amount=Decimal("1.50")), Output(Row, "test"))
    assert reading.value == {"day": "2026-01-02", "amount": "1.50"}


def test_what_was_not_promised_is_failed() -> None:
    reading = read({"day": "x"}, Output(int, "test"))
    assert reading.problem.reason == "bad_result"
    assert "something else than it promised" in reading.problem.message


@pytest.mark.parametrize("raw", [object(), float("nan"), {"a": float("inf")}, "\ud800", {"a": {1: object()}}])
def test_what_cannot_be_written_as_json_is_failed_and_says_so(raw: Any) -> None:
    reading = read(raw)
    assert (reading.status, reading.problem.reason) == (Status.FAILED, "bad_result")


@pytest.mark.parametrize("sure", [-0.1, 1.01, 95, float("nan"), float("inf"), True, "0.9", "high"])
@pytest.mark.parametrize("more", [{"value": 1}, {"no_data": True}])
def test_a_confidence_is_a_number_between_0_and_1(sure: Any, more: dict[str, Any]) -> None:
    reading = read(Result(confidence=sure, **more))
    assert (reading.status, reading.problem.reason, reading.confidence) == (Status.FAILED, "bad_result", None)
    assert f"confidence must be a number between 0 and 1, not {sure!r}" in reading.problem.message
    assert [read(Result(value=1, confidence=fits)).confidence for fits in (0, 1, 0.5)] == [0, 1, 0.5]


def test_bad_metadata_is_failed() -> None:
    assert read(Result(value=1, metadata={"x": float("nan")})).problem.reason == "bad_result"
    assert read(Result(no_data=True, metadata={"x": float("nan")})).problem.reason == "bad_result"


def test_a_result_over_max_bytes_is_failed_never_cut() -> None:
    reading = read("x" * 2000)
    assert (reading.status, reading.problem.reason, reading.value) == (Status.FAILED, "too_large", None)


def test_the_summary_is_one_line() -> None:
    assert one_line("a\nb  c") == "a b c"
    assert len(one_line("word " * 200)) == 160
    assert len(one_line(["word"] * 100)) == 160


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
        lambda i: st.lists(i) | st.dictionaries(st.text(), i),
    )
)
def test_reading_a_result_never_raises(raw: Any) -> None:
    assert read(raw).status in (Status.OK, Status.NO_DATA, Status.FAILED)


async def test_an_untrusted_tool_marks_its_outcome() -> None:
    @tool(effect="read", trust="untrusted", limits=Limits(max_bytes=50))
    async def page(n: int) -> str:
        return "x" * n

    async with running(page) as runtime:
        fine = await runtime.call("page", {"n": 5}, actor="a")
        large = await runtime.call("page", {"n": 500}, actor="a")
    assert (fine.trust, fine.ok) == (Trust.UNTRUSTED, True)
    assert large.problem is not None
    assert large.problem.reason == "too_large"


@pytest.mark.parametrize("raw", [(n for n in itertools.count()), {"a": [itertools.count()]}, iter([1])])
def test_what_may_have_no_end_is_refused_and_not_gone_through(raw: Any) -> None:
    found = read(raw)
    assert (found.status, found.returned) == (Status.FAILED, True)
    assert "may have no end; return a list" in found.problem.message


class Vague:
    """As arrays and tables of other libraries: it cannot be asked whether it is empty."""

    def __bool__(self) -> bool:
        raise ValueError("the truth value is ambiguous")


async def test_a_send_that_returned_something_unreadable_has_been_made_all_the_same() -> None:
    @tool(effect="send")
    async def mail(to: str) -> Any:
        return Vague()

    policy = 'version = 1\nmode = "apply"\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n'
    async with running(mail, policy=policy) as runtime:
        outcome = await runtime.call("mail", {"to": "x"}, actor="a", call_id="1")
    assert (outcome.status, outcome.problem and outcome.problem.reason) == (Status.FAILED, "bad_result")
    assert "a Vague, which cannot be read: it raised ValueError" in outcome.summary
