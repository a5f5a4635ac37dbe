"""Dates: 2022-08-14, August 14, 2022, 14.8.2022, 14AUG22, two days of a month, and periods such as FY2023."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.patterns import Hints, begins_with, one_of

# 1000 to 2099: other four digits behind a month are a figure of their own.
_YEAR = r"(?:1\d|20)\d\d"
_MAY = 5
_IN_FIGURES = re.compile(r"\d(?:-\d\d|/\d|\.\d{1,2}\.\d)")
"""Where no month is named, no date is in a text without it."""


def _month_names(table: Mapping[str, Any]) -> list[str]:
    months = table["months"]
    return [*months, *(f"{name[:3]}\\.?" for name in months), *(f"{name}\\.?" for name in table["short"])]


def _month_pattern(table: Mapping[str, Any]) -> str:
    return one_of(_month_names(table))


class Dates:
    """A day, or a month of a year; `either` where day and month may have changed places."""

    def __init__(self, table: Mapping[str, Any], ordinals: Mapping[str, int]) -> None:
        month = _month_pattern(table)
        self._named = Hints(_month_names(table))
        self._ordinals = {"first": 1, **ordinals}
        spoken = one_of(sorted(self._ordinals, key=len, reverse=True))
        self._spoken = re.compile(
            rf"\b(?P<day>{spoken})\s+of\s+(?P<month>{month})(?:,?\s+(?P<year>{_YEAR}))?\b"
            rf"|\b(?P<month2>{month})\s+(?:the\s+)?(?P<day2>{spoken})\b",
            re.I,
        )
        self._months: list[str] = table["months"]
        self._pattern = re.compile(
            rf"{begins_with([*'0123456789', *_month_names(table)])}(?:\b(?P<y1>{_YEAR})-(?P<m1>\d\d)(?:-(?P<d1>\d\d))?"
            r"(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)?\b"
            rf"|\b(?P<M2>{month})\s+(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<y2>{_YEAR}))?\b"
            rf"|\b(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?\.?\s+(?:of\s+)?(?P<M3>{month})(?:,?\s+(?P<y3>{_YEAR}))?\b"
            rf"|\b(?P<M4>{month})\s+(?P<y4>{_YEAR})\b"
            rf"|\b(?P<d8>[0-3]?\d)(?P<M8>{one_of([name[:3] for name in table['months']])})(?P<y8>(?:20)?\d\d)\b"
            r"|(?<![\d/])(?P<m7>0?[1-9]|1[0-2])/(?P<y7>20\d\d)\b"
            rf"|\b(?P<d6>\d{{1,2}})\.(?P<m6>\d{{1,2}})\.(?P<y6>{_YEAR})\b"
            r"|\b(?P<m5>\d{1,2})/(?P<d5>\d{1,2})/(?P<y5>(?:1\d|20)?\d\d)\b)",
            re.I,
        )

    def find(self, text: str) -> Iterator[Claim]:
        has_month = self._named.are_in(text.lower())
        for match in self._spoken.finditer(text) if has_month else ():
            spoken = self._ordinals[(match["day"] or match["day2"]).lower()]
            named = month_number(self._months, match["month"] or match["month2"])
            of = int(match["year"]) if match["year"] else None
            yield Claim("date", match[0], match.start(), match.end(), date=(of, named, spoken))
        for match in self._pattern.finditer(text) if has_month or _IN_FIGURES.search(text) is not None else ():
            parts = {key[0]: value for key, value in match.groupdict().items() if value}
            month = month_number(self._months, parts["M"]) if "M" in parts else _number(parts, "m")
            day, year = _number(parts, "d"), _number(parts, "y")
            if year is not None and year < 100:
                year += 2000
            slashed = match["m5"] is not None and month is not None and day is not None
            either = slashed and month is not None and month <= 12
            if slashed and not either:  # 28/11/2024: the day comes first
                month, day = day, month
            is_verb = month == _MAY and year is None and match[0].islower()  # "may 3 people"
            if _is_day(month, 12) and _is_day(day, 31) and not is_verb:
                yield Claim("date", match[0], match.start(), match.end(), date=(year, month, day), either=either)


class DayLists:
    """November 24 and 25, 1978, 1 to 12 June, or Monday 1 to Friday 12 June: two dates."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._months: list[str] = table["months"]
        self._named = Hints(_month_names(table))
        self._pattern = re.compile(
            rf"\b(?P<month>{_month_pattern(table)})\s+(?P<first>\d{{1,2}})(?:st|nd|rd|th)?\s*(?:and|&|–|-)\s*"
            rf"(?P<second>[12]?\d|3[01])(?:st|nd|rd|th)?(?![\d:])(?:,?\s+(?P<year>{_YEAR}))?\b",
            re.I,
        )
        self._days_first = re.compile(
            r"(?=\d)(?<![\d.,$€£:/-])(?P<first>[12]?\d|3[01])(?:st|nd|rd|th)?\s*(?:and|&|–|-|to|until|or)\s*"
            rf"(?:(?:{'|'.join(table['weekdays'])})\s)?(?P<second>[12]?\d|3[01])(?:st|nd|rd|th)?\.?\s+(?:of\s+)?(?P<month>{_month_pattern(table)})"
            rf"(?:,?\s+(?P<year>{_YEAR}))?\b",
            re.I,
        )

    def find(self, text: str) -> Iterator[Claim]:
        for pattern in (self._pattern, self._days_first) if self._named.are_in(text.lower()) else ():
            for match in pattern.finditer(text):
                yield from self._days(text, match)

    def _days(self, text: str, match: re.Match[str]) -> Iterator[Claim]:
        year = int(match["year"]) if match["year"] else None
        month = month_number(self._months, match["month"])
        for start, end, day in (
            (match.start(), match.end("first"), match["first"]),
            (match.start("second"), match.end(), match["second"]),
        ):
            yield Claim("date", text[start:end], start, end, date=(year, month, int(day)))


