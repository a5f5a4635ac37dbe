"""Deterministic checks: what can be seen to be wrong without a model, and what is only suspected."""

from interlock_catalog.checks.issues import Issue, severe_issues
from interlock_catalog.checks.run_checks import check_apart, run_checks

__all__ = ["Issue", "check_apart", "run_checks", "severe_issues"]
