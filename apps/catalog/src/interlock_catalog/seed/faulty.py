"""How an exercise, or an alias of it, goes wrong: one function a kind. Each gives the documents as they then are."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping

import msgspec

from interlock_catalog.changes import alias_to
from interlock_catalog.contracts import Doc, Json, muscle_groups, value_at
from interlock_catalog.naming import doc_id, split_name
from interlock_catalog.naming import one_sided as says_one_side
from interlock_catalog.vocabulary import equipment_name, ordered, slug, words

_EQUIPMENT = {
    "barbell": "Olympic Barbell", "dumbbell": "Dumbbells", "kettlebell": "KB", "ez-bar": "ez_bar",
    "cable": "Cable Machine", "resistance-band": "bands", "bodyweight": "Body Only", "smith-machine": "Smith",
    "trap-bar": "hex bar", "machine": "Machines",
}  # fmt: skip
_MUSCLES = {
    "pectorals": "Pectoralis Major", "lats": "latissimus dorsi", "quadriceps": "Quads", "abs": "Abdominals",
    "glutes": "Gluteus Maximus", "hamstrings": "Hams", "triceps": "Triceps Brachii", "biceps": "Biceps Brachii",
    "calves": "gastrocnemius", "front-delts": "Anterior Deltoid",
}  # fmt: skip
_LEVELS = {"advanced": "expert", "beginner": "novice", "intermediate": "Medium"}
_SPLITS = {"upper": "Upper Body", "lower": "lower body", "full_body": "full", "core": "trunk"}
_OTHER_WORDS = {
    "raise": "Lift", "press": "Push", "row": "Pull", "squat": "Knee Bend", "crunch": "Curl-In",
    "stretch": "Extension Hold",
}  # fmt: skip


class Spoiled(msgspec.Struct, frozen=True):
    """Documents as they are with the fault; `fields` of `target` (the exercise, if there is none) are what is wrong."""

    docs: dict[str, Doc]
    fields: tuple[str, ...]
    target: str = ""
    right: dict[str, Json] = {}
    merged_into: str | None = None


class Around:
    """What a fault may need to know about the rest of the clean catalog."""

    def __init__(self, docs: Mapping[str, Doc]) -> None:
        self.docs = docs
        self.exercises = [key for key in docs if key.startswith("exercise:")]
        self.families: dict[str, list[Doc]] = {}
        self.pointing: dict[str, list[str]] = {}
        for key in self.exercises:
            self.families.setdefault(docs[key]["family_slug"], []).append(docs[key])
        for key, doc in docs.items():
            if key.startswith("alias:") and doc.get("exercise_id"):
                self.pointing.setdefault(doc["exercise_id"], []).append(key)

    def siblings(self, doc: Doc) -> list[Doc]:
        """The family of an exercise, itself included."""
        return self.families[doc["family_slug"]]

    def base_name(self, doc: Doc) -> str:
        """The name of its family."""
        return str(self.docs[f"family:{doc['family_slug']}"]["base_name"])

    def aliases(self, doc: Doc) -> list[str]:
        """Its aliases."""
        return self.pointing.get(doc["id"], [])

    def usual(self, doc: Doc, field: str) -> bool:
        """Whether it has what clearly most of its family have."""
        values = [str(value_at(sibling, field)) for sibling in self.siblings(doc)]
        common, count = Counter(values).most_common(1)[0]
        return len(values) > 5 and count / len(values) >= 0.8 and str(value_at(doc, field)) == common


def _with(doc: Doc, *fields: str, **values: Json) -> Spoiled:
    return Spoiled({f"exercise:{doc['id']}": {**doc, **values}}, fields)


# Names


def plain_words(doc: Doc, _around: Around) -> bool:
    """Names whose capitals can be told from their words."""
    return all(word.isalpha() and word.istitle() for word in split_name(doc["name"])[0].split())


def name_case(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    name = doc["name"].lower()
    return _with(doc, "name", name=name)


def name_spacing(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    base, qualifier = split_name(doc["name"])
    return _with(doc, "name", name=f"  {base.replace(' ', '  ')} ({qualifier}) ")


def prefixable(doc: Doc, around: Around) -> bool:
    """Names that people also write with the equipment in front."""
    base = split_name(doc["name"])[0]
    return slug(around.base_name(doc)) in slug(base) and doc["equipment"][0] not in ("bodyweight", "other")


def name_prefix(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    name = f"{equipment_name(doc['equipment'][0])} {split_name(doc['name'])[0]}"
    return _with(doc, "name", name=name, name_slug=slug(name))


def of_several_equipments(doc: Doc, around: Around) -> bool:
    """Families whose names must say the equipment, and in which the bare name is nobody else's."""
    others = [d for d in around.siblings(doc) if split_name(d["name"])[0] == split_name(doc["name"])[0]]
    several = len({d["equipment"][0] for d in around.siblings(doc)}) > 1
    return several and len(others) == 1


