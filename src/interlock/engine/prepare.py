"""PREPARE: the plan, then all rules; only here can a call park, and here a dry run ends."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec

from interlock.canonical import Refusal
from interlock.changes import Unreadable, plan_difference, plan_digest, read_digest, request_digest
from interlock.engine.admit import deny, end_denied
from interlock.engine.context import Admitted, Ended, EngineContext, Prepared, refuse
from interlock.engine.denials import denied_elsewhere
from interlock.engine.idempotency import not_looked_up
from interlock.engine.preconditions import violated_precondition
from interlock.engine.recorded_answers import answer_of_claim
from interlock.engine.store_waits import settled_claim
from interlock.errors import StoreError
from interlock.policy import decide
from interlock.policy.decide import risk_by_rules
from interlock.reasons import Reason
from interlock.resilience import Expired
from interlock.review import approval_fault, open_ticket, rejection_reason
from interlock.state import ClaimState, Ticket, TicketState, overlapping, state_of
from interlock.tools import Reading
from interlock.values import Decision, Json, Mode, Plan, Status, TurnView, Verdict

T = TypeVar("T")
NOTHING_CHANGES = Plan(digest="")
_ALLOW = Decision.ALLOW  # looked up once: on Python 3.11 a member of an enum costs as much as a call


def decide_read(ctx: EngineContext, admitted: Admitted) -> Prepared | Ended:
    """A call that only looks has nothing to plan: the rules decide, and most have by now."""
    final = admitted.verdict
    if final is not None and final.decision is _ALLOW:
        return Prepared(admitted, NOTHING_CHANGES, final)
    return decide_plan(ctx, admitted, NOTHING_CHANGES)


async def prepare(ctx: EngineContext, admitted: Admitted) -> Prepared | Ended:
    """The call with its plan, finally allowed, or how it ended here."""
    made = NOTHING_CHANGES if admitted.binding.planner is None else await _in_time(ctx, admitted, _plan(ctx, admitted))
    if isinstance(made, Ended):
        return made
    ticket = None if admitted.facts.call.ticket is None else await _in_time(ctx, admitted, _ticket_of(ctx, admitted))
    if ticket is not None and not isinstance(ticket, Ended):
        ticket = await _spent_meanwhile(ctx, admitted, ticket)
    if isinstance(ticket, Ended):
        return ticket
    return decide_plan(ctx, admitted, made, ticket)


async def _in_time(ctx: EngineContext, admitted: Admitted, work: Coroutine[Any, Any, T]) -> T:
    """What is planned by is waited for no longer than the call may last; `Expired` says that nothing was done."""
    left_s = admitted.started.clock + admitted.binding.tool.deadline_s - ctx.clock.monotonic()
    ctx.at("prepare.wait")
    return await ctx.deadlines.within(max(0.0, left_s), work)


async def _plan(ctx: EngineContext, admitted: Admitted) -> Plan | Ended:
    """What the call will do: for what changes the world, by reading the resource; and whether it is within bounds."""
    planner, claim, binding = admitted.binding.planner, admitted.claim, admitted.binding
    assert planner is not None
    assert claim is not None
    try:
        call = admitted.facts.call
        overlay = None if call.mode is Mode.APPLY else call.overlay  # what is done is done on the world as it is
        made = await planner.plan(admitted.facts.arguments, binding.rules.version, claim, overlay)
        broken = await violated_precondition(ctx, admitted, made)
        if broken is not None:
            reading = refuse(Status.DENIED, broken.reason, broken.verdict.reason)
            return _end(admitted, made, broken.verdict, reading)
        return made
    except Unreadable as error:
        return _end_unplanned(admitted, refuse(Status.FAILED, Reason.UNREADABLE, str(error)), error.seen)
    except StoreError as error:
        return _end_unplanned(admitted, refuse(Status.FAILED, Reason.STORE_UNAVAILABLE, str(error)))
    except Refusal as refusal:
        return end_denied(
            admitted.facts, admitted.started, binding.tool, deny("contract", str(refusal), binding.rules.version)
        )


async def _ticket_of(ctx: EngineContext, admitted: Admitted) -> Ticket | Ended | None:
    """The ticket that the call carries."""
    name = admitted.facts.call.ticket
    assert name is not None
    ctx.at("prepare.ticket")
    try:
        ticket = await ctx.store.ticket(name)
        if ticket is not None and ticket.state is TicketState.APPROVED:
            # The row says so, and rows can be edited: the ledger has to say so too.
            fault = await approval_fault(ctx.store, ticket, ctx.digest)
            if fault is not None:
                message = f"ticket {name!r} is not approved as the ledger has it: {fault}; run interlock audit verify"
                return _end_unplanned(admitted, refuse(Status.DENIED, Reason.NOT_APPROVED, message))
            denied = await denied_elsewhere(ctx, admitted.facts.call, ticket)
            if denied is not None:
                return _end_unplanned(admitted, refuse(Status.DENIED, Reason.NOT_APPROVED, denied))
        if ticket is None:
            return None
        ctx.at("prepare.time")
        now_us = await ctx.store.now_us(ctx.clock.now_us())
        return msgspec.structs.replace(ticket, state=state_of(ticket, now_us))
    except StoreError as error:
        return _end_unplanned(admitted, refuse(Status.FAILED, Reason.STORE_UNAVAILABLE, str(error)))


async def _spent_meanwhile(ctx: EngineContext, admitted: Admitted, ticket: Ticket) -> Ticket | Ended:
    """The ticket; or the answer of this very call where that has spent it, delivered twice at once."""
    if ticket.state is not TicketState.SPENT or admitted.claim is None:
        return ticket
    end = admitted.started.clock + admitted.binding.tool.deadline_s
    try:
        claim = await settled_claim(ctx, admitted.claim.name, end)
    except Expired:
        why = not_looked_up("the store gave no answer in time")
        return _end_unplanned(admitted, refuse(Status.FAILED, Reason.TIMEOUT, why))
    except StoreError as error:
        return _end_unplanned(admitted, refuse(Status.FAILED, Reason.STORE_UNAVAILABLE, not_looked_up(str(error))))
    made = claim is not None and claim.call == admitted.facts.call.call_id and claim.state is not ClaimState.FAILED
    return await answer_of_claim(ctx, admitted, claim) if made and claim is not None else ticket


def decide_plan(ctx: EngineContext, admitted: Admitted, plan: Plan, ticket: Ticket | None = None) -> Prepared | Ended:
    """All rules on a plan: final. Only here can a call park, and here a dry run ends."""
    facts, binding, call = admitted.facts, admitted.binding, admitted.facts.call
    final, reads = admitted.verdict, binding.planner is None
    if binding.rules.risks and not reads:
        level = risk_by_rules(binding.rules, msgspec.structs.replace(facts, plan=plan))
        plan = plan if level is None else msgspec.structs.replace(plan, risk=level)
    if final is None:
        final = _decide_finally(admitted, plan)
    if final.decision is Decision.DENY:
        return _end(admitted, plan, final, refuse(Status.DENIED, Reason.DENIED, final.reason))
    if reads:
        if final.decision is Decision.ALLOW and call.ticket is None:
            return Prepared(admitted, plan, final)  # by a rule that looks at the plan
        digest = plan_digest(ctx.digest, call.tool, (), facts.arguments, binding.rules.version, ())
        plan = msgspec.structs.replace(plan, digest=digest)
    else:
        stops = _stops_here(admitted, plan, final)
        if stops is not None:
            return stops
    if call.ticket is not None:
        return _with_ticket(ctx, admitted, Prepared(admitted, plan, final, ticket))
    asks = final.decision is Decision.REVIEW
    return _park(ctx, admitted, plan, final) if asks else Prepared(admitted, plan, final)


def _decide_finally(admitted: Admitted, plan: Plan) -> Verdict:
    final = decide(admitted.binding.rules, msgspec.structs.replace(admitted.facts, plan=plan), final=True)
    assert final is not None
    rewrites = admitted.parsed.rewrites
    return msgspec.structs.replace(final, rewrites=rewrites) if rewrites else final


def _with_ticket(ctx: EngineContext, admitted: Admitted, prepared: Prepared) -> Prepared | Ended:
    """The call with the approval that it spends, if that is good for this plan."""
    why = rejection_reason(prepared.ticket, admitted.facts.call, prepared.plan, ctx.digest)
    ticket, verdict = prepared.ticket, prepared.verdict
    asks = verdict.decision is Decision.REVIEW
    if why is None and ticket is not None and asks and ticket.terms != ctx.review.of(verdict.rule):
        why = f"ticket {ticket.id!r} was approved under other terms than rule {verdict.rule!r} asks for now; ask again"
    if why is None and ticket is not None and asks and ticket.rule != verdict.rule:  # by what its turn has come to hold
        why = (
            f"ticket {ticket.id!r} was asked for by rule {ticket.rule!r}, and now rule {verdict.rule!r} asks; ask again"
        )
    if why is None:
        return prepared
    return _end(admitted, prepared.plan, prepared.verdict, refuse(Status.DENIED, Reason.NOT_APPROVED, why))


def add_prerequisites(plan: Plan, turn: TurnView) -> Plan:
    """A plan that names the planned calls of its turn on the same keys; its digest alone buys nothing."""
    shared = {other for key in plan.keys for other in overlapping(key, turn.planned)}
    rests_on = tuple(sorted({number for key in shared for number in turn.planned[key]}))
    if not rests_on:
        return plan
    parts = read_digest(plan.digest)
    assert parts is not None
    digest = str(msgspec.structs.replace(parts, rests_on=len(rests_on)))
    return msgspec.structs.replace(plan, rests_on=rests_on, digest=digest)


def _stops_here(admitted: Admitted, plan: Plan, final: Verdict) -> Ended | None:
    """A change that is only planned, or whose plan is not the one that was looked at."""
    call = admitted.facts.call
    if call.plan is not None:
        differs = plan_difference(call.plan, plan.digest)
        if differs is not None:
            return _end(admitted, plan, final, refuse(Status.DENIED, Reason.PLAN_MOVED, f"{differs}; look again"))
    if call.mode is not Mode.APPLY:
        plan = add_prerequisites(plan, admitted.facts.turn)
        said = f"planned, not performed ({call.mode.value})"
        return _end(admitted, plan, final, Reading(status=Status.PLANNED, said=said))
    return None


def _park(ctx: EngineContext, admitted: Admitted, plan: Plan, verdict: Verdict) -> Ended:
    """The call waits for a person; the ticket is bound to the plan, and so to arguments, policy and resource."""
    call = admitted.facts.call
    # Bound to the digest, so to arguments, policy and versions: another plan needs another approval.
    ticket = open_ticket(ctx.review, call, plan, verdict, ctx.clock.now_us(), ctx.digest)
    run = call.run if call.turn is None and call.id_is_ours else None
    request = request_digest(ctx.digest, call.tool, plan.keys, admitted.parsed.by_value(), run)
    ticket = msgspec.structs.replace(ticket, id=ctx.ids.new(), account=ctx.account, request=request)
    message = f"waits for a person: {verdict.reason} (rule {verdict.rule!r})"
    return _end(admitted, plan, verdict, refuse(Status.PARKED, Reason.NEEDS_REVIEW, message), ticket)


def _end(admitted: Admitted, plan: Plan, verdict: Verdict, reading: Reading, asks: Ticket | None = None) -> Ended:
    return Ended(
        call=admitted.facts.call,
        started=admitted.started,
        tool=admitted.binding.tool,
        arguments=admitted.facts.arguments,
        verdict=verdict,
        plan=plan,
        reading=reading,
        asked=admitted.asked,
        asks=asks,
        ticket=None if asks is None else asks.id,
    )


def _end_unplanned(admitted: Admitted, reading: Reading, seen: tuple[Json, ...] = ()) -> Ended:
    return Ended(
        call=admitted.facts.call,
        started=admitted.started,
        tool=admitted.binding.tool,
        arguments=admitted.facts.arguments,
        verdict=admitted.verdict,
        reading=reading,
        asked=admitted.asked,
        seen=seen,
    )
