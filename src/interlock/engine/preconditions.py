"""What a plan must hold beside the rules: the tool's invariants, and how soon a key may be changed again.

Both are asked when a call is planned, and once more under its leases, where nobody else can change the keys.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from interlock.changes import touched_keys
from interlock.engine.admit import deny
from interlock.engine.context import Admitted, EngineContext
from interlock.engine.whole_changes import whole_change
from interlock.policy import Cooldown
from interlock.reasons import Reason
from interlock.state import LANDED, NOT_KEPT, ChangeFilter, Lease, is_wildcard, overlap
from interlock.values import EVERYONE, Plan, Verdict


class Violation(msgspec.Struct, frozen=True):
    """A precondition that does not hold: which kind, and the verdict that says so."""

    reason: Reason
    verdict: Verdict


async def violated_precondition(ctx: EngineContext, admitted: Admitted, plan: Plan) -> Violation | None:
    """Why the plan may not be performed, if it may not. `Unreadable` or `StoreError` if that cannot be told."""
    binding = admitted.binding
    assert binding.planner is not None
    if not binding.rules.cooldowns and binding.tool.invariants is None:  # most changes have neither
        return None
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
    if not rules.cooldowns or call.undoes is not None or call.replays:
        return None
    cooldowns = [c for c in rules.cooldowns if c.actors == EVERYONE or call.actor in c.actors]
    if not cooldowns:
        return None
    # Of keys that the plan would change; of all of them where nothing can say.
    touched = plan.keys if plan.after is None else touched_keys(plan.keys, plan.before, plan.after)
    ctx.at("preconditions.time")
    # By the clock by which the store has noted when keys were changed.
    now_us = await ctx.store.now_us(ctx.clock.now_us())
    since_us = now_us - int(max(cooldown.window_s for cooldown in cooldowns) * 1e6)
    for last in await _last_changes(ctx, touched, since_us, call.run or call.turn or ""):
        for cooldown in cooldowns:
            if (now_us - last.at_us) / 1e6 < cooldown.window_s:
                return deny(cooldown.id, _why(cooldown, last), rules.version)
    return None


class _LastChange(msgspec.Struct, frozen=True):
    """When, and in which run or turn, a key was changed: alone, or with its whole resource."""

    key: str
    at_us: int
    run: str


async def _last_changes(ctx: EngineContext, touched: tuple[str, ...], since_us: int, run: str) -> list[_LastChange]:
    """What others than a run have changed last since a time of that which a plan would change.

    What it has changed itself, by whatever tool, does not hide that.
    """
    ctx.at("preconditions.leases")
    leases = [lease for lease in await ctx.store.leases(touched) if lease.changed_us > since_us]
    lasts = [_by_others(lease, run) for lease in leases if not is_wildcard(lease.key)]
    alone = [last for last in lasts if last.at_us > since_us]
    for everything in [lease.key for lease in leases if is_wildcard(lease.key)]:
        alone += await _whole_changes(ctx, everything, touched, since_us, run)
    return alone


def _by_others(lease: Lease, run: str) -> _LastChange:
    if not run or lease.changed_run != run:
        return _LastChange(lease.key, lease.changed_us, lease.changed_run)
    if lease.others_us == NOT_KEPT:  # then it may have been another run as well
        return _LastChange(lease.key, lease.changed_us, "")
    return _LastChange(lease.key, lease.others_us, lease.others_run)


async def _whole_changes(
    ctx: EngineContext, everything: str, touched: tuple[str, ...], since_us: int, run: str
) -> list[_LastChange]:
    """The last change of each of these keys by whatever may have touched its whole resource, in another run.

    The lease of that says only that something was changed there: its records say what.
    """
    ctx.at("preconditions.claims")
    found: dict[str, _LastChange] = {}
    claims = [claim for claim in await ctx.store.claims(ChangeFilter(key=everything)) if claim.state in LANDED]
    for claim in sorted(claims, key=lambda claim: claim.record or 0, reverse=True):
        its_run = claim.run or claim.turn or ""
        if run and its_run == run:
            continue
        change = await whole_change(ctx, claim)
        if change.at_us <= since_us:
            break
        keys = [everything] if change.left is None else sorted(change.left)
        for key in keys:
            if any(overlap(key, mine) for mine in touched):
                found.setdefault(key, _LastChange(key, change.at_us, its_run))
    return list(found.values())


def _why(cooldown: Cooldown, last: _LastChange) -> str:
    when = datetime.fromtimestamp(last.at_us / 1e6, UTC).isoformat(timespec="seconds")
    until = datetime.fromtimestamp(last.at_us / 1e6 + cooldown.window_s, UTC).isoformat(timespec="seconds")
    by = f" by run {last.run}" if last.run else ""
    return f"{last.key!r} was changed at {when}{by}, and rests until {until}"
