"""Whether the user has asked for what a tool does: the words of the question against those of the tool."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files

from interlock.config import parse_toml
from interlock.policy.provenance.normal_forms import plain
from interlock.tools.effect_words import effect_words, name_parts
from interlock.tools.verbs import verb_table

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def is_asked_for(name: str, description: str, says: Iterable[str], question: str) -> bool:
    """Whether a question asks for what a tool of this name does, or hands over to a text that may say so."""
    if hands_over(question):
        return True
    if not _words_for(name, description, tuple(says)) & _stems(question):
        return False
    done_to, named = _kinds(tuple(name_parts(name))), _kinds(tuple(_WORD.findall(plain(question))))
    return not done_to or not named or bool(done_to & named)


@lru_cache(maxsize=256)
def hands_over(question: str) -> bool:
    """Whether a user points at a text and says that what stands there is to be done."""
    text = plain(question)
    return any(phrase in text for phrase in _read()["hands_over"]["phrases"])


@lru_cache(maxsize=1024)
def _words_for(name: str, description: str, says: tuple[str, ...]) -> frozenset[str]:
    table, asks = verb_table(), _read()["asks"]
    verbs = [part for part in name_parts(name) if part in asks or part in table.deeds]
    words = {*says, *effect_words(name, description)}
    for verb in verbs[:1]:
        words |= {verb, *asks.get(verb, ())}
    found = {table.stem(word.lower()) for word in words if " " not in word}
    return frozenset(found).union(*(table.alike(table.stem(verb)) for verb in verbs[:1]))


@lru_cache(maxsize=1024)
def _kinds(words: tuple[str, ...]) -> frozenset[str]:
    """The kinds of things that words name."""
    table = verb_table()
    stems = {table.stem(word) for word in words}
    return frozenset(kind for kind, names in _things().items() if names & stems)


@cache
def _things() -> dict[str, frozenset[str]]:
    table = verb_table()
    return {kind: frozenset(map(table.stem, names)) for kind, names in _read()["things"].items()}


@lru_cache(maxsize=256)
def _stems(question: str) -> frozenset[str]:
    """What may be wished for: "who was invited" asks for no invitation."""
    table = verb_table()
    words = [word for word in _WORD.findall(plain(question)) if not table.is_past(word) or table.is_unchanged(word)]
    return frozenset(map(table.stem, words))


@cache
def _read() -> dict[str, dict[str, list[str]]]:
    text = (files("interlock.policy.provenance") / "tables" / "requests.toml").read_text(encoding="utf-8")
    return parse_toml(text)
