"""What exercises are called: names with their equipment, slugs, variant keys, ids. All pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from interlock_catalog.vocabulary import (
    AMBIGUOUS_EQUIPMENT,
    canonical_word,
    equipment_from_name,
    equipment_name,
    slug,
    words,
)

# `Row (Barbell)`: the last pair of brackets, with something before it.
_QUALIFIED = re.compile(r"^(?P<base>.*\S)\s*\((?P<qualifier>[^()]*)\)\s*$")
_SPACES = re.compile(r"\s+")
_LOWER_CASE_WORDS = frozenset({"and", "to", "the", "with", "of", "on", "in", "a", "an", "from", "for", "or", "at"})
_UNITS = frozenset({"kg", "g", "lb", "lbs", "km", "m", "cm", "mm", "ft", "s", "sec", "min", "x", "rm", "kcal", "w"})
"""Left as they are written right after a number."""
# Small words of German, Spanish, French, Italian, Portuguese and Dutch that are not English as well.
_FOREIGN_WORD = re.compile(
    r"mit|und|auf|der|dem|zum|zur|vom|beim|ohne|für|über|de|del|la|las|el|los|con|por|una|du|des|le|les|et|avec|sur"
    r"|aux|sans|dans|pour|di|della|alla|delle|il|gli|com|dos|nas|em|uma|met|het|een|voor",
    re.IGNORECASE,
)
# "Single-Arm Row", "one leg squat", "unilateral"; not "one rep", nor "Single Kettlebell Swing".
_ONE_SIDE = re.compile(r"\b(single|one)[- ](arm|leg|hand|side)\b|\bunilateral\b", re.IGNORECASE)
_MAX_ID_CHARS = 128


@lru_cache(maxsize=2048)
def split_name(name: str) -> tuple[str, str | None]:
    """A name without its qualifier, and the qualifier as it is written; None if there is none."""
    plain = _SPACES.sub(" ", name).strip().rstrip(" .")
    found = _QUALIFIED.match(plain)
    return (plain, None) if found is None else (found["base"], found["qualifier"].strip())


def join_name(base: str, equipment: str | None) -> str:
    """A name with its qualifier."""
    return base if equipment is None else f"{base} ({equipment_name(equipment)})"


@lru_cache(maxsize=2048)
def title_case(name: str) -> str:
    """A base name in title case, with single spaces and no dot at the end.

    Titles are an English custom: a name in another language keeps its capitals and small letters, and so does a unit.
    """
    parts = _SPACES.sub(" ", name).strip(" .").split(" ")
    if not _is_english(parts):
        return " ".join(parts)
    return " ".join(
        part if place and _is_unit(parts[place - 1], part) else _title_word(part, first=place == 0)
        for place, part in enumerate(parts)
    )


def _is_english(parts: list[str]) -> bool:
    """Whether nothing speaks against it: no letter that English does not have, no small word of another language."""
    letters = (letter for part in parts for letter in part if not letter.isascii())
    strange = any(unicodedata.category(letter)[0] in "LM" for letter in letters)
    return not strange and not any(map(_FOREIGN_WORD.fullmatch, parts))


def _is_unit(before: str, word: str) -> bool:
    return before[-1:].isdigit() and word.lower() in _UNITS


def _title_word(word: str, *, first: bool) -> str:
    if "-" in word and word.upper() != word:
        return "-".join(_title_word(part, first=first or place > 0) for place, part in enumerate(word.split("-")))
    if not first and word in _LOWER_CASE_WORDS:
        return word
    if len(word) > 1 and ((word.isupper() and len(word) <= 3) or (not word.islower() and not word.isupper())):
        return word  # an acronym, or capitals that somebody chose
    return word[:1].upper() + word[1:].lower()


def qualifier_of(name: str) -> str | None:
    """The equipment that a name's qualifier stands for, None if it has none or stands for nothing known."""
    _base, qualifier = split_name(name)
    return None if qualifier is None else equipment_from_name(qualifier)


def build_exercise_id(family_slug: str, name: str) -> str:
    """The id of an exercise: fixed when it is made, whatever it is called later."""
    # Cut where it is too long, which may leave a hyphen at the end.
    return f"{family_slug}-{slug(name)}"[:_MAX_ID_CHARS].rstrip("-")


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
def name_words(name: str, *, exactly: bool = False) -> tuple[str, ...]:
    """The words of a name in their order, roughly singular, with equipment as its slug.

    `exactly`: equipment is known by its own name alone, as two spellings of one slug need not be the same thing.
    """
    base, qualifier = split_name(name)
    found = slug(base).split("-")
    if qualifier is not None:
        found.append(equipment_from_name(qualifier) or slug(qualifier))
    return tuple(word if word in words("equipment") else _singular(word) for word in _with_equipment(found, exactly))


def names_other_equipment(base: str, its_own: Iterable[str]) -> bool:
    """Whether a base name speaks of another equipment than it has."""
    found = {word for word in name_words(base) if word in words("equipment")} - AMBIGUOUS_EQUIPMENT
    return bool(found - set(its_own))


def drop_equipment(base: str, equipment: str) -> str:
    """A base name without the equipment's own name in it."""
    return _SPACES.sub(" ", re.sub(rf"\b{re.escape(equipment_name(equipment))}\b", " ", base, flags=re.I)).strip()


def _with_equipment(parts: list[str], exactly: bool) -> list[str]:
    """The words, with those (up to three in a row) that name equipment replaced by its slug."""
    out: list[str] = []
    place = 0
    while place < len(parts):
        # The longest first: a smith machine is one equipment, and not a machine beside it.
        for length in (3, 2, 1):
            span = parts[place : place + length]
            found = canonical_word("equipment", " ".join(span)) if len(span) == length else None
            is_exact = not exactly or "-".join(span) == found
            if found is not None and is_exact and found not in AMBIGUOUS_EQUIPMENT:
                out.append(found)
                place += length
                break
        else:
            out.append(parts[place])
            place += 1
    return out


def _singular(word: str) -> str:
    """A rough singular: right or not, it is the same for every name that is compared."""
    if word.endswith(("sses", "shes", "ches")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def is_one_sided(name: str) -> bool:
    """Whether a name says that one side works alone."""
    return _ONE_SIDE.search(name) is not None
