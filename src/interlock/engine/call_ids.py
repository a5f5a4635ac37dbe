"""Calls that do not say which change they are: without an id, under one that is used, or declared otherwise since."""

from __future__ import annotations

import msgspec

from interlock.changes import scope_of
from interlock.engine.admit import deny, end_denied
from interlock.engine.context import Accepted, Ended, refuse
from interlock.reasons import Reason
from interlock.tools import Tool
from interlock.values import Call, Status


def end_reused(accepted: Accepted) -> Ended:
    """The caller's id stands for another call already."""
    call = accepted.facts.call
    where = "in this turn" if call.turn is not None else "before"
    reason = f"call id {call.call_id!r} was used {where} for another call; use a new one"
    verdict = deny("call_id", reason)
    return end_denied(accepted.facts, accepted.started, accepted.binding.tool, verdict, Reason.CALL_ID_REUSED)


def end_another_change(accepted: Accepted) -> Ended:
    """Made under another claim than its record names, it could be made twice."""
    tool = accepted.binding.tool
    reason = (
        f"the call cannot be made again from its record: {tool.name!r} has been declared otherwise since (its"
        " parameters, key, once_per or repeatable), so that it would be another change; propose it anew"
    )
    return end_denied(accepted.facts, accepted.started, tool, deny("claim", reason), Reason.MOVED)


def says_nothing(tool: Tool, call: Call) -> bool:
    """Whether nothing says which calls are the same one: then a caller that tries again would make it twice."""
    scoped = tool.repeatable or call.undoes is not None or scope_of(tool.once_per, call) is not None
    return call.id_is_ours and not scoped


def end_no_call_id(accepted: Accepted) -> Ended:
    """A change that could not be recognised again."""
    tool = accepted.binding.tool
    reason = (
        f"nothing says which calls of {tool.name!r} are the same one, so that a caller who tries again would make it"
        " twice: pass call_id= (your own id for this request), turn= or run="
    )
    hints = (f"or declare {tool.name!r} repeatable=True, or once_per='actor' or 'ever'",)
    verdict = deny("call_id", reason)
    ended = end_denied(accepted.facts, accepted.started, tool, verdict)
    return msgspec.structs.replace(ended, reading=refuse(Status.DENIED, Reason.NO_CALL_ID, reason, hints=hints))
