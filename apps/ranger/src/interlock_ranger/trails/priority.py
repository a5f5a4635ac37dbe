"""Which trails to repair with an amount of money: the best set exactly, and a greedy choice to compare it with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from interlock import Result
from interlock.errors import NotFound
from interlock_ranger.evidence import (
    Evidence,
    Finding,
    Part,
    Recommendation,
    Step,
    Today,
    build_result,
    compute_confidence,
)
from interlock_ranger.records import Fire, Trail
from interlock_ranger.rules import get_rule
from interlock_ranger.trails.damage import sum_crew_days

LISTED = 60
"""So many trails a result has at the most."""
NAMED = 8
"""So many trails are named in the summary."""


class TrailRepair(Part):
    trail_id: str
    name: str
    cost_usd: int
    annual_visits: int
    crew_days: int | None
    """None if it is not known of every point."""
    quick_win: bool
    rule: str = "trails.selection"


class Priorities(Finding):
    fire_id: str
    name: str
    budget_usd: int
    chosen_count: int
    spent_usd: int
    left_usd: int
    annual_visits: int
    trails: tuple[TrailRepair, ...]
    not_chosen: tuple[TrailRepair, ...]
    greedy_annual_visits: int
    greedy_spent_usd: int
    better_than_greedy_by: int
    quick_wins: tuple[str, ...]
    crew_days_unknown: tuple[str, ...]
    """Trails of which no crew days are on file for some point: whether they are quick, nobody knows."""


def select_best(costs: Sequence[int], gains: Sequence[int], budget: int) -> list[int]:
    """The places of the set with the greatest gain whose cost is within the budget; of equals, the cheapest.

    A 0/1 knapsack, solved exactly as a mixed-integer program: the gap between what is found and what is possible is 0.
    """
    # What alone is over the budget is in no set; where nothing is left, there is no program to solve.
    affordable = [n for n, cost in enumerate(costs) if cost <= budget]
    if not affordable:
        return []
    cost = np.array([costs[n] for n in affordable], dtype=float)
    gain = np.array([gains[n] for n in affordable], dtype=float)
    # Less than one visit in all, so that cost decides only between sets that serve equally many.
    tie = cost / (2 * max(1.0, float(cost.sum())))
    solved = milp(
        # milp looks for the least.
        -(gain - tie),
        constraints=LinearConstraint(cost[np.newaxis, :], -np.inf, budget),
        integrality=np.ones(len(affordable)),
        bounds=Bounds(0, 1),
        # By default HiGHS stops within 0.01 % of the best, which need not be the best set.
        options={"mip_rel_gap": 0.0},
    )
    return [n for n, taken in zip(affordable, solved.x, strict=True) if taken > 0.5]  # a solver says 0.9999 for 1


def select_greedily(costs: Sequence[int], gains: Sequence[int], budget: int) -> list[int]:
    """Most gain for a dollar first, as long as the money lasts."""
    chosen, left = [], budget
    for n in sorted(range(len(costs)), key=lambda n: -gains[n] / max(1, costs[n])):
        if costs[n] <= left:
            chosen.append(n)
            left -= costs[n]
    return chosen


def prioritize_repairs(fire: Fire, budget_usd: int, today: Today) -> Result[Priorities]:
    """Which damaged trails to repair with a budget."""
    if not fire.trails:
        raise NotFound(f"{fire.facts.name} has no trails on file")
    # A trail without damage serves its visits already, and would be in every set for nothing.
    trails = [trail for trail in fire.trails.values() if trail.cost_usd > 0]
    if not trails:
        raise NotFound(f"no trail of {fire.facts.name} has damage on file")
    costs, visits = [t.cost_usd for t in trails], [t.annual_visits for t in trails]
    best, greedy = select_best(costs, visits, budget_usd), select_greedily(costs, visits, budget_usd)
    taken = sorted((_repair(trails[n]) for n in best), key=lambda r: -r.annual_visits)
    rest = sorted((_repair(t) for n, t in enumerate(trails) if n not in set(best)), key=lambda r: -r.annual_visits)
    spent, served = sum(r.cost_usd for r in taken), sum(r.annual_visits for r in taken)
    greedy_visits = sum(visits[n] for n in greedy)
    sources = (fire.source("trails.json"),)
    unknown = tuple(r.name for r in (*taken, *rest) if r.crew_days is None)
    compared = f"the best of all sets of {len(trails)} damaged trails for ${budget_usd:,}"
    evidence = Evidence(
        reasoning=(
            Step(rule="trails.selection", text=compared),
            Step(rule="trails.selection", text=f"greedy by visits for a dollar serves {greedy_visits:,} visits a year"),
            Step(rule="trails.quick-win", text=_describe_quick_wins(unknown)),
        ),
        recommendations=tuple(
            Recommendation(rule="trails.selection", text=f"repair {r.name} (${r.cost_usd:,})") for r in taken[:10]
        ),
        confidence=compute_confidence(today(), sources, len(trails), len(fire.trails)),
        data_sources=sources,
    )
    priorities = Priorities(
        fire_id=fire.id,
        name=fire.facts.name,
        budget_usd=budget_usd,
        chosen_count=len(taken),
        spent_usd=spent,
        left_usd=budget_usd - spent,
        annual_visits=served,
        trails=tuple(taken[:LISTED]),
        not_chosen=tuple(rest[:LISTED]),
        greedy_annual_visits=greedy_visits,
        greedy_spent_usd=sum(costs[n] for n in greedy),
        better_than_greedy_by=served - greedy_visits,
        crew_days_unknown=unknown[:LISTED],
        quick_wins=tuple(r.name for r in (*taken, *rest) if r.quick_win)[:LISTED],
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    return build_result(priorities, _summarise(priorities))


def _describe_quick_wins(unknown: Sequence[str]) -> str:
    quick = get_rule("trails.quick-win").values
    untold = f"; crew days are not known of {', '.join(unknown[:NAMED])}" if unknown else ""
    return f"at most ${quick['cost_usd']:,} and {quick['crew_days']} crew days{untold}"


def _summarise(p: Priorities) -> str:
    names = ", ".join(f"{r.name} (${r.cost_usd:,})" for r in p.trails[:NAMED]) or "none: the cheapest costs more"
    return (
        f"{p.name}, budget ${p.budget_usd:,}: repair {names}; ${p.spent_usd:,} spent, ${p.left_usd:,} left,"
        f" {p.annual_visits:,} visits a year served (greedy: {p.greedy_annual_visits:,})"
    )


def _repair(trail: Trail) -> TrailRepair:
    limits = get_rule("trails.quick-win").values
    days = sum_crew_days(trail.damage_points)
    return TrailRepair(
        trail_id=trail.trail_id,
        name=trail.name,
        cost_usd=trail.cost_usd,
        annual_visits=trail.annual_visits,
        crew_days=days,
        # Quick is what is known to be quick.
        quick_win=trail.cost_usd <= limits["cost_usd"] and days is not None and days <= limits["crew_days"],
    )
