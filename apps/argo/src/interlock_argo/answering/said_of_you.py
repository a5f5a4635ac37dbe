"""What people say of themselves to have it remembered or forgotten, without the words by which they ask for that."""

from __future__ import annotations

import re

_ASKS = re.compile(
    r"^\W*(?:(?:hi|hey|hello|ok(?:ay)?|oh|and|also|so|by the way|btw|one more thing|argo)\b\W*)*"
    r"(?:please\W+|pls\W+|plz\W+|can you\W+|could you\W+"
    r"|would you\W+|i want you to\W+|i.d like you to\W+)*(?:please\W+)?"
    r"(?:remember|note|note down|write down|keep in mind|bear in mind|make a note|take a note|don.t forget"
    r"|do not forget|remind me|save|store|fyi|for your information|for the record|for future reference|for the future"
    r"|you should know|just so you know|add to (?:my|your) notes?)\b"
    r"(?:\W+(?:please|this|down|of this|of the fact|the fact|for me|for later))*"
    r"\W*(?:that\b)?\W*",
    re.I,
)
_FORGETS = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|oh|and|actually|no|sorry|hey|well|hm+|argo|then)\b\W*)*"
    r"(?:please\W+|can you\W+|could you\W+|you can\W+|now\W+)*(?:please\W+)?"
    r"(?:forget|delete|erase|remove|drop|un-?remember|scratch|wipe)\b\W*",
    re.I,
)
_RESTING = re.compile(
    r"^(?:(?:about|that|what i (?:said|told you)(?: (?:about|of))?"
    r"|what you (?:know|noted|remember)(?: (?:about|of))?"
    r"|the (?:note|thing|bit|part|fact|entry)(?: (?:about|that|on|with|of))?|my note(?: (?:about|that|on))?)\b\W*)+",
    re.I,
)
_LAST = re.compile(
    r"^(?:(?:it|that|this|the last (?:one|thing|note)"
    r"|what i (?:just )?(?:said|told you)|that again|about (?:it|that))\b\W*"
    r"(?:again|please|then|now|last|just now|thanks?|thank you)?\W*)?$",
    re.I,
)


def is_told(said: str) -> bool:
    """Whether something is said to be remembered or forgotten, and nothing is asked."""
    return not said.rstrip().endswith("?") and bool(_ASKS.match(said) or _FORGETS.match(said))


def told_fact(said: str) -> str:
    """What is to be remembered, in the user's own words: without "please remember that"."""
    rest = _ASKS.sub("", said, count=1).strip()
    return rest or said.strip()


def forgotten_words(said: str) -> str:
    """What is to be forgotten, in words that it can be found by; empty: what was told last."""
    rest = _FORGETS.sub("", said, count=1).strip()
    if _LAST.match(rest):
        return ""
    return _RESTING.sub("", rest, count=1).strip() or rest
