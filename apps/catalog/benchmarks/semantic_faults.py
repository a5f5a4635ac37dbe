"""Semantic faults: between documents, or such that only a judge can see them. One function a kind."""

from __future__ import annotations

import random
from collections.abc import Callable

from interlock_catalog.changes import build_alias
from interlock_catalog.contracts import Doc, muscle_groups
from interlock_catalog.naming import build_exercise_id, split_name
from interlock_catalog.vocabulary import equipment_name, ordered_words, slug, words
from mechanical_faults import CatalogIndex, FaultyDocs, make_faulty

_NAME_SYNONYMS = {
    "raise": "Lift", "press": "Push", "row": "Pull", "squat": "Knee Bend", "crunch": "Curl-In",
    "stretch": "Extension Hold",
}  # fmt: skip


# Aliases and duplicates


def has_alias(doc: Doc, index: CatalogIndex) -> bool:
    """With an alias."""
    return bool(index.aliases(doc))


def has_sibling(doc: Doc, index: CatalogIndex) -> bool:
    """With siblings."""
    return len(index.siblings(doc)) > 3


def alias_to_merged(doc: Doc, index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """An alias that points at what was merged away."""
    old = f"{doc['id']}-old"
    gone = {**doc, "id": old, "name": f"{doc['name']} Old", "status": "merged", "merged_into": doc["id"]}
    gone["name_slug"] = slug(gone["name"])
    key = sorted(index.aliases(doc))[0]
    docs = {f"exercise:{old}": gone, key: build_alias(key.partition(":")[2], exercise_id=old)}
    return FaultyDocs(docs, ("exercise_id",), key, {"exercise_id": doc["id"]})


def alias_lost(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """An alias that points at nothing."""
    base = split_name(doc["name"])[0]
    key = f"alias:{slug(equipment_name(doc['equipment'][0]))}-{slug(base)}"
    docs = {key: build_alias(key.partition(":")[2], exercise_id=f"{doc['id']}-gone")}
    return FaultyDocs(docs, ("exercise_id",), key, {"exercise_id": doc["id"]})


def alias_shadows(doc: Doc, index: CatalogIndex, chance: random.Random) -> FaultyDocs:
    """An alias with the name of another exercise."""
    other = chance.choice([d for d in index.siblings(doc) if d["id"] != doc["id"]])
    key = f"alias:{doc['name_slug']}"
    docs = {key: build_alias(doc["name_slug"], exercise_id=other["id"])}
    return FaultyDocs(docs, ("exercise_id",), key, {"exercise_id": doc["id"]})


def alias_two_targets(doc: Doc, index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """An alias with two targets."""
    key = sorted(index.aliases(doc))[0]
    both = build_alias(key.partition(":")[2], exercise_id=doc["id"], family_slug=doc["family_slug"])
    return FaultyDocs({key: both}, ("exercise_id",), key, {"exercise_id": doc["id"], "family_slug": None})


def _copy(doc: Doc, name: str) -> FaultyDocs:
    duplicate = {
        **doc,
        "id": build_exercise_id(doc["family_slug"], name),
        "name": name,
        "name_slug": slug(name),
        "status": "draft",
    }
    duplicate["execution_notes"] = doc["execution_notes"][:2]
    key = f"exercise:{duplicate['id']}"
    return FaultyDocs({key: duplicate}, ("merged_into",), key, {"status": "merged"}, merged_into=doc["id"])


def duplicate(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """The same exercise again, with the equipment in front."""
    return _copy(doc, f"{equipment_name(doc['equipment'][0])} {split_name(doc['name'])[0]}")


def has_name_synonym(doc: Doc, _index: CatalogIndex) -> bool:
    """Names for whose last word there is another."""
    return split_name(doc["name"])[0].split()[-1].lower() in _NAME_SYNONYMS


def near_duplicate(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """The same exercise again, under another word."""
    base = split_name(doc["name"])[0].split()
    name = " ".join([*base[:-1], _NAME_SYNONYMS[base[-1].lower()]])
    return _copy(doc, f"{name} ({equipment_name(doc['equipment'][0])})")


# What needs judgement


def description_missing(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """No description."""
    return make_faulty(doc, "description", description="")


def description_short(doc: Doc, _index: CatalogIndex, chance: random.Random) -> FaultyDocs:
    """Hardly a description."""
    return make_faulty(doc, "description", description=chance.choice(["Good exercise.", "Do it slowly.", "A classic."]))


def description_placeholder(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """A description that was to be written later."""
    text = f"TODO: write a proper description of the {split_name(doc['name'])[0]} before this goes live, please."
    return make_faulty(doc, "description", description=text)


def description_of_another(doc: Doc, index: CatalogIndex, chance: random.Random) -> FaultyDocs:
    """The description of another exercise."""
    keys = sorted(key for key, d in index.docs.items() if key.startswith("exercise:") and _unlike(doc, d))
    return make_faulty(doc, "description", description=index.docs[chance.choice(keys)]["description"])


def _unlike(doc: Doc, other: Doc) -> bool:
    return bool(doc["muscles"]["category"] != other["muscles"]["category"] and doc["category"] != other["category"])


def _make_emptying(field: str) -> Callable[[Doc, CatalogIndex, random.Random], FaultyDocs]:
    def make(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
        return make_faulty(doc, field, **{field: []})

    return make


notes_missing, mistakes_missing = _make_emptying("execution_notes"), _make_emptying("common_mistakes")
uses_missing, suitability_missing = _make_emptying("programming_use_cases"), _make_emptying("suitability_notes")
tags_missing = _make_emptying("stimulus_tags")


def has_usual_movement(doc: Doc, index: CatalogIndex) -> bool:
    """Which move as their family does."""
    return index.is_usual(doc, "movement.type") and index.is_usual(doc, "movement.split")


def movement_wrong(doc: Doc, _index: CatalogIndex, chance: random.Random) -> FaultyDocs:
    """Another movement."""
    others = [kind for kind in ordered_words("movement_type") if kind not in (doc["movement"]["type"], "other")]
    return make_faulty(doc, "movement.type", movement={**doc["movement"], "type": chance.choice(others)})


def movement_missing(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """No movement."""
    return make_faulty(doc, "movement.type", movement={"split": doc["movement"]["split"]})


def has_usual_category(doc: Doc, index: CatalogIndex) -> bool:
    """Of the category of their family."""
    return index.is_usual(doc, "category")


def category_wrong(doc: Doc, _index: CatalogIndex, chance: random.Random) -> FaultyDocs:
    """Another category."""
    return make_faulty(doc, "category", category=chance.choice(sorted(words("category") - {doc["category"]})))


def has_usual_plane(doc: Doc, index: CatalogIndex) -> bool:
    """Which move in the plane of their family."""
    return index.is_usual(doc, "metadata.plane_of_motion")


def plane_missing(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """No plane."""
    metadata = {key: value for key, value in doc["metadata"].items() if key != "plane_of_motion"}
    return make_faulty(doc, "metadata.plane_of_motion", metadata=metadata)


def has_usual_muscles(doc: Doc, index: CatalogIndex) -> bool:
    """With the muscles of their family."""
    return index.is_usual(doc, "muscles")


def muscles_wrong(doc: Doc, index: CatalogIndex, chance: random.Random) -> FaultyDocs:
    """Muscles of quite another part of the body."""
    used = {m for d in index.siblings(doc) for m in (*d["muscles"]["primary"], *d["muscles"]["secondary"])}
    groups = {group for d in index.siblings(doc) for group in d["muscles"]["category"]}
    far = [m for m in sorted(words("muscle") - used) if muscle_groups([m])[0] not in groups]
    wrong = chance.choice(far)
    muscles = {"primary": [wrong], "secondary": [], "category": muscle_groups([wrong]), "contribution": {wrong: 1.0}}
    return make_faulty(
        doc, "muscles.primary", "muscles.secondary", "muscles.contribution", "muscles.category", muscles=muscles
    )
