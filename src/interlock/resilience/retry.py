"""The decision to try again: a pure function of the rule, the attempts so far and the class of the error."""

from __future__ import annotations

from collections.abc import Callable

from interlock.errors import InDoubt, NothingLanded, RateLimited, ToolError, Transient
from interlock.tools import RetryRule


def next_wait(
    rule: RetryRule,
    attempts: int,
    error: ToolError,
    remaining_s: float,
    uniform: Callable[[float], float],
    *,
    repeatable: bool,
) -> float | None:
    """Seconds to wait before the next attempt (exponential, full jitter, at least Retry-After), or None to stop.

    What may have landed is only tried again where that is `repeatable`: a read, or the other side knows it by its key.
    Otherwise it must be shown that nothing has: by the transport, or by the other side's refusal.
    """
    if attempts >= rule.max_attempts or not isinstance(error, Transient | InDoubt):
        return None
    if not repeatable and not isinstance(error, NothingLanded | RateLimited):
        return None
    wait_s = uniform(min(rule.cap_s, rule.base_s * rule.factor ** (attempts - 1)))
    if isinstance(error, Transient) and error.retry_after_s is not None:
        wait_s = max(wait_s, error.retry_after_s)
    return wait_s if wait_s < remaining_s else None  # no attempt would fit behind the wait
