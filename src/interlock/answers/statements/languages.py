"""Sentences in other languages: their clauses are not read, but that they say something was done is recognised.

What it is that was done is not understood, so such a sentence agrees only by words that the author of a tool gave.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from interlock.toml_text import parse_toml

_FEWEST = 2
"""So many words of a language make a sentence one of it, if there are more of them than of English ones."""
_REACH = 6


class Language(NamedTuple):
    """How a language says that something was done: auxiliaries before a participle, or a past of its own."""

    words: frozenset[str]
    auxiliaries: frozenset[str] = frozenset()
    endings: tuple[str, ...] = ()
    beginnings: tuple[str, ...] = ("",)
    past: tuple[str, ...] = ()

    def says_done(self, tokens: tuple[str, ...]) -> bool:
        """Whether a sentence of it says that something was done."""
        if any(token.endswith(self.past) for token in tokens if self.past and len(token) > 3):
            return True
        for at, token in enumerate(tokens):
            if token in self.auxiliaries:
                behind = tokens[at + 1 : at + 1 + _REACH] if len(self.beginnings) == 1 else tokens[at + 1 :]
                if any(self._is_participle(word) for word in behind):
                    return True
        return False

    def _is_participle(self, word: str) -> bool:
        return len(word) > 3 and word.endswith(self.endings) and word.startswith(self.beginnings)


@cache
def languages() -> Mapping[str, Language]:
    """Those whose forms are known."""
    text = (files("interlock.answers.statements") / "tables" / "languages.toml").read_text(encoding="utf-8")
    return {name: _language(table) for name, table in parse_toml(text).items()}


def _language(table: Mapping[str, Any]) -> Language:
    return Language(
        frozenset(table["words"]),
        frozenset(table.get("auxiliaries", ())),
        tuple(table.get("endings", ())),
        tuple(table.get("beginnings", ("",))),
        tuple(table.get("past", ())),
    )


def foreign_deed(tokens: tuple[str, ...]) -> str:
    """The language in which a sentence says that something was done; empty if it is English, or says nothing of it."""
    known = languages()
    spoken = frozenset(tokens)
    scores = {name: len(spoken & (language.words | language.auxiliaries)) for name, language in known.items()}
    english = scores["english"]
    best = max((name for name in scores if name != "english"), key=lambda name: scores[name])
    if scores[best] < _FEWEST or scores[best] <= english:
        return ""
    tied = [name for name, score in scores.items() if score == scores[best] and name != "english"]
    return next((name for name in tied if known[name].says_done(tokens)), "")
