"""Lengths of time in two units: three hours and 45 minutes, 2 h 15, six hours and three quarters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.patterns import begins_with

_MINUTES = frozenset({"minute"})


class Durations:
    """Hours and minutes, as minutes."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._words: dict[str, int] = table["words"]
        number = rf"\d{{1,3}}|{'|'.join(self._words)}"
        self._pattern = re.compile(
            rf"{begins_with(['an', *'0123456789', *self._words])}"
            rf"\b(?<!of )(?P<hours>an|{number})[\s-]?(?:hours?|hrs?|h)(?:\s+and|,)?\s*"
            rf"(?:(?P<part>a quarter|three quarters|half)\b"
            rf"|(?P<minutes>(?:twenty|thirty|forty|fifty)-\w{{3,5}}|{number})[\s-]?(?:minutes?|mins?|m)\b"
            r"|(?<=h)(?P<close>[0-5]\d)\b(?![.,:]\d)|(?<=h )(?P<apart>[0-5]\d)\b(?![.,:]\d))",
            re.I,
        )

    def find(self, text: str) -> Iterator[Claim]:
        for match in self._pattern.finditer(text):
            hours = 1 if match["hours"].lower() == "an" else self._value(match["hours"])
            part = {"a quarter": 15, "three quarters": 45, "half": 30}.get((match["part"] or "").lower())
            minutes = part if part is not None else self._value(match["minutes"] or match["close"] or match["apart"])
            if hours is not None and minutes is not None:
                number = Decimal(hours * 60 + minutes)
                yield Claim("number", match[0], match.start(), match.end(), number=number, units=_MINUTES)

    def _value(self, text: str) -> int | None:
        if text.isdigit():
            return int(text)
        parts = [self._words.get(word) for word in text.lower().split("-")]
        return None if None in parts else sum(part for part in parts if part is not None)
