"""Policy: rules in TOML, conditions in CEL, one pure decision."""

from interlock.policy.cases import Case, CaseResult, ProposedCall, load_cases, run_case
from interlock.policy.compile import Ruleset, compile_policy
from interlock.policy.conditions import Facts
from interlock.policy.decide import RuleTrace, ToolRules, decide, judge, missing_grant, trace
from interlock.policy.lint import Coverage, find_idle_rules, measure_coverage
from interlock.policy.lists import ListSource
from interlock.policy.load import PolicySource, build_policy, load_policy, parse_policy
from interlock.policy.model import Cooldown, Policy, Rule
from interlock.policy.packs import Pack, PackRule, Use

__all__ = [
    "Case",
    "CaseResult",
    "Cooldown",
    "Coverage",
    "Facts",
    "ListSource",
    "Pack",
    "PackRule",
    "Policy",
    "PolicySource",
    "ProposedCall",
    "Rule",
    "RuleTrace",
    "Ruleset",
    "ToolRules",
    "Use",
    "build_policy",
    "compile_policy",
    "decide",
    "find_idle_rules",
    "judge",
    "load_cases",
    "load_policy",
    "measure_coverage",
    "missing_grant",
    "parse_policy",
    "run_case",
    "trace",
]
