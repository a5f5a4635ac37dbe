"""What a plan must hold beside the rules: the tool's invariants, and how soon a key may be changed again.

Both are asked when a call is planned, and once more under its leases, where nobody else can change the keys.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from interlock.engine.admit import deny
from interlock.engine.context import Admitted, EngineContext
from interlock.policy import Cooldown
from interlock.reasons import Reason
from interlock.state import Lease
from interlock.values import EVERYONE, Plan, Verdict


class Violation(msgspec.Struct, frozen=True):
    """A precondition that does not hold: which kind, and the verdict that says so."""

    reason: Reason
    verdict: Verdict


async def violated_precondition(ctx: EngineContext, admitted: Admitted, plan: Plan) -> Violation | None:
    """Why the plan may not be performed, if it may not. `Unreadable` or `StoreError` if that cannot be told."""
    binding = admitted.binding
    assert binding.planner is not None
    resting = await _cooldown_verdict(ctx, admitted, plan)
    if resting is not None:
        return Violation(Reason.COOLDOWN, resting)
    wrong = await binding.planner.violations(plan, admitted.facts.arguments)
    if not wrong:
        return None
    return Violation(Reason.INVARIANT, deny("invariant", "; ".join(wrong), binding.rules.version))


async def _cooldown_verdict(ctx: EngineContext, admitted: Admitted, plan: Plan) -> Verdict | None:
    """Why a key that the plan would change may not be changed yet. Taking back, or making again, is never too early."""
    rules, call = admitted.binding.rules, admitted.facts.call
    cooldowns = [c for c in rules.cooldowns if c.actors == EVERYONE or call.actor in c.actors]
    if not cooldowns or call.undoes is not None or call.replays:
        return None
    ctx.at("preconditions.leases")
    touched = _touched_keys(plan)
    everything = {f"{key.partition('/')[0]}/*" for key in touched}
    for lease in await ctx.store.leases(touched):
        mine = bool(lease.changed_run) and lease.changed_run == (call.run or call.turn)
        since_s = (ctx.clock.now_us() - lease.changed_us) / 1e6
        if mine or not lease.changed_us or not (lease.key in touched or lease.key in everything):
            continue
        for cooldown in cooldowns:
            if since_s < cooldown.window_s:
                return deny(cooldown.id, _why(cooldown, lease), rules.version)
    return None


def _touched_keys(plan: Plan) -> tuple[str, ...]:
    """The keys that the plan would change; all of them where nothing can say."""
    if plan.after is None:
        return plan.keys
    if plan.keys and plan.keys[0].endswith("/*"):
        was, becomes = plan.before[0] or {}, plan.after[0] or {}
        owner = plan.keys[0][:-1]
        return tuple(owner + name for name in sorted({*was, *becomes}) if was.get(name) != becomes.get(name))
    return tuple(k for k, was, becomes in zip(plan.keys, plan.before, plan.after, strict=True) if was != becomes)


def _why(cooldown: Cooldown, lease: Lease) -> str:
    when = datetime.fromtimestamp(lease.changed_us / 1e6, UTC).isoformat(timespec="seconds")
    until = datetime.fromtimestamp(lease.changed_us / 1e6 + cooldown.window_s, UTC).isoformat(timespec="seconds")
    by = f" by run {lease.changed_run}" if lease.changed_run else ""
    return f"{lease.key!r} was changed at {when}{by}, and rests until {until}"
