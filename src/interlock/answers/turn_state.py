"""What the next step of a turn depends on, put together from what was found out about its draft and its calls."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from interlock.answers.agent import Agent
from interlock.answers.asked import Asked, ModelState
from interlock.answers.child_turns import UnmetChild
from interlock.answers.draft_check import CheckedDraft
from interlock.answers.history import History
from interlock.answers.ladder import TurnState
from interlock.answers.missing import Missing
from interlock.answers.requirements import next_needs, tool_names


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out when a draft came."""

    draft: str
    checked: CheckedDraft
    lacking: Missing
    child: UnmetChild | None
    ticket: str | None
    has_results: bool
    late: bool
    calls_left: int
    offered: tuple[str, ...]
    """The tools that may be called now."""
    withheld: dict[str, str]


def turn_state(agent: Agent, asked: Asked, history: History, model: ModelState, found: Findings) -> TurnState:
    """Everything that `next_step` looks at."""
    lacking, grounded, child = _without_withheld(found), found.checked.grounded, found.child
    # What is none of its tools, or none of its phase, cannot be forced.
    forced = history.forced + tuple(name for name in tool_names(lacking.what) if name not in found.offered)
    if child is not None and lacking.what is None:  # its own needs come first
        lacking = Missing(child.missing, child.failed, "", child.question)
        forced += tool_names(child.missing)
    return TurnState(
        required=asked.required,
        missing=lacking.what,
        failed=lacking.failed,
        refused=lacking.refused,
        empty=lacking.empty,
        lacks=lacking.lacks,
        ticket=found.ticket or (None if child is None else child.ticket),
        question=lacking.question,
        blocked=model.blocked,
        final=model.final,
        no_reply=model.no_reply,
        declined=found.draft if model.declines else "",
        late=found.late,
        has_draft=bool(found.draft),
        has_results=found.has_results,
        unsupported=tuple(claim.text for claim in grounded.unsupported),
        unchecked=grounded.unchecked,
        disagreements=found.checked.disagreements,
        irrelevant=found.checked.irrelevant and (asked.required or asked.carried is not None or found.has_results),
        retries=history.retries,
        max_retries=agent.max_retries,
        corrected=history.corrected,
        forced=forced,
        calls_left=found.calls_left,
    )


def _without_withheld(found: Findings) -> Missing:
    """What is missing; where all that would help is withheld, that is why it cannot be had."""
    lacking, withheld = found.lacking, found.withheld
    wanted = [leaf.tool for leaf in next_needs(lacking.what)] if withheld and lacking.what is not None else []
    if not wanted or lacking.refused or not all(name in withheld for name in wanted):
        return lacking
    return replace(lacking, refused=f"{wanted[0]} is withheld in this turn: {withheld[wanted[0]]}")
