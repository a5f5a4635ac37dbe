"""A policy compiled against the tools there are: a rule that cannot mean anything is refused here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from interlock.canonical import canonical, did_you_mean, nearest
from interlock.errors import PolicyError
from interlock.policy.conditions import Condition, ConditionError
from interlock.policy.decide import DEFAULT_RULE, PRECEDENCE, Clamp, Decider, Group, ToolRules
from interlock.policy.lists import Lists, ListSource
from interlock.policy.model import RISKS, Cooldown, Place, Policy, ReviewSpec, Rule
from interlock.policy.named import NamedInPolicy
from interlock.policy.sections import Finding
from interlock.tools import Tool
from interlock.tools.registry import matches
from interlock.values import Budget, Decision, Grant, Json, Rate, Verdict, name_some

if TYPE_CHECKING:
    from interlock.policy.condition_compiler import ConditionCompiler

_ANY = "*"
_NOWHERE = Place("")


class Ruleset:
    """Compiled rules by tool, with the rates, budgets and grants beside them."""

    def __init__(self, policy: Policy, by_tool: dict[str, ToolRules], rates: dict[str, tuple[Rate, ...]]) -> None:
        self.policy = policy
        self._by_tool = by_tool
        self._rates = rates
        self._grants = policy.grants
        self._fallback = policy.grants.get(_ANY, Grant(actor=_ANY))
        self.named = NamedInPolicy(policy)

    def rules(self, tool: str) -> ToolRules:
        """The rules of a registered tool."""
        return self._by_tool[tool]

    def rates(self, tool: str) -> tuple[Rate, ...]:
        """The rate limits that hold for a tool."""
        return self._rates[tool]

    @property
    def watched(self) -> frozenset[str]:
        """The tools whose earlier calls a rule looks at."""
        return frozenset[str]().union(*(rules.watched for rules in self._by_tool.values()))

    @property
    def versions(self) -> dict[str, str]:
        """By tool, the version of what applies to it: records and approvals name it."""
        return {name: rules.version for name, rules in self._by_tool.items()}

    @property
    def version(self) -> str:
        """The version of it all."""
        beside = msgspec.to_builtins((self.policy.grants, self.policy.budgets))
        return _digest(canonical([self.versions, beside]))

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """Every budget of the policy."""
        return self.policy.budgets

    def grant(self, actor: str) -> Grant:
        """What an actor may use: its own grant, else that of '*', else nothing."""
        return self._grants.get(actor, self._fallback)


def compile_policy(policy: Policy, tools: Iterable[Tool], lists: Mapping[str, ListSource] | None = None) -> Ruleset:
    """Compile every rule for every tool it is for; PolicyError lists everything that is wrong."""
    # Here and not above: whoever only declares tools, or asks a command for help, need not load the CEL library.
    from interlock.policy.condition_compiler import ConditionCompiler
    from interlock.policy.variables import variables_of

    known = {tool.name: tool for tool in tools}
    findings: list[Finding] = []
    held = Lists(policy.lists, lists or {}, Path(policy.file).parent)
    _refuse_unknown_tools(policy, known, findings)
    _refuse_unknown_sums(policy, known, findings)
    by_tool, rates = {}, {}
    for tool in known.values():
        mine = [rule for rule in policy.rules if matches(rule.tools, tool.name)]
        # As a rule like any other, so that it is checked, joined and part of the version; deny still beats it.
        if tool.review_when is not None:
            place, reason = Place(f"contract of {tool.name}", 1), "its contract leaves this to a person"
            mine.append(Rule(f"{tool.name}:review", (tool.name,), place, Decision.REVIEW, tool.review_when, reason))
        rates[tool.name] = tuple(rate for rate in policy.rates if matches(rate.tools, tool.name))
        risks = [risk for risk in policy.risks if matches(risk.tools, tool.name)]
        variables = variables_of(tool, policy.limits, known) if mine or risks else {}
        compiler = ConditionCompiler(variables, held.holds, held.names) if variables else None
        rests = tuple(item for item in policy.cooldowns if matches(item.tools, tool.name))
        as_planned = matches(policy.as_planned, tool.name)
        more = [*_also_decides(policy, as_planned), _contract_of(tool)]
        version = _digest_of(mine + risks, rates[tool.name], policy.limits, rests, more)
        compiled = _compile(tool, mine, compiler, version, findings)
        found = _risks(tool, risks, compiler, findings)
        by_tool[tool.name] = msgspec.structs.replace(compiled, risks=found, cooldowns=rests, as_planned=as_planned)
    if findings:
        # A rule for ten tools is wrong ten times, and is said once.
        raise PolicyError(list(dict.fromkeys(str(finding) for finding in findings)))
    return Ruleset(policy, by_tool, rates)


def _refuse_unknown_tools(policy: Policy, known: Mapping[str, Tool], findings: list[Finding]) -> None:
    named: list[Rule | Rate | Cooldown | Budget] = [*policy.rules, *policy.risks, *policy.rates]
    named += [*policy.cooldowns, *policy.budgets]
    for item in named:
        place = item.place if isinstance(item, Rule) else policy.places.get(item.id, policy.file)
        others = item.names_tools if isinstance(item, Rule) else ()
        for pattern in (*item.tools, *others):
            # A rule for a tool that was renamed would protect nothing, without a word. '*' may be for none.
            if pattern != _ANY and not any(matches((pattern,), name) for name in known):
                close = nearest(pattern, known, 1)
                way_out = (
                    f"did you mean {close[0]!r}?" if close else f"tools are {', '.join(sorted(known)) or '(none)'}"
                )
                findings.append(Finding(str(place), f"{item.id!r} is for an unknown tool {pattern!r}; {way_out}"))
    for rule in policy.rules:
        has = {name for tool in known.values() if matches(rule.tools, tool.name) for name in tool.roles}
        for name in rule.names_arguments:
            if has and name not in has:
                hint = did_you_mean(name, has) or f"; they are {name_some(sorted(has))}"
                findings.append(Finding(str(rule.place), f"{rule.id!r}: no tool that it is for takes {name!r}{hint}"))
    for pattern in policy.as_planned:
        if pattern != _ANY and not any(matches((pattern,), name) for name in known):
            findings.append(Finding(policy.file, f"as_planned names an unknown tool {pattern!r}"))


def _refuse_unknown_sums(policy: Policy, known: Mapping[str, Tool], findings: list[Finding]) -> None:
    """What a budget adds up must be a number of every tool that it is for: of another one it would count nothing."""
    from interlock.policy.variables import number_at

    for budget in policy.budgets:
        for tool in known.values() if budget.sum else ():
            if matches(budget.tools, tool.name) and not number_at(tool, budget.sum):
                place = str(policy.places.get(budget.id, policy.file))
                way_out = "name the tools that have it in tools = [...]"
                findings.append(
                    Finding(place, f"budget {budget.id!r}: {tool.name!r} has no number {budget.sum!r}; {way_out}")
                )


def _compile(
    tool: Tool, rules: list[Rule], compiler: ConditionCompiler | None, version: str, findings: list[Finding]
) -> ToolRules:
    deciders, clamps = [], []
    for rule in rules:
        assert compiler is not None
        if rule.needs_egress and tool.egress is None:
            message = (
                f"{rule.id!r} protects {tool.name!r} only if it fetches through interlock.tools.egress:"
                " a rule cannot pin DNS or re-check redirects; pass egress=... in @tool"
            )
            findings.append(Finding(str(rule.place), message))
        try:
            condition = compiler.condition(_unless_absent(rule, compiler)) if rule.when is not None else None
            if rule.decision is None:
                # The plan is made from the clamped arguments, so a clamp that looked at it would go in a circle.
                if condition is not None and condition.needs_plan:
                    raise ConditionError("a clamp comes before the plan and cannot look at it")
                sets = tuple((field, _setter(compiler, field, value)) for field, value in rule.set.items())
                clamps.append(Clamp(rule, condition, sets))
            else:
                deciders.append(Decider(rule, condition, _verdict(rule, rule.decision, version)))
        except ConditionError as error:
            findings.append(Finding(_place_of(rule, error), f"rule {rule.id!r} for {tool.name!r}: {error}"))
    # A stable sort: within one decision the order of the file stays. `decide` relies on it, the first match wins.
    deciders.sort(key=lambda decider: PRECEDENCE.index(decider.verdict.decision))
    conditions = [decider.condition for decider in deciders] + [clamp.condition for clamp in clamps]
    conditions += [setter for clamp in clamps for _field, setter in clamp.sets if isinstance(setter, Condition)]
    return ToolRules(
        tool=tool.name,
        version=version,
        deciders=tuple(deciders),
        clamps=tuple(clamps),
        early=_groups(compiler, deciders, late=False),
        late=_groups(compiler, deciders, late=True),
        always=next((place for place, decider in enumerate(deciders) if decider.condition is None), None),
        needs_turn=any(condition is not None and condition.needs_turn for condition in conditions),
        needs_origins=any(condition is not None and condition.needs_origins for condition in conditions),
        no_rule=_no_rule(tool, version, deciders),
        watched=frozenset(variable.watches for condition in conditions if condition for variable in condition.variables)
        - {""},
    )


def _risks(
    tool: Tool, risks: list[Rule], compiler: ConditionCompiler | None, findings: list[Finding]
) -> tuple[tuple[str, Condition], ...]:
    """Levels with their conditions, the highest first."""
    found = []
    for risk in risks:
        assert compiler is not None
        try:
            found.append((str(risk.level), compiler.condition(risk.when or "true")))
        except ConditionError as error:
            findings.append(Finding(_place_of(risk, error), f"risk {risk.id!r} for {tool.name!r}: {error}"))
    return tuple(sorted(found, key=lambda pair: -RISKS.index(pair[0])))


def _place_of(rule: Rule, error: ConditionError) -> str:
    """The line of its file on which a condition is wrong; where there are none, the place of the rule."""
    return str(Place(rule.place.file, rule.when_line + error.line) if rule.when_line else rule.place)


def _unless_absent(rule: Rule, compiler: ConditionCompiler) -> str:
    """A pack's condition, asked only where the optional argument it looks at was given."""
    named = compiler.variables.get(f"args.{rule.field}")
    when = rule.when or "true"
    # Without it CEL would fail on null, and an error denies: leaving out an optional argument would be refused.
    return f"{named.name} != null && ({when})" if named is not None and named.nullable else when


