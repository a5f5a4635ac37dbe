"""Questions that go on from the one before: what they are about, and what they do not mean any more."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from interlock_argo.answering.asked import read_question
from interlock_argo.answering.said_of_you import is_told

_LONGEST = 14
"""Words: a longer question says itself what it is about."""
_OWN = re.compile(r"\b(?:i|i'm|my|me|we|our|us)\b", re.I)
"""Whoever speaks of themselves says what it is about."""
_FEW, _SOME = 1, 3
"""Words that say what a question is about: with a single one it leaves out the rest."""
_OPENS = re.compile(
    r"^\W*(?:and|but|so|or|what about|how about|what of|same for|also)\b"
    r"|^\W*(?:and )?(?:then|why|since when|until when)\b",
    re.I,
)
_REFERS = re.compile(
    r"\b(?:it|its|that|this|those|these|they|them|their|he|him|his|she|her|hers|there|then|one|ones"
    r"|the (?:other|first|second|last|same))\b",
    re.I,
)
_OTHER = re.compile(r"\b(?:other|another|others|else|different|second one|next one)\b", re.I)
_SURE = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|hm+|and|but|really|no)\W+)*(?:are|r) (?:you|u) "
    r"(?:really |quite |absolutely )?(?:sure|certain|positive)\b[\w ]*\W*$"
    r"|^\W*(?:really|sure|is that (?:right|true|correct|so)|says who|who (?:says|said) (?:so|that|this|it)"
    r"|where (?:does|did) (?:it|that|this) (?:say|stand|come)[\w ]*|where (?:do|did) you (?:get|have|find|read)[\w ]*"
    r"|(?:what|which)(?: is|'s|’s)? (?:your|the) source|how do you know[\w ]*|show me(?: where)?|check again[\w ]*"
    r"|double.check[\w ]*|what makes you say[\w ]*)\W*$",
    re.I,
)
_CORRECTS = re.compile(r"^\W*(?:no\W+)?(?:i mean|i meant|not (?:the|that|his|her|my)\b)", re.I)


class Meant(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be looked up for something that was said."""

    question: str
    """The question itself, or the one before it where only that is asked again."""
    about: str = ""
    """The earlier question whose subject it shares."""
    other: bool = False
    """What was quoted before is not meant."""
    again: bool = False
    """Nothing new is asked: whether it is so, or who says it."""


def resolve(said: str, earlier: Sequence[str]) -> Meant:
    """What is meant by the last thing that was said, given what was said before; the last one last."""
    meant = Meant(question="")
    for text in (*earlier, said):
        meant = _follow(text, meant)
    return meant


def _follow(said: str, before: Meant) -> Meant:
    if not before.question or is_told(before.question):
        return Meant(question=said)
    if _SURE.search(said) and len(said.split()) <= _LONGEST:
        return msgspec.structs.replace(before, again=True)
    if not _goes_on(said):
        return Meant(question=said)
    subject = " ".join(part for part in (before.about, before.question) if part)
    return Meant(question=said, about=subject, other=_OTHER.search(said) is not None)


def _goes_on(said: str) -> bool:
    """Whether something that was said leaves out what it is about."""
    words = len(said.split())
    if words > _LONGEST:
        return False
    terms = read_question(said).terms
    if (_OPENS.search(said) and len(terms) <= _SOME - 1) or _CORRECTS.search(said):
        return True
    if len(terms) <= _FEW and not _OWN.search(said):
        return not any(term.is_name for term in terms)
    return len(terms) <= _SOME and _REFERS.search(said) is not None and not any(term.is_name for term in terms)
