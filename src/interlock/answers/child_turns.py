"""Delegation: a turn cannot pass while a turn that it opened has not."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from interlock.answers.asked import Carried
from interlock.answers.history import Histories, History
from interlock.answers.ladder import TurnOutcome
from interlock.answers.missing import Missing, missing_of
from interlock.answers.parked import pending_ticket, with_denials
from interlock.answers.requirements import NOTHING, CallSeen, Need, Requirement, leaves, without_entities
from interlock.engine import EngineContext
from interlock.values import Status, Value

_MET = (
    TurnOutcome.PASSED,
    TurnOutcome.RETRY_SUCCEEDED,
    TurnOutcome.FORCED,
    TurnOutcome.SKIPPED_NO_REQUIREMENTS,
    TurnOutcome.PARTIAL,  # whoever asked then gives a partial answer itself
)


class UnmetChild(Value, frozen=True):
    """A child turn that has not passed, and what that means for its parent."""

    missing: Requirement
    failed: str = ""
    question: str = ""
    ticket: str | None = None


async def missing_above(histories: Histories, carried: Carried, turn: str, agent: str) -> Missing:
    """What is missing of the requirement of a question that was handed over, by all that was called for it.

    That this agent was to be asked is met by its answering: its own needs are met when this is looked at.
    """
    above = await histories.read(carried.turn or turn, evidence=False)
    last = max((call.record for call in (*above.calls, *above.inner)), default=0)
    answers = CallSeen(record=last + 1, tool=agent, status=Status.OK)
    return missing_of(carried.requirement, replace(above, inner=(*above.inner, answers)))


async def unmet_child(
    ctx: EngineContext, histories: Histories, history: History, useless: Collection[str] = ()
) -> UnmetChild | None:
    """The first delegation that did not succeed; a later one for the same makes up for it.

    `useless`: tickets whose approval no call can be made with any more.
    """
    unmet: list[tuple[tuple[str, Requirement | None], frozenset[str], UnmetChild]] = []
    for child in history.children:
        inner = await histories.read(child, evidence=False, depth=0)
        agent = child if inner.opened is None else inner.opened.agent
        # By agent and which tools were needed, about what: success at another question, or with another thing, does not
        # make up for a failure.
        needed = None if inner.opened is None else without_entities(inner.opened.requires)
        things = frozenset() if inner.opened is None else _things(inner.opened.requires)
        unmet = [one for one in unmet if one[0] != (agent, needed) or one[1] - things]
        found = _find_unmet(agent, inner)
        if found is not None and found.ticket is not None:
            whole = await with_denials(ctx, await histories.read(child, evidence=False))
            if await pending_ticket(ctx, whole, useless) is None:
                found = _find_unmet_since(agent, whole)
        if found is not None:
            unmet.append(((agent, needed), things, found))
    return unmet[0][2] if unmet else None


def _things(requirement: Requirement) -> frozenset[str]:
    return frozenset(one.name.lower() for leaf in leaves(requirement) for one in leaf.about)


def _find_unmet_since(agent: str, inner: History) -> UnmetChild | None:
    """What a turn lacks that waited for people, once they have decided: nothing, where what they allowed was needed."""
    lacking = missing_of(NOTHING if inner.opened is None else inner.opened.requires, inner)
    if lacking.what is None:
        return None
    refused = lacking.refused or lacking.failed
    return UnmetChild(Need(tool=agent), failed=f"{agent}: {refused}" if refused else "")


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
