"""The decision: one pure function of compiled rules and a snapshot of facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from interlock.canonical import Refusal
from interlock.policy.conditions import Condition, ConditionError, Facts, JointCondition
from interlock.policy.model import Cooldown, Rule
from interlock.policy.provenance import Trace
from interlock.tools import Parsed, Tool
from interlock.values import Decision, Grant, Json, Mode, Rewrite, Verdict

PRECEDENCE = (Decision.DENY, Decision.REVIEW, Decision.ALLOW)
DEFAULT_RULE = "default"
_MARKS: dict[str, Callable[[Trace, dict[str, Json]], str]] = {
    "{origins}": lambda trace, given: "; ".join(one.why for one in trace.suspects(given)[:_MOST_SAID]),
    "{carried}": lambda trace, given: trace.explain_carried(given),
    "{asked}": lambda trace, _given: trace.explain_unasked(),
}
"""What stands for a sentence about this very call in the reason of a rule."""
_MOST_SAID = 3


class Decider(msgspec.Struct, frozen=True):
    """A rule that decides, its condition (None: always), and the verdict it gives."""

    rule: Rule
    condition: Condition | None
    verdict: Verdict


class Clamp(msgspec.Struct, frozen=True):
    """A rule that rewrites arguments."""

    rule: Rule
    condition: Condition | None
    sets: tuple[tuple[str, Condition | Json], ...]


class Group(msgspec.Struct, frozen=True):
    """Conditions evaluated together, and the place in `deciders` of each."""

    joined: JointCondition
    places: tuple[int, ...]


class ToolRules(msgspec.Struct, frozen=True, kw_only=True):
    """The compiled rules of one tool: deciders in order of precedence, then of the file."""

    tool: str
    version: str
    deciders: tuple[Decider, ...] = ()
    clamps: tuple[Clamp, ...] = ()
    early: tuple[Group, ...] = ()
    late: tuple[Group, ...] = ()
    always: int | None = None
    needs_turn: bool = False
    needs_origins: bool = False
    watched: frozenset[str] = frozenset()
    """The tools whose earlier calls a rule looks at."""
    risks: tuple[tuple[str, Condition], ...] = ()
    cooldowns: tuple[Cooldown, ...] = ()
    as_planned: bool = False
    """Whether a change that is not what was planned has failed."""
    no_rule: Verdict


def rewrite(rules: ToolRules, facts: Facts) -> tuple[dict[str, Json], tuple[Rewrite, ...]]:
    """Arguments after the clamps, and what each changed. ConditionError names the rule that could not be evaluated."""
    arguments, rewrites = facts.arguments, []
    for clamp in rules.clamps:
        current = msgspec.structs.replace(facts, arguments=arguments)  # each clamp sees what those before it left
        try:
            if clamp.condition is not None and clamp.condition.evaluate(current) is not True:
                continue
            for field, setter in clamp.sets:
                after = setter.evaluate(current) if isinstance(setter, Condition) else setter
                before, changed = _replace(arguments, field.split("."), after)
                if before != after:
                    arguments = changed
                    rewrites.append(Rewrite(field=field, before=before, after=after, rule=clamp.rule.id))
        except ConditionError as error:
            raise ConditionError(str(error), clamp.rule.id) from None
    return arguments, tuple(rewrites)


def decide(rules: ToolRules, facts: Facts, *, final: bool) -> Verdict | None:
    """Deny beats review beats allow; no rule, no execution; an error denies.

    Without the plan (`final=False`) only rules that need none are asked, and anything but a plain answer is None:
    a later deny could still overrule it.
    """
    # Rules without a condition need no CEL; a conditional one of higher precedence can still beat them.
    best = rules.always
    groups = rules.early + rules.late if final else rules.early
    for group in groups:
        try:
            mask = group.joined.mask(facts)
        except ConditionError as error:
            return _deny_failed_rule(rules, group, facts, error)
        if mask:  # the lowest bit is the strongest rule of the group: deciders are in order of precedence
            place = group.places[(mask & -mask).bit_length() - 1]
            if best is None or place < best:
                best = place
    if not final and rules.late:
        denied = best is not None and rules.deciders[best].verdict.decision is Decision.DENY
        return _explain(rules.deciders[best].verdict, facts) if denied and best is not None else None
    return rules.no_rule if best is None else _explain(rules.deciders[best].verdict, facts)


def _explain(verdict: Verdict, facts: Facts) -> Verdict:
    """The verdict with where the arguments of this call came from, and that in its reason, if this is to say so."""
    if facts.trace is None:
        return verdict
    trace = facts.trace
    found, foreign = trace.summary(facts.arguments), trace.foreign(facts.arguments)
    verdict = msgspec.structs.replace(verdict, origins=found, foreign=foreign)
    if verdict.decision is Decision.ALLOW:
        return verdict
    suspects = facts.trace.suspects(facts.arguments)[:_MOST_SAID]
    said = verdict.reason
    for mark, say in _MARKS.items():
        said = said.replace(mark, say(trace, facts.arguments)) if mark in said else said
    sources = tuple(dict.fromkeys(place.record for one in suspects for place in one.origin.places[:1] if place.record))
    return msgspec.structs.replace(verdict, reason=said, sources=sources)


def risk_by_rules(rules: ToolRules, facts: Facts) -> str | None:
    """The highest level whose condition holds for the plan; what cannot be evaluated is high. None: no rule says."""
    for level, condition in rules.risks:
        try:
            if condition.evaluate(facts) is True:
                return level
        except ConditionError:
            return "high"
    return None


def clamp(rules: ToolRules, tool: Tool, parsed: Parsed, facts: Facts) -> tuple[Parsed, Facts]:
    """Arguments after the clamps, through the contract once more. ConditionError names the rule that is at fault."""
    arguments, rewrites = rewrite(rules, facts)
    if not rewrites:
        return parsed, facts
    try:
        # A rewrite is held to the contract like what a model sends: rules and tool must not see what it would refuse.
        again = tool.input.parse(arguments)
    except Refusal as refusal:
        raise ConditionError(f"its rewrite does not fit the contract: {refusal}", rewrites[-1].rule) from None
    changed = msgspec.structs.replace(again, rewrites=parsed.rewrites + rewrites)
    return changed, msgspec.structs.replace(facts, arguments=again.arguments)


def judge(rules: ToolRules, tool: Tool, parsed: Parsed, facts: Facts) -> tuple[Verdict, Facts]:
    """The final verdict on a snapshot as the engine would give it, and the facts after the clamps."""
    try:
        parsed, facts = clamp(rules, tool, parsed, facts)
    except ConditionError as error:
        return rule_error(rules, error.rule, error), facts
    verdict = decide(rules, facts, final=True)
    assert verdict is not None
    return (msgspec.structs.replace(verdict, rewrites=parsed.rewrites) if parsed.rewrites else verdict), facts


def missing_grant(tool: Tool, grant: Grant, mode: Mode) -> str | None:
    """Why a grant does not suffice, or None."""
    missing = tool.capabilities - grant.capabilities
    if missing:
        return f"this actor lacks {', '.join(sorted(missing))}; grant it under [actor.…] in the policy"
    if mode not in grant.modes:
        return f"this actor may not use mode {mode.value!r}; it has {', '.join(sorted(grant.modes))}"
    return None


class RuleTrace(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule said about one call."""

    rule: Rule
    matched: bool
    error: str | None = None


