"""Policy: rules in TOML, conditions in CEL, one pure decision."""

from interlock.policy.cases import Case, CaseResult, ProposedCall, load_cases, run_case
from interlock.policy.compile import Ruleset, compile_policy
from interlock.policy.decide import ToolRules, Traced, decide, judged, missing_grant, trace
from interlock.policy.lint import Coverage, coverage, never_decides
from interlock.policy.lists import ListSource
from interlock.policy.load import load_policy, parse_policy
from interlock.policy.model import Cooldown, Policy, Rule
from interlock.policy.variables import Facts

__all__ = [
    "Case",
    "CaseResult",
    "Cooldown",
    "Coverage",
    "Facts",
    "ListSource",
    "Policy",
    "ProposedCall",
    "Rule",
    "Ruleset",
    "ToolRules",
    "Traced",
    "compile_policy",
    "coverage",
    "decide",
    "judged",
    "load_cases",
    "load_policy",
    "missing_grant",
    "never_decides",
    "parse_policy",
    "run_case",
    "trace",
]
