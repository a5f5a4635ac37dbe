"""Budgets and rates as transitions: what to set aside before the effect, and what to settle after it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from interlock.reasons import RefusalKind
from interlock.records import Charge
from interlock.tools import Reading, Tool
from interlock.tools.registry import matches
from interlock.transitions import Refused, Reserve, Settle, TakeToken
from interlock.values import EVERYONE, Budget, Call, Effect, Json, Rate, Status

# Reservations of changes do not expire by themselves: what may have landed counts as spent.
_NEVER_US = 2**62
_MOST_MICROS = 2**62
_NOT_MADE = (Status.FAILED, Status.INPUT_REQUIRED)
_WINDOWED = ("actor", "all")
_READ = Effect.READ  # looked up once: on Python 3.11 a member of an enum costs as much as a call


def reservations(
    budgets: tuple[Budget, ...], call: Call, arguments: Mapping[str, Json], tool: Tool, now_us: int, name: str
) -> tuple[Reserve, ...] | Refused:
    """What the call may at most need, in every budget that covers it; `name` is this performance's own.

    The caller's call id will not do: ids of models repeat from turn to turn, and two calls must not share one entry.
    Refused is a call outside any turn (or run) that needs more than a whole one may spend, and one that does not say
    how much it is of what is added up.
    """
    # What a change has set aside counts as spent until it is known how it ended.
    expires_us = now_us + tool.deadline_us if tool.effect is _READ else _NEVER_US
    held: tuple[Reserve, ...] = ()
    for budget in budgets:
        if budget.tools is not EVERYONE and not matches(budget.tools, tool.name):
            continue
        scope, cost = _scope(budget, call, now_us), tool.cost_micros
        if budget.sum:
            amount = add_up(budget.sum, arguments)
            if amount is None:
                return _refuse_unsaid(budget)
            cost = amount
        if scope is not None:
            ms = tool.deadline_us // 1000 if budget.ms is not None else 0
            held += (Reserve(name, scope, budget, expires_us, 1, cost, ms),)
        elif _covers(budget.actors, call.actor):
            refused = _refuse_alone(budget, tool, cost)
            if refused is not None:
                return refused
    return held


def add_up(path: str, arguments: Json) -> int | None:
    """The numbers at a path of arguments, added up, in millionths; None where there is none, or what is no number.

    Each counts by its size: what has a minus before it makes no room for more.
    """
    found = list(_at_path(path.split("."), arguments))
    try:
        numbers = [abs(Decimal(str(item))) for item in found if not isinstance(item, bool)]
        if not found or len(numbers) < len(found) or not all(number.is_finite() for number in numbers):
            return None
        return min(math.ceil(sum(numbers) * 1_000_000), _MOST_MICROS)
    except ArithmeticError:
        return None


def _at_path(path: Sequence[str], value: Json) -> Iterator[Json]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _at_path(path, item)
    elif not path:
        yield value
    elif isinstance(value, Mapping):
        yield from _at_path(path[1:], value.get(path[0]))
    else:
        yield None


def _refuse_unsaid(budget: Budget) -> Refused:
    message = f"budget {budget.id!r} adds up {budget.sum!r}, and this call does not say how much that is"
    return Refused(kind=RefusalKind.BUDGET, limit=budget.id, message=message)


def by_scope(held: tuple[Reserve, ...]) -> tuple[Reserve, ...]:
    """What is settled of reservations: one in each scope.

    A budget that comes with a call may go by the name of one of the policy. Then both limits hold for one account, in
    which the call is charged once.
    """
    return tuple({item.scope: item for item in held}.values())


def settlements(
    held: tuple[Reserve, ...], calls: int, cost_micros: int, ms: int, reading: Reading
) -> tuple[tuple[Settle, ...], tuple[Charge, ...]]:
    """Replace every reservation by what was really spent, and what the record of the call says about that.

    What a call does is spent where it may have been done; what it costs, and the call itself, in any case.

    Both land in one commit, so that whoever adds the records up comes to what the accounts hold.
    """
    settled: tuple[Settle, ...] = ()
    charged: tuple[Charge, ...] = ()
    for item in held:
        cost = cost_micros
        if item.budget.sum:
            cost = item.cost_micros if calls and _may_have_landed(reading) else 0
        settled += (Settle(item.call, item.scope, calls, cost, ms),)
        charged += (Charge(item.scope, calls, cost, ms),)
    return settled, charged if calls else ()


def _may_have_landed(reading: Reading) -> bool:
    nothing = reading.status is Status.NO_DATA and reading.problem is not None
    return reading.status not in _NOT_MADE and not nothing


def charges(settled: Iterable[Settle]) -> tuple[Charge, ...]:
    """What the record that lands with settlements says of them; nothing about what is given back."""
    return tuple(
        Charge(item.scope, item.calls, item.cost_micros, item.ms)
        for item in settled
        if item.calls or item.cost_micros or item.ms
    )


def tokens(rates: tuple[Rate, ...], call: Call) -> tuple[TakeToken, ...]:
    """One token from every bucket that covers the call."""
    return tuple(
        TakeToken(bucket=_bucket(rate, call), rate=rate.id, per_s=rate.per_s, burst=rate.burst)
        for rate in rates
        if _covers(rate.actors, call.actor)
    )


def _refuse_alone(budget: Budget, tool: Tool, cost_micros: int) -> Refused | None:
    """The refusal of a call that is in no turn (or run), and so one of its own; None if it may be made.

    Nothing was spent in it before and nothing will be after: it is held against the limits here, and no store has to
    remember it.
    """
    needs = (
        ("calls", budget.calls, 1),
        (budget.unit, budget.cost_micros, cost_micros),
        ("milliseconds", budget.ms, tool.deadline_us // 1000),
    )
    for what, most, more in needs:
        if most is not None and more > most:
            limit, needed = budget.spell(most, what), budget.spell(more, what)
            alone = f"this call, which is in no {budget.per} and so one of its own, needs {needed}"
            message = f"budget {budget.id!r} is {limit} {what} for each {budget.per}, and {alone}"
            return Refused(kind=RefusalKind.BUDGET, limit=budget.id, message=message)
    return None


def _scope(budget: Budget, call: Call, now_us: int) -> str | None:
    if budget.actors is not EVERYONE and not _covers(budget.actors, call.actor):
        return None
    if budget.per in _WINDOWED:
        whose = call.actor if budget.per == "actor" else "*"
        if budget.window_s is None:
            return f"{budget.id}|{budget.per}|{whose}"
        return f"{budget.id}|{budget.per}|{whose}|{now_us // (budget.window_s * 1_000_000)}"
    within = (call.root_turn or call.turn) if budget.per == "turn" else call.run
    return None if within is None else f"{budget.id}|{budget.per}|{within}"


def read_scope(scope: str) -> tuple[str, str, str, str]:
    """The budget of a scope, what it is spent per, for whom, and which window: what `_scope` put together."""
    budget, per, whose = scope.split("|", 2)
    name, bar, window = whose.rpartition("|")
    if per not in _WINDOWED or not bar or not window.isdecimal():
        return budget, per, whose, ""
    return budget, per, name, window


def read_bucket(bucket: str) -> tuple[str, str, str]:
    """The rate of a bucket, whose it is and of which tool: what `_bucket` put together."""
    rate, rest = bucket.split("|", 1)
    actor, tool = rest.rsplit("|", 1)
    return rate, actor, tool


def _bucket(rate: Rate, call: Call) -> str:
    actor = call.actor if "actor" in rate.per else "*"
    tool = call.tool if "tool" in rate.per else "*"
    return f"{rate.id}|{actor}|{tool}"


def _covers(actors: tuple[str, ...], actor: str) -> bool:
    return "*" in actors or actor in actors
