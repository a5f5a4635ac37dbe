"""PREPARE: the plan, then all rules; only here can a call park."""

from __future__ import annotations

import msgspec

from interlock.engine.admit import denied
from interlock.engine.stages import Admitted, Ended, Prepared, World, refused
from interlock.policy import decide
from interlock.schema import canonical
from interlock.values import Decision, Plan, Status, Verdict


def prepare(world: World, admitted: Admitted, plan: Plan) -> Prepared | Ended:
    """The call with its plan, finally allowed, or how it ended here."""
    facts, desk = admitted.facts, admitted.desk
    tool, rules = desk.tool, desk.rules
    if desk.impossible is not None:
        return denied(facts, admitted.started, tool, "journal", desk.impossible, rules.version, "effect_not_supported")
    verdict = admitted.verdict
    if verdict is None:
        verdict = decide(rules, msgspec.structs.replace(facts, plan=plan), final=True)
        assert verdict is not None
        if admitted.parsed.rewrites:
            verdict = msgspec.structs.replace(verdict, rewrites=admitted.parsed.rewrites)
    if verdict.decision is Decision.ALLOW:
        return Prepared(admitted, plan, verdict)
    if verdict.decision is Decision.DENY:
        return Ended(
            call=facts.call,
            started=admitted.started,
            tool=tool,
            arguments=facts.arguments,
            verdict=verdict,
            plan=plan,
            reading=refused(Status.DENIED, "denied", verdict.reason),
        )
    return _parked(world, admitted, plan, verdict)


def _parked(world: World, admitted: Admitted, plan: Plan, verdict: Verdict) -> Ended:
    """The call waits for a person; the ticket is bound to the plan, and so to arguments and policy."""
    facts = admitted.facts
    bound = world.digest(canonical([facts.call.tool, facts.arguments, plan.digest, admitted.desk.rules.version]))
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
