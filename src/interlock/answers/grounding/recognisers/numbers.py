"""Figures in digits, with sign, currency, magnitude and unit."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.patterns import compile_table
from interlock.answers.grounding.units import UnitTable

# 1,234.5 with commas or narrow spaces in threes; 12.5 and 1e3; .5. So 1,2 is no figure of thousands.
_DIGITS = r"\d{1,3}(?:[,\u202f\u00a0]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?|\.\d+"
_GROUPING = re.compile(r"[,\u202f\u00a0]")
_DIRECTION = re.compile(r"\s?[NESW]\b")
_BEFORE = 40
"""How many characters before a figure are looked at for "about", "over" and words of a decrease."""


class Numbers:
    """$3.5 million, -40 °C, 1,234.5 acres, 12th."""

    def __init__(self, table: Mapping[str, Any], units: UnitTable) -> None:
        self._units = units
        self._magnitudes: dict[str, int] = table["magnitudes"]
        context = table["context"]
        for name in ("about", "above", "below", "loss"):
            for pattern in context[name]:
                compile_table(pattern, f"numbers.context.{name}")
        about, above, below = ("|".join(context[name]) for name in ("about", "above", "below"))
        self._about = re.compile(rf"(?:{about}|(?P<above>{above})|(?P<below>{below}))\s*$", re.I)
        self._loss = re.compile(rf"\b(?:{'|'.join(context['loss'])})\w*\b", re.I)
        # A bare m is metres, unless a currency leads the figure: it is no entry of its own in the alternatives.
        magnitude = "|".join([*sorted((m for m in self._magnitudes if m != "m"), key=len, reverse=True), "M"])
        unit = "|".join(map(re.escape, units.spoken)).replace(r"\ ", r"[\s-]")
        self._pattern = re.compile(
            # A hyphen is a minus only where no word or bracket ends before it: 97-98 is a span, (5)-3 a difference.
            r"(?P<minus>(?<![\w)])[-−–](?=[$€£¥₹]))?(?P<lead>(?:US|C|A)\$|[$€£¥₹])?\s?(?P<sign>(?<![\w)])[-−–])?"
            # Behind a comma another figure may begin: "classes 1,2,9" are three. Behind a dot only the rest of one.
            rf"(?<![A-Za-z0-9])(?<!\d\.)(?P<digits>{_DIGITS})"
            rf"(?P<ord>st|nd|rd|th)?(?:[\s-]?(?P<mag>{magnitude})(?![\w/²³]))?"
            # A unit is none where a figure follows: "5 in 3" are not five inches.
            rf"(?:[\s-]?(?P<unit>{unit})(?![\w]|\s?\d))?",
            re.I,
        )

    def is_figure(self, text: str) -> bool:
        """Whether a text is nothing but a figure with a unit or magnitude."""
        match = self._pattern.fullmatch(text)
        return match is not None and bool(match["unit"] or match["mag"])

    def find(self, text: str) -> Iterator[Claim]:
        for match in self._pattern.finditer(text):
            digits = _GROUPING.sub("", match["digits"])
            number, places = Decimal(digits), len(digits.partition(".")[2])
            magnitude = match["mag"] or ""
            metres = magnitude == "m" and not match["lead"]
            power = 0 if magnitude == "" or metres else self._magnitudes[magnitude.lower()]
            start = next(match.start(part) for part in ("minus", "lead", "sign", "digits") if match[part])
            before = text[max(0, start - _BEFORE) : start]
            about = self._about.search(before)
            yield Claim(
                "number",
                text[start : match.end()].strip(),
                start,
                match.end(),
                number=number.scaleb(power) * (-1 if match["sign"] or match["minus"] else 1),
                digits=number if power else None,
                step=Decimal(1).scaleb(power - places),
                units=self._units.of(match["lead"] or match["unit"] or ("m" if metres else "")),
                about=about is not None,
                bound=_bound(about),
                falls=self._loss.search(before) is not None,
                turned=_DIRECTION.match(text, match.end()) is not None,
            )


def _bound(about: re.Match[str] | None) -> str:
    if about is None:
        return ""
    return ">" if about["above"] else "<" if about["below"] else ""


class OtherDigits:
    """Digits of other scripts, and characters that are numbers themselves (½); not the ² of m²."""

    def find(self, text: str) -> Iterator[Claim]:
        if text.isascii():
            return
        for place, c in enumerate(text):
            if c.isascii() or unicodedata.category(c) not in ("Nd", "No") or text[max(0, place - 1) : place].isalpha():
                continue
            yield Claim("number", c, place, place + 1, number=Decimal(str(unicodedata.numeric(c))))
