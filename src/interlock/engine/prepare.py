"""PREPARE: the plan, then all rules; only here can a call park, and here a dry run ends."""

from __future__ import annotations

import msgspec

from interlock.changes import Unreadable, moved, plan_digest
from interlock.engine.admit import denied, no
from interlock.engine.bounds import out_of_bounds
from interlock.engine.recall import answered, settled_claim
from interlock.engine.stages import Admitted, Ended, Prepared, World, refused
from interlock.errors import StoreError
from interlock.policy import decide
from interlock.policy.decide import risk_by_rules
from interlock.review import open_ticket, why_not
from interlock.schema import Reading, Refusal
from interlock.standing import ClaimState, Ticket, TicketState
from interlock.values import Decision, Mode, Plan, Status, TurnView, Verdict

NOTHING_CHANGES = Plan(digest="")


async def plan(world: World, admitted: Admitted) -> Plan | Ended:
    """What the call will do: for what changes the world, by reading the resource; and whether it is within bounds."""
    planner, claim, desk = admitted.desk.planner, admitted.claim, admitted.desk
    assert planner is not None
    assert claim is not None
    try:
        made = await planner.plan(admitted.facts.arguments, desk.rules.version, claim)
        verdict = await out_of_bounds(world, admitted, made)
        if verdict is not None:
            return _ended(admitted, made, verdict, refused(Status.DENIED, verdict.rule, verdict.reason))
        return made
    except Unreadable as error:
        return _unplanned(admitted, refused(Status.FAILED, "unreadable", str(error)))
    except StoreError as error:
        return _unplanned(admitted, refused(Status.FAILED, "store_unavailable", str(error)))
    except Refusal as refusal:
        return denied(admitted.facts, admitted.started, desk.tool, no("contract", str(refusal), desk.rules.version))


async def ticket_of(world: World, admitted: Admitted) -> Ticket | Ended | None:
    """The ticket that the call carries."""
    name = admitted.facts.call.ticket
    if name is None:
        return None
    if world.faults is not None:
        world.faults.at("prepare.ticket")
    try:
        ticket = await world.store.ticket(name)
        if ticket is None or ticket.state is not TicketState.SPENT or admitted.claim is None:
            return ticket
        # Spent meanwhile, perhaps by this very call, delivered twice at once: then the first one has the answer.
        end = admitted.started.clock + admitted.desk.tool.deadline_s
        claim = await settled_claim(world, admitted.claim.name, end)
        made = claim is not None and claim.call == admitted.facts.call.call_id and claim.state is not ClaimState.FAILED
        return await answered(world, admitted, claim) if made and claim is not None else ticket
    except StoreError as error:
        return _unplanned(admitted, refused(Status.FAILED, "store_unavailable", str(error)))


def prepare(world: World, admitted: Admitted, plan: Plan, ticket: Ticket | None = None) -> Prepared | Ended:
    """The call with its plan, finally allowed, or how it ended here."""
    facts, desk, call = admitted.facts, admitted.desk, admitted.facts.call
    final = admitted.verdict
    if final is not None and final.decision is Decision.ALLOW and desk.planner is None and call.ticket is None:
        return Prepared(admitted, plan, final)  # most calls: a read that a rule allows
    if desk.rules.risks and desk.planner is not None:
        level = risk_by_rules(desk.rules, msgspec.structs.replace(facts, plan=plan))
        plan = plan if level is None else msgspec.structs.replace(plan, risk=level)
    if final is None:
        final = decide(desk.rules, msgspec.structs.replace(facts, plan=plan), final=True)
        assert final is not None
        if admitted.parsed.rewrites:
            final = msgspec.structs.replace(final, rewrites=admitted.parsed.rewrites)
    if final.decision is Decision.DENY:
        return _ended(admitted, plan, final, refused(Status.DENIED, "denied", final.reason))
    asks = final.decision is Decision.REVIEW
    if desk.planner is None:
        if not asks and call.ticket is None:
            return Prepared(admitted, plan, final)  # by a rule that looks at the plan
        what = (call.tool, (), facts.arguments)
        plan = msgspec.structs.replace(plan, digest=plan_digest(world.digest, what, desk.rules.version, ()))
    else:
        stops = _stops_here(admitted, plan, final)
        if stops is not None:
            return stops
    if call.ticket is not None:
        reason = why_not(ticket, call, plan, world.clock.now_us())
        if reason is not None:
            return _ended(admitted, plan, final, refused(Status.DENIED, "not_approved", reason))
        return Prepared(admitted, plan, final, ticket)
    return _parked(world, admitted, plan, final) if asks else Prepared(admitted, plan, final)


def resting(plan: Plan, turn: TurnView) -> Plan:
    """A plan that names the planned calls of its turn on the same keys; its digest alone buys nothing."""
    rests_on = tuple(number for number, keys in turn.planned if set(keys) & set(plan.keys))
    if not rests_on:
        return plan
    return msgspec.structs.replace(plan, rests_on=rests_on, digest=f"{plan.digest}+{len(rests_on)}")


def _stops_here(admitted: Admitted, plan: Plan, final: Verdict) -> Ended | None:
    """A change that is only planned, or whose plan is not the one that was looked at."""
    call = admitted.facts.call
    if call.plan is not None:
        differs = moved(call.plan, plan.digest)
        if differs is not None:
            return _ended(admitted, plan, final, refused(Status.DENIED, "plan_moved", f"{differs}; look again"))
    if call.mode is not Mode.APPLY:
        plan = resting(plan, admitted.facts.turn)
        said = f"planned, not performed ({call.mode.value})"
        return _ended(admitted, plan, final, Reading(status=Status.PLANNED, said=said))
    return None


def _parked(world: World, admitted: Admitted, plan: Plan, verdict: Verdict) -> Ended:
    """The call waits for a person; the ticket is bound to the plan, and so to arguments, policy and resource."""
    call = admitted.facts.call
    ticket = open_ticket(world.review, call, plan, verdict.reason, world.ids.new(), world.clock.now_us())
    message = f"waits for a person: {verdict.reason} (rule {verdict.rule!r})"
    return _ended(admitted, plan, verdict, refused(Status.PARKED, "needs_review", message), ticket)


def _ended(admitted: Admitted, plan: Plan, verdict: Verdict, reading: Reading, asks: Ticket | None = None) -> Ended:
    return Ended(
        call=admitted.facts.call,
        started=admitted.started,
        tool=admitted.desk.tool,
        arguments=admitted.facts.arguments,
        verdict=verdict,
        plan=plan,
        reading=reading,
        asked=admitted.asked,
        asks=asks,
        ticket=None if asks is None else asks.id,
    )


def _unplanned(admitted: Admitted, reading: Reading) -> Ended:
    return Ended(
        call=admitted.facts.call,
        started=admitted.started,
        tool=admitted.desk.tool,
        arguments=admitted.facts.arguments,
        verdict=admitted.verdict,
        reading=reading,
        asked=admitted.asked,
    )
