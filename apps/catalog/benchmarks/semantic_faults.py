"""What goes wrong between documents, and what only somebody who understands can see: one function a kind."""

from __future__ import annotations

import random
from collections.abc import Callable

from interlock_catalog.changes import alias_to
from interlock_catalog.contracts import Doc, muscle_groups
from interlock_catalog.naming import doc_id, split_name
from interlock_catalog.seed.faulty import Around, Spoiled, spoiled
from interlock_catalog.vocabulary import equipment_name, ordered, slug, words

_OTHER_WORDS = {
    "raise": "Lift", "press": "Push", "row": "Pull", "squat": "Knee Bend", "crunch": "Curl-In",
    "stretch": "Extension Hold",
}  # fmt: skip


# Aliases and duplicates


def has_alias(doc: Doc, around: Around) -> bool:
    """With an alias."""
    return bool(around.aliases(doc))


def has_sibling(doc: Doc, around: Around) -> bool:
    """With siblings."""
    return len(around.siblings(doc)) > 3


def alias_to_merged(doc: Doc, around: Around, _chance: random.Random) -> Spoiled:
    """An alias that points at what was merged away."""
    old = f"{doc['id']}-old"
    gone = {**doc, "id": old, "name": f"{doc['name']} Old", "status": "merged", "merged_into": doc["id"]}
    gone["name_slug"] = slug(gone["name"])
    key = sorted(around.aliases(doc))[0]
    docs = {f"exercise:{old}": gone, key: alias_to(key.partition(":")[2], exercise_id=old)}
    return Spoiled(docs, ("exercise_id",), key, {"exercise_id": doc["id"]})


def alias_lost(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    """An alias that points at nothing."""
    base = split_name(doc["name"])[0]
    key = f"alias:{slug(equipment_name(doc['equipment'][0]))}-{slug(base)}"
    docs = {key: alias_to(key.partition(":")[2], exercise_id=f"{doc['id']}-gone")}
    return Spoiled(docs, ("exercise_id",), key, {"exercise_id": doc["id"]})


def alias_shadows(doc: Doc, around: Around, chance: random.Random) -> Spoiled:
    """An alias that bears the name of another exercise."""
    other = chance.choice([d for d in around.siblings(doc) if d["id"] != doc["id"]])
    key = f"alias:{doc['name_slug']}"
    docs = {key: alias_to(doc["name_slug"], exercise_id=other["id"])}
    return Spoiled(docs, ("exercise_id",), key, {"exercise_id": doc["id"]})


def alias_two_targets(doc: Doc, around: Around, _chance: random.Random) -> Spoiled:
    """An alias with two targets."""
    key = sorted(around.aliases(doc))[0]
    both = alias_to(key.partition(":")[2], exercise_id=doc["id"], family_slug=doc["family_slug"])
    return Spoiled({key: both}, ("exercise_id",), key, {"exercise_id": doc["id"], "family_slug": None})


def _copy(doc: Doc, name: str) -> Spoiled:
    twin = {**doc, "id": doc_id(doc["family_slug"], name), "name": name, "name_slug": slug(name), "status": "draft"}
    twin["execution_notes"] = doc["execution_notes"][:2]
    key = f"exercise:{twin['id']}"
    return Spoiled({key: twin}, ("merged_into",), key, {"status": "merged"}, merged_into=doc["id"])


def duplicate(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    """The same exercise again, with the equipment in front."""
    return _copy(doc, f"{equipment_name(doc['equipment'][0])} {split_name(doc['name'])[0]}")


def renameable(doc: Doc, _around: Around) -> bool:
    """Names for whose last word there is another."""
    return split_name(doc["name"])[0].split()[-1].lower() in _OTHER_WORDS


def near_duplicate(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    """The same exercise again, under another word."""
    base = split_name(doc["name"])[0].split()
    name = " ".join([*base[:-1], _OTHER_WORDS[base[-1].lower()]])
    return _copy(doc, f"{name} ({equipment_name(doc['equipment'][0])})")


# What needs judgement


def description_missing(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    """No description."""
    return spoiled(doc, "description", description="")


def description_short(doc: Doc, _around: Around, chance: random.Random) -> Spoiled:
    """Hardly a description."""
    return spoiled(doc, "description", description=chance.choice(["Good exercise.", "Do it slowly.", "A classic."]))


def description_placeholder(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    """A description that was to be written later."""
    text = f"TODO: write a proper description of the {split_name(doc['name'])[0]} before this goes live, please."
    return spoiled(doc, "description", description=text)


def description_of_another(doc: Doc, around: Around, chance: random.Random) -> Spoiled:
    """The description of another exercise."""
    keys = sorted(key for key, d in around.docs.items() if key.startswith("exercise:") and _unlike(doc, d))
    return spoiled(doc, "description", description=around.docs[chance.choice(keys)]["description"])


def _unlike(doc: Doc, other: Doc) -> bool:
    return bool(doc["muscles"]["category"] != other["muscles"]["category"] and doc["category"] != other["category"])


def _emptied(field: str) -> Callable[[Doc, Around, random.Random], Spoiled]:
    def spoil(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
        return spoiled(doc, field, **{field: []})

    return spoil


notes_missing, mistakes_missing = _emptied("execution_notes"), _emptied("common_mistakes")
uses_missing, suitability_missing = _emptied("programming_use_cases"), _emptied("suitability_notes")
tags_missing = _emptied("stimulus_tags")


def usual_movement(doc: Doc, around: Around) -> bool:
    """Which move as their family does."""
    return around.usual(doc, "movement.type") and around.usual(doc, "movement.split")


def movement_wrong(doc: Doc, _around: Around, chance: random.Random) -> Spoiled:
    """Another movement."""
    others = [kind for kind in ordered("movement_type") if kind not in (doc["movement"]["type"], "other")]
    return spoiled(doc, "movement.type", movement={**doc["movement"], "type": chance.choice(others)})


def movement_missing(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    """No movement."""
    return spoiled(doc, "movement.type", movement={"split": doc["movement"]["split"]})


def usual_category(doc: Doc, around: Around) -> bool:
    """Of the category of their family."""
    return around.usual(doc, "category")


def category_wrong(doc: Doc, _around: Around, chance: random.Random) -> Spoiled:
    """Another category."""
    return spoiled(doc, "category", category=chance.choice(sorted(words("category") - {doc["category"]})))


def usual_plane(doc: Doc, around: Around) -> bool:
    """Which move in the plane of their family."""
    return around.usual(doc, "metadata.plane_of_motion")


def plane_missing(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    """No plane."""
    metadata = {key: value for key, value in doc["metadata"].items() if key != "plane_of_motion"}
    return spoiled(doc, "metadata.plane_of_motion", metadata=metadata)


def usual_muscles(doc: Doc, around: Around) -> bool:
    """With the muscles of their family."""
    return around.usual(doc, "muscles")


def muscles_wrong(doc: Doc, around: Around, chance: random.Random) -> Spoiled:
    """Muscles of quite another part of the body."""
    used = {m for d in around.siblings(doc) for m in (*d["muscles"]["primary"], *d["muscles"]["secondary"])}
    groups = {group for d in around.siblings(doc) for group in d["muscles"]["category"]}
    far = [m for m in sorted(words("muscle") - used) if muscle_groups([m])[0] not in groups]
    wrong = chance.choice(far)
    muscles = {"primary": [wrong], "secondary": [], "category": muscle_groups([wrong]), "contribution": {wrong: 1.0}}
    return spoiled(
        doc, "muscles.primary", "muscles.secondary", "muscles.contribution", "muscles.category", muscles=muscles
    )
