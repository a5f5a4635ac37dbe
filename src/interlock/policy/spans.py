"""Stretches of time as a policy writes them."""

from __future__ import annotations

import re

UNIT_S = {"s": 1, "second": 1, "m": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86400, "day": 86400}
_SPAN = re.compile(r"(\d+)\s*(s|m|h|d)")


def span_s(text: str) -> int | None:
    """The seconds of a stretch of time as "7d"; None for what is none."""
    found = _SPAN.fullmatch(text)
    return int(found[1]) * UNIT_S[found[2]] or None if found else None
