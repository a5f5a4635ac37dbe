"""Policy: rules in TOML, conditions in CEL, one pure decision."""

from interlock.policy.compile import Ruleset, compile_policy
from interlock.policy.conditions import Facts
from interlock.policy.decide import RuleTrace, ToolRules, decide, judge, missing_grant, trace
from interlock.policy.lists import ListSource
from interlock.policy.load import PolicySource, build_policy, load_policy, parse_policy
from interlock.policy.model import Cooldown, Policy, Rule
from interlock.policy.packs import Pack, PackRule, Use

__all__ = [
    "Cooldown",
    "Facts",
    "ListSource",
    "Pack",
    "PackRule",
    "Policy",
    "PolicySource",
    "Rule",
    "RuleTrace",
    "Ruleset",
    "ToolRules",
    "Use",
    "build_policy",
    "compile_policy",
    "decide",
    "judge",
    "load_policy",
    "missing_grant",
    "parse_policy",
    "trace",
]
