"""The import of free-exercise-db: its exercises as documents of this catalog, with all that they lack."""

from __future__ import annotations

from typing import Any

from interlock.errors import ConfigError
from interlock_catalog.changes import build_alias
from interlock_catalog.contracts import Doc, muscle_groups
from interlock_catalog.document_keys import DocumentKind, alias_key, exercise_key, family_key, kind_of, name_of
from interlock_catalog.naming import name_words, variant_key
from interlock_catalog.vocabulary import canonical_word, slug

_SPLIT_OF_GROUP = {"legs": "lower", "core": "core"}
_NOT_FAMILY = frozenset(
    [
        "barbell",
        "dumbbell",
        "cable",
        "kettlebell",
        "machine",
        "band",
        "smith",
        "alternate",
        "alternating",
        "seated",
        "standing",
        "lying",
        "incline",
        "decline",
        "single",
        "one",
        "arm",
        "leg",
        "wide",
        "close",
        "grip",
        "reverse",
    ]
)


def import_exercises(raw: Any) -> dict[str, Doc]:
    """Every exercise with a family by the last words of its name; what the source does not say is left out."""
    if not isinstance(raw, list) or not all(isinstance(item, dict) and "name" in item for item in raw):
        raise ConfigError("this is no free-exercise-db: a list of exercises with names")
    docs: dict[str, Doc] = {}
    for item in raw:
        family = _guess_family(str(item["name"]))
        docs.setdefault(family_key(slug(family)), _build_family(family))
        exercise = _build_exercise(item, family)
        docs[exercise_key(exercise["id"])] = exercise
        equipment = canonical_word("equipment", exercise["equipment"][0])
        allowed = docs[family_key(slug(family))]["allowed_equipments"]
        if equipment is not None and equipment not in allowed:
            allowed.append(equipment)
    for key in [key for key in docs if kind_of(key) is DocumentKind.FAMILY]:
        name = name_of(key)
        docs.setdefault(alias_key(name), build_alias(name, family_slug=name))
    return docs


def _guess_family(name: str) -> str:
    """The last two words of a name that are neither equipment nor a way of doing it."""
    words = [word for word in name_words(name) if word not in _NOT_FAMILY and canonical_word("equipment", word) is None]
    return " ".join(word.capitalize() for word in (words[-2:] or ["Other"]))


def _build_family(family: str) -> Doc:
    return {
        "slug": slug(family),
        "base_name": family,
        "status": "active",
        "default_equipment": "other",
        "allowed_equipments": ["other"],
        "known_collisions": [],
    }


def _build_exercise(item: dict[str, Any], family: str) -> Doc:
    name, equipment = str(item["name"]), str(item.get("equipment") or "other")
    primary = [str(muscle) for muscle in item.get("primaryMuscles", [])]
    known = [found for muscle in primary if (found := canonical_word("muscle", muscle)) is not None]
    groups = muscle_groups(known)
    return {
        "id": slug(str(item.get("id") or name)),
        "name": name,
        "name_slug": slug(name),
        "family_slug": slug(family),
        "variant_key": variant_key(name, family, canonical_word("equipment", equipment)),
        "equipment": [equipment],
        "category": str(item.get("mechanic") or item.get("category") or ""),
        "muscles": {
            "primary": primary,
            "secondary": [str(muscle) for muscle in item.get("secondaryMuscles", [])],
            "category": groups,
            "contribution": {},
        },
        "metadata": {"level": item.get("level"), "plane_of_motion": None, "unilateral": False},
        "movement": {"type": item.get("force"), "split": _SPLIT_OF_GROUP.get(groups[0], "upper") if groups else None},
        "description": " ".join(item.get("instructions", [])[:1]),
        "execution_notes": [str(line) for line in item.get("instructions", [])],
        "common_mistakes": [],
        "suitability_notes": [],
        "programming_use_cases": [],
        "stimulus_tags": [],
        "status": "draft",
        "merged_into": None,
        "merge_lineage": [],
    }
