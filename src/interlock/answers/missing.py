"""What of a requirement is missing in a turn, and why: it failed, found nothing, was refused, or is to be asked for."""

from __future__ import annotations

from interlock.answers.history import History
from interlock.answers.requirements import Requirement, find_unmet, is_hopeless, next_needs
from interlock.reasons import FieldReason, Reason
from interlock.values import Status, Value

_ASKS = (Reason.AMBIGUOUS, Reason.INPUT_REQUIRED)
"""Somebody has to say something before the tool can do its work: the turn asks."""


class Missing(Value, frozen=True):
    """What of a requirement is missing, and why."""

    what: Requirement | None = None
    failed: str = ""
    empty: str = ""
    question: str = ""
    lacks: str = ""
    refused: str = ""


def missing_of(requirement: Requirement, history: History) -> Missing:
    """What is missing; why it cannot be had, why it brought nothing, what has to be asked first."""
    calls = sorted((*history.own, *history.inner), key=lambda call: call.record)
    missing = find_unmet(requirement, calls)
    if missing is None:  # a tool that was called all the same, and has to be told something, asks
        last_own = [call for call in history.own if call.record > history.replied_at][-1:]
        return Missing(question="".join(call.message for call in last_own if call.reason is Reason.INPUT_REQUIRED))
    wanted = {leaf.tool for leaf in next_needs(missing)}
    known = [call for call in calls if call.record > history.replied_at]
    mine = [call for call in known if call.tool in wanted]
    failed = empty = question = refused = ""
    if is_hopeless(missing, known):
        denied = [call for call in mine if call.refused] or [call for call in mine[-1:] if call.forbidden]
        refused = f"{denied[-1].tool} was not done: {denied[-1].message}" if denied else ""
        ended = [call for call in mine if call.ran and call.status in (Status.FAILED, Status.UNKNOWN)]
        failed = f"{ended[-1].tool} failed: {ended[-1].message}" if ended else ""
    nothing = [call for call in mine if call.status is Status.NO_DATA]
    if nothing:
        empty = nothing[-1].message or f"{nothing[-1].tool} found nothing"
    last = mine[-1] if mine else None
    if last is not None and last.reason in _ASKS:
        question = last.message
    fields = () if last is None else last.fields
    # Only where nothing else is wrong: a model that wrote a wrong value has to correct it, not the user.
    ungiven = [f.field for f in fields] if all(f.reason is FieldReason.MISSING for f in fields) else []
    lacks = f"to answer this, please say {' and '.join(name.replace('_', ' ') for name in ungiven)}" if ungiven else ""
    return Missing(missing, failed, empty, question, lacks, refused)
