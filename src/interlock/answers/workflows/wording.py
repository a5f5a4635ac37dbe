"""What a model is told about its way of working, made from the same data that is enforced."""

from __future__ import annotations

import re

from interlock.answers.workflows.phases import Progress, Workflow

_STEP = re.compile(r"(?m)^\s*(?:\d+[.)]|[-*•])\s+\S")
_TAGGED = re.compile(r"<(?:research_)?plan>(.+?)</(?:research_)?plan>", re.S | re.I)


def workflow_prompt(mode: Workflow, place: int, seen: Progress) -> str:
    """Where the turn stands, what to do now, and what is left."""
    phase, left = mode.phases[place], max(0, mode.calls - seen.made)
    names = ", ".join(phase.name for phase in mode.phases)
    lines = [f"Mode: {mode.name} (phases: {names}). At most {mode.calls} tool calls in all; {left} left."]
    lines.append(f"Phase now: {phase.name}. {phase.purpose[:1].upper()}{phase.purpose[1:]}.")
    lines.append(f"Tools in this phase: {', '.join(phase.tools) or 'none'}.")
    if phase.done.sources:
        lines.append(f"Different sources read: {seen.sources} of {phase.done.sources}.")
    if not phase.answers:
        lines.append("An answer is not taken in this phase.")
    return "\n".join([*lines, *mode.rules])


def is_plan(text: str) -> bool:
    """Whether a reply is a plan: two steps or more, or something in plan tags."""
    return len(_STEP.findall(text)) >= 2 or _TAGGED.search(text) is not None
