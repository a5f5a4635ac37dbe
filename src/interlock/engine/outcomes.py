"""What the caller of a call hears: how it ended, or that it could not be written down."""

from __future__ import annotations

from interlock.engine.context import Ended
from interlock.errors import StoreError
from interlock.reasons import Reason
from interlock.tools import LONGEST_MESSAGE, shorten_problem
from interlock.values import Effect, Outcome, Problem, Status, Trust


def outcome_of(ended: Ended, duration_us: int, number: int | None) -> Outcome:
    """How a call ended, as its caller hears it."""
    reading, problem = ended.reading, ended.reading.problem
    if ended.is_plain:  # by position: a tenth of a microsecond for each keyword is much of a read
        return Outcome(
            ended.call.call_id, ended.call.tool, reading.status, reading.value, reading.said, ended.attempts,
            duration_us, ended.verdict, ended.plan, number,
        )  # fmt: skip
    return Outcome(
        call_id=ended.call.call_id,
        tool=ended.call.tool,
        status=reading.status,
        value=reading.value,
        said=reading.said if problem is None else reading.said[:LONGEST_MESSAGE],
        attempts=ended.attempts,
        duration_us=duration_us,
        verdict=ended.verdict,
        plan=ended.plan,
        record=number,
        problem=None if problem is None else shorten_problem(problem),
        snippets=reading.snippets,
        metadata=reading.metadata,
        confidence=reading.confidence,
        sources=reading.sources,
        trust=Trust.TRUSTED if ended.tool is None else ended.tool.trust,
        undone=ended.undone,
        ticket=ended.ticket,
        deviates=ended.deviates,
        repeats=ended.repeats,
    )


def unrecorded_outcome(ended: Ended, duration_us: int, error: StoreError) -> Outcome:
    """A result that could not be recorded does not leave: a read has failed; of a change that may have been made, by
    this call or by one before it, nobody knows."""
    reads = ended.tool is None or ended.tool.effect is Effect.READ
    made = bool(ended.attempts) or ended.reading.status in (Status.OK, Status.UNKNOWN)
    return Outcome(
        call_id=ended.call.call_id,
        tool=ended.call.tool,
        status=Status.UNKNOWN if made and not reads else Status.FAILED,
        said="the store could not record the call",
        problem=Problem(reason=Reason.STORE_UNAVAILABLE, message=f"not recorded, so not given out: {error}"),
        attempts=ended.attempts,
        duration_us=duration_us,
        verdict=ended.verdict,
    )
