"""Metrics in the Prometheus text format."""

from __future__ import annotations

from interlock.metrics.fold import Metrics


def exposition(metrics: Metrics) -> str:
    """The text that a scraper reads."""
    rows = [
        "# HELP interlock_calls_total Calls by agent, tool and outcome; repeat: answered from the record of another.",
        "# TYPE interlock_calls_total counter",
    ]
    for line in metrics.lines:
        for repeat, counts in (("false", line.outcomes), ("true", line.repeats)):
            for outcome, count in counts.items():
                labels = _labels(actor=line.actor, tool=line.tool, outcome=outcome, repeat=repeat)
                rows.append(f"interlock_calls_total{labels} {count}")
    rows += [
        "# HELP interlock_call_seconds Duration of calls, without repeats.",
        "# TYPE interlock_call_seconds summary",
    ]
    for line in metrics.lines:
        for q, ms in (("0.5", line.p50_ms), ("0.9", line.p90_ms), ("0.99", line.p99_ms)):
            rows.append(f"interlock_call_seconds{_labels(actor=line.actor, tool=line.tool, quantile=q)} {ms / 1000:g}")
        rows.append(f"interlock_call_seconds_sum{_labels(actor=line.actor, tool=line.tool)} {line.total_s:g}")
        rows.append(f"interlock_call_seconds_count{_labels(actor=line.actor, tool=line.tool)} {line.calls}")
    rows += [
        "# HELP interlock_retries_total Attempts after the first.",
        "# TYPE interlock_retries_total counter",
    ]
    rows += [
        f"interlock_retries_total{_labels(actor=line.actor, tool=line.tool)} {line.retries}" for line in metrics.lines
    ]
    rows += ["# HELP interlock_denials_total Denied calls by rule.", "# TYPE interlock_denials_total counter"]
    rows += [f"interlock_denials_total{_labels(rule=rule)} {count}" for rule, count in metrics.denials.items()]
    return "\n".join(rows) + "\n"


def _labels(**labels: str) -> str:
    pairs = (f'{name}="{_escape(value)}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
