"""What is like a number and was not understood: it holds an answer back, as nobody can say what it claims."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.patterns import Hints, one_of
from interlock.answers.grounding.recognisers.markers import blank
from interlock.answers.grounding.trigger_words import TriggerWords

UNREAD = "unread"
_ROMAN = re.compile(
    r"(?=[IVXLCDM])(?<![\w.-])(?=[IVXLCDM]{2,15}(?![\w-]|\.\w))M{0,4}(?:CM|CD|D?C{0,4})(?:XC|XL|L?X{0,4})(?:IX|IV|V?I{0,4})"
)
_MONEY = re.compile(r"[$€£¥₹₽₩](?!\w)")
# Letters and digits in one word: p95, e4b71fa. It stands in a result, or is made up.
_MIXED = re.compile(r"(?<![\w])(?=\w{0,40}[A-Za-z])(?=\w{0,40}\d)\w{2,40}(?!\w)")
_NO_CODE = re.compile(r"CO2|H2O|CH4|N2O|NO2|SO2|O2|PM10|A[1-5]|\d{1,4}s|m[23]|[ck]m[23]", re.I)
_DIGITS = re.compile(r"[0-9]+")
_A_DIGIT = re.compile(r"\d")
_SHORT = 2
_CJK = re.compile(r"[〇一二三四五六七八九十百千万億亿两兩壹贰叁肆伍陆柒捌玖拾]+")


class Unread:
    """Whatever is left that is like a number, after every recogniser has taken what it understands."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        words = [*table["words"], *(word for spoken in table["languages"].values() for word in spoken)]
        words = sorted(words, key=len, reverse=True)
        self._words = re.compile(rf"\b(?:{one_of(words)})\b", re.I)
        self._triggers = TriggerWords(short=_SHORT)
        self._triggers.add(self._words)
        self._compounds = Hints(table["compounds"])
        self._parts = re.compile(rf"\b\w{{0,40}}(?:{'|'.join(table['compounds'])})\w{{0,40}}\b", re.I)
        self._roman_words = frozenset(table["roman_words"])

    def find(self, text: str) -> Iterator[Claim]:
        end = 0
        for claim in sorted(self._all(text), key=lambda claim: (claim.start, -claim.end)):
            if claim.start >= end:
                yield claim
                end = claim.end

    def _all(self, text: str) -> Iterator[Claim]:
        if self._triggers.may_be_in(text):
            yield from self._find(self._words, text)
        if self._compounds.are_in(text.lower()):
            yield from self._find(self._parts, text)
        yield from self._find(_MONEY, text)
        for match in _ROMAN.finditer(text):
            if match[0] and match[0] not in self._roman_words:
                yield Claim("roman", match[0], match.start(), match.end())
        if not text.isascii():
            yield from self._find(_CJK, text)
        # Most figures were understood, and are out of sight.
        mixed = list(_MIXED.finditer(text)) if _A_DIGIT.search(text) is not None else []
        for match in mixed:
            if not _NO_CODE.fullmatch(match[0]):
                yield Claim("identifier", match[0], match.start(), match.end())
        yield from _digits(blank(text, [match.span() for match in mixed]))

    def _find(self, pattern: re.Pattern[str], text: str) -> Iterator[Claim]:
        for match in pattern.finditer(text):
            yield Claim(UNREAD, match[0], match.start(), match.end())


def _digits(text: str) -> Iterator[Claim]:
    """A digit that nobody took; not those of m² and CO₂, which follow a letter."""
    if text.isascii():
        for match in _DIGITS.finditer(text):
            yield Claim(UNREAD, match[0], match.start(), match.end())
        return
    start = -1
    for place, char in enumerate(f"{text} "):
        number = char.isdigit() if char.isascii() else unicodedata.category(char) in ("Nd", "Nl", "No")
        if number and start < 0 and not (not char.isascii() and text[place - 1 : place].isalpha()):
            start = place
        elif not number and start >= 0:
            yield Claim(UNREAD, text[start:place], start, place)
            start = -1
