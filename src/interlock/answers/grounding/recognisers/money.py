"""Sums of money in two units: 333 euros and 23 cents, two dollars thirty-five; and 45p."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.patterns import Hints, one_of
from interlock.answers.grounding.recognisers.number_words import NumberWords
from interlock.answers.grounding.units import UnitTable

_HUNDRED = 100
_CENTS = frozenset({"cent"})
_PENCE = re.compile(r"(?=\d)(?<![\w.,])(?P<digits>\d{1,2})p\b")


class Money:
    """A whole sum and its hundredths as one figure: each of them alone would stand in no result."""

    def __init__(self, units: UnitTable, words: NumberWords) -> None:
        self._units, self._words = units, words
        spoken = [unit for unit in units.spoken if unit.isalpha() and units.of(unit) & units.currencies]
        number = one_of(list(words.small))
        spelled = rf"{number}(?:[\s-]{number}){{0,3}}"
        self._named = Hints(spoken)
        self._pattern = re.compile(
            rf"\b(?P<whole>\d{{1,3}}(?:,\d{{3}}){{0,3}}|{spelled})\s(?P<unit>{one_of(spoken)})(?:\s+and)?\s+"
            # Without its unit the second figure ends what is said: two dollars thirty-five.
            rf"(?:(?P<part>\d{{1,2}}|{spelled})\s(?:cents?|pence)\b|(?P<bare>{spelled})(?=[.,;:!?)]|\s*$))",
            re.I,
        )

    def find(self, text: str) -> Iterator[Claim]:
        for match in self._pattern.finditer(text) if self._named.are_in(text.lower()) else ():
            whole, part = self._value(match["whole"]), self._value(match["part"] or match["bare"])
            if whole is not None and part is not None and part < _HUNDRED:
                number = whole + Decimal(part) / _HUNDRED
                units = self._units.of(match["unit"])
                step = Decimal("0.01")
                yield Claim("number", match[0], match.start(), match.end(), number=number, step=step, units=units)
        for match in _PENCE.finditer(text):
            number = Decimal(match["digits"])
            yield Claim("number", match[0], match.start(), match.end(), number=number, units=_CENTS)

    def _value(self, text: str) -> int | None:
        digits = text.replace(",", "")
        return int(digits) if digits.isdecimal() else self._words.value(text)
