"""A call that waits for a person: asked through the client, where that can ask and the policy lets them decide."""

from __future__ import annotations

from typing import Any

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from interlock.errors import NotAllowed
from interlock.runtime import Runtime
from interlock.values import Outcome, Status, shorten

_MOST = 2_000
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approve": {"type": "boolean", "title": "Allow it, once", "default": False},
        "reason": {"type": "string", "title": "Why", "default": ""},
    },
    "required": ["approve"],
}


async def ask_person(runtime: Runtime, ctx: ServerRequestContext[Any, Any], outcome: Outcome) -> Outcome:
    """The outcome once somebody has decided through the client; as it is, where nobody can be asked so.

    Whoever sits at the client is who calls: they decide only where the policy lets those who ask (`self_approval`).
    """
    can = ctx.session.client_capabilities
    if outcome.status is not Status.PARKED or outcome.ticket is None or can is None or can.elicitation is None:
        return outcome
    ticket = await runtime.store.ticket(outcome.ticket)
    if ticket is None or not ticket.terms.self_approval or ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return outcome
    diff = outcome.plan.diff if outcome.plan is not None and outcome.plan.diff else ""
    said = shorten(f"{outcome.tool}: {ticket.why}\n{diff}".strip(), _MOST)
    try:
        answer = await ctx.session.elicit_form(said, _FORM, ctx.request_id)
    except MCPError:  # it says that it can, and does not
        return outcome
    if answer.action != "accept" or not isinstance(answer.content, dict):
        return outcome
    approve, reason = answer.content.get("approve") is True, str(answer.content.get("reason") or "")
    try:
        await runtime.operations.decide(ticket.id, approve=approve, reason=reason)
    except NotAllowed:
        return outcome
    return await runtime.operations.resume(ticket.id)
