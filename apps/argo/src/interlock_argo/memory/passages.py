"""The sentences of what was found that are nearest to a question: what an answer can quote."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from interlock.embedding import Embedder, MiniLm, MissingWeights

_MOST_SENTENCES = 60
_LONGEST = 400
_QUOTED = 2
_FAR = 0.12
"""A sentence that is so much further from the question than the nearest one is not quoted beside it."""
_SAID, _FIGURE = 0.3, 0.15
"""What a sentence gains by having all words of the question, and by having a figure where one is asked for."""
_ASKS_FIGURE = re.compile(
    r"\b(?:how (?:much|many|long|old|far|often|high)|when|what (?:time|year|date|price)|cost)\b", re.I
)
_WORD = re.compile(r"[^\W_]{3,}")
_BREAK = re.compile(r"(?<=[.!?])[\"'”’)]*\s+(?=[\"'“‘(`]?[^\W_a-z])")
# A line that is broken goes on; a heading, an item, a row of a table and what stands behind an empty line does not.
_BLOCK = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:#{1,6}[ \t]|[-*+][ \t]|\d{1,3}[.)][ \t]|\||>|```|~~~))")
_MARKUP = re.compile(r"^(?:[-*+>]|\d{1,3}[.)])[ \t]+")
_EMPHASIS = re.compile(r"`+|\*{1,3}")
"""Marks of Markdown that nobody reads aloud; an answer is read without them."""
_NO_SENTENCE = ("#", "|", "```", "~~~")


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A text with who says it."""

    text: str
    said_by: str


class Passages:
    """Ranks sentences by meaning and words; by words alone where there are no weights."""

    def __init__(self) -> None:
        self._embedder: Embedder | None = None
        self._asked = False

    def quote(self, question: str, passages: Sequence[Passage]) -> str:
        """What they say to a question, each sentence as it stands there, with who says it."""
        sentences = [(text, one.said_by) for one in passages for text in split_sentences(one.text)][:_MOST_SENTENCES]
        if not sentences:
            return ""
        scores = self._scores(question, [text for text, _who in sentences])
        order = sorted(range(len(sentences)), key=lambda place: -scores[place])
        best = [place for place in order[:_QUOTED] if scores[place] >= scores[order[0]] - _FAR]
        return " ".join(f"According to {sentences[place][1]}: {sentences[place][0]}" for place in best)

    def _scores(self, question: str, sentences: list[str]) -> list[float]:
        words = set(_WORD.findall(question.casefold()))
        shared = [len(words & set(_WORD.findall(text.casefold()))) / max(1, len(words)) for text in sentences]
        embedder = self._open()
        if embedder is None:
            return shared
        vectors = embedder.embed([question, *sentences])
        alike = vectors[1:] @ vectors[0]
        asks = _ASKS_FIGURE.search(question) is not None
        figures = [_FIGURE if asks and any(map(str.isdigit, text)) else 0.0 for text in sentences]
        return [float(meant) + _SAID * said + more for meant, said, more in zip(alike, shared, figures, strict=True)]

    def _open(self) -> Embedder | None:
        if not self._asked:
            self._asked = True
            try:
                self._embedder = MiniLm()
            except MissingWeights:
                self._embedder = None
        return self._embedder


def split_sentences(text: str) -> list[str]:
    """The sentences of a text that can be quoted: no headings, nothing that is too long to be one."""
    found: list[str] = []
    for block in _BLOCK.split(text):
        line = block.strip()
        if line.startswith("#"):
            line = line.partition("\n")[2].strip()
        if line and not line.startswith(_NO_SENTENCE):
            plain = " ".join(_EMPHASIS.sub("", _MARKUP.sub("", line)).split())
            found += [sentence for sentence in _BREAK.split(plain) if sentence and len(sentence) <= _LONGEST]
    return found
