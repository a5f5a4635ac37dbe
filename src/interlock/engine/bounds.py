"""What a plan must hold beside the rules: the tool's invariants, and how soon a key may be changed again.

Both are asked when a call is planned, and once more under its leases, where nobody else can change the keys.
"""

from __future__ import annotations

from datetime import UTC, datetime

from interlock.engine.admit import no
from interlock.engine.stages import Admitted, World
from interlock.policy import Cooldown
from interlock.standing import Lease
from interlock.values import EVERYONE, Plan, Verdict

INVARIANT = "invariant"
"""The rule that a verdict names if the state after a call would be wrong."""


async def out_of_bounds(world: World, admitted: Admitted, plan: Plan) -> Verdict | None:
    """Why the plan may not be performed, if it may not. `Unreadable` or `StoreError` if that cannot be told."""
    desk, call = admitted.desk, admitted.facts.call
    assert desk.planner is not None
    cooldowns = [c for c in desk.rules.cooldowns if c.actors == EVERYONE or call.actor in c.actors]
    if cooldowns:
        if world.faults is not None:
            world.faults.at("bounds.leases")
        touched = _touched(plan)
        for lease in await world.store.leases(touched):
            own = bool(lease.changed_run) and lease.changed_run == call.run
            if lease.key in touched and not own and (resting := _resting(world, cooldowns, lease)) is not None:
                return no(resting.id, _why(resting, lease), desk.rules.version)
    wrong = await desk.planner.violations(plan, admitted.facts.arguments)
    return no(INVARIANT, "; ".join(wrong), desk.rules.version) if wrong else None


def _touched(plan: Plan) -> tuple[str, ...]:
    """The keys that the plan would change; all of them where nothing can say."""
    if plan.after is None:
        return plan.keys
    return tuple(k for k, was, becomes in zip(plan.keys, plan.before, plan.after, strict=True) if was != becomes)


def _resting(world: World, cooldowns: list[Cooldown], lease: Lease) -> Cooldown | None:
    since_s = (world.clock.now_us() - lease.changed_us) / 1e6
    return next((item for item in cooldowns if lease.changed_us and since_s < item.window_s), None)


def _why(cooldown: Cooldown, lease: Lease) -> str:
    when = datetime.fromtimestamp(lease.changed_us / 1e6, UTC).isoformat(timespec="seconds")
    until = datetime.fromtimestamp(lease.changed_us / 1e6 + cooldown.window_s, UTC).isoformat(timespec="seconds")
    by = f" by run {lease.changed_run}" if lease.changed_run else ""
    return f"{lease.key!r} was changed at {when}{by}, and rests until {until}"
