"""Workflows as data: how many calls, which tools in which phase, when to stop; the prompt is made from the same values.

`quick_lookup`, `research` and `ingest` (`interlock.answers.presets`) are three; your own is a `Workflow` like them.
Where a turn stands is a pure function of what has happened so far.
"""

from __future__ import annotations

import re

from interlock.values import Value

_STEP = re.compile(
    r"(?m)^[ \t]*(?:\d+[.)]|[-*•])[ \t]+\S"
)  # "1. read", "2) compare", "- look", at the beginning of a line
_TAGS = re.compile(r"<(?P<closes>/?)(?:research_)?plan>", re.I)


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


class WorkflowState(Value, frozen=True):
    """Where the work stands: what has happened so far in the turn."""

    plan: bool = False
    sources: int = 0
    succeeded: int = 0
    made: int = 0
    """Calls that used up the budget."""
    failures: int = 0
    """Failures and refusals since the last success."""
    idle: int = 0
    """Replies in a row that called nothing where a call was due."""


def advance(workflow: Workflow, place: int, seen: WorkflowState) -> int:
    """The phase that the turn is in now: the first from `place` on that is not over; the last stays."""
    while place < len(workflow.phases) - 1 and _is_over(workflow.phases[place].done, seen):
        place += 1
    return place


def _is_over(done: Done, seen: WorkflowState) -> bool:
    return (seen.plan or not done.plan) and seen.sources >= done.sources and seen.succeeded >= done.calls


def ends_short(workflow: Workflow, seen: WorkflowState, max_idle: int) -> str:
    """Why the phases that are left are skipped: no budget, nothing works, nothing happens; empty if they are not."""
    if seen.made >= workflow.calls:
        return f"the {workflow.calls} calls of {workflow.name} were used up"
    if seen.failures >= workflow.max_failures:
        return f"{seen.failures} calls in a row came to nothing"
    if seen.idle > max_idle:
        return "the model spoke of calling tools, but called none"
    return ""


def left_out(workflow: Workflow, place: int, seen: WorkflowState) -> str:
    """What a phase that was cut short did not reach, in words."""
    wanted = workflow.phases[place].done
    lacks = []
    if wanted.plan and not seen.plan:
        lacks.append("there was no plan")
    if seen.sources < wanted.sources:
        lacks.append(f"{seen.sources} of {wanted.sources} sources were read")
    if seen.succeeded < wanted.calls:
        lacks.append(f"{seen.succeeded} of {wanted.calls} calls succeeded")
    return ", ".join(lacks)


def workflow_prompt(workflow: Workflow, place: int, seen: WorkflowState) -> str:
    """Where the turn stands, what to do now, and what is left."""
    phase, left = workflow.phases[place], max(0, workflow.calls - seen.made)
    names = ", ".join(phase.name for phase in workflow.phases)
    lines = [f"Workflow: {workflow.name} (phases: {names}). At most {workflow.calls} tool calls in all; {left} left."]
    lines.append(f"Phase now: {phase.name}. {phase.purpose[:1].upper()}{phase.purpose[1:]}.")
    lines.append(f"Tools in this phase: {', '.join(phase.tools) or 'none'}.")
    if phase.done.sources:
        lines.append(f"Different sources read: {seen.sources} of {phase.done.sources}.")
    if not phase.answers:
        lines.append("An answer is not taken in this phase.")
    return "\n".join([*lines, *workflow.rules])


def is_plan(text: str) -> bool:
    """Whether a reply is a plan: two steps or more, or something in plan tags."""
    return len(_STEP.findall(text)) >= 2 or _has_tagged(text)


def _has_tagged(text: str) -> bool:
    """Whether something stands between the first tag that opens and one that closes."""
    opened = next((tag.end() for tag in _TAGS.finditer(text) if not tag["closes"]), None)
    return opened is not None and any(tag["closes"] and tag.start() > opened for tag in _TAGS.finditer(text, opened))
