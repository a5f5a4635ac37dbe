"""The effects of a turn as its records tell them: what was done, waits, was refused; and the line that says so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import assert_never

from interlock.answers.requirements import CallSeen
from interlock.reasons import Reason
from interlock.values import Status, Value, shorten


class EffectState(StrEnum):
    """How a call that changes the world stands: a closed set."""

    DONE = "done"
    WAITING = "waiting"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"
    PLANNED = "planned"
    UNDONE = "undone"


class TurnEffect(Value, frozen=True):
    """One call of a turn that changes the world, and how it stands."""

    tool: str
    state: EffectState
    record: int
    ticket: str | None = None
    reason: str = ""


_TITLES = {
    EffectState.DONE: "Done",
    EffectState.WAITING: "Waiting for approval",
    EffectState.REFUSED: "Refused",
    EffectState.FAILED: "Failed",
    EffectState.UNKNOWN: "Not known whether it happened",
    EffectState.PLANNED: "Previewed only",
    EffectState.UNDONE: "Done and taken back since",
}
_MALFORMED = (
    Reason.INVALID_ARGUMENTS,
    Reason.AMBIGUOUS,
    Reason.INPUT_REQUIRED,
    Reason.CALL_ID_REUSED,
    Reason.NO_CALL_ID,
    Reason.NOT_OFFERED,
)
_STARTS = tuple(f"{title}: " for title in _TITLES.values())
_SHOWN = 20
"""So many calls of one kind are named in the line; `TurnResult.effects` has all."""


def effects_of(calls: Sequence[CallSeen], undone: Iterable[int] = ()) -> tuple[TurnEffect, ...]:
    """The effects of calls, in the order of their records; `undone` are records whose change was taken back."""
    taken_back, found = set(undone), list[TurnEffect]()
    listed = {call.record for call in calls}
    for at, call in enumerate(calls):
        # What was answered from the record of another call here is that call, delivered once more.
        if not call.changes or call.repeats in listed or _was_corrected(call, calls[at + 1 :]):
            continue
        state = EffectState.UNDONE if call.record in taken_back else _state_of(call.status)
        reason = "" if state is EffectState.DONE else shorten(call.message, 160)
        found.append(TurnEffect(call.tool, state, call.record, call.ticket, reason))
    return tuple(found)


def _was_corrected(call: CallSeen, later: Sequence[CallSeen]) -> bool:
    """Whether a call could not be read, and its tool was called again: it never was a request of its own."""
    return call.reason in _MALFORMED and any(other.tool == call.tool for other in later)


def _state_of(status: Status) -> EffectState:
    match status:
        case Status.OK:
            return EffectState.DONE
        case Status.PARKED:
            return EffectState.WAITING
        case Status.DENIED:
            return EffectState.REFUSED
        case Status.FAILED | Status.NO_DATA | Status.INPUT_REQUIRED:
            return EffectState.FAILED
        case Status.UNKNOWN:
            return EffectState.UNKNOWN
        case Status.PLANNED:
            return EffectState.PLANNED
        case _:
            assert_never(status)


def closing_line(effects: Sequence[TurnEffect]) -> str:
    """What was done, waits, or was refused, with the numbers of the records; empty for a turn without effects."""
    parts = []
    for state, title in _TITLES.items():
        mine = [effect for effect in effects if effect.state is state]
        if mine:
            named = ", ".join(f"{effect.tool} ({_reference(effect)})" for effect in mine[:_SHOWN])
            more = f" and {len(mine) - _SHOWN} more" if len(mine) > _SHOWN else ""
            parts.append(f"{title}: {named}{more}.")
    return " ".join(parts)


def _reference(effect: TurnEffect) -> str:
    ticket = f", ticket {effect.ticket}" if effect.ticket and effect.state is EffectState.WAITING else ""
    return f"record {effect.record}{ticket}"


def with_closing_line(answer: str, effects: Sequence[TurnEffect]) -> str:
    """An answer that ends with the line, once: a line of that form that a model wrote is not one of ours."""
    line = closing_line(effects)
    return "\n\n".join(part for part in (without_closing_line(answer), line) if part)


def without_closing_line(answer: str) -> str:
    """An answer without lines of the form of the one that is written from the records."""
    if "(record " not in answer:
        return answer
    return "\n".join(part for part in answer.split("\n") if not _is_closing_line(part)).rstrip()


def _is_closing_line(line: str) -> bool:
    return line.strip().startswith(_STARTS) and "(record " in line
