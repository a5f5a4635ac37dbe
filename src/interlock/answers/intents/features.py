"""The words of a text beside its vector: what a sentence vector blurs (an order, a negation, an address)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from interlock.answers.intents.keywords import split_words

_CLAUSES = re.compile(r"[.;:!?,]\s+")
_MARKS = (
    # Bounded, or no longer than they need to be: a word of thousands of letters is gone over once.
    ("#url", re.compile(r"https?://|www\.|\b[a-z0-9-]{1,63}\.(?:com|org|net|de|io|gov|uk|edu|eu|dev)\b")),
    ("#mail", re.compile(r"\w@\w")),
    ("#id", re.compile(r"\b[a-z]{1,63}[-_:]\w{0,63}\d")),
    ("#slug", re.compile(r"[a-z]-[a-z]")),
    ("#?", re.compile(r"\?")),
    ("#quote", re.compile(r"['\"“‘]\w")),
)
_SEEN_TWICE = 2  # what one example alone has would only be learned by heart


def features(text: str) -> set[str]:
    """Words, pairs of words, the first word, the words of the last clause, and marks of form."""
    lower = text.lower()
    words = split_words(text)
    last = split_words(_CLAUSES.split(lower.strip())[-1])
    found = {*words, *(f"{a}_{b}" for a, b in pairwise(words)), *(f">{word}" for word in last)}
    found |= {f"^{words[0]}"} if words else set()
    return found | {name for name, mark in _MARKS if mark.search(lower)}


def vocabulary(texts: Sequence[str]) -> tuple[str, ...]:
    """The features that more than one text has."""
    counts = Counter(feature for text in texts for feature in features(text))
    return tuple(sorted(feature for feature, count in counts.items() if count >= _SEEN_TWICE))


def as_rows(np: Any, texts: Sequence[str], known: dict[str, int]) -> Any:
    """One row a text, of length one whatever the number of its features."""
    rows = np.zeros((len(texts), len(known)), dtype=np.float32)
    for n, text in enumerate(texts):
        places = [known[feature] for feature in features(text) if feature in known]
        if places:
            rows[n, places] = len(places) ** -0.5
    return rows
