"""Parts for the tests of applications: tools called without the gate, a clock that is moved by hand, models that
misbehave on purpose. The contract suite for stores is `interlock.testing.store_contract`."""

from typing import TYPE_CHECKING

from interlock.first_use import load_on_first_use
from interlock.testing.clock import ManualClock
from interlock.testing.ungoverned_calls import call_ungoverned

if TYPE_CHECKING:
    from interlock.testing.grammar import FirstChoice
    from interlock.testing.models import BEHAVIOURS, Script, Scripted, make_scripted

__all__ = ["BEHAVIOURS", "FirstChoice", "ManualClock", "Script", "Scripted", "call_ungoverned", "make_scripted"]

if not TYPE_CHECKING:  # models: a test of tools alone needs nothing of the second half
    __getattr__ = load_on_first_use(
        __name__,
        {
            "BEHAVIOURS": "interlock.testing.models",
            "FirstChoice": "interlock.testing.grammar",
            "Script": "interlock.testing.models",
            "Scripted": "interlock.testing.models",
            "make_scripted": "interlock.testing.models",
        },
    )
