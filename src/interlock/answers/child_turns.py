"""Delegation: a turn cannot pass while a turn that it opened has not."""

from __future__ import annotations

from interlock.answers.history import Histories, History
from interlock.answers.ladder import TurnOutcome
from interlock.answers.requirements import Need, Requirement
from interlock.values import Value

_MET = (
    TurnOutcome.PASSED,
    TurnOutcome.RETRY_SUCCEEDED,
    TurnOutcome.FORCED,
    TurnOutcome.SKIPPED_NO_REQUIREMENTS,
)


class UnmetChild(Value, frozen=True):
    """A child turn that has not passed, and what that means for its parent."""

    missing: Requirement
    failed: str = ""
    question: str = ""
    ticket: str | None = None


async def unmet_child(histories: Histories, history: History) -> UnmetChild | None:
    """The first delegation that did not succeed; a later one for the same makes up for it."""
    latest: dict[tuple[str, Requirement | None], UnmetChild | None] = {}
    for child in history.children:
        inner = await histories.read(child, evidence=False, depth=0)
        agent = child if inner.opened is None else inner.opened.agent
        # By agent and what was needed: success at another question does not make up for a failure.
        latest[agent, None if inner.opened is None else inner.opened.requires] = _find_unmet(agent, inner)
    return next((item for item in latest.values() if item is not None), None)


def _find_unmet(agent: str, inner: History) -> UnmetChild | None:
    missing = Need(tool=agent)
    if inner.finished is None:  # it is still running, or was abandoned
        return UnmetChild(missing)
    outcome, reason = inner.finished.outcome, inner.finished.reason
    if outcome in _MET:
        return None
    match outcome:
        case TurnOutcome.TOOL_FAILED | TurnOutcome.TIMEOUT | TurnOutcome.NO_REPLY:
            return UnmetChild(missing, failed=f"{agent}: {reason}")
        case TurnOutcome.ASKED:
            return UnmetChild(missing, question=reason)
        case TurnOutcome.WAITING:
            return UnmetChild(missing, ticket=inner.finished.ticket)
        case _:
            return UnmetChild(missing)