def _setter(compiler: ConditionCompiler, field: str, value: Json) -> Condition | Json:
    """A text is a CEL expression; anything else is the value itself."""
    text = value if isinstance(value, str) else canonical(value).decode()
    # A plain value is compiled too, to hold its type against the argument's.
    setter = compiler.expression(text, field)
    return setter if isinstance(value, str) else value


def _groups(compiler: ConditionCompiler | None, deciders: list[Decider], *, late: bool) -> tuple[Group, ...]:
    chosen = [
        (place, decider.condition)
        for place, decider in enumerate(deciders)
        if decider.condition is not None and decider.condition.needs_plan is late
    ]
    if compiler is None or not chosen:
        return ()
    groups, start = [], 0
    for joined in compiler.join([condition for _place, condition in chosen]):
        end = start + len(joined.conditions)
        groups.append(Group(joined, tuple(place for place, _condition in chosen[start:end])))
        start = end
    return tuple(groups)


def _verdict(rule: Rule, decision: Decision, version: str) -> Verdict:
    words = {
        Decision.ALLOW: "allows this",
        Decision.DENY: "refuses this",
        Decision.REVIEW: "asks a person first",
    }
    reason = rule.reason or f"rule {rule.id!r} {words[decision]}"
    return Verdict(decision=decision, rule=rule.id, policy_version=version, reason=reason, instead=rule.instead)


