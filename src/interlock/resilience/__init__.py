"""Resilience: when to wait, when to give up, when not even to try."""

from interlock.resilience.breaker import Breaker
from interlock.resilience.deadlines import Deadlines, Expired
from interlock.resilience.retry import next_wait

__all__ = ["Breaker", "Deadlines", "Expired", "next_wait"]