def missing_qualifier(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    name = split_name(doc["name"])[0]
    return _with(doc, "name", name=name, name_slug=slug(name))


def wrong_qualifier(doc: Doc, around: Around, chance: random.Random) -> Spoiled | None:
    base, taken = split_name(doc["name"])[0], {d["name"] for d in around.siblings(doc)}
    others = [e for e in ("barbell", "dumbbell", "cable", "kettlebell", "machine") if e != doc["equipment"][0]]
    names = [name for e in others if (name := f"{base} ({equipment_name(e)})") not in taken]
    if not names:
        return None
    name = chance.choice(names)
    return _with(doc, "name", name=name, name_slug=slug(name))


def stale_slug(doc: Doc, _around: Around, chance: random.Random) -> Spoiled:
    return _with(doc, "name_slug", name_slug=f"{doc['name_slug']}-{chance.randint(2, 9)}")


# Words of the vocabulary


def respellable_equipment(doc: Doc, _around: Around) -> bool:
    return doc["equipment"][0] in _EQUIPMENT


def equipment_spelling(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    return _with(doc, "equipment", equipment=[_EQUIPMENT[doc["equipment"][0]], *doc["equipment"][1:]])


def equipment_doubled(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    return _with(doc, "equipment", equipment=[*doc["equipment"], doc["equipment"][0]])


def muscle_spelling(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled | None:
    muscles = doc["muscles"]
    if muscles["primary"][0] not in _MUSCLES:
        return None
    primary = [_MUSCLES[muscles["primary"][0]], *muscles["primary"][1:]]
    return _with(doc, "muscles.primary", muscles={**muscles, "primary": primary})


def _shares(doc: Doc, shares: dict[str, float]) -> Spoiled:
    return _with(doc, "muscles.contribution", muscles={**doc["muscles"], "contribution": shares})


def shares_percent(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    return _shares(doc, {muscle: share * 100 for muscle, share in doc["muscles"]["contribution"].items()})


def shares_twice(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    return _shares(doc, {muscle: share * 2 for muscle, share in doc["muscles"]["contribution"].items()})


def has_secondary(doc: Doc, _around: Around) -> bool:
    return len(doc["muscles"]["secondary"]) > 0


def share_missing(doc: Doc, _around: Around, chance: random.Random) -> Spoiled:
    shares = dict(doc["muscles"]["contribution"])
    shares.pop(chance.choice(sorted(shares)))
    return _shares(doc, shares)


def muscle_category(doc: Doc, _around: Around, chance: random.Random) -> Spoiled:
    right = doc["muscles"]["category"]
    wrong = chance.choice([group for group in ("chest", "back", "legs", "arms") if group not in right])
    return _with(doc, "muscles.category", muscles={**doc["muscles"], "category": [wrong]})


def respellable_level(doc: Doc, _around: Around) -> bool:
    return doc["metadata"]["level"] in _LEVELS


def level_spelling(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    level = _LEVELS[doc["metadata"]["level"]]
    return _with(doc, "metadata.level", metadata={**doc["metadata"], "level": level})


def split_spelling(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    split = _SPLITS[doc["movement"]["split"]]
    return _with(doc, "movement.split", movement={**doc["movement"], "split": split})


def notes_doubled(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    notes = doc["execution_notes"]
    return _with(doc, "execution_notes", execution_notes=[*notes, notes[0].upper()])


def markup(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    return _with(doc, "description", description=f"<p>{doc['description'].replace('. ', '.&nbsp;<br/>')}</p>")


def retired_field(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    *notes, last = doc["execution_notes"]
    return _with(doc, "execution_notes", execution_notes=notes, coaching_cues=[last])


def variant_key(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    return _with(doc, "variant_key", variant_key=f"v2/{doc['variant_key'].replace(':', '=')}")


def named_one_sided(doc: Doc, _around: Around) -> bool:
    return says_one_side(doc["name"])


def one_sided(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    return _with(doc, "metadata.unilateral", metadata={**doc["metadata"], "unilateral": False})


# Aliases and duplicates


def has_alias(doc: Doc, around: Around) -> bool:
    return bool(around.aliases(doc))


def has_sibling(doc: Doc, around: Around) -> bool:
    return len(around.siblings(doc)) > 3


def alias_to_merged(doc: Doc, around: Around, _chance: random.Random) -> Spoiled:
    old = f"{doc['id']}-old"
    gone = {**doc, "id": old, "name": f"{doc['name']} Old", "status": "merged", "merged_into": doc["id"]}
    gone["name_slug"] = slug(gone["name"])
    key = sorted(around.aliases(doc))[0]
    docs = {f"exercise:{old}": gone, key: alias_to(key.partition(":")[2], exercise_id=old)}
    return Spoiled(docs, ("exercise_id",), key, {"exercise_id": doc["id"]})


def alias_lost(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    base = split_name(doc["name"])[0]
    key = f"alias:{slug(equipment_name(doc['equipment'][0]))}-{slug(base)}"
    docs = {key: alias_to(key.partition(":")[2], exercise_id=f"{doc['id']}-gone")}
    return Spoiled(docs, ("exercise_id",), key, {"exercise_id": doc["id"]})


def alias_shadows(doc: Doc, around: Around, chance: random.Random) -> Spoiled:
    other = chance.choice([d for d in around.siblings(doc) if d["id"] != doc["id"]])
    key = f"alias:{doc['name_slug']}"
    docs = {key: alias_to(doc["name_slug"], exercise_id=other["id"])}
    return Spoiled(docs, ("exercise_id",), key, {"exercise_id": doc["id"]})


def alias_two_targets(doc: Doc, around: Around, _chance: random.Random) -> Spoiled:
    key = sorted(around.aliases(doc))[0]
    both = alias_to(key.partition(":")[2], exercise_id=doc["id"], family_slug=doc["family_slug"])
    return Spoiled({key: both}, ("exercise_id",), key, {"exercise_id": doc["id"], "family_slug": None})


def _copy(doc: Doc, name: str) -> Spoiled:
    twin = {**doc, "id": doc_id(doc["family_slug"], name), "name": name, "name_slug": slug(name), "status": "draft"}
    twin["execution_notes"] = doc["execution_notes"][:2]
    key = f"exercise:{twin['id']}"
    return Spoiled({key: twin}, ("merged_into",), key, {"status": "merged"}, merged_into=doc["id"])


def duplicate(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    return _copy(doc, f"{equipment_name(doc['equipment'][0])} {split_name(doc['name'])[0]}")


def renameable(doc: Doc, _around: Around) -> bool:
    return split_name(doc["name"])[0].split()[-1].lower() in _OTHER_WORDS


def near_duplicate(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    base = split_name(doc["name"])[0].split()
    name = " ".join([*base[:-1], _OTHER_WORDS[base[-1].lower()]])
    return _copy(doc, f"{name} ({equipment_name(doc['equipment'][0])})")


# What needs judgement


def description_missing(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    return _with(doc, "description", description="")


def description_short(doc: Doc, _around: Around, chance: random.Random) -> Spoiled:
    return _with(doc, "description", description=chance.choice(["Good exercise.", "Do it slowly.", "A classic."]))


def description_placeholder(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    text = f"TODO: write a proper description of the {split_name(doc['name'])[0]} before this goes live, please."
    return _with(doc, "description", description=text)


def description_of_another(doc: Doc, around: Around, chance: random.Random) -> Spoiled:
    keys = sorted(key for key, d in around.docs.items() if key.startswith("exercise:") and _unlike(doc, d))
    return _with(doc, "description", description=around.docs[chance.choice(keys)]["description"])


def _unlike(doc: Doc, other: Doc) -> bool:
    return bool(doc["muscles"]["category"] != other["muscles"]["category"] and doc["category"] != other["category"])


def _emptied(field: str) -> Callable[[Doc, Around, random.Random], Spoiled]:
    def spoil(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
        return _with(doc, field, **{field: []})

    return spoil


notes_missing, mistakes_missing = _emptied("execution_notes"), _emptied("common_mistakes")
uses_missing, suitability_missing = _emptied("programming_use_cases"), _emptied("suitability_notes")
tags_missing = _emptied("stimulus_tags")


def usual_movement(doc: Doc, around: Around) -> bool:
    return around.usual(doc, "movement.type") and around.usual(doc, "movement.split")


def movement_wrong(doc: Doc, _around: Around, chance: random.Random) -> Spoiled:
    others = [kind for kind in ordered("movement_type") if kind not in (doc["movement"]["type"], "other")]
    return _with(doc, "movement.type", movement={**doc["movement"], "type": chance.choice(others)})


def movement_missing(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    return _with(doc, "movement.type", movement={"split": doc["movement"]["split"]})


def usual_category(doc: Doc, around: Around) -> bool:
    return around.usual(doc, "category")


def category_wrong(doc: Doc, _around: Around, chance: random.Random) -> Spoiled:
    return _with(doc, "category", category=chance.choice(sorted(words("category") - {doc["category"]})))


def usual_plane(doc: Doc, around: Around) -> bool:
    return around.usual(doc, "metadata.plane_of_motion")


def plane_missing(doc: Doc, _around: Around, _chance: random.Random) -> Spoiled:
    metadata = {key: value for key, value in doc["metadata"].items() if key != "plane_of_motion"}
    return _with(doc, "metadata.plane_of_motion", metadata=metadata)


def usual_muscles(doc: Doc, around: Around) -> bool:
    return around.usual(doc, "muscles")


def muscles_wrong(doc: Doc, around: Around, chance: random.Random) -> Spoiled:
    used = {m for d in around.siblings(doc) for m in (*d["muscles"]["primary"], *d["muscles"]["secondary"])}
    groups = {group for d in around.siblings(doc) for group in d["muscles"]["category"]}
    far = [m for m in sorted(words("muscle") - used) if muscle_groups([m])[0] not in groups]
    wrong = chance.choice(far)
    muscles = {"primary": [wrong], "secondary": [], "category": muscle_groups([wrong]), "contribution": {wrong: 1.0}}
    return _with(
        doc, "muscles.primary", "muscles.secondary", "muscles.contribution", "muscles.category", muscles=muscles
    )
