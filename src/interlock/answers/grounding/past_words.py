"""Whether the words beside a figure say that it was so, and is no more: from $800, was 12, 7 before."""

from __future__ import annotations

import re

from interlock.answers.grounding.claims import Claim

# What was: "from 800 to", "it was 800", "instead of 800"; "to 1,500", "now 1,500" are what is.
_PAST_BEFORE = re.compile(
    r"\b(?:from|was|were|had|previously|before|instead of|rather than|not|originally|earlier|formerly|used to be|old|"
    r"until now|prior|former|above|below|over|under|than|read|showed)\b"
    r"(?:\s+(?:the|a|an|at|of|on|been|only|about|still|your|its|being|standing|limit|balance|rate|in|(?:the|an?)\s[a-z]{2,12}ed|"
    r"\d{1,2}(?:st|nd|rd|th)|(?:mon|tues|wednes|thurs|fri|satur|sun)day)){0,4}[^\w;.!?]{0,3}$",
    re.I,
)
_FROM, _TO = re.compile(r"\bfrom\s+(?:[a-z]{1,16}\s+){1,3}$"), re.compile(r"[\w\s]{0,24}?\s(?:in)?to\s")
"""From box 115 to box 327: what is said between, is what it was."""
_SINCE = re.compile(r"\bsince\b[^.;:\d]{0,40}$", re.I)
"""What has been since a day: that day is of what was there before."""
_PAST_AFTER = re.compile(
    r"[^\w;!?]{0,3}(?:\w{1,20}[^\w;.!?]{1,3}){0,3}"
    r"(?:before|previously|earlier|until now|so far|until then|originally|to [$€£\d])"
    r"|\s?(?:→|⇒|[-=]>)",
    re.I,
)


def is_past(text: str, claim: Claim) -> bool:
    """Whether a claim is said as what was."""
    before, after = text[max(0, claim.start - 34) : claim.start], text[claim.end : claim.end + 26]
    if _PAST_BEFORE.search(before) is not None or _PAST_AFTER.match(after) is not None:
        return True
    if claim.kind != "date" and _FROM.search(before) is not None and _TO.match(after) is not None:
        return True
    return claim.kind == "date" and _SINCE.search(text, max(0, claim.start - 50), claim.start) is not None
