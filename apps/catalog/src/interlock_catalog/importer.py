"""The import of free-exercise-db: its exercises as documents of this catalog, with all that they lack."""

from __future__ import annotations

from collections.abc import Iterable

from interlock_catalog.changes import build_alias
from interlock_catalog.contracts import Doc, muscle_groups
from interlock_catalog.document_keys import DocumentKind, alias_key, exercise_key, family_key, kind_of, name_of
from interlock_catalog.naming import name_words, variant_key
from interlock_catalog.source_records import SourceRecord
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


def import_exercises(records: Iterable[SourceRecord]) -> dict[str, Doc]:
    """Every exercise with a family by the last words of its name; what the source does not say is left out."""
    docs: dict[str, Doc] = {}
    for record in records:
        family = _guess_family(record.name)
        docs.setdefault(family_key(slug(family)), _build_family(family))
        exercise = _build_exercise(record, family)
        docs[exercise_key(exercise["id"])] = exercise
        equipment = canonical_word("equipment", record.equipment)
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


def _build_exercise(record: SourceRecord, family: str) -> Doc:
    name = record.name
    known = [found for muscle in record.primary_muscles if (found := canonical_word("muscle", muscle)) is not None]
    groups = muscle_groups(known)
    return {
        "id": record.exercise_id,
        "name": name,
        "name_slug": slug(name),
        "family_slug": slug(family),
        "variant_key": variant_key(name, family, canonical_word("equipment", record.equipment)),
        # Empty, and not "other", where nothing was given: names are made of it, and it would be taken for a fact.
        "equipment": [record.equipment] if record.equipment else [],
        "category": record.mechanic or record.category or "",
        "muscles": {
            "primary": record.primary_muscles,
            "secondary": record.secondary_muscles,
            "category": groups,
            "contribution": {},
        },
        "metadata": {"level": record.level, "plane_of_motion": None, "unilateral": False},
        "movement": {"type": record.force, "split": _SPLIT_OF_GROUP.get(groups[0], "upper") if groups else None},
        "description": " ".join(record.instructions[:1]),
        "execution_notes": record.instructions,
        "common_mistakes": [],
        "suitability_notes": [],
        "programming_use_cases": [],
        # Its mechanic is the catalog's category; what it calls category says what it is trained for.
        "stimulus_tags": [record.category] if record.mechanic and record.category else [],
        "status": "draft",
        "merged_into": None,
        "merge_lineage": [],
    }
