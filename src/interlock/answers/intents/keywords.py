"""Whole words and phrases: never "hi" in "which"."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Letters and digits, with apostrophes inside (don't); an underscore parts words: set_title is two.
_WORD = re.compile(r"[^\W_]++(?:['’][^\W_]++)*+")
_SHORT = {
    "i'm": "i am",
    "you're": "you are",
    "what's": "what is",
    "who's": "who is",
    "how's": "how is",
    "it's": "it is",
    "that's": "that is",
    "can't": "cannot",
    "don't": "do not",
}


def split_words(text: str) -> list[str]:
    """The words of a text in lower case, short forms spelled out."""
    return " ".join(_SHORT.get(w, w) for w in _WORD.findall(text.lower().replace("’", "'"))).split()


def hits(keywords: Iterable[str], words: list[str]) -> tuple[str, ...]:
    """The keywords that stand in the words: whole words, phrases as a whole."""
    text = f" {' '.join(words)} "
    return tuple(keyword for keyword in keywords if f" {' '.join(split_words(keyword))} " in text)
