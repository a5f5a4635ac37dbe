"""A call that waits for a person: asked through the client, where that can ask and the policy lets them decide."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import mcp_types as types
import msgspec
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from interlock.adapters.mcp.oauth import caller_of
from interlock.errors import NotAllowed
from interlock.principals import kind_of
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


APPROVAL = "interlock/approval"
"""The name of our question among those of an answer that asks first (2026-07-28), and the head of its state."""


async def ask_person(
    runtime: Runtime, ctx: ServerRequestContext[Any, Any], outcome: Outcome, params: types.CallToolRequestParams
) -> Outcome | types.InputRequiredResult:
    """The outcome once somebody has decided through the client; as it is, where nobody can be asked so.

    Whoever sits at the client is who calls: they decide only where the policy lets those who ask (`self_approval`), and
    where all of what they decide can be shown. A client of 2026-07-28 is asked by the answer itself, and decides with
    the same call made again; which ticket that is for, the call says and not the client.
    """
    can = ctx.session.client_capabilities
    if outcome.status is not Status.PARKED or outcome.ticket is None or can is None or can.elicitation is None:
        return outcome
    ticket = await runtime.store.ticket(outcome.ticket)
    known = caller_of(ctx)
    # Whoever a token names decides in that name, where the policy takes our word for names of that kind.
    is_known = known is None or kind_of(known[0]) in (() if ticket is None else ticket.terms.vouched)
    if ticket is None or not ticket.terms.self_approval or not is_known:
        return outcome
    by = None if known is None else known[0]
    said = _question(outcome, ticket.why, params.arguments or {})
    if len(said) > _MOST:
        return outcome
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        try:
            answer: Any = await ctx.session.elicit_form(said, _FORM, ctx.request_id)
        except MCPError:  # it says that it can, and does not
            return outcome
        return await _decide(runtime, outcome, answer, by)
    state = f"{APPROVAL}:{ticket.id}:"
    given = (params.input_responses or {}).get(APPROVAL)
    if isinstance(given, types.ElicitResult) and (params.request_state or "").startswith(state):
        return await _decide(runtime, outcome, given, by)
    asked = types.ElicitRequest(params=types.ElicitRequestFormParams(message=said, requested_schema=_FORM))
    return types.InputRequiredResult(
        input_requests={APPROVAL: asked}, request_state=f"{state}{_pack(answers_for_server(params))}"
    )


def answers_for_server(params: Any) -> dict[str, Any]:
    """What a client has answered to questions of a server: with this request, or, where this one answers ours, with the
    one before it, which our state has kept."""
    responses, state = getattr(params, "input_responses", None), getattr(params, "request_state", None)
    if state is None or not state.startswith(APPROVAL):
        return {"input_responses": responses, "request_state": state}
    return _unpack(state.rpartition(":")[2])


def _pack(answers: dict[str, Any]) -> str:
    kept = types.InputResponseRequestParams(**answers).model_dump_json(by_alias=True, exclude_none=True)
    return urlsafe_b64encode(kept.encode()).decode()


def _unpack(text: str) -> dict[str, Any]:
    """A client keeps it for us: what it has made of it is as good as any other answer of its own, or is none."""
    try:
        kept = types.InputResponseRequestParams.model_validate_json(urlsafe_b64decode(text.encode()))
    except ValueError:
        return {}
    return {"input_responses": kept.input_responses, "request_state": kept.request_state}


async def _decide(runtime: Runtime, outcome: Outcome, answer: types.ElicitResult, by: str | None) -> Outcome:
    if answer.action != "accept" or not isinstance(answer.content, dict) or outcome.ticket is None:
        return outcome
    approve, reason = answer.content.get("approve") is True, str(answer.content.get("reason") or "")
    try:
        await runtime.operations.decide(outcome.ticket, approve=approve, reason=reason, by=by)
    except NotAllowed:
        return outcome
    return await runtime.operations.resume(outcome.ticket)


def _question(outcome: Outcome, why: str, arguments: Json) -> str:
    diff = outcome.plan.diff if outcome.plan is not None and outcome.plan.diff else ""
    shown = msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()
    return _printable(f"{outcome.tool}: {why}\n{shown}\n{diff}".strip())


def _printable(text: str) -> str:
    """Nothing that a person does not see."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
