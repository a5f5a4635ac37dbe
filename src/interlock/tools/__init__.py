"""Contracts: what a tool takes, gives and does, from one source."""

from interlock.tools.contract import Tool, tool
from interlock.tools.effects import Compensation, KeyOf
from interlock.tools.inputs import Parsed
from interlock.tools.known_values import Unclear, match_values, names_of_values, nearest_values, resolve
from interlock.tools.name_index import normalize
from interlock.tools.options import Limits, RetryRule
from interlock.tools.redaction import MARK, Redactor, misspelled_fields, redactor_of
from interlock.tools.result_fields import ResultField
from interlock.tools.results import LONGEST_MESSAGE, Reading, read_result, read_short, shorten_problem

__all__ = [
    "LONGEST_MESSAGE",
    "MARK",
    "Compensation",
    "KeyOf",
    "Limits",
    "Parsed",
    "Reading",
    "Redactor",
    "ResultField",
    "RetryRule",
    "Tool",
    "Unclear",
    "match_values",
    "misspelled_fields",
    "names_of_values",
    "nearest_values",
    "normalize",
    "read_result",
    "read_short",
    "redactor_of",
    "resolve",
    "shorten_problem",
    "tool",
]
