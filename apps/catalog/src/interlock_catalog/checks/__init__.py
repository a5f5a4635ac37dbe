"""Deterministic checks: what can be seen to be wrong without a model, and what only looks odd."""

from interlock_catalog.checks.inspect import inspect
from interlock_catalog.checks.issues import HIGH, Issue, grave

__all__ = ["HIGH", "Issue", "grave", "inspect"]
