"""What exercises are called: names with their equipment, slugs, variant keys, ids. All pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from interlock_catalog.vocabulary import equipment_name, equipment_named, known, slug, words

_QUALIFIED = re.compile(r"^(?P<base>.*\S)\s*\((?P<qualifier>[^()]*)\)\s*$")
_SPACES = re.compile(r"\s+")
_SMALL = frozenset({"and", "to", "the", "with", "of", "on", "in", "a", "an", "from", "for", "or", "at"})
_ONE_SIDE = re.compile(r"\b(single|one)[- ](arm|leg|hand|side)\b|\bunilateral\b", re.IGNORECASE)
_LONGEST_ID = 128


@lru_cache(maxsize=2048)
def split_name(name: str) -> tuple[str, str | None]:
    """A name without its qualifier, and the qualifier as it is written; None if there is none."""
    plain = _SPACES.sub(" ", name).strip().rstrip(" .")
    found = _QUALIFIED.match(plain)
    return (plain, None) if found is None else (found["base"], found["qualifier"].strip())


def joined_name(base: str, equipment: str | None) -> str:
    """A name with its qualifier."""
    return base if equipment is None else f"{base} ({equipment_name(equipment)})"


@lru_cache(maxsize=2048)
def titled(name: str) -> str:
    """A base name in capitals as titles have them, single spaces, no dot at the end."""
    parts = _SPACES.sub(" ", name).strip(" .").split(" ")
    return " ".join(_titled_word(part, first=place == 0) for place, part in enumerate(parts))


def _titled_word(word: str, *, first: bool) -> str:
    if "-" in word and word.upper() != word:
        return "-".join(_titled_word(part, first=first or place > 0) for place, part in enumerate(word.split("-")))
    if not first and word in _SMALL:
        return word
    if len(word) > 1 and ((word.isupper() and len(word) <= 3) or (not word.islower() and not word.isupper())):
        return word  # an acronym, or capitals that somebody chose
    return word[:1].upper() + word[1:].lower()


def qualifier_of(name: str) -> str | None:
    """The equipment that a name's qualifier stands for, None if it has none or stands for nothing known."""
    _base, qualifier = split_name(name)
    return None if qualifier is None else equipment_named(qualifier)


def doc_id(family_slug: str, name: str) -> str:
    """The id of an exercise: fixed when it is made, whatever it is called later."""
    return f"{family_slug}-{slug(name)}"[:_LONGEST_ID].rstrip("-")


def variant_of(base: str, family_name: str) -> str:
    """What makes a base name special in its family: its words that the family's name lacks; '' for the plain one."""
    usual = set(slug(family_name).split("-"))
    special = [word for word in slug(base).split("-") if word not in usual]
    return "-".join(special)


def variant_key(base: str, family_name: str, equipment: str | None) -> str:
    """`variant:WHAT` for a special one, otherwise `equipment:WHICH`."""
    special = variant_of(base, family_name)
    return f"variant:{special}" if special else f"equipment:{equipment or 'other'}"


@lru_cache(maxsize=2048)
def same_words(name: str, *, exactly: bool = False) -> tuple[str, ...]:
    """The words of a name in their order, roughly singular, with equipment as its slug.

    `exactly`: equipment is known by its own name alone, as two spellings of one slug need not be the same thing.
    """
    base, qualifier = split_name(name)
    found = slug(base).split("-")
    if qualifier is not None:
        found.append(equipment_named(qualifier) or slug(qualifier))
    return tuple(word if word in words("equipment") else _singular(word) for word in _with_equipment(found, exactly))


def other_equipment(base: str, its_own: Iterable[str]) -> bool:
    """Whether a base name speaks of another equipment than it has."""
    found = {word for word in same_words(base) if word in words("equipment")} - {"bench", "box", "other"}
    return bool(found - set(its_own))


def without(base: str, equipment: str) -> str:
    """A base name without the equipment's own name in it."""
    return _SPACES.sub(" ", re.sub(rf"\b{re.escape(equipment_name(equipment))}\b", " ", base, flags=re.I)).strip()


def _with_equipment(parts: list[str], exactly: bool) -> list[str]:
    """The words, with those (up to three in a row) that name equipment replaced by its slug."""
    out: list[str] = []
    place = 0
    while place < len(parts):
        for length in (3, 2, 1):
            span = parts[place : place + length]
            found = known("equipment", " ".join(span)) if len(span) == length else None
            spelled = not exactly or "-".join(span) == found
            if found is not None and spelled and found not in ("other", "box", "bench"):
                out.append(found)
                place += length
                break
        else:
            out.append(parts[place])
            place += 1
    return out


def _singular(word: str) -> str:
    """A rough singular, alike for every name that is compared."""
    if word.endswith(("sses", "shes", "ches")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def one_sided(name: str) -> bool:
    """Whether a name says that one side works alone."""
    return _ONE_SIDE.search(name) is not None
