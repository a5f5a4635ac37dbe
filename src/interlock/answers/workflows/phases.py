"""Phases, what ends them, and where a turn stands: pure functions of what has happened so far."""

from __future__ import annotations

from interlock.values import Value


class Done(Value, frozen=True):
    """When a phase is over: everything that is named must hold."""

    plan: bool = False
    """A plan has been written."""
    sources: int = 0
    """So many distinct sources have been read."""
    calls: int = 0
    """So many calls have succeeded."""


class Phase(Value, frozen=True):
    """One part of the work: what it is for, which tools it may use, and when it is over."""

    name: str
    purpose: str
    tools: tuple[str, ...] = ()
    done: Done = Done()
    answers: bool = False
    """Whether an answer may be given in it."""


class Workflow(Value, frozen=True):
    """A way of working: budgets, phases and when to give up."""

    name: str
    calls: int
    """The most tool calls in the turn; reserved before each is made."""
    phases: tuple[Phase, ...]
    max_failures: int = 2
    """After so many failures in a row, what there is has to do."""
    max_tokens: int = 1024
    rules: tuple[str, ...] = ()


class Progress(Value, frozen=True):
    """What has happened so far in the turn."""

    plan: bool = False
    sources: int = 0
    succeeded: int = 0
    made: int = 0
    """Calls that used up the budget."""
    failures: int = 0
    """Failures and refusals since the last success."""
    idle: int = 0
    """Replies in a row that called nothing where a call was due."""


def advance(mode: Workflow, place: int, seen: Progress) -> int:
    """The phase that the turn is in now: the first from `place` on that is not over; the last stays."""
    while place < len(mode.phases) - 1 and _is_over(mode.phases[place].done, seen):
        place += 1
    return place


def _is_over(done: Done, seen: Progress) -> bool:
    return (seen.plan or not done.plan) and seen.sources >= done.sources and seen.succeeded >= done.calls


def ends_short(mode: Workflow, seen: Progress, max_idle: int) -> str:
    """Why the phases that are left are skipped: no budget, nothing works, nothing happens; empty if they are not."""
    if seen.made >= mode.calls:
        return f"the {mode.calls} calls of {mode.name} were used up"
    if seen.failures >= mode.max_failures:
        return f"{seen.failures} calls in a row came to nothing"
    if seen.idle > max_idle:
        return "the model spoke of calling tools, but called none"
    return ""


def left_out(mode: Workflow, place: int, seen: Progress) -> str:
    """What a phase that was cut short did not reach, in words."""
    wanted = mode.phases[place].done
    lacks = []
    if wanted.plan and not seen.plan:
        lacks.append("there was no plan")
    if seen.sources < wanted.sources:
        lacks.append(f"{seen.sources} of {wanted.sources} sources were read")
    if seen.succeeded < wanted.calls:
        lacks.append(f"{seen.succeeded} of {wanted.calls} calls succeeded")
    return ", ".join(lacks)
