"""What a preview can tell of the calls that would be made: which of them the policy or a budget would refuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from interlock.budget import reservations
from interlock.engine import EngineContext
from interlock.engine.admit import accept, admit
from interlock.engine.context import Ended, Started
from interlock.operations.undo import UndoStep
from interlock.ports import Spent
from interlock.transitions import Refused, Reserve
from interlock.values import Call


class _Needed(msgspec.Struct, frozen=True):
    """What the steps before would have spent, in calls and money; of their time nobody can tell."""

    calls: Counter[str] = msgspec.field(default_factory=Counter)
    cost_micros: Counter[str] = msgspec.field(default_factory=Counter)


async def foresee(ctx: EngineContext, steps: Sequence[tuple[UndoStep, Call | None]]) -> list[UndoStep]:
    """The steps, those with an obstacle whose calls would be refused as the policy, halts and budgets are now."""
    needed, found = _Needed(), []
    for step, call in steps:
        why = "" if call is None else _refusal(ctx, call) or await _lacking(ctx, call, needed)
        if call is not None and why:
            step = msgspec.structs.replace(step, obstacle=f"{call.tool!r} would be refused: {why}", holds_back=True)
        found.append(step)
    return found


def _refusal(ctx: EngineContext, call: Call) -> str:
    """Why the call is not admitted: contract, capabilities, halts, and the rules that need no plan."""
    accepted = accept(ctx, call, Started(ctx.clock.now_us(), ctx.clock.monotonic()), None)
    stage = accepted if isinstance(accepted, Ended) else admit(ctx, accepted)
    return stage.reading.said if isinstance(stage, Ended) else ""


async def _lacking(ctx: EngineContext, call: Call, needed: _Needed) -> str:
    """Which budget would not suffice, after what the calls before have needed."""
    if call.undoes is not None:
        return ""  # taking back spends no budget
    tool, now_us = ctx.bindings[call.tool].tool, ctx.clock.now_us()
    budgets, given = ctx.budgets + call.budgets, call.arguments if isinstance(call.arguments, dict) else {}
    held = reservations(budgets, call, given, tool, now_us, call.call_id)
    if isinstance(held, Refused):
        return held.message
    ctx.at("foresee.spent")
    for ask in held:
        why = _lacks(ask, await ctx.store.spent(ask.scope, now_us), needed)
        if why:
            return why
    needed.calls.update({ask.scope: ask.calls for ask in held})
    needed.cost_micros.update({ask.scope: ask.cost_micros for ask in held})
    return ""


def _lacks(ask: Reserve, spent: Spent, needed: _Needed) -> str:
    limits = ask.budget
    needs = (
        ("calls", limits.calls, spent.calls + spent.reserved_calls + needed.calls[ask.scope], ask.calls),
        (
            limits.unit,
            limits.cost_micros,
            spent.cost_micros + spent.reserved_cost_micros + needed.cost_micros[ask.scope],
            ask.cost_micros,
        ),
        ("milliseconds", limits.ms, spent.ms + spent.reserved_ms, ask.ms),
    )
    for what, most, used, more in needs:
        if most is not None and used + more > most:
            left, all_of_it, asked = (limits.spell(amount, what) for amount in (max(0, most - used), most, more))
            return f"budget {limits.id!r} will have {left} of {all_of_it} {what} left, and this call needs {asked}"
    return ""