def _no_rule(tool: Tool, version: str, deciders: list[Decider]) -> Verdict:
    allowing = [decider.rule.id for decider in deciders if decider.verdict.decision is Decision.ALLOW]
    tail = f"; those that could are {', '.join(allowing)}" if allowing else "; the policy has none for this tool"
    return Verdict(
        decision=Decision.DENY,
        rule=DEFAULT_RULE,
        policy_version=version,
        reason=f"no rule allows this call of {tool.name!r}{tail}",
    )


def _also_decides(policy: Policy, as_planned: bool) -> list[Json]:
    """What else an approval must not outlive: the terms of review, the mode, whether a change has to be as planned."""
    terms: list[Json] = [msgspec.to_builtins(policy.review)] if policy.review != ReviewSpec() else []
    terms += [policy.mode.value] if policy.mode is not None else []
    return [*terms, "as_planned"] if as_planned else terms


def _contract_of(tool: Tool) -> Json:
    """What a tool takes and does: an approval is for that, and not for whatever else goes by its name."""
    return [tool.effect.value, tool.input.schema]


def _digest_of(
    rules: list[Rule],
    rates: tuple[Rate, ...],
    limits: dict[str, Json],
    cooldowns: tuple[Cooldown, ...],
    more: list[Json],
) -> str:
    """The digest of what applies to one tool, so that an edit elsewhere changes nothing here.

    Approvals and records name it: what stands in it must not depend on places, nor on anything of another tool.
    """
    spelled = [msgspec.to_builtins(msgspec.structs.replace(rule, place=_NOWHERE, when_line=0)) for rule in rules]
    # Only where there are any: without cooldowns a tool's version stays what it was before there were cooldowns.
    rests = [msgspec.to_builtins(cooldowns)] if cooldowns else []
    return _digest(canonical([spelled, msgspec.to_builtins(rates), limits, *rests, *more]))


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]
