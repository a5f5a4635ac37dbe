"""Interlock: every tool call of an agent takes one governed path, and leaves a record that can be proved."""

from interlock.errors import (
    ConfigError,
    ContractError,
    InterlockError,
    Permanent,
    PolicyError,
    StoreError,
    ToolError,
    Transient,
)
from interlock.runtime import Runtime
from interlock.schema import Limits, RetryRule, Tool, tool
from interlock.values import Context, Effect, Mode, Outcome, Result, Status, Trust

__all__ = [
    "ConfigError",
    "Context",
    "ContractError",
    "Effect",
    "InterlockError",
    "Limits",
    "Mode",
    "Outcome",
    "Permanent",
    "PolicyError",
    "Result",
    "RetryRule",
    "Runtime",
    "Status",
    "StoreError",
    "Tool",
    "ToolError",
    "Transient",
    "Trust",
    "tool",
]

__version__ = "0.1.0"
