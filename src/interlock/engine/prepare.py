"""PREPARE: the plan, then all rules; only here can a call park."""

from __future__ import annotations

import msgspec

from interlock.engine.admit import denied
from interlock.engine.stages import Admitted, Ended, Prepared, World, refused
from interlock.policy import decide
from interlock.values import Decision, Status, Verdict


async def prepare(world: World, admitted: Admitted) -> Prepared | Ended:
    """What the call will do, finally allowed, or how it ended here."""
    call, tool, rules = admitted.call, admitted.tool, admitted.rules
    journal = world.journals[tool.effect]
    impossible = journal.refusal(tool)
    if impossible is not None:
        verdict = Verdict(
            decision=Decision.DENY, rule="journal", policy_version=rules.version, reason=impossible
        )
        return denied(
            call, admitted.started, tool, admitted.parsed, admitted.digest, verdict, "effect_not_supported"
        )
    plan = await journal.plan(call, tool, admitted.digest, rules.version)
    final = admitted.verdict
    if final is None:
        final = decide(rules, msgspec.structs.replace(admitted.facts, plan=plan), final=True)
        assert final is not None
        if admitted.parsed.rewrites:
            final = msgspec.structs.replace(final, rewrites=admitted.parsed.rewrites)
    match final.decision:
        case Decision.ALLOW:
            return Prepared(admitted=admitted, plan=plan, verdict=final)
        case Decision.DENY:
            return denied(call, admitted.started, tool, admitted.parsed, admitted.digest, final)
        case Decision.REVIEW:
            return Ended(
                call=call,
                started=admitted.started,
                tool=tool,
                arguments=admitted.parsed.arguments,
                digest=admitted.digest,
                verdict=final,
                plan=plan,
                ticket=world.ids.new(),
                reading=refused(
                    Status.PARKED, "needs_review", f"waits for a person: {final.reason} (rule {final.rule!r})"
                ),
            )
