"""Parts for the tests of applications: a clock that is moved by hand, and models that misbehave on purpose."""

from interlock.testing.clock import ManualClock
from interlock.testing.grammar import FirstChoice
from interlock.testing.models import BEHAVIOURS, Script, Scripted, scripted

__all__ = ["BEHAVIOURS", "FirstChoice", "ManualClock", "Script", "Scripted", "scripted"]
