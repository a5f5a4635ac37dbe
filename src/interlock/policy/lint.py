"""What a policy says about itself: rules that can never decide, reviews that nobody can, tools that no rule decides."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

import msgspec

from interlock.canonical import Refusal, canonical
from interlock.policy.compile import Ruleset
from interlock.policy.conditions import Condition, ConditionError
from interlock.policy.decide import Clamp, Decider, ToolRules
from interlock.policy.model import ReviewSpec
from interlock.principals import is_same, kind_of
from interlock.tools import Tool
from interlock.values import Decision, FieldProblem, Json

_MOST_COMBINATIONS = 4096
"""A condition over more combinations of values is not tried out: the check stays within a blink."""

_JOINED = ("if", "not", "allOf", "anyOf", "oneOf", "$ref", "dependentSchemas")
"""Where a JSON Schema has these, whether it takes one value may hang on the others."""


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


def find_unapprovable(ruleset: Ruleset, now_us: int) -> tuple[str, ...]:
    """Terms of review under which nobody could ever approve, each with its place and what is missing."""
    policy, spec = ruleset.policy, ruleset.policy.review
    asked = [(f"{policy.file}: [review]", spec.approvers, spec.quorum)]
    asked += [
        (f"{rule.place}: rule {rule.id!r}", rule.approvers or spec.approvers, rule.quorum or spec.quorum)
        for rule in policy.rules
        if rule.approvers or rule.quorum
    ]
    found = []
    for place, approvers, quorum in asked:
        able = [name for name in approvers if _can_speak(name, spec, now_us)]
        if approvers and len(able) < quorum:
            missing = "; ".join(_why_silent(name, spec) for name in approvers if name not in able)
            found.append(f"{place} wants {quorum} of {len(approvers)} to approve, and only {len(able)} can: {missing}")
    return tuple(found)


def _can_speak(name: str, spec: ReviewSpec, now_us: int) -> bool:
    """Whether a name can be shown to be somebody's, or somebody who can be shown speaks for it."""
    stand_ins = [one.to for one in spec.delegations if is_same(one.of, name) and one.until_us > now_us]
    return any(_why_silent(one, spec) == "" for one in (name, *stand_ins))


def _why_silent(name: str, spec: ReviewSpec) -> str:
    """Why nobody can decide under a name; empty if somebody can."""
    kind = kind_of(name)
    if kind == "os" or kind in spec.vouched or (kind == "token" and spec.keys):
        return ""
    if kind == "token":
        return f"{name} needs a key that may sign its token: name it in [review] keys"
    if not kind:
        return f"{name} has no kind: write os:{name}, token:{name} or user:{name}"
    return f'{name} is a name that an application gives: write vouched = ["{kind}"] in [review]'


def find_unfit_sets(ruleset: Ruleset, tools: Mapping[str, Tool]) -> tuple[str, ...]:
    """Values that rules write into arguments and that the contract of a tool refuses, whatever else is in the call."""
    found = []
    for name, tool in tools.items():
        for clamp in ruleset.rules(name).clamps:
            for field, setter in clamp.sets:
                problem = _misfit(tool, field, setter)
                if problem:
                    found.append(
                        f"{clamp.rule.place}: rule {clamp.rule.id!r} sets {field} of {name!r} to what its contract"
                        f" refuses ({problem}), so that every call it rewrites is denied"
                    )
    return tuple(found)


def _misfit(tool: Tool, field: str, setter: Condition | Json) -> str:
    """Why a value that is the same for every call does not fit; empty if it does, or depends on the call."""
    if any(key in tool.input.schema for key in _JOINED):
        return ""
    try:
        given: Any = _value_of(setter) if isinstance(setter, Condition) else setter
        for part in reversed(field.split(".")):
            given = {part: given}
        tool.input.parse(given)
    except Refusal as refusal:  # also about the arguments that are not there: only the field itself counts
        return "; ".join(one.message for one in refusal.fields if _is_about(one, field))
    except Exception:  # noqa: BLE001 - a validator of the tool's own may need the other arguments
        return ""
    return ""


def _value_of(setter: Condition) -> Json:
    """What an expression that names nothing of the call comes to; ConditionError if it does."""
    if setter.variables or setter.looks_outside:
        raise ConditionError("it depends on the call")
    value: Json = msgspec.json.decode(canonical(setter.evaluate_on({})))
    return value


def _is_about(problem: FieldProblem, field: str) -> bool:
    return problem.field == field or problem.field.startswith(f"{field}.")
