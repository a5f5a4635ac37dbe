"""A fold over the ledger: counts by outcome, latency, retries and denials, per agent and tool."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import AsyncIterator

import msgspec

from interlock.records import Stored
from interlock.values import Decision, Status


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One agent and one tool."""

    actor: str
    tool: str
    calls: int
    """Those that were made or refused; what was answered from the record of another is counted apart."""
    outcomes: dict[str, int]
    repeats: dict[str, int]
    """Calls that were answered from the record of another, by outcome."""
    p50_ms: float
    p90_ms: float
    p99_ms: float
    total_s: float
    retries: int
    cost_usd: float


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is computed from records."""

    lines: tuple[Line, ...]
    denials: dict[str, int]


class _Sum:
    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.repeats: Counter[str] = Counter()
        self.durations_us = array("Q")  # 8 bytes a call: a fold may go over millions
        self.retries = 0
        self.cost_micros = 0


async def fold(records: AsyncIterator[Stored]) -> Metrics:
    """Compute the metrics of a stream of records."""
    sums: dict[tuple[str, str], _Sum] = {}
    denials: Counter[str] = Counter()
    async for record in records:
        if record.kind != "call":
            continue
        content = record.content()
        into = sums.setdefault((record.actor, record.tool), _Sum())
        if content.repeats is not None:  # nothing was made, and how long that took says nothing about the tool
            into.repeats[record.status] += 1
            continue
        into.outcomes[record.status] += 1
        into.durations_us.append(content.duration_us)
        into.retries += max(0, len(content.attempts) - 1)
        into.cost_micros += content.cost_micros
        if record.status == Status.DENIED and content.verdict is not None:
            allowed = content.verdict.decision is not Decision.DENY and content.problem is not None
            # In older records the verdict names the rule that let the call pass, where something else refused it.
            denials[content.problem.reason.value if allowed and content.problem else content.verdict.rule] += 1
    lines = tuple(_line(actor, tool, item) for (actor, tool), item in sorted(sums.items()))
    return Metrics(lines=lines, denials=dict(denials.most_common()))


def _line(actor: str, tool: str, item: _Sum) -> Line:
    ordered = sorted(item.durations_us)
    return Line(
        actor=actor,
        tool=tool,
        calls=len(ordered),
        outcomes=_in_order(item.outcomes),
        repeats=_in_order(item.repeats),
        p50_ms=_quantile(ordered, 0.5),
        p90_ms=_quantile(ordered, 0.9),
        p99_ms=_quantile(ordered, 0.99),
        total_s=sum(ordered) / 1e6,
        retries=item.retries,
        cost_usd=item.cost_micros / 1e6,
    )


def _in_order(counts: Counter[str]) -> dict[str, int]:
    return {status.value: counts[status.value] for status in Status if counts[status.value]}


def _quantile(ordered: list[int], q: float) -> float:
    """The nearest-rank quantile, in milliseconds."""
    # In whole numbers: as a float 0.07 * 100 is 7.000000000000001, which would be one rank too many.
    if not ordered:
        return 0.0
    rank = max(0, -(-int(q * 1000) * len(ordered) // 1000) - 1)
    return ordered[rank] / 1000
