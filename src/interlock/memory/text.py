"""Text as it is kept, and the form in which two texts are the same one."""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from functools import cache

from interlock.values import clean

_BREAKS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# Control characters (a database refuses NUL), and those that nobody sees and that would hide a word from a search or
# make a known text look like a new one: all that Unicode has as Default_Ignorable_Code_Point, and marks of annotations.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_SPACES = re.compile(r"\s+")
_MOST_MARKS = 30
"""On one letter, as in the Stream-Safe Text Format of Unicode: to order them takes the square of their number."""
_PLANES_WITH_MARKS = 0x20000
_ID_DIGITS = 32


def show_text(text: str) -> str:
    """A text that can be written down, without what nobody sees and with no more marks on a letter than any has."""
    seen = _UNSEEN.sub("", clean(text))
    return seen if seen.isascii() else _crowded_marks().sub(lambda found: found[0][:_MOST_MARKS], seen)


def normalize_text(text: str) -> str:
    """A text as it is kept: one kind of line break, composed letters, nothing that nobody sees."""
    plain = unicodedata.normalize("NFC", show_text(_BREAKS.sub("\n", text)))
    return "\n".join(line.rstrip(" \t") for line in plain.split("\n")).strip("\n")


def fold_text(text: str) -> str:
    """A text as it is compared: without case and compatibility forms, composed, whatever form it was in."""
    # Taken apart first, as a Greek iota below folds to a letter, and twice, as what is composed may fold again.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFKC", folded.casefold())


def content_digest(text: str) -> str:
    """The digest of what a text says: spaces, case and compatibility forms make no other document of it.

    Were they to, a page that was fetched once more under another spelling would come without the label that it has.
    """
    return hashlib.sha256(_SPACES.sub(" ", fold_text(show_text(text))).strip().encode()).hexdigest()


def document_id(namespace: str, digest: str) -> str:
    """The id of a document: the same text in the same namespace has the same one, in every store and at any time."""
    return hashlib.sha256(f"{namespace}\n{digest}".encode()).hexdigest()[:_ID_DIGITS]


def chunk_id(document: str, position: int) -> str:
    """The id of a part of a document."""
    return f"{document}.{position}"


def split_chunk_id(chunk: str) -> tuple[str, int] | None:
    """Document and position of an id; None if no chunk can have it."""
    document, dot, position = chunk.rpartition(".")
    fits = dot and position.isascii() and position.isdigit() and len(position) < 10
    return (document, int(position)) if fits else None


def tombstone_digest(key: bytes, namespace: str, digest: str) -> str:
    """What is kept of a forgotten text: keyed, as the text may be short enough to be guessed."""
    return hmac.digest(key, f"{namespace}\n{digest}".encode(), "sha256").hex()[:_ID_DIGITS]


def make_snippet(text: str, words: tuple[str, ...], most: int = 200) -> str:
    """One line of a chunk, around the first of the words that it has."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    lower = line.casefold()
    places = [place for word in words if (place := lower.find(word)) >= 0]
    start = max(0, min(min(places, default=0) - most // 3, len(line) - most))
    start = line.rfind(" ", 0, start) + 1 if start else 0
    cut = line[start : start + most]
    ends = start + most >= len(line)
    return f"{'…' if start else ''}{cut if ends else cut.rpartition(' ')[0] or cut}{'' if ends else '…'}"


@cache
def _crowded_marks() -> re.Pattern[str]:
    """More marks on one letter than any has."""
    marks = "".join(letter for code in range(_PLANES_WITH_MARKS) if unicodedata.combining(letter := chr(code)))
    return re.compile(f"[{re.escape(marks)}]{{{_MOST_MARKS + 1},}}")
