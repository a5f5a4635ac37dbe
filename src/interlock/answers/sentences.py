"""The sentences of a text, which put together again are the text."""

from __future__ import annotations

import re

_END = re.compile(r"[.!?…]{1,8}[\"'”’)\]]{0,4}(?=\s)|\n")
"""A full stop inside a figure or an address ends nothing: white space has to follow."""
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Za-z]|e\.g|i\.e|etc|vs|approx|ca|cf|no|nos|fig|dr|mr|mrs|ms|st|mt|jr|sr)\.$", re.I
)
_LOOK_BACK = 12


def split_sentences(text: str) -> tuple[str, ...]:
    """Each with the white space that follows it; joined, they are the text as it was."""
    found, start = [], 0
    for end in _END.finditer(text):
        if _ABBREVIATION.search(text[max(start, end.end() - _LOOK_BACK) : end.end()]):
            continue
        stop = end.end()
        while stop < len(text) and text[stop].isspace():
            stop += 1
        if stop <= start or not text[start:stop].strip():
            continue  # a blank line belongs to what follows it
        found.append(text[start:stop])
        start = stop
    return (*found, text[start:]) if start < len(text) else tuple(found)
