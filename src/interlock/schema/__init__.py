"""Contracts: what a tool takes, gives and does, from one source."""

from interlock.schema.candidates import Unclear, fitting, known_values, nearest_values, plain, resolved
from interlock.schema.canonical import WHATEVER, Refusal, canonical, guard, nearest, written
from interlock.schema.contract import Limits, RetryRule, Tool, tool
from interlock.schema.effects import Compensation, KeyOf
from interlock.schema.inputs import Parsed
from interlock.schema.redaction import MARK, Redactor
from interlock.schema.results import Reading, clean, read_result

__all__ = [
    "MARK",
    "WHATEVER",
    "Compensation",
    "KeyOf",
    "Limits",
    "Parsed",
    "Reading",
    "Redactor",
    "Refusal",
    "RetryRule",
    "Tool",
    "Unclear",
    "canonical",
    "clean",
    "fitting",
    "guard",
    "known_values",
    "nearest",
    "nearest_values",
    "plain",
    "read_result",
    "resolved",
    "tool",
    "written",
]
