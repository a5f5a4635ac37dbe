"""A text as sentences of plain words: no marks of layout, contractions written out, letters that look alike made one.

What cannot be read as words of the language whose rules these are is said to be so: it is not passed over.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from interlock.answers.statements.lexicon import Lexicon

_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,100}>")
_MARKS = re.compile(r"[*`~#>]+")
_TOKEN = re.compile(
    r"\w+(?:[.,:]\d+){0,8}(?:['\-@]\w+(?:[.,:]\d+){0,8}){0,12}|[.!?…]+(?=\s|$|[\"')\]])|[.!?…]|\n|[,;:()|—–\"\[\]→•]"
)
_SENTENCE_ENDS = frozenset(".!?…\n")
# Letters of other scripts that are drawn like Latin ones: a word that mixes them is meant to be read as Latin.
_ALIKE = str.maketrans("аеорсухіѕјԁһӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧαορνικτ", "aeopcyxisjdhlABEZHIKMNOPTYXaopvikt")
_LONGEST = 300
"""Of a sentence, in words; what is longer is read in pieces."""
_LATIN = re.compile(r"[A-Za-z]")
_STARTS = ("been", "being", "not", "now", "going", "done", "on", "all", "already", "just", "still")


class Sentence(NamedTuple):
    """One sentence: its words in lower case, and the text they stand in."""

    words: tuple[str, ...]
    text: str
    asks: bool
    """It ends with a question mark."""


def clean(text: str) -> str:
    """A text without what is not read aloud: markup, invisible characters, other ways to write the same letter."""
    text = html.unescape(text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = "".join(letter for letter in text if letter.isascii() or unicodedata.category(letter) != "Cf")
    text = text.replace("’", "'").replace("‘", "'").replace("“", '"').replace("”", '"').replace("\u2011", "-")
    return _MARKS.sub("", _TAG.sub("", text))


def sentences(text: str, words: Lexicon) -> Iterator[Sentence]:
    """The sentences of a cleaned text, in one pass."""
    found: list[str] = []
    start = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == "." and found and found[-1] in words.abbreviations and text[match.end() : match.end() + 1] != "\n":
            continue
        if token[0] in _SENTENCE_ENDS:
            if found:
                yield Sentence(tuple(found), text[start : match.end()].strip(), "?" in token)
            found, start = [], match.end()
            continue
        if len(found) >= _LONGEST:
            yield Sentence(tuple(found), text[start : match.start()].strip(), asks=False)
            found, start = [], match.start()
        found += _plain_words(token, text[match.end() : match.end() + 12], words)
    if found:
        yield Sentence(tuple(found), text[start:].strip(), asks=False)


def _plain_words(token: str, following: str, words: Lexicon) -> tuple[str, ...]:
    token = token.strip("_")
    if not token.isascii() and _LATIN.search(token):
        token = token.translate(_ALIKE)
    word = token.lower()
    if word in words.contractions:
        return words.contractions[word]
    if "'" in word:
        return _without_apostrophe(word, following.lower().split(), words)
    if word.startswith(("e-", "re-")) and word[2:].replace("-", "").isalpha():
        word = word.replace("-", "")
    return (word,) if word else ()


def _without_apostrophe(word: str, following: list[str], words: Lexicon) -> tuple[str, ...]:
    head, _mark, tail = word.rpartition("'")
    if tail == "t" and head.endswith("n"):
        stem = {"ca": "can", "wo": "will", "sha": "shall"}.get(head[:-1], head[:-1])
        return (stem, "not")
    known = {"ve": "have", "ll": "will", "re": "are", "m": "am", "d": "would"}.get(tail)
    if known is not None:
        return (head, known)
    if tail == "s" and (head in words.contracting or (following and following[0].strip(".,!") in _STARTS)):
        return (head, "is")
    return (head,) if tail in ("s", "") else (head, tail)


# Three letters and more in a script of which no clause is read; a Greek letter alone may be a unit or a symbol.
_OTHER_SCRIPT = re.compile(
    "[\u0370-\u03ff\u0400-\u052f\u0530-\u058f\u0590-\u06ff\u0900-\u0dff\u0e00-\u0eff\u10a0-\u10ff\u1200-\u137f]{3}"
    "|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}"
)


def is_unreadable(text: str) -> bool:
    """Whether a text has words in a script whose clauses are not read."""
    return not text.isascii() and _OTHER_SCRIPT.search(text) is not None
