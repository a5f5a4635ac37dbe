"""Interlock: every tool call of an agent takes one governed path, and leaves a record that can be proved."""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from interlock.errors import (
    ConfigError,
    ContractError,
    InDoubt,
    InterlockError,
    Permanent,
    PolicyError,
    StoreError,
    ToolError,
    Transient,
)
from interlock.values import Context, Effect, Mode, Outcome, Result, Status, Trust, Versioned

if TYPE_CHECKING:
    from interlock.runtime import Runtime
    from interlock.tools import Compensation, Limits, RetryRule, Tool, tool

__all__ = [
    "Compensation",
    "ConfigError",
    "Context",
    "ContractError",
    "Effect",
    "InDoubt",
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
    "Versioned",
    "tool",
]

__version__ = "0.1.0"

_ON_FIRST_USE = {
    "Compensation": "interlock.tools",
    "Limits": "interlock.tools",
    "RetryRule": "interlock.tools",
    "Runtime": "interlock.runtime",
    "Tool": "interlock.tools",
    "tool": "interlock.tools",
}


# A library does not print: without this, a refused call would appear on stderr in a program that sets up no logging.
logging.getLogger("interlock").addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    """Load what is heavy on first use: a module that only declares tools needs no engine, policy language or stores."""
    if name in _ON_FIRST_USE:
        return getattr(import_module(_ON_FIRST_USE[name]), name)
    raise AttributeError(f"module 'interlock' has no attribute {name!r}")
