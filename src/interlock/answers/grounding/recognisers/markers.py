"""What looks like a figure and claims nothing: the numbers of a list, the offset of a time zone."""

from __future__ import annotations

import re

# Letters that only look like others: a pattern that ignores case takes them for those, and the tables do not have them.
_SAME_LETTERS = str.maketrans({"ſ": "s", "ı": "i", "İ": "I", "\u212a": "K", "\u212b": "A"})
_ZONE = re.compile(r"\b(?:UTC|GMT)\s?[+\-−–]\s?\d{1,2}(?::\d\d)?\b")
_ENUMERATOR = re.compile(r"(?m)^[ \t]{0,12}\(?(?P<n>\d{1,2})[.)](?=[ \t])")


def without_markers(text: str) -> str:
    """A text of the same length in which they are blank."""
    text, expected = text.translate(_SAME_LETTERS), 1
    for match in _ENUMERATOR.finditer(text):  # 1. 2. 3. of a list, not a line that begins with a figure
        # Only where it counts on from the line before (or begins at 1): "97. downed trees" is a claim, not a list.
        if int(match["n"]) in (1, expected):
            expected = int(match["n"]) + 1
            text = _blank(text, match)
    for match in _ZONE.finditer(text):
        text = _blank(text, match)
    return text


def _blank(text: str, match: re.Match[str]) -> str:
    return text[: match.start()] + "\x00" * (match.end() - match.start()) + text[match.end() :]
