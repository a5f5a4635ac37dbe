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

_TOLD = re.compile(r"\b(?:did|does|has|have|had)\b(?! to\b| a look)[^.,;:?!]*")
"""What others do or have done: nobody is asked to do it."""
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def is_asked_for(name: str, description: str, says: Iterable[str], question: str, *, named: bool = False) -> bool:
    """Whether a question asks for what a tool of this name does, or hands over to a text that may say so.

    `named`: it names the thing that this is done to, or where that goes.
    """
    if hands_over(question):
        return True
    if not _words_for(name, description, tuple(says)) & _stems(question):
        return False
    if named:
        return True
    parts, words = tuple(name_parts(name)), tuple(_WORD.findall(plain(question)))
    done_to, asked = _kinds(parts), _kinds(words)
    if done_to and asked:
        return bool(done_to & asked)
    # "Set", "add" and "create" may be of anything: what is meant is the thing that the tool is for.
    return (
        parts[0] not in _read()["wide"]["verbs"] or not _things_of(parts) or bool(_things_of(parts) & _all_stems(words))
    )


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
    for noun in name_parts(name):
        words.update(_read()["nouns"].get(noun, ()))
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


def _things_of(parts: tuple[str, ...]) -> frozenset[str]:
    """The things that a tool is for, by its name."""
    return _all_stems(parts[1:])


def _all_stems(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(verb_table().stem, words))


@lru_cache(maxsize=256)
def _stems(question: str) -> frozenset[str]:
    """What may be wished for: "who was invited" asks for no invitation."""
    table = verb_table()
    wished = _TOLD.sub(" ", plain(question))
    words = [word for word in _WORD.findall(wished) if not table.is_past(word) or table.is_unchanged(word)]
    return frozenset(map(table.stem, words))


@cache
def _read() -> dict[str, dict[str, list[str]]]:
    text = (files("interlock.policy.provenance") / "tables" / "requests.toml").read_text(encoding="utf-8")
    return parse_toml(text)
