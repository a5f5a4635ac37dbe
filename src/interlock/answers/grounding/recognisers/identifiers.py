"""Identifiers: north-gate-3536, CASE_2024_17, v1.2.3; not 12-month, 5ft or CO2."""

from __future__ import annotations

import re
from collections.abc import Iterator

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.recognisers.numbers import Numbers

# In turn: versions (1.2.3), codes of letters (AB-CDEF), words with digits and separators (north-gate-3536), constants
# (CASE_2024_17), letters with digits (B04). Not "well-known", which has no digit, nor the end of a longer word.
_IDENTIFIER = re.compile(
    r"(?<![\w.])v?\d{1,20}\.\d{1,20}(?:\.\d{1,20}){1,40}(?![\w])|(?<![\w-])[A-Z]{1,4}-[A-Z]{4,}(?![\w-])|"
    r"(?<![\w.,/-])(?=[\w:./-]{0,80}\d)(?=[\w:./-]{0,80}[A-Za-z])[A-Za-z0-9]{1,40}"
    r"(?:[-_:./][A-Za-z0-9]{1,40}){1,12}(?![\w-])"
    r"|(?<![\w-])[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,12}(?![\w-])"
    r"|(?<![\w./-])[A-Z]{1,5}\d\w{0,40}(?![\w-])"
)
# Every repetition has an upper bound, so that no text makes the search take for ever.
_NOT_IDENTIFIERS = re.compile(r"CO2|H2O|CH4|N2O|A[34]", re.I)
_A_RATE = re.compile(r"[\d.,]+/")
_A_KIND = re.compile(r"\d{1,6}-[a-z]{3,}(?:-[a-z]{1,40}){0,12}")  # 64-page, 7-day-old: a figure and what it counts


class Identifiers:
    """Words with digits or underscores in them that are no figures."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def find(self, text: str) -> Iterator[Claim]:
        for match in _IDENTIFIER.finditer(text):
            said = match[0]
            if _A_RATE.match(said) or _A_KIND.fullmatch(said) or _NOT_IDENTIFIERS.fullmatch(said):
                continue  # 73.8/MWh, 64-page
            if not self._numbers.is_figure(said.replace("/", " ")):  # "12-month", "5ft" and "1.5M"
                yield Claim("identifier", said, match.start(), match.end())
