"""Figures in digits, with sign, currency, magnitude and unit."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.normal_text import VULGAR_FRACTIONS
from interlock.answers.grounding.patterns import Hints, compile_table, one_of
from interlock.answers.grounding.units import UnitTable

# 1,234.5 with commas or narrow spaces in threes; 12,34,567 as in India; 12.5 and 1e3; .5. So 1,2 is no thousands.
_DIGITS = (
    r"\d{1,3}(?:[,\u202f\u00a0'’]\d{3})+(?!\d)(?:\.\d+)?|\d{1,2}(?:,\d\d){1,5},\d{3}(?![\d,])(?:\.\d+)?"
    r"|\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?|\.\d+"
)
_VULGAR = {char: f"{unicodedata.numeric(char):.4f}".rstrip("0") for char in VULGAR_FRACTIONS}
_TIGHT = {"B": 9, "T": 12}
"""Behind a digit without a space, and only in capitals: $3B."""
_GROUPING = re.compile(r"[,\u202f\u00a0'’]")
_OF = re.compile(r"\s?of\b", re.I)
_DIRECTION = re.compile(r"\s?[NESW]\b")
_CURRENCY_SIGNS = tuple("$€£¥₹")
_BEFORE = 40
"""How many characters before a figure are looked at for "about", "over" and words of a decrease."""


_TAKEN_FROM = re.compile(r"\d[\d.,]*%?\s+(?:[^\W\d_]+\s+){0,2}$")
"""300 seats minus 264 sold: a difference, and no negative figure."""


class NumberContext(NamedTuple):
    """What the words before a figure say about it."""

    about: bool
    bound: str
    falls: bool


_NO_CONTEXT = NumberContext(about=False, bound="", falls=False)


_GROUPS = ("minus", "lead", "sign", "digits", "vulgar", "mag", "unit")


@lru_cache(maxsize=256)
def _step(power: int) -> Decimal:
    return Decimal(1).scaleb(power)


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
        self._before = Hints([*context["about"], *context["above"], *context["below"]])
        self._lost = Hints(context["loss"])
        self._loss = re.compile(rf"\b(?:{'|'.join(context['loss'])})\w*\b", re.I)
        # A bare m is metres, unless a currency leads the figure: it is no entry of its own in the alternatives.
        magnitude = "|".join([*sorted((m for m in self._magnitudes if m != "m"), key=len, reverse=True), "M"])
        unit, codes = spoken_units(units), "|".join(sorted(units.currencies))
        self._pattern = re.compile(
            r"(?=[-−–$€£¥₹\s\d.UCAMNEGJISD])"
            # And of spaces and letters, few have a figure behind them.
            rf"(?=[-−–$€£¥₹\d.]|\s[-−–\d.]|(?:US|C|A)\$|\b(?:(?:{codes})\s\d|(?:minus|negative)\s))"
            # A hyphen is a minus only where no word or bracket ends before it: 97-98 is a span, (5)-3 a difference.
            r"(?P<minus>(?<![\w)])[-−–](?=[$€£¥₹])|\b(?:minus|negative)\s)?"
            rf"(?P<lead>(?:US|C|A)\$|[$€£¥₹]|\b(?:{codes})(?=\s\d))?\s?(?P<sign>(?<![\w)])[-−–])?"
            # Behind a comma another figure may begin: "classes 1,2,9" are three. Behind a dot only the rest of one.
            rf"(?<![A-Za-z0-9])(?<!\d\.)(?P<digits>{_DIGITS})(?P<vulgar>[{VULGAR_FRACTIONS}])?"
            rf"(?P<ord>st|nd|rd|th)?(?:[\s-]?(?P<mag>{magnitude}|(?<=\d)(?-i:[BT]))(?![\w/²³]))?"
            # A unit is none where a figure follows: "5 in 3" are not five inches.
            rf"(?:[\s-]?(?P<unit>{unit})(?![\w]|\s?\d))?",
            re.I,
        )

    def context(self, text: str, start: int) -> NumberContext:
        """What the words before a figure say about it: about, over, under, a decrease."""
        before = text[max(0, start - _BEFORE) : start]
        lower = before.lower()
        about = self._about.search(before) if self._before.are_in(lower) else None
        bound = "" if about is None else ">" if about["above"] else "<" if about["below"] else ""
        return NumberContext(
            about is not None, bound, self._lost.are_in(lower) and self._loss.search(before) is not None
        )

    def is_figure(self, text: str) -> bool:
        """Whether a text is nothing but a figure with a unit or magnitude."""
        match = self._pattern.fullmatch(text)
        return match is not None and bool(match["unit"] or match["mag"])

    def find(self, text: str) -> Iterator[Claim]:
        lower = text.lower()
        if self._before.are_in(lower) or self._lost.are_in(lower):
            return self._find(text, self.context)
        return self._find(text, _no_context)

    def _find(self, text: str, context_at: Callable[[str, int], NumberContext]) -> Iterator[Claim]:
        for match in self._pattern.finditer(text):
            minus, lead, sign, digits, vulgar, magnitude, unit = match.group(*_GROUPS)
            if not digits.isdecimal():
                digits = _GROUPING.sub("", digits)
            if vulgar:
                if "." in digits:  # .5¼ is no figure that anybody writes: it is held as what was not understood
                    continue
                digits += _VULGAR[vulgar][1:]
            number, places = Decimal(digits), len(digits.partition(".")[2])
            metres = magnitude == "m" and not lead
            power = 0 if not magnitude or metres else _TIGHT.get(magnitude) or self._magnitudes[magnitude.lower()]
            start, negative = self._start(text, match), bool(sign)
            if minus:
                negative = negative or start == match.start("minus")
            context = context_at(text, start)
            scaled = number.scaleb(power) if power else +number
            yield Claim(
                "number",
                text[start : match.end()].strip(),
                start,
                match.end(),
                number=scaled * -1 if negative else scaled,
                digits=number if power else None,
                step=_step(power - places),
                units=self._units.of(lead or unit or ("m" if metres else "")),
                about=context.about,
                bound=context.bound,
                falls=context.falls,
                ordinal=bool(match["ord"]),
                turned=_DIRECTION.match(text, match.end()) is not None,
            )

    def _start(self, text: str, match: re.Match[str]) -> int:
        """Where a figure begins; a minus in front that is said of another figure is none of it."""
        if not match["minus"]:
            return next(match.start(part) for part in ("lead", "sign", "digits") if match[part])
        is_difference = _TAKEN_FROM.search(text, max(0, match.start() - _BEFORE), match.start()) is not None
        return match.end("minus") if is_difference else match.start("minus")


class NumbersOfResults:
    """The same in a result, where a figure is what it is: whether "about" stands before it is of no account."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def find(self, text: str) -> Iterator[Claim]:
        return self._numbers._find(text, _no_context)


