"""The controlled vocabulary: closed sets of words, and the synonyms that people write instead of each."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType

_FILE = Path(__file__).with_name("vocabulary.toml")
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
# What a slug keeps, or drops without loss: letters, digits, and the punctuation that names are written with.
_LOSSLESS = re.compile(r"[A-Za-z0-9 '\u2019().,-]*")
KINDS = ("equipment", "muscle", "category", "level", "plane_of_motion", "movement_type", "split", "stimulus_tag")
MUSCLE_GROUPS = ("chest", "back", "shoulders", "arms", "legs", "core", "full_body")
AMBIGUOUS_EQUIPMENT = frozenset({"bench", "box", "other"})
"""Equipment whose word may be part of a name and mean something else: a bench press needs no bench in its record."""


@lru_cache(maxsize=2048)
def slug(text: str) -> str:
    """A text as small letters and digits with single hyphens; accents go, and so does what has no such letter."""
    return _NOT_SLUG.sub("-", _fold_accents(text).lower().replace("'", "").replace("\u2019", "")).strip("-")


def _fold_accents(text: str) -> str:
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


@lru_cache(maxsize=2048)
def is_lossless_slug(text: str) -> bool:
    """Whether the slug of a text tells everything that the text does: no letter, digit or sign of it is lost."""
    return _LOSSLESS.fullmatch(_fold_accents(text)) is not None


@cache
def _raw() -> dict[str, dict[str, object]]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


@cache
def words(kind: str) -> frozenset[str]:
    """The words of a kind."""
    return frozenset(_raw()[kind])


@cache
def ordered_words(kind: str) -> tuple[str, ...]:
    """The words of a kind in the order of the file, which is the order in which people and models are shown them."""
    return tuple(_raw()[kind])


@cache
def _spellings(kind: str) -> MappingProxyType[str, str]:
    synonyms = _raw()["muscle_synonyms" if kind == "muscle" else kind]
    found = {_plain(word): word for word in words(kind)}
    for word, others in synonyms.items():
        assert isinstance(others, list)
        for other in others:
            # A word's own spelling goes before a synonym of another one.
            found.setdefault(_plain(other), word)
    return MappingProxyType(found)


def _plain(text: str) -> str:
    return _NOT_SLUG.sub(" ", text.lower()).strip()


def canonical_word(kind: str, text: object) -> str | None:
    """The one spelling of what somebody wrote; None if the vocabulary has nothing for it."""
    if not isinstance(text, str):
        return None
    return text if text in words(kind) else _lookup(kind, text)


@lru_cache(maxsize=2048)
def _lookup(kind: str, text: str) -> str | None:
    return _spellings(kind).get(_plain(text))


def group_of(muscle: str) -> str:
    """The category that a muscle belongs to."""
    return str(_raw()["muscle"][muscle])


def equipment_name(equipment: str) -> str:
    """How equipment is written in a name: 'Smith Machine'."""
    special = _raw()["equipment_names"].get(equipment)
    return str(special) if special else " ".join(part.capitalize() for part in equipment.split("-"))


@lru_cache(maxsize=2048)
def equipment_from_name(name: str) -> str | None:
    """The equipment that a qualifier in a name stands for."""
    for equipment in ordered_words("equipment"):
        if equipment_name(equipment).lower() == name.strip().lower():
            return equipment
    return canonical_word("equipment", name)
