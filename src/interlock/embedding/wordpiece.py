"""Text to the token ids of a BERT model: lower case, no accents, then the longest known pieces of each word."""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib.resources import files

_LONGEST_WORD = 100  # as in BERT's own tokenizer
_MOST_TOKENS = 128  # the length that all-MiniLM-L6-v2 was trained with
_LONGEST_TEXT = _LONGEST_WORD * _MOST_TOKENS
_CJK = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0xF900, 0xFAFF), (0x20000, 0x2FA1F))


@cache
def _read() -> dict[str, int]:
    text = (files("interlock.embedding") / "bert-base-uncased.txt").read_text(encoding="utf-8")
    return {piece: number for number, piece in enumerate(text.splitlines())}


def vocabulary() -> frozenset[str]:
    """Words that are surely words."""
    return frozenset(_read())


class WordPiece:
    """The uncased English vocabulary of BERT (Apache-2.0), which all-MiniLM-L6-v2 was trained with."""

    def __init__(self) -> None:
        self._ids = _read()
        self._first, self._last, self._unknown = (self._ids[name] for name in ("[CLS]", "[SEP]", "[UNK]"))

    def encode(self, text: str) -> list[int]:
        """The ids of a text, between the marks of beginning and end; a long text is cut."""
        ids: list[int] = []
        for word in words(text[:_LONGEST_TEXT]):
            if len(ids) >= _MOST_TOKENS:
                break
            ids += self._pieces(word)
        return [self._first, *ids[: _MOST_TOKENS - 2], self._last]

    def _pieces(self, word: str) -> list[int]:
        if len(word) > _LONGEST_WORD:
            return [self._unknown]
        found: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self._ids.get(("##" if start else "") + word[start:end])
                if piece is not None:
                    found.append(piece)
                    start = end
                    break
            else:
                return [self._unknown]
        return found


def words(text: str) -> list[str]:
    """Lower-case words and single marks, without accents and control characters."""
    plain = unicodedata.normalize("NFD", "".join(" " if c.isspace() else c for c in text).lower())
    spaced = []
    for c in plain:
        kind = unicodedata.category(c)
        if kind == "Mn" or (kind.startswith("C") and c != " "):
            continue
        alone = kind.startswith("P") or (c.isascii() and not c.isalnum() and c != " ") or _is_cjk(c)
        spaced.append(f" {c} " if alone else c)
    return "".join(spaced).split()


def _is_cjk(c: str) -> bool:
    return any(low <= ord(c) <= high for low, high in _CJK)
