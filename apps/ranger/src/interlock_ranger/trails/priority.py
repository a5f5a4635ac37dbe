"""Which trails to repair with an amount of money: the best set exactly, and a greedy choice to compare it with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from interlock import Result
from interlock.errors import NotFound
from interlock_ranger.evidence import Finding, Part, Recommendation, Step, Today, confidence, finding
from interlock_ranger.fires import Fire, Trail
from interlock_ranger.rules import rule

LISTED = 60


class Choice(Part):
    """A trail that would be repaired."""

    trail_id: str
    name: str
    cost_usd: int
    annual_visits: int
    crew_days: int
    quick_win: bool
    rule: str = "trails.selection"


class Priorities(Finding):
    """What to repair first."""

    fire_id: str
    name: str
    budget_usd: int
    chosen_count: int
    spent_usd: int
    left_usd: int
    annual_visits: int
    trails: tuple[Choice, ...]
    not_chosen: tuple[Choice, ...]
    greedy_annual_visits: int
    greedy_spent_usd: int
    better_than_greedy_by: int
    quick_wins: tuple[str, ...]


def exact(costs: Sequence[int], gains: Sequence[int], budget: int) -> list[int]:
    """The places of the set with the greatest gain whose cost is within the budget; of equals, the cheapest."""
    affordable = [n for n, cost in enumerate(costs) if cost <= budget]
    if not affordable:
        return []
    cost = np.array([costs[n] for n in affordable], dtype=float)
    gain = np.array([gains[n] for n in affordable], dtype=float)
    tie = cost / (2 * max(1.0, float(cost.sum())))  # below one visit in all, so it decides only between equals
    solved = milp(
        -(gain - tie),
        constraints=LinearConstraint(cost[np.newaxis, :], -np.inf, budget),
        integrality=np.ones(len(affordable)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    return [n for n, taken in zip(affordable, solved.x, strict=True) if taken > 0.5]


def greedy(costs: Sequence[int], gains: Sequence[int], budget: int) -> list[int]:
    """Most gain for a dollar first, as long as the money lasts."""
    chosen, left = [], budget
    for n in sorted(range(len(costs)), key=lambda n: -gains[n] / max(1, costs[n])):
        if costs[n] <= left:
            chosen.append(n)
            left -= costs[n]
    return chosen


def prioritized(fire: Fire, budget_usd: int, today: Today) -> Result[Priorities]:
    """The selection for a budget."""
    trails = [trail for trail in fire.trails.values() if trail.cost_usd > 0]
    if not trails:
        raise NotFound(f"no trail of {fire.facts.name} has damage on file")
    costs, gains = [t.cost_usd for t in trails], [t.annual_visits for t in trails]
    best, quick = exact(costs, gains, budget_usd), greedy(costs, gains, budget_usd)
    taken = sorted((_choice(trails[n]) for n in best), key=lambda c: -c.annual_visits)
    rest = sorted((_choice(t) for n, t in enumerate(trails) if n not in set(best)), key=lambda c: -c.annual_visits)
    spent, visits = sum(c.cost_usd for c in taken), sum(c.annual_visits for c in taken)
    by_greed = sum(gains[n] for n in quick)
    sources = (fire.source("trails.json", fire.facts.survey_date),)
    value = {
        "fire_id": fire.id,
        "name": fire.facts.name,
        "budget_usd": budget_usd,
        "chosen_count": len(taken),
        "spent_usd": spent,
        "left_usd": budget_usd - spent,
        "annual_visits": visits,
        "trails": tuple(taken[:LISTED]),
        "not_chosen": tuple(rest[:LISTED]),
        "greedy_annual_visits": by_greed,
        "greedy_spent_usd": sum(costs[n] for n in quick),
        "better_than_greedy_by": visits - by_greed,
        "quick_wins": tuple(c.name for c in (*taken, *rest) if c.quick_win)[:LISTED],
        "reasoning": (
            Step(
                rule="trails.selection",
                said=f"the best of all sets of {len(trails)} damaged trails for ${budget_usd:,}",
            ),
            Step(rule="trails.selection", said=f"greedy by visits for a dollar serves {by_greed:,} visits a year"),
            Step(rule="trails.quick-win", said="at most $15,000 and 10 crew days"),
        ),
        "recommendations": tuple(
            Recommendation(rule="trails.selection", text=f"repair {c.name} (${c.cost_usd:,})") for c in taken[:10]
        ),
    }
    names = ", ".join(f"{c.name} (${c.cost_usd:,})" for c in taken[:8]) or "none: the cheapest costs more"
    said = (
        f"{fire.facts.name}, budget ${budget_usd:,}: repair {names}; ${spent:,} spent, ${budget_usd - spent:,} left,"
        f" {visits:,} visits a year served (greedy: {by_greed:,})"
    )
    return finding(Priorities, said, value, sources, confidence(today(), sources, len(trails), len(fire.trails)))


def _choice(trail: Trail) -> Choice:
    limits = rule("trails.quick-win").values
    days = sum(point.crew_days or 0 for point in trail.damage_points)
    return Choice(
        trail_id=trail.trail_id,
        name=trail.name,
        cost_usd=trail.cost_usd,
        annual_visits=trail.annual_visits,
        crew_days=days,
        quick_win=trail.cost_usd <= limits["cost_usd"] and days <= limits["crew_days"],
    )
