"""Contracts: what a tool takes, gives and does, from one source."""

from typing import TYPE_CHECKING

from interlock.first_use import load_on_first_use

if TYPE_CHECKING:
    from interlock.tools.bounds import Limits, RetryRule
    from interlock.tools.contract import Tool, tool
    from interlock.tools.effects import Compensation, KeyOf
    from interlock.tools.inputs import Parsed
    from interlock.tools.known_values import Unclear, match_values, names_of_values, nearest_values, resolve
    from interlock.tools.name_index import normalize
    from interlock.tools.redaction import MARK, Redactor, misspelled_fields, redactor_of
    from interlock.tools.result_fields import ResultField
    from interlock.tools.results import LONGEST_MESSAGE, Reading, ask_first, read_result, read_short, shorten_problem

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
    "ask_first",
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

if not TYPE_CHECKING:  # a program that only names `tool` and `Runtime` does not yet need Pydantic
    __getattr__ = load_on_first_use(
        __name__,
        {
            "LONGEST_MESSAGE": "interlock.tools.results",
            "MARK": "interlock.tools.redaction",
            "Compensation": "interlock.tools.effects",
            "KeyOf": "interlock.tools.effects",
            "Limits": "interlock.tools.bounds",
            "Parsed": "interlock.tools.inputs",
            "Reading": "interlock.tools.results",
            "Redactor": "interlock.tools.redaction",
            "ResultField": "interlock.tools.result_fields",
            "RetryRule": "interlock.tools.bounds",
            "Tool": "interlock.tools.contract",
            "Unclear": "interlock.tools.known_values",
            "ask_first": "interlock.tools.results",
            "match_values": "interlock.tools.known_values",
            "misspelled_fields": "interlock.tools.redaction",
            "names_of_values": "interlock.tools.known_values",
            "nearest_values": "interlock.tools.known_values",
            "normalize": "interlock.tools.name_index",
            "read_result": "interlock.tools.results",
            "read_short": "interlock.tools.results",
            "redactor_of": "interlock.tools.redaction",
            "resolve": "interlock.tools.known_values",
            "shorten_problem": "interlock.tools.results",
            "tool": "interlock.tools.contract",
        },
    )
