"""Verbs as they are inflected: one stem for all forms of a word, and what is past among them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from interlock.toml_text import parse_toml

_VOWELS = frozenset("aeiouy")
_SHORTEST = 4
"""A word of fewer letters is inflected by the table alone: "red" and "bed" are no participles."""


_MOST_KNOWN = 20_000


class VerbTable:
    """Irregular forms, nouns of deeds and idioms, as the table has them."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._irregular: dict[str, list[str]] = table["irregular"]
        self.nouns: dict[str, list[str]] = table["nouns"]
        """The deed as a thing, by the base form of its verb: cancellation for cancel."""
        self.idioms: dict[str, list[str]] = table["idioms"]
        self._no_participles = frozenset(table["deeds"]["no_participles"])
        self._doubled = frozenset(table["deeds"]["doubled"])
        groups: list[list[str]] = table["deeds"]["groups"]
        self.deeds = frozenset({*table["deeds"]["others"], *(verb for group in groups for verb in group)})
        """Base forms of verbs that change the world."""
        self._bases = {form: base for base, forms in self._irregular.items() for form in forms}
        self._bases |= {noun: base for base, nouns in reversed(self.nouns.items()) for noun in nouns}
        self._past = {form for forms in self._irregular.values() for form in forms}
        self._known: dict[str, str] = {}  # a text has most of its words many times
        self.deed_stems = frozenset(map(self.stem, self.deeds))
        self._groups = [frozenset(map(self.stem, group)) for group in groups]

    def alike(self, stem: str) -> frozenset[str]:
        """The stems of verbs that may be said for one, itself among them."""
        return frozenset({stem}).union(*(group for group in self._groups if stem in group))

    def participle(self, base: str) -> str:
        """The form that says that it was done."""
        if base in self._irregular:
            return self._irregular[base][-1] if base != "pay" else "paid"
        if base.endswith("e"):
            return base + "d"
        if base.endswith("y") and base[-2:-1] not in _VOWELS:
            return base[:-1] + "ied"
        return base + base[-1] * (base in self._doubled) + "ed"

    def is_past(self, word: str) -> bool:
        """Whether a word looks like the past or the participle of a verb."""
        if word in self._past:
            return True
        return word.endswith("ed") and len(word) >= _SHORTEST and word not in self._no_participles

    def is_plain_past(self, word: str) -> bool:
        """Whether a word is the past of a verb and not its participle: took, wrote."""
        forms = self._irregular.get(self._bases.get(word, ""), [])
        return len(forms) > 1 and word == forms[0]

    def is_unchanged(self, word: str) -> bool:
        """Whether a verb is written alike in the present and the past: put, set, cut."""
        return word in self._irregular.get(word, ())

    def stem(self, word: str) -> str:
        """What all forms of a word have in common; of an irregular one and of a deed's noun, the stem of its verb."""
        found = self._known.get(word)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[word] = self._find_stem(word)
        return found

    def _find_stem(self, word: str) -> str:
        word = self._bases.get(word, word)
        word = self._bases.get(word.removesuffix("s"), word)
        return word if len(word) < _SHORTEST or word in self._no_participles else _strip(word)


def _strip(word: str) -> str:
    if word.endswith(("ied", "ies")) and len(word) > _SHORTEST:
        return word[:-3] + "y"
    word = next((rest for ending in ("ing", "ed", "s") if _is_form(rest := word.removesuffix(ending), word)), word)
    word = word.rstrip("e") or word
    # "cancelled" and "canceled", "stopped" and "stop"; of "process" and "buzz" both letters belong to the word.
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sz" else word


def _is_form(rest: str, word: str) -> bool:
    """Whether what is left without an ending can be a verb: the "s" of "process" is no ending."""
    if rest == word or len(rest) < 2:
        return False
    return not rest.endswith(("s", "i", "u")) if word.endswith("s") else not _VOWELS.isdisjoint(rest)


@cache
def verb_table() -> VerbTable:
    """The verbs of everyday English; read when they are first needed."""
    from importlib.resources import files  # here: a program that only reads the world needs no table

    text = (files("interlock.tools") / "tables" / "verbs.toml").read_text(encoding="utf-8")
    return VerbTable(parse_toml(text))
