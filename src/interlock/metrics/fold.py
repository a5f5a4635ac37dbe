"""A fold over the ledger: counts by outcome, latency, retries and denials, per agent and tool."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import AsyncIterator

import msgspec

from interlock.reasons import Reason
from interlock.records import Stored
from interlock.values import Status


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One agent and one tool."""

    actor: str
    tool: str
    calls: int
    outcomes: dict[str, int]
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
        into.outcomes[record.status] += 1
        into.durations_us.append(content.duration_us)
        into.retries += max(0, len(content.attempts) - 1)
        into.cost_micros += content.cost_micros
        if record.status == Status.DENIED and content.verdict is not None:
            limited = content.problem is not None and content.problem.reason in (
                Reason.BUDGET_EXHAUSTED,
                Reason.RATE_LIMITED,
            )
            # The verdict names the rule that allowed the call; what refused it was a budget or a rate.
            denials[content.problem.reason if limited and content.problem else content.verdict.rule] += 1
    lines = tuple(_line(actor, tool, item) for (actor, tool), item in sorted(sums.items()))
    return Metrics(lines=lines, denials=dict(denials.most_common()))


def _line(actor: str, tool: str, item: _Sum) -> Line:
    ordered = sorted(item.durations_us)
    return Line(
        actor=actor,
        tool=tool,
        calls=len(ordered),
        outcomes={status.value: item.outcomes[status.value] for status in Status if item.outcomes[status.value]},
        p50_ms=_quantile(ordered, 0.5),
        p90_ms=_quantile(ordered, 0.9),
        p99_ms=_quantile(ordered, 0.99),
        total_s=sum(ordered) / 1e6,
        retries=item.retries,
        cost_usd=item.cost_micros / 1e6,
    )


def _quantile(ordered: list[int], q: float) -> float:
    """The nearest-rank quantile, in milliseconds."""
    # In whole numbers: as a float 0.07 * 100 is 7.000000000000001, which would be one rank too many.
    rank = max(0, -(-int(q * 1000) * len(ordered) // 1000) - 1)
    return ordered[rank] / 1000
