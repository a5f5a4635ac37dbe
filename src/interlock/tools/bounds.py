"""The bounds of a tool: how often it is tried, how large and how dear a call may be."""

from __future__ import annotations

from typing import Annotated

import msgspec

_Least1 = Annotated[int, msgspec.Meta(ge=1)]
_Least0 = Annotated[float, msgspec.Meta(ge=0)]


class RetryRule(msgspec.Struct, frozen=True, kw_only=True):
    """How often a failed attempt is repeated, and how long to wait: exponential, full jitter."""

    max_attempts: _Least1 = 3
    base_s: _Least0 = 0.2
    factor: _Least0 = 2.0
    cap_s: _Least0 = 10.0


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one tool: size of its result, calls at once, price, and when to stop trying it at all."""

    max_bytes: _Least1 = 262_144
    concurrency: _Least1 | None = None
    cost_usd: _Least0 = 0.0
    breaker_failures: _Least1 = 5
    breaker_reset_s: _Least0 = 30.0
