"""Where a pattern has a match, the look that comes before it lets the text through: a draft that was not looked at would
leave unchecked."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.answers.grounding.trigger_words import TriggerWords, beginnings

PATTERNS = [
    re.compile(text, re.IGNORECASE)
    for text in (
        r"\b(?:half|third|quarter)s?\b",
        r"(?<!\w)a (?:pair|handful) of",
        r"\bno longer\b|\bnot any ?more\b",
        r"(?:about|nearly )?\d+(?:\.\d+)? ?km",
        r"[€$£] ?\d+",
        r"\W*(?:never|none)\b",
        r"un[a-z]+ed\b",
        r"\b(?:[tT]wenty|thirty)(?:-(?:one|two))?\b",
        r"(?!not)\bopen(?:ed|s)?\b",
        r"(?:x|y)*closed",
        r"°[cf]\b",
        r"\bstraße\b",
        r"(?:sold|booked) out",
    )
]
_SAID = (
    "half Thirds a pair of handful no longer not any more anymore 12 km 12km about nearly € 5 $5 £ 7 never none NEVER"
    " unopened united twenty-one Thirty open opened opens closed xyclosed °C °f STRASSE straße Straße sold out booked"
    " soldout _half half_ éhalf K \u212a ſold sold-out"
)
WORDS = st.sampled_from(_SAID.split())
TEXTS = st.lists(WORDS | st.text(max_size=6), max_size=8).map(" ".join) | st.lists(WORDS, max_size=6).map("".join)


@given(TEXTS)
def test_no_match_is_passed_over(text: str) -> None:
    every, short = TriggerWords(), TriggerWords(short=2)
    bits = [(pattern, every.add(pattern), short.add(pattern)) for pattern in PATTERNS]
    for pattern, bit, short_bit in bits:
        alone = TriggerWords()
        alone.add(pattern)
        if pattern.search(text):
            assert every.find(text) & bit, pattern.pattern
            assert short.find(text) & short_bit, pattern.pattern
            assert alone.may_be_in(text), pattern.pattern


@pytest.mark.parametrize("pattern", [r"\bclosed\b", r"(?:sold|booked) out", r"\bno longer\b"])
def test_most_texts_are_not_looked_at(pattern: str) -> None:
    looked = TriggerWords()
    bit = looked.add(re.compile(pattern, re.IGNORECASE))
    assert all(one.letters for one in beginnings(re.compile(pattern)))
    assert not looked.find("the trail is open in summer, as far as is known") & bit
