"""A call that waits for a person: asked through the client, where that can ask and the policy lets them decide."""

from __future__ import annotations

from typing import Any

import msgspec
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from interlock.errors import NotAllowed
from interlock.runtime import Runtime
from interlock.values import Json, Outcome, Status

_MOST = 4_000
"""Characters that somebody is shown; what is longer is decided where all of it can be seen."""
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approve": {"type": "boolean", "title": "Allow it, once", "default": False},
        "reason": {"type": "string", "title": "Why", "default": ""},
    },
    "required": ["approve"],
}


async def ask_person(
    runtime: Runtime, ctx: ServerRequestContext[Any, Any], outcome: Outcome, arguments: Json
) -> Outcome:
    """The outcome once somebody has decided through the client; as it is, where nobody can be asked so.

    Whoever sits at the client is who calls: they decide only where the policy lets those who ask (`self_approval`), and
    where all of what they decide can be shown.
    """
    can = ctx.session.client_capabilities
    if outcome.status is not Status.PARKED or outcome.ticket is None or can is None or can.elicitation is None:
        return outcome
    ticket = await runtime.store.ticket(outcome.ticket)
    if ticket is None or not ticket.terms.self_approval or ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return outcome
    diff = outcome.plan.diff if outcome.plan is not None and outcome.plan.diff else ""
    shown = msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()
    said = _printable(f"{outcome.tool}: {ticket.why}\n{shown}\n{diff}".strip())
    if len(said) > _MOST:
        return outcome
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


def _printable(text: str) -> str:
    """Nothing that a person does not see."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