def trace(rules: ToolRules, facts: Facts) -> tuple[RuleTrace, ...]:
    """Every rule asked one by one, for people who want to know why."""
    found = []
    asked: list[Clamp | Decider] = [*rules.clamps, *rules.deciders]
    for item in asked:
        try:
            matched = item.condition is None or item.condition.evaluate(facts) is True
            found.append(RuleTrace(rule=item.rule, matched=matched))
        except ConditionError as error:
            found.append(RuleTrace(rule=item.rule, matched=False, error=str(error)))
    return tuple(found)


def _deny_failed_rule(rules: ToolRules, group: Group, facts: Facts, error: ConditionError) -> Verdict:
    """Evaluate one by one to name the rule that failed; deny whichever it was."""
    for place in group.places:
        decider = rules.deciders[place]
        try:
            assert decider.condition is not None
            decider.condition.evaluate(facts)
        except ConditionError as found:
            return rule_error(rules, decider.rule.id, found)
    # Alone none of them fails: CEL bounds what one program may do, and together they were too much.
    return rule_error(rules, rules.deciders[group.places[0]].rule.id, error)


def rule_error(rules: ToolRules, rule: str, error: object) -> Verdict:
    """The verdict when a rule cannot be evaluated."""
    return Verdict(
        decision=Decision.DENY,
        rule=rule,
        policy_version=rules.version,
        reason=f"rule {rule!r} could not be evaluated, so the call is refused: {error}",
    )


def _replace(arguments: dict[str, Json], path: list[str], after: Json) -> tuple[Json, dict[str, Json]]:
    """The value at a path, and a copy of the arguments with another one there."""
    key, *rest = path
    inner: Any = arguments.get(key)
    if not rest:
        return inner, {**arguments, key: after}
    before, changed = _replace(inner if isinstance(inner, dict) else {}, rest, after)
    return before, {**arguments, key: changed}
