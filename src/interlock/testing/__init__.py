"""Parts for the tests of applications: a clock that is moved by hand."""

from interlock.testing.clock import ManualClock

__all__ = ["ManualClock"]
