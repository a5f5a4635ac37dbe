"""Metrics come from records, and spans follow the GenAI conventions."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from interlock import ConfigError, RetryRule, tool
from interlock.config import Settings
from interlock.errors import Unavailable
from interlock.metrics.events import span_observer
from interlock.metrics.fold import fold
from interlock.metrics.prometheus import exposition
from interlock.ports import Query
from interlock.testing import ManualClock
from tests.conftest import ALLOW, echo, running


async def sample() -> Any:
    left = [1, 1]

    @tool(effect="read", retry=RetryRule(max_attempts=3))
    async def shaky() -> str:
        if left:
            left.pop()
            raise Unavailable("x")
        return "x"

    policy = (
        ALLOW
        + '[[rule]]\nid = "no\\"pe"\ntools = ["echo"]\ndecision = "deny"\nwhen = "args.times == 9"\n[[budget]]\nid = "b"\nper = "run"\ncalls = 1\n'
    )
    async with running(echo, shaky, policy=policy, clock=ManualClock()) as runtime:
        for times in (1, 2, 9, 9):
            await runtime.call("echo", {"text": "a", "times": times}, actor="ann")
        await runtime.call("echo", {"text": 3}, actor="bob")
        await runtime.call("shaky", {}, actor="bob")
        for _ in range(2):
            await runtime.call("echo", {"text": "a"}, actor="run", run="r")
        return await fold(runtime.store.records(Query()))


async def test_calls_are_counted_by_agent_tool_and_outcome() -> None:
    metrics = await sample()
    lines = {(line.actor, line.tool): line for line in metrics.lines}
    assert lines["ann", "echo"].outcomes == {"ok": 2, "denied": 2}
    assert lines["bob", "echo"].outcomes == {"denied": 1}
    assert (lines["bob", "shaky"].retries, lines["bob", "shaky"].outcomes) == (2, {"ok": 1})
    assert metrics.denials == {'no"pe': 2, "contract": 1, "budget_exhausted": 1}


async def test_what_was_answered_from_a_record_is_counted_apart() -> None:
    charged: list[str] = []

    @tool(effect="send", key="{to}")
    async def charge(to: str) -> str:
        charged.append(to)
        return "charged"

    async with running(charge, policy='mode = "apply"\n' + ALLOW) as runtime:
        for call_id in ("a", "b", "a", "a", "b"):
            await runtime.call("charge", {"to": call_id}, actor="ann", call_id=call_id)
        metrics = await fold(runtime.store.records(Query()))
    (line,) = metrics.lines
    assert (charged, line.calls, line.outcomes, line.repeats) == (["a", "b"], 2, {"ok": 2}, {"ok": 3})
    text = exposition(metrics)
    assert 'interlock_calls_total{actor="ann",tool="charge",outcome="ok",repeat="false"} 2\n' in text
    assert 'interlock_calls_total{actor="ann",tool="charge",outcome="ok",repeat="true"} 3\n' in text
    assert 'interlock_call_seconds_count{actor="ann",tool="charge"} 2\n' in text


async def test_quantiles_are_those_of_the_recorded_durations() -> None:
    clock = ManualClock()

    @tool(effect="read", timeout_s=10_000)
    async def nap(ms: int) -> int:
        clock.advance(ms / 1000)
        return ms

    async with running(nap, clock=clock) as runtime:
        for ms in range(1, 101):
            await runtime.call("nap", {"ms": ms}, actor="a")
        (line,) = (await fold(runtime.store.records(Query()))).lines
    assert [round(value) for value in (line.p50_ms, line.p90_ms, line.p99_ms)] == [50, 90, 99]
    assert round(line.total_s, 2) == 5.05


async def test_the_prometheus_text_can_be_read_by_its_parser() -> None:
    text = exposition(await sample())
    assert 'interlock_calls_total{actor="ann",tool="echo",outcome="ok",repeat="false"} 2\n' in text
    assert 'interlock_denials_total{rule="no\\"pe"} 2\n' in text
    assert 'interlock_retries_total{actor="bob",tool="shaky"} 2\n' in text
    for line in text.splitlines():
        assert line.startswith("# ") or float(line.rpartition(" ")[2]) >= 0


async def test_a_span_is_emitted_for_each_record() -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)

    @tool(effect="read")
    async def nap() -> str:
        await asyncio.sleep(0.01)
        return "x"

    async with running(nap, settings=Settings(otel=True)) as runtime:
        await runtime.call("nap", {}, actor="ann", turn="t1", call_id="c1")
        await runtime.call("nop", {}, actor="ann")
    fine, denied = exporter.get_finished_spans()
    assert fine.name == "execute_tool nap"
    assert fine.attributes is not None
    assert denied.attributes is not None
    assert dict(fine.attributes) | {"interlock.record": 1} == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "nap",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": "ann",
        "gen_ai.conversation.id": "t1",
        "interlock.record": 1,
        "interlock.outcome": "ok",
        "interlock.attempts": 1,
        "interlock.rule": "open",
    }
    assert (fine.end_time or 0) - (fine.start_time or 0) >= 10_000_000
    assert denied.status.status_code is trace.StatusCode.ERROR
    assert denied.attributes["error.type"] == "unknown_tool"


def test_without_opentelemetry_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigError, match=r"pip install 'interlock\[otel\]'"):
        span_observer()
