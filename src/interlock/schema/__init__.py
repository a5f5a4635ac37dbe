"""Contracts: what a tool takes, gives and does, from one source."""

from interlock.schema.canonical import Refusal, canonical, guard, nearest
from interlock.schema.contract import Limits, RetryRule, Tool, tool
from interlock.schema.redaction import Redactor
from interlock.schema.results import Reading, read_result

__all__ = [
    "Limits",
    "Reading",
    "Redactor",
    "Refusal",
    "RetryRule",
    "Tool",
    "canonical",
    "guard",
    "nearest",
    "read_result",
    "tool",
]
