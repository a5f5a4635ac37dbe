"""Figures in words: one hundred and twenty thousand, half a million."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.units import UnitTable

_SPLIT = re.compile(r"[\s-]+")
_NAME_SPLIT = re.compile(r"[_\W]+")


class NumberWords:
    """Numbers in words from two on: "one" is more often a pronoun."""

    def __init__(self, table: Mapping[str, Any], units: UnitTable) -> None:
        self._words: dict[str, int] = table["words"]
        self._large: dict[str, int] = table["large"]
        self._units = units
        word = "|".join([*self._words, *self._large])
        unit = "|".join(map(re.escape, units.spoken)).replace(r"\ ", r"[\s-]")
        self._pattern = re.compile(
            r"\b(?P<part>half|(?:a |one |three )?quarters? of) an? (?P<whole>million|billion)\b"
            rf"|\b(?P<word>(?:a )?(?:{word})(?:(?:[\s-]{{1,4}}(?:and\s{{1,4}})?)(?:{word}))*)\b"
            rf"(?:[\s-](?P<unit>{unit})\b)?",
            re.I,
        )

    def find(self, text: str) -> Iterator[Claim]:
        for match in self._pattern.finditer(text):
            if match["whole"]:
                number = _share(match["part"].lower()) * self._large[match["whole"].lower()]
            else:
                number = Decimal(self.value(match["word"]))
            if number >= 2 or match[0].lower().startswith("zero"):  # "zero" claims something; "one" is a pronoun
                units = self._units.of(match["unit"] or "")
                yield Claim("number", match[0], match.start(), match.end(), number=number, units=units)

    def value(self, text: str) -> int:
        """The number that words say: one hundred and twenty thousand."""
        total = group = 0
        for word in _SPLIT.split(text.lower()):
            if word in self._words:
                group += self._words[word]
            elif word == "hundred":
                group = max(1, group) * 100
            elif word in self._large:
                total += max(1, group) * self._large[word]
                group = 0
        return total + group

    def in_name(self, name: str) -> list[int]:
        """The numbers from two on that stand as words in a name: `seven_day_max`."""
        return [self._words[word] for word in _NAME_SPLIT.split(name.lower()) if self._words.get(word, 0) >= 2]


def _share(part: str) -> Decimal:
    if part == "half":
        return Decimal("0.5")
    return Decimal("0.75") if part.startswith("three") else Decimal("0.25")
