"""Times of the day: 15:41, 3:41 pm, 4 pm, a quarter to midnight, and the first of 8 to 10 am."""

from __future__ import annotations

import re
from collections.abc import Iterator

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.recognisers.markers import blank

# 15:41, 3:41:05 pm, 4 p.m.; not 16:9, which has one digit behind the colon, nor part of a longer run (1:23:45:67). A
# hyphen may lead from another time (10:30-11:00), and otherwise makes it an offset or part of a name.
_TIME = re.compile(
    r"(?=[\dnm])(?:(?:(?<![\d:-])|(?<=:\d\d-)|(?<=[ap]m-)|(?<=[ap]\.m\.-))(?P<h>\d{1,2}):(?P<m>\d\d)(?::\d\d)?(?:\s?(?P<half>[ap])\.?m\b\.?)?(?!\d|:\d)"
    r"|\b(?P<h2>\d{1,2})(?:\.(?P<m2>[0-5]\d))?\s?(?P<half2>[ap])\.?m\b\.?|\b(?P<noon>noon|midday|midnight)\b)",
    re.I,
)
_IN_FIGURES = re.compile(r"\d(?::\d|\s?[apAP]\.?[mM])")
_IN_WORDS = ("noon", "midday", "midnight", "half", "quarter", "ten", "twenty", "five", "o'clock", "sharp", "in the ")
"""Without one of these there is no time in a text."""
_NOON = {"midnight": 0, "noon": 720, "midday": 720}
# The hour that a span begins with, where only its end says which half of the day it is.
_UNTIL = re.compile(
    r"(?=\d)(?<![\w.,:$€£-])(?P<h>1[0-2]|[1-9])(?::(?P<m>[0-5]\d))?(?=(?:\s?[–-]\s?|\s(?:to|until|till)\s)"
    r"\d{1,2}(?::\d\d)?\s?[ap]\.?m\b)",
    re.I,
)
_HOURS = ("twelve", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
_PAST = {"half": 30, "quarter": 15, "a quarter": 15, "ten": 10, "twenty": 20, "five": 5, "twenty-five": 25}
_SPOKEN = re.compile(
    rf"\b(?=[aefhnoqst])(?:(?P<part>{'|'.join(sorted(_PAST, key=len, reverse=True))})[\s-](?P<way>past|to)[\s-]"
    rf"(?P<hour>{'|'.join([*_HOURS, *_NOON])}|\d{{1,2}})\b"
    rf"|(?P<sharp>{'|'.join(_HOURS)})\s(?:o'clock|sharp|in the (?:morning|afternoon|evening)))",
    re.I,
)
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[T ](\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")


class Times:
    """A time of the day, in minutes since midnight."""

    def find(self, text: str) -> Iterator[Claim]:
        if _IN_FIGURES.search(text) is None and not any(map(text.lower().__contains__, _IN_WORDS)):
            return
        spoken = list(_find_spoken(text))
        yield from spoken
        # The midnight of "a quarter to midnight" is no time of its own.
        text = blank(text, [(claim.start, claim.end) for claim in spoken])
        starts = set[int]()
        for match in _TIME.finditer(text):
            minutes = _minutes(match)
            if minutes is not None:
                starts.add(match.start())
                either = bool(match["h"]) and not match["half"] and int(match["h"]) < 12
                yield Claim("time", match[0], match.start(), match.end(), minutes=minutes, either=either)
        for match in _UNTIL.finditer(text):
            if match.start() not in starts:
                minutes = (int(match["h"]) % 12) * 60 + int(match["m"] or 0)
                yield Claim("time", match[0], match.start(), match.end(), minutes=minutes, either=True)


def _find_spoken(text: str) -> Iterator[Claim]:
    for match in _SPOKEN.finditer(text):
        hour = (match["hour"] or match["sharp"]).lower()
        at = _NOON[hour] if hour in _NOON else (int(hour) % 12 if hour.isdigit() else _HOURS.index(hour)) * 60
        part = _PAST[match["part"].lower()] if match["part"] else 0
        minutes = at + (part if (match["way"] or "past").lower() == "past" else -part)
        either = hour not in _NOON
        minutes %= 720 if either else 1440
        yield Claim("time", match[0], match.start(), match.end(), minutes=minutes, either=either)


def times_in(text: str) -> tuple[int, ...]:
    """Every time of the day in a text, also those inside of timestamps, in minutes since midnight."""
    plain = _TIMESTAMP.sub(r" \1 ", text)
    return tuple(found for match in _TIME.finditer(plain) if (found := _minutes(match)) is not None)


def _minutes(match: re.Match[str]) -> int | None:
    if match["noon"]:
        return 0 if match["noon"].lower() == "midnight" else 12 * 60
    hour, minute = int(match["h"] or match["h2"]), int(match["m"] or match["m2"] or 0)
    half = (match["half"] or match["half2"] or "").lower()
    if hour > 24 or minute > 59 or (half and not 1 <= hour <= 12):
        return None
    return (hour % 12 + (12 if half == "p" else 0) if half else hour) * 60 + minute
