"""Figures that an answer denies although a result has them: "it is not class 3" of a class that is 3.

That a figure stands in a result is no support for a sentence that says the opposite of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from interlock.answers.grounding.support import Support
from interlock.answers.grounding.words import WordTable

_LONGEST = 48
# "until", "more than" and their like are no denial: they stand between the two, and are none of these words.
_DENIED = re.compile(
    r"\b(?:(?:is|are|was|were|be|been|does|do|did|has|have|had|will|cannot)\s+(?:not|never|no longer)|[a-z]+n['’]t)"
    r"\s+(?:be\s+|been\s+|have\s+)?(?:(?:the|an?|at|in|on|of|exactly)\s+){0,2}(?:(?P<field>[a-z]{2,20})\s+)?[^\w\s.,;:!?]?$",
    re.I,
)
_DENIALS = ("not", "never", "no longer", "n't", "n’t")
_FOUND = ("exact", "rounded", "counted")


def hold_denied(text: str, found: Sequence[Support], words: WordTable) -> list[Support]:
    """The same, where those that are denied are not supported."""
    return [replace(one, how="unsupported", why="a result says that it is") if _is_denied(text, one, words) else one
            for one in found]  # fmt: skip


def _is_denied(text: str, one: Support, words: WordTable) -> bool:
    """Whether the words before a figure deny it: at once, or with the name of its field in between."""
    if one.how not in _FOUND or one.source in ("name", "question"):
        return False
    before = text[max(0, one.start - _LONGEST) : one.start]
    denied = _DENIED.search(before) if any(map(before.lower().__contains__, _DENIALS)) else None
    if denied is None:
        return False
    return denied["field"] is None or bool(words.in_name(denied["field"]) & words.in_name(one.path.replace(".", " ")))
