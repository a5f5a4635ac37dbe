"""The decision to try again: a pure function of the tool, the attempts so far and the class of the error."""

from __future__ import annotations

from collections.abc import Callable

from interlock.errors import InDoubt, TimedOut, ToolError, Transient
from interlock.schema import Tool
from interlock.values import Effect


def next_wait(
    tool: Tool, attempts: int, error: ToolError, remaining_s: float, uniform: Callable[[float], float]
) -> float | None:
    """Seconds to wait before the next attempt (exponential, full jitter, at least Retry-After), or None to stop."""
    rule = tool.retry
    if attempts >= rule.max_attempts or not isinstance(error, Transient | InDoubt):
        return None
    if isinstance(error, TimedOut | InDoubt) and tool.effect is not Effect.READ and not tool.idempotent:
        return None  # it may have landed
    wait_s = uniform(min(rule.cap_s, rule.base_s * rule.factor ** (attempts - 1)))
    if isinstance(error, Transient) and error.retry_after_s is not None:
        wait_s = max(wait_s, error.retry_after_s)
    return wait_s if wait_s < remaining_s else None
