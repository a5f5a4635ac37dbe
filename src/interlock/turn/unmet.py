"""Delegation: a turn cannot pass while a turn that it opened has not."""

from __future__ import annotations

from interlock.ports import Store
from interlock.requirements import Need, Requirement
from interlock.turn.ladder import TurnOutcome
from interlock.turn.trail import Trail, read_trail
from interlock.values import Value

_MET = (
    TurnOutcome.PASSED,
    TurnOutcome.RETRY_SUCCEEDED,
    TurnOutcome.FORCED,
    TurnOutcome.SKIPPED_NO_REQUIREMENTS,
)


class Unmet(Value, frozen=True):
    """A child turn that has not passed, and what that means for its parent."""

    missing: Requirement
    failed: str = ""
    question: str = ""
    ticket: str | None = None


async def unmet_child(store: Store, trail: Trail) -> Unmet | None:
    """The first delegation that did not succeed; a later one for the same makes up for it."""
    latest: dict[tuple[str, str], Unmet | None] = {}
    for child in trail.children:
        inner = await read_trail(store, child, evidence=False, depth=0)
        opened = inner.opened or {}
        agent = str(opened.get("agent", child))
        latest[agent, str(opened.get("requires"))] = _unmet(agent, inner)
    return next((item for item in latest.values() if item is not None), None)


def _unmet(agent: str, inner: Trail) -> Unmet | None:
    missing = Need(tool=agent)
    if inner.finished is None:
        return Unmet(missing)
    outcome, reason = TurnOutcome(inner.finished["outcome"]), str(inner.finished.get("reason", ""))
    if outcome in _MET:
        return None
    match outcome:
        case TurnOutcome.TOOL_FAILED | TurnOutcome.TIMEOUT:
            return Unmet(missing, failed=f"{agent}: {reason}")
        case TurnOutcome.ASKED:
            return Unmet(missing, question=reason)
        case TurnOutcome.WAITING:
            return Unmet(missing, ticket=inner.finished.get("ticket"))
        case _:
            return Unmet(missing)
