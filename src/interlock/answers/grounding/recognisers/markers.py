"""What looks like a figure and claims nothing: the numbers of a list, the offset of a time zone."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Letters that only look like others: a pattern that ignores case takes them for those, and the tables do not have them.
_SAME_LETTERS = str.maketrans({"ſ": "s", "ı": "i", "İ": "I", "\u212a": "K", "\u212b": "A"})
_ZONE = re.compile(r"\b(?:UTC|GMT)\s?[+\-−–]\s?\d{1,2}(?::\d\d)?\b")
_ENUMERATOR = re.compile(r"(?m)^[ \t]{0,12}\(?(?P<n>\d{1,2})[.)](?=[ \t])")


def without_markers(text: str) -> str:
    """A text of the same length in which they are blank."""
    text, expected = text if text.isascii() else text.translate(_SAME_LETTERS), 1
    enumerators = []
    for match in _ENUMERATOR.finditer(text):  # 1. 2. 3. of a list, not a line that begins with a figure
        # Only where it counts on from the line before (or begins at 1): "97. downed trees" is a claim, not a list.
        if int(match["n"]) in (1, expected):
            expected = int(match["n"]) + 1
            enumerators.append(match.span())
    text = blank(text, enumerators)
    return blank(text, [match.span() for match in _ZONE.finditer(text)])


def blank(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """A text in which some places are out of sight, in one pass.

    Blanked, not cut out: what is found later keeps its place, and NUL is part of no claim.
    """
    if not spans:
        return text
    parts, at = [], 0
    for start, end in sorted(spans):
        parts += [text[at:start], "\x00" * (end - max(start, at))]
        at = max(at, end)
    return "".join([*parts, text[at:]])
