"""What of a user's words may be a wish: not what others do, what is asked about, or ruled out."""

from __future__ import annotations

import re
from functools import lru_cache

from interlock.policy.provenance.normal_forms import plain

_REST = r"(?:(?!\b(?:and|then|so|but|please)\b)[^.,;:?!])*"
"""To the end of what is said in one breath."""
_REST_OF_OWN = r"(?:(?!\b(?:then|so|but|please|need you|want you|would like)\b)[^.,;:?!])*"
_TOLD = re.compile(rf"\b(?:did|does|has|have|had)\b(?! to\b| a look){_REST}")
"""What others do or have done: nobody is asked to do it."""
_TOLD_TO_US = re.compile(
    r"\b(?:give|tell|show|write|read|report|answer|get|bring|share|send|let|ask|email|mail|text|message)\s+(?:(?:it|that|this)\s+to\s+)?(?:me|us)\b"
)
"""Who wants to be told something asks for nothing to be sent."""
_IDLE = re.compile(
    r"\bthanks\b|\bthank (?:you|u)\b|\bthx\b|\blook(?:ing)? forward\b|\breminders?\b"
    r"|(?:\b(?:am|is|are|was|were|been)|'m|'re|'s) (?:\w+ly |just |now |still |also )?\w+ing\b"
)
"""What asks for nothing: courtesies, things that sound like deeds, and what somebody is doing anyway."""
_REMINDED = re.compile(
    r"\bremind (?:me|us)\b(?:(?!\b(?:then|so|but)\b)[^.;?!])*"
    rf"|\b(?:reminders?|to-?dos?)\b(?: item| list)?(?:\s*:| to\b| that\b| about\b){_REST_OF_OWN}"
)
_OWN_DEED = re.compile(
    r"\b(?:i|we)(?:'ll| will| shall|(?:'m| am|'re| are) (?:going to|about to))\b"
    rf"(?! (?:need|want|like|have)\b){_REST_OF_OWN}"
)
"""What the user wants to be reminded of, or means to do, is not what an agent is to do."""
_ASKED_ABOUT = re.compile(
    r"\b(?:(?:who|whom|whose|what|what's|when|why|how|whether|anything|which)\b(?! about\b| don't you\b| not\b)"
    rf"|(?:should|do|must|if|before|unless) (?:i|we)\b){_REST}"
)
"""Who asks whether, when or how much asks for an answer."""
_RULED_OUT = re.compile(
    r"\b(?:do not|don't|dont|never|no need to|not to|without|instead of|rather than)\b"
    rf"(?! (?:forget|hesitate|worry|mind|you)\b){_REST}"
)
_PASSIVE = re.compile(
    r"\b(?:can|could|should|must|to|shall|please have|needs? to)\b[^.?!]{0,120}\bbe\b|\bplease have\b"
    r"|\b(?:get|want|need)s? (?:it|this|that|them|him|her|these|those|(?:the|my|our) [\w ]{1,30}) \w+(?:ed|en|nt|id)\b"
)
"""What is to be done is wished for in the words of what was done."""


@lru_cache(maxsize=256)
def wish_in(question: str) -> str:
    """What is left of a question that may be a wish. "Remind me" is one word in it: it asks for a reminder alone."""
    text = _OWN_DEED.sub(" ", _REMINDED.sub(" remind-me ", plain(question)))
    text = _RULED_OUT.sub(" ", _ASKED_ABOUT.sub(" ", _IDLE.sub(" ", text)))
    return _TOLD_TO_US.sub(" ", text if _PASSIVE.search(text) else _TOLD.sub(" ", text))


@lru_cache(maxsize=256)
def is_passive(question: str) -> bool:
    """Whether a wish is said in the words of what was done: "it is to be sent"."""
    return _PASSIVE.search(wish_in(question)) is not None
