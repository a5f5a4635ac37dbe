"""The figures, dates and times in the texts of a result: tables say the same in many rows, which is read once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from typing import Any

from interlock.answers.grounding.claims import Units
from interlock.answers.grounding.recognisers.times import times_in
from interlock.answers.grounding.vocabulary import Vocabulary

_SHORT = 80
_MOST_KEPT = 20_000
_HALF = re.compile(r"\d\s?[apAP]\.?[mM]")
Found = tuple[tuple[object, ...], dict[str, Any]]
"""What tells one finding from another, and the fields of the fact that it makes."""


class TextReader:
    """Finds what is said in texts; of short ones what was found before is remembered."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._read: dict[Units, dict[str, list[Found]]] = defaultdict(dict)

    def read(self, text: str, units: Units) -> list[Found]:
        """The figures, dates and times in a text; `units` are those of its field."""
        known = self._read[units]
        found = known.get(text)
        if found is None:
            found = self._find(text, units)
            if len(text) <= _SHORT and len(known) < _MOST_KEPT:
                known[text] = found
        return found

    def read_all(self, texts: Collection[str], units: Units) -> dict[str, list[Found]]:
        """The same of several texts: only of those that have any. Codes and single words have none but times."""
        timed = _may_have_times("\n".join(texts))
        found: dict[str, list[Found]] = {}
        for text in texts:
            if timed or " " in text or not text[:1].isalpha():
                within = self.read(text, units)
                if within:
                    found[text] = within
        return found

    def _find(self, text: str, units: Units) -> list[Found]:
        found: list[Found] = []
        for claim in self._vocabulary.claims_in_evidence(text):
            prose = (claim.end - claim.start) * 2 < len(text)
            if claim.number is not None and claim.kind == "number":
                of = claim.units or units
                details: dict[str, Any] = {"number": claim.number, "units": of, "prose": prose}
                found.append((("number in text", str(claim.number), of, prose), details))
            elif claim.kind == "date":
                found.append((("date in text", claim.date, prose), {"date": claim.date, "prose": prose}))
                if claim.either:
                    year, month, day = claim.date
                    turned = (year, day, month)  # 8/9/2024 in a result may be said either way
                    found.append((("date", turned), {"date": turned}))
        # Apart from the claims: there a timestamp is one date, which takes the time of the day with it.
        if _may_have_times(text):
            found += [(("time", minutes), {"minutes": minutes}) for minutes in times_in(text)]
        return found if len(found) < 2 else list(dict(found).items())  # what is said twice is found once


def _may_have_times(text: str) -> bool:
    if ":" not in text and "m" not in text:
        return False
    if ":" in text or not text.isascii() or _HALF.search(text) is not None:
        return True
    lower = text.lower()
    return "noon" in lower or "midday" in lower or "midnight" in lower
