"""Interlock: every tool call of an agent takes one governed path, and leaves a record that can be proved."""

import logging
from typing import TYPE_CHECKING

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
from interlock.first_use import load_on_first_use
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

# A library does not print: without this, a refused call would appear on stderr in a program that sets up no logging.
logging.getLogger("interlock").addHandler(logging.NullHandler())

if not TYPE_CHECKING:  # what is heavy: a module that only catches our errors needs no contracts, engine or stores
    __getattr__ = load_on_first_use(
        __name__,
        {
            "Compensation": "interlock.tools.effects",
            "Limits": "interlock.tools.bounds",
            "RetryRule": "interlock.tools.bounds",
            "Runtime": "interlock.runtime",
            "Tool": "interlock.tools.contract",
            "tool": "interlock.tools.contract",
        },
    )
