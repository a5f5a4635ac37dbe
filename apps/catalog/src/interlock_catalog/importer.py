"""The public free-exercise-db as documents of this catalog: as it is, with all that it lacks."""

from __future__ import annotations

from typing import Any

from interlock.errors import ConfigError
from interlock_catalog.changes import alias_to
from interlock_catalog.contracts import Doc, muscle_groups
from interlock_catalog.naming import same_words, variant_key
from interlock_catalog.vocabulary import known, slug

_SPLITS = {"legs": "lower", "core": "core"}
_WORDS = frozenset(
    "barbell dumbbell cable kettlebell machine band smith alternate alternating seated standing lying incline decline"
    " single one arm leg wide close grip reverse".split()
)


def imported(raw: Any) -> dict[str, Doc]:
    """Every exercise with a family by the last words of its name; what the source does not say is left out."""
    if not isinstance(raw, list) or not all(isinstance(item, dict) and "name" in item for item in raw):
        raise ConfigError("this is no free-exercise-db: a list of exercises with names")
    docs: dict[str, Doc] = {}
    for item in raw:
        family = _family(str(item["name"]))
        docs.setdefault(f"family:{slug(family)}", _family_doc(family))
        exercise = _exercise(item, family)
        docs[f"exercise:{exercise['id']}"] = exercise
        equipment = exercise["equipment"][0]
        allowed = docs[f"family:{slug(family)}"]["allowed_equipments"]
        if known("equipment", equipment) is not None and known("equipment", equipment) not in allowed:
            allowed.append(known("equipment", equipment))
    for key in [key for key in docs if key.startswith("family:")]:
        name = key.partition(":")[2]
        docs.setdefault(f"alias:{name}", alias_to(name, family_slug=name))
    return docs


def _family(name: str) -> str:
    words = [word for word in same_words(name) if word not in _WORDS and known("equipment", word) is None]
    return " ".join(word.capitalize() for word in (words[-2:] or ["Other"]))


def _family_doc(family: str) -> Doc:
    return {
        "slug": slug(family),
        "base_name": family,
        "status": "active",
        "default_equipment": "other",
        "allowed_equipments": ["other"],
        "known_collisions": [],
    }


def _exercise(item: dict[str, Any], family: str) -> Doc:
    name, equipment = str(item["name"]), str(item.get("equipment") or "other")
    primary = [str(muscle) for muscle in item.get("primaryMuscles", [])]
    spelled = [found for muscle in primary if (found := known("muscle", muscle)) is not None]
    groups = muscle_groups(spelled)
    return {
        "id": slug(str(item.get("id") or name)),
        "name": name,
        "name_slug": slug(name),
        "family_slug": slug(family),
        "variant_key": variant_key(name, family, known("equipment", equipment)),
        "equipment": [equipment],
        "category": str(item.get("mechanic") or item.get("category") or ""),
        "muscles": {
            "primary": primary,
            "secondary": [str(muscle) for muscle in item.get("secondaryMuscles", [])],
            "category": groups,
            "contribution": {},
        },
        "metadata": {"level": item.get("level"), "plane_of_motion": None, "unilateral": False},
        "movement": {"type": item.get("force"), "split": _SPLITS.get(groups[0], "upper") if groups else None},
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
