"""One event for each record: a log line always, an OpenTelemetry span where asked. Never arguments or results."""

from __future__ import annotations

import logging
from collections.abc import Callable

from interlock.errors import ConfigError, install_hint
from interlock.reasons import Reason
from interlock.records import Record
from interlock.values import Status

_log = logging.getLogger("interlock")
_INFO, _WARNING = logging.INFO, logging.WARNING
_FINE = frozenset({Status.OK.value, Status.NO_DATA.value, Status.PLANNED.value, Status.INPUT_REQUIRED.value})
_LONGEST_REASON = 500
_enabled = _log.isEnabledFor


def _is_fine(record: Record) -> bool:
    """Whether nobody need look: a change that was made and whose answer is lost is `ok`, and worth a look."""
    problem = record.content.problem
    return record.status in _FINE and (problem is None or problem.reason is not Reason.ANSWER_LOST)


def log_record(record: Record, number: int) -> None:
    """One standard logging event: ids, outcome, rule and reason."""
    # On the path of every call: nothing is put together that nobody reads.
    content = record.content
    problem = content.problem
    level = _INFO if (problem is None and record.status in _FINE) or _is_fine(record) else _WARNING
    if not _enabled(level):
        return
    verdict = content.verdict
    fields = {
        "record": number,
        "call": record.call,
        "turn": record.turn,
        "actor": record.actor,
        "tool": record.tool,
        "outcome": record.status,
        "rule": None if verdict is None else verdict.rule,
        "reason": None if verdict is None else verdict.reason,
        "error": None if problem is None else problem.reason,
        "duration_ms": content.duration_us / 1000,
        "attempts": len(content.attempts),
    }
    _log.log(
        level,
        "call %s of %s by %s: %s (rule %s)%s",
        record.call,
        record.tool,
        record.actor,
        record.status,
        fields["rule"],
        _why(record),
        extra={"interlock": fields},
    )


def _why(record: Record) -> str:
    """Why a call did not go its way: of a refusal the sentence; of a failure its kind, as tools quote anything."""
    problem = record.content.problem
    if problem is None or _is_fine(record):
        return ""
    if record.status != Status.DENIED.value:
        return f": {problem.reason}"
    return f": {' '.join(problem.message.split())[:_LONGEST_REASON]}"


def span_observer() -> Callable[[Record, int], None]:
    """An observer that emits a span for each record, named by the GenAI semantic conventions."""
    try:
        from opentelemetry import trace
    except ImportError:
        raise ConfigError(f"otel = true needs OpenTelemetry: {install_hint('otel')}") from None
    tracer = trace.get_tracer("interlock")

    def observe(record: Record, number: int) -> None:
        content = record.content
        attributes: dict[str, str | int] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": record.tool,
            "gen_ai.tool.call.id": record.call,
            "gen_ai.tool.type": "function",
            "gen_ai.agent.name": record.actor,
            "interlock.record": number,
            "interlock.outcome": record.status,
            "interlock.attempts": len(content.attempts),
        }
        if record.turn is not None:
            attributes["gen_ai.conversation.id"] = record.turn
        if content.verdict is not None:
            attributes["interlock.rule"] = content.verdict.rule
        if content.problem is not None:
            attributes["error.type"] = content.problem.reason
        start_ns = content.started_us * 1000
        span = tracer.start_span(
            f"execute_tool {record.tool}",
            start_time=start_ns,
            kind=trace.SpanKind.INTERNAL,
            attributes=attributes,
        )
        if record.status not in _FINE:
            span.set_status(trace.StatusCode.ERROR, content.problem.reason if content.problem else record.status)
        span.end(end_time=start_ns + content.duration_us * 1000)

    return observe