def _no_context(_text: str, _start: int) -> NumberContext:
    return _NO_CONTEXT


class OddNumbers:
    """Figures as other countries write them (3,7; 1.234,56; 1 000 000), fractions (3/4), 35 and a half, and 24/7."""

    # "classes 1,2,9" are three figures: a decimal comma stands alone.
    _COMMA = re.compile(
        r"(?=\d)(?<![\w.,])(?P<whole>\d{1,3}(?:\.\d{3}){0,5}|\d{1,12}),(?P<places>\d{1,2})(?![\d,]|\.\d)"
    )
    _DOTS = re.compile(r"(?=\d)(?<![\w.,])\d{1,3}(?:\.\d{3}){2,5}(?![\d,]|\.\d)")
    _SPACES = re.compile(r"(?=\d)(?<![\w.,])(?<!\d )\d{1,3}(?: \d{3}){1,5}(?! ?\d|[.,]\d)")
    _FRACTION = re.compile(r"(?=\d)(?<![\w.,/$€£-])(?P<over>\d{1,3})/(?P<under>\d{1,3})(?![\w/]|[.,]\d)")

    _HALF = re.compile(r"(?=\d)(?<![\w.,])(?P<whole>\d{1,4})\s(?:and\s)?a\shalf\b", re.I)
    _ANY = re.compile(r"\d(?:[,/ ]\d|\.\d{3}\.\d|\s(?:and\s)?a\shalf)", re.I)
    """None of them is in a text without it."""

    def __init__(self, units: UnitTable) -> None:
        unit = spoken_units(units)
        self._unit = re.compile(rf"[\s-]?(?P<unit>{unit})(?![\w]|\s?\d)", re.I)
        self._units = units

    def find(self, text: str) -> Iterator[Claim]:
        if self._ANY.search(text) is None:
            return
        for match in self._COMMA.finditer(text):
            whole = match["whole"].replace(".", "")
            yield self._claim(text, match, Decimal(f"{whole}.{match['places']}"), len(match["places"]))
        for pattern, mark in ((self._DOTS, "."), (self._SPACES, " ")):
            for match in pattern.finditer(text):
                yield self._claim(text, match, Decimal(match[0].replace(mark, "")), 0)
        for match in self._HALF.finditer(text):
            yield self._claim(text, match, Decimal(match["whole"]) + Decimal("0.5"), 1)
        for match in self._FRACTION.finditer(text):
            over, under = int(match["over"]), int(match["under"])
            if match[0] != "24/7" and 0 < over < under:
                number = Decimal(over) / Decimal(under)
                yield Claim("ratio", match[0], match.start(), match.end(), number=number, step=Decimal("0.01"))

    def _claim(self, text: str, match: re.Match[str], number: Decimal, places: int) -> Claim:
        unit = self._unit.match(text, match.end())
        lead = text[max(0, match.start() - 1) : match.start()]
        end = match.end() if unit is None else unit.end()
        start = match.start() - (lead in _CURRENCY_SIGNS)
        units = self._units.of(lead if lead in _CURRENCY_SIGNS else "" if unit is None else unit["unit"])
        return Claim("number", text[start:end], start, end, number=number, step=Decimal(1).scaleb(-places), units=units)


def spoken_units(units: UnitTable) -> str:
    """A pattern for the units that may follow a figure, the longest first."""
    return one_of([re.escape(unit).replace(r"\ ", r"[\s-]") for unit in units.spoken])


class OtherDigits:
    """Digits of other scripts, and characters that are numbers themselves (½); not the ² of m²."""

    def find(self, text: str) -> Iterator[Claim]:
        if text.isascii():
            return
        for place, c in enumerate(text):
            if c.isascii() or unicodedata.category(c) not in ("Nd", "No") or text[max(0, place - 1) : place].isalpha():
                continue
            kind = "ratio" if c in _VULGAR and _OF.match(text, place + 1) else "number"
            step = Decimal("0.01") if kind == "ratio" else Decimal(1)
            yield Claim(kind, c, place, place + 1, number=Decimal(str(unicodedata.numeric(c))), step=step)
