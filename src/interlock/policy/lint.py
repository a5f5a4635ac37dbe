"""What a policy says about itself: rules that can never decide, tools that no rule decides."""

from __future__ import annotations

from itertools import product
from math import prod

import msgspec

from interlock.policy.compile import Ruleset
from interlock.policy.conditions import Condition, ConditionError
from interlock.policy.decide import Clamp, Decider, ToolRules
from interlock.values import Decision

_MOST_COMBINATIONS = 4096
"""A condition over more combinations of values is not tried out: the check stays within a blink."""


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How many rules decide about one tool."""

    tool: str
    allow: int
    deny: int
    review: int
    clamp: int

    @property
    def is_decided(self) -> bool:
        """Whether any rule speaks about the tool at all."""
        return self.allow + self.deny + self.review > 0


def measure_coverage(ruleset: Ruleset, tools: tuple[str, ...]) -> tuple[Coverage, ...]:
    """One line for every registered tool."""
    lines = []
    for tool in tools:
        rules = ruleset.rules(tool)
        counts = dict.fromkeys(Decision, 0)
        for decider in rules.deciders:
            counts[decider.verdict.decision] += 1
        lines.append(
            Coverage(
                tool=tool,
                allow=counts[Decision.ALLOW],
                deny=counts[Decision.DENY],
                review=counts[Decision.REVIEW],
                clamp=len(rules.clamps),
            )
        )
    return tuple(lines)


def find_idle_rules(ruleset: Ruleset, tools: tuple[str, ...]) -> tuple[str, ...]:
    """Rules that decide for none of the tools they are for, each with its place and why."""
    reasons: dict[str, list[str | None]] = {}
    places = {}
    for tool in tools:
        rules = ruleset.rules(tool)
        asked: list[Decider | Clamp] = [*rules.deciders, *rules.clamps]
        for item in asked:
            reasons.setdefault(item.rule.id, []).append(_idle_reason(item, rules))
            places[item.rule.id] = item.rule.place
    return tuple(
        f"{places[rule]}: rule {rule!r} can never decide: {found[0]}"
        for rule, found in reasons.items()
        if all(reason is not None for reason in found)  # a rule that decides for one of its tools is not idle
    )


def _idle_reason(item: Decider | Clamp, rules: ToolRules) -> str | None:
    if item.condition is not None and _is_never_true(item.condition):
        return "its condition is false for every call"
    blocker = next((d for d in rules.deciders if _denies_always(d) and d.rule.id != item.rule.id), None)
    if blocker is not None and not (isinstance(item, Decider) and _denies_always(item)):
        return f"rule {blocker.rule.id!r} denies every call of {rules.tool!r}"
    return None


def _denies_always(decider: Decider) -> bool:
    if decider.verdict.decision is not Decision.DENY:
        return False
    return decider.condition is None or _is_always_true(decider.condition)


def _is_always_true(condition: Condition) -> bool:
    return _for_every_call(condition, answer=True)


def _is_never_true(condition: Condition) -> bool:
    return _for_every_call(condition, answer=False)


def _for_every_call(condition: Condition, *, answer: bool) -> bool:
    """The same answer whatever the call: constant, or for every combination of the few values its variables have."""
    constant = condition.constant()
    if constant is not None:
        return constant is answer
    domains = [variable.domain for variable in condition.variables]
    few = [domain for domain in domains if domain is not None]
    # One open domain is enough: not every call can be tried.
    if condition.looks_outside or not few or len(few) != len(domains):
        return False
    if prod(len(domain) for domain in few) > _MOST_COMBINATIONS:
        return False
    names = [variable.name for variable in condition.variables]
    try:
        return all(condition.evaluate_on(dict(zip(names, values, strict=True))) is answer for values in product(*few))
    except ConditionError:
        return False
