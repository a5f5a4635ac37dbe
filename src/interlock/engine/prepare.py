"""PREPARE: the plan, then all rules; only here can a call park."""

from __future__ import annotations

import msgspec

from interlock.engine.admit import denied, no
from interlock.engine.stages import Admitted, Ended, Prepared, World, refused
from interlock.policy import decide
from interlock.schema import WHATEVER, canonical
from interlock.values import Decision, Plan, Status, Verdict


def prepare(world: World, admitted: Admitted, plan: Plan) -> Prepared | Ended:
    """The call with its plan, finally allowed, or how it ended here."""
    facts, desk = admitted.facts, admitted.desk
    tool, rules = desk.tool, desk.rules
    if desk.impossible is not None:
        verdict = no("journal", desk.impossible, rules.version)
        return denied(facts, admitted.started, tool, verdict, "effect_not_supported")
    final = admitted.verdict
    if final is None:
        final = decide(rules, msgspec.structs.replace(facts, plan=plan), final=True)
        assert final is not None
        if admitted.parsed.rewrites:
            final = msgspec.structs.replace(final, rewrites=admitted.parsed.rewrites)
    if final.decision is Decision.ALLOW:
        return Prepared(admitted, plan, final)
    if final.decision is Decision.DENY:
        return Ended(
            call=facts.call,
            started=admitted.started,
            tool=tool,
            arguments=facts.arguments,
            verdict=final,
            plan=plan,
            reading=refused(Status.DENIED, "denied", final.reason),
        )
    return _parked(world, admitted, plan, final)


def _parked(world: World, admitted: Admitted, plan: Plan, verdict: Verdict) -> Ended:
    """The call waits for a person; the ticket is bound to the plan, and so to arguments and policy."""
    facts = admitted.facts
    bound = world.digest(
        canonical([facts.call.tool, facts.arguments, plan.digest, admitted.desk.rules.version], WHATEVER)
    )
    return Ended(
        call=facts.call,
        started=admitted.started,
        tool=admitted.desk.tool,
        arguments=facts.arguments,
        verdict=verdict,
        plan=msgspec.structs.replace(plan, digest=bound),
        ticket=world.ids.new(),
        reading=refused(Status.PARKED, "needs_review", f"waits for a person: {verdict.reason} (rule {verdict.rule!r})"),
    )
