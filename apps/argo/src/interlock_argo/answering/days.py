"""Days that stand in a text, to tell which of two statements is the later one."""

from __future__ import annotations

import re

MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_SHORT = tuple(name[:3] for name in MONTHS)
_NAMES = "|".join(_SHORT)
_ISO = re.compile(r"\b((?:19|20)\d\d)-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])\b")
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})\.? ({_NAMES})[a-z]*\.?,? ((?:19|20)\d\d)\b", re.I)
_MONTH_FIRST = re.compile(rf"\b({_NAMES})[a-z]*\.? (\d{{1,2}})(?:st|nd|rd|th)?,? ((?:19|20)\d\d)\b", re.I)
_DOTTED = re.compile(r"\b(\d{1,2})\.(\d{1,2})\.((?:19|20)\d\d)\b")


Day = tuple[int, int, int]
"""Year, month, day."""


def latest_day(text: str) -> Day | None:
    """The latest day that a text names with its year; None if it names none."""
    return max(find_days(text), default=None)


def find_days(text: str) -> list[Day]:
    """The days that a text names with their years, however they are written."""
    found = [(int(year), int(month), int(day)) for year, month, day in _ISO.findall(text)]
    found += [(int(year), _month(name), int(day)) for day, name, year in _DAY_FIRST.findall(text)]
    found += [(int(year), _month(name), int(day)) for name, day, year in _MONTH_FIRST.findall(text)]
    found += [(int(year), int(month), int(day)) for day, month, year in _DOTTED.findall(text)]
    return [day for day in found if 1 <= day[1] <= len(MONTHS)]


def _month(name: str) -> int:
    return _SHORT.index(name[:3].lower()) + 1
