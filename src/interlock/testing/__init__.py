"""Parts for the tests of applications: tools called without the gate, a clock that is moved by hand, models that
misbehave on purpose. The contract suite for stores is `interlock.testing.store_contract`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from interlock.testing.clock import ManualClock
from interlock.testing.ungoverned_calls import call_ungoverned

if TYPE_CHECKING:
    from interlock.testing.grammar import FirstChoice
    from interlock.testing.models import BEHAVIOURS, Script, Scripted, make_scripted

__all__ = ["BEHAVIOURS", "FirstChoice", "ManualClock", "Script", "Scripted", "call_ungoverned", "make_scripted"]

_ON_FIRST_USE = {
    "BEHAVIOURS": "interlock.testing.models",
    "FirstChoice": "interlock.testing.grammar",
    "Script": "interlock.testing.models",
    "Scripted": "interlock.testing.models",
    "make_scripted": "interlock.testing.models",
}


def __getattr__(name: str) -> Any:
    """Load models on first use: a test of tools alone needs nothing of the second half."""
    if name in _ON_FIRST_USE:
        return getattr(import_module(_ON_FIRST_USE[name]), name)
    raise AttributeError(f"module 'interlock.testing' has no attribute {name!r}")