class Weekdays:
    """Tuesday, Tue: a day of the week."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._days: list[str] = table["weekdays"]
        names = [*self._days, *(name[:3] for name in self._days), *table["short_weekdays"]]
        # "sun", "sat", "wed" and "mon" are words: only with a capital, and the short ones never at a sentence's end.
        self._pattern = re.compile(
            rf"(?=[A-Z])(?:(?<!\b[Tt]he )\b(?P<day>{'|'.join(name.capitalize() for name in names)})(?:s|'s)?\b"
            rf"|\b(?P<full>{'|'.join(name.capitalize() for name in self._days)})(?:s|'s)?\b)"
        )

    def find(self, text: str) -> Iterator[Claim]:
        for match in self._pattern.finditer(text):
            said = "day" if match["day"] else "full"
            day = next(n for n, name in enumerate(self._days) if name.startswith(match[said].lower()[:3]))
            yield Claim("weekday", match[said], match.start(), match.end(said), weekday=day)


class MonthNames:
    """In March: a month without day or year."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._months: list[str] = table["months"]
        self._names = tuple(name.capitalize() for name in self._months)
        names = "|".join(name.capitalize() for name in self._months if name not in ("march", "may"))
        lead = (
            r"(?:in|since|until|till|by|of|for|from|to|and|through|during|before|after|early|late|mid|last|next|this)"
        )
        self._pattern = re.compile(
            rf"\b(?P<one>{names})\b|\b{lead}[\s-](?P<two>March|May)\b(?!\s(?:be|have|not|I|we|you)\b)"
        )

    def find(self, text: str) -> Iterator[Claim]:
        for match in self._pattern.finditer(text) if any(name in text for name in self._names) else ():
            group = "one" if match["one"] else "two"
            month = month_number(self._months, match[group])
            yield Claim("date", match[group], match.start(group), match.end(group), date=(None, month, None))


class Periods:
    """FY2023, Q3, W12: a figure with its kind in front."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._pattern = re.compile(rf"\b(?:{'|'.join(table['periods'])})[ -]?(?P<n>\d{{1,4}})\b")

    def find(self, text: str) -> Iterator[Claim]:
        for match in self._pattern.finditer(text):
            yield Claim("number", match[0], match.start(), match.end(), number=Decimal(match["n"]))


def month_number(months: list[str], text: str) -> int:
    """The number of a month by its name or the first letters of it."""
    return next(n for n, name in enumerate(months, 1) if name.startswith(text.lower()[:3]))


def _number(parts: Mapping[str, str], key: str) -> int | None:
    return int(parts[key]) if key in parts else None


def _is_day(value: int | None, most: int) -> bool:
    return value is None or 1 <= value <= most
