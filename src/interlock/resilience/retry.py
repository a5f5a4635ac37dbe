"""The decision to try again: a pure function of the rule, the attempts so far and the class of the error."""

from __future__ import annotations

from collections.abc import Callable

from interlock.errors import TimedOut, ToolError, Transient
from interlock.schema import RetryRule
from interlock.values import Effect


def next_wait(
    rule: RetryRule,
    effect: Effect,
    attempts: int,
    error: ToolError,
    remaining_s: float,
    uniform: Callable[[float], float],
) -> float | None:
    """Seconds to wait before the next attempt (exponential, full jitter, at least Retry-After), or None to stop."""
    if attempts >= rule.max_attempts or not isinstance(error, Transient):
        return None
    if effect is not Effect.READ and isinstance(error, TimedOut):
        return None  # it may have landed
    wait_s = uniform(min(rule.cap_s, rule.base_s * rule.factor ** (attempts - 1)))
    if error.retry_after_s is not None:
        wait_s = max(wait_s, error.retry_after_s)
    return wait_s if wait_s < remaining_s else None
