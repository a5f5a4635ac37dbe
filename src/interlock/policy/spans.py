"""Stretches of time as a policy writes them."""

from __future__ import annotations

import re

UNIT_S = {"s": 1, "second": 1, "m": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86400, "day": 86400}
LONGEST_S = 3650 * 86_400
"""Ten years: no calendar has a date for what lies much further ahead."""
_SPAN = re.compile(r"(\d{1,12})\s*(s|m|h|d)")


def span_s(text: str) -> int | None:
    """The seconds of a stretch of time as "7d", at most ten years; None for what is none."""
    found = _SPAN.fullmatch(text)
    seconds = int(found[1]) * UNIT_S[found[2]] if found else 0
    return seconds if 0 < seconds <= LONGEST_S else None
