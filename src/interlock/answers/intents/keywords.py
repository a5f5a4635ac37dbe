"""Whole words and phrases: never "hi" in "which". And what is nothing but conversation."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib.resources import files

_DATA = tomllib.loads((files("interlock.answers.intents") / "conversation.toml").read_text(encoding="utf-8"))
CONVERSATION: tuple[str, ...] = tuple(_DATA["phrases"])
CHAT_EXAMPLES: tuple[str, ...] = tuple(_DATA["examples"])
_FILLERS = frozenset(_DATA["fillers"])
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


def only_conversation(words: list[str]) -> bool:
    """Whether nothing is left of a text once greetings, thanks and the like are taken away."""
    text = f" {' '.join(words)} "
    # Longest first: "thank you" would leave "very much" of "thank you very much".
    for phrase in sorted(CONVERSATION, key=len, reverse=True):
        text = text.replace(f" {phrase} ", " ")
        text = text.replace(f" {phrase} ", " ")  # once more, for two in a row that shared a space
    return bool(words) and all(word in _FILLERS for word in text.split())
