"""Interlock: every tool call of an agent takes one governed path, and leaves a record that can be proved."""

from typing import TYPE_CHECKING, Any

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
from interlock.schema import Limits, RetryRule, Tool, tool
from interlock.values import Context, Effect, Mode, Outcome, Result, Status, Trust

if TYPE_CHECKING:
    from interlock.runtime import Runtime

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


def __getattr__(name: str) -> Any:
    """`Runtime` on first use: a module that only declares tools does not load engine, policy language and stores."""
    if name == "Runtime":
        from interlock.runtime import Runtime

        return Runtime
    raise AttributeError(f"module 'interlock' has no attribute {name!r}")
