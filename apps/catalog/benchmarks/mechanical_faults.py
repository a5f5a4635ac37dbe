"""Mechanical faults, which a check can see and fix: one function a kind, which gives the documents as they then are."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import msgspec

from interlock_catalog.contracts import Doc, Json, value_at
from interlock_catalog.naming import is_one_sided, split_name
from interlock_catalog.vocabulary import equipment_name, slug

_EQUIPMENT_SYNONYMS = {
    "barbell": "Olympic Barbell", "dumbbell": "Dumbbells", "kettlebell": "KB", "ez-bar": "ez_bar",
    "cable": "Cable Machine", "resistance-band": "bands", "bodyweight": "Body Only", "smith-machine": "Smith",
    "trap-bar": "hex bar", "machine": "Machines",
}  # fmt: skip
_MUSCLE_SYNONYMS = {
    "pectorals": "Pectoralis Major", "lats": "latissimus dorsi", "quadriceps": "Quads", "abs": "Abdominals",
    "glutes": "Gluteus Maximus", "hamstrings": "Hams", "triceps": "Triceps Brachii", "biceps": "Biceps Brachii",
    "calves": "gastrocnemius", "front-delts": "Anterior Deltoid",
}  # fmt: skip
_LEVEL_SYNONYMS = {"advanced": "expert", "beginner": "novice", "intermediate": "Medium"}
_SPLIT_SYNONYMS = {"upper": "Upper Body", "lower": "lower body", "full_body": "full", "core": "trunk"}


class FaultyDocs(msgspec.Struct, frozen=True):
    """Documents as they are with the fault; `fields` of `target` (the exercise, if there is none) are what is wrong."""

    docs: dict[str, Doc]
    fields: tuple[str, ...]
    target: str = ""
    right: dict[str, Json] = {}
    merged_into: str | None = None


class CatalogIndex:
    """The clean catalog, with what a fault may need to know about the rest of it."""

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

    def is_usual(self, doc: Doc, field: str) -> bool:
        """Whether it has what clearly most of its family have."""
        values = [str(value_at(sibling, field)) for sibling in self.siblings(doc)]
        common, count = Counter(values).most_common(1)[0]
        return len(values) > 5 and count / len(values) >= 0.8 and str(value_at(doc, field)) == common


def make_faulty(doc: Doc, *fields: str, **values: Json) -> FaultyDocs:
    """An exercise with other values in these fields."""
    return FaultyDocs({f"exercise:{doc['id']}": {**doc, **values}}, fields)


# Names


def has_plain_words(doc: Doc, _index: CatalogIndex) -> bool:
    """Names whose capitals can be told from their words."""
    return all(word.isalpha() and word.istitle() for word in split_name(doc["name"])[0].split())


def name_case(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """The name in small letters."""
    name = doc["name"].lower()
    return make_faulty(doc, "name", name=name)


def name_spacing(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """Odd spaces in the name."""
    base, qualifier = split_name(doc["name"])
    return make_faulty(doc, "name", name=f"  {base.replace(' ', '  ')} ({qualifier}) ")


def is_prefixable(doc: Doc, index: CatalogIndex) -> bool:
    """Names that people also write with the equipment in front."""
    base = split_name(doc["name"])[0]
    return slug(index.base_name(doc)) in slug(base) and doc["equipment"][0] not in ("bodyweight", "other")


def name_prefix(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """The equipment in front of the name."""
    name = f"{equipment_name(doc['equipment'][0])} {split_name(doc['name'])[0]}"
    return make_faulty(doc, "name", name=name, name_slug=slug(name))


def is_qualified(doc: Doc, index: CatalogIndex) -> bool:
    """Families whose names must say the equipment, and in which the bare name is nobody else's."""
    others = [d for d in index.siblings(doc) if split_name(d["name"])[0] == split_name(doc["name"])[0]]
    several = len({d["equipment"][0] for d in index.siblings(doc)}) > 1
    return several and len(others) == 1


def missing_qualifier(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """The name without its equipment."""
    name = split_name(doc["name"])[0]
    return make_faulty(doc, "name", name=name, name_slug=slug(name))


def wrong_qualifier(doc: Doc, index: CatalogIndex, chance: random.Random) -> FaultyDocs | None:
    """The name says another equipment."""
    base, taken = split_name(doc["name"])[0], {d["name"] for d in index.siblings(doc)}
    others = [e for e in ("barbell", "dumbbell", "cable", "kettlebell", "machine") if e != doc["equipment"][0]]
    names = [name for e in others if (name := f"{base} ({equipment_name(e)})") not in taken]
    if not names:
        return None
    name = chance.choice(names)
    return make_faulty(doc, "name", name=name, name_slug=slug(name))


def stale_slug(doc: Doc, _index: CatalogIndex, chance: random.Random) -> FaultyDocs:
    """A slug that is not the name's."""
    return make_faulty(doc, "name_slug", name_slug=f"{doc['name_slug']}-{chance.randint(2, 9)}")


# Words of the vocabulary


def has_equipment_synonym(doc: Doc, _index: CatalogIndex) -> bool:
    """Equipment for which there is another word."""
    return doc["equipment"][0] in _EQUIPMENT_SYNONYMS


def equipment_spelling(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """Another word for the equipment."""
    return make_faulty(doc, "equipment", equipment=[_EQUIPMENT_SYNONYMS[doc["equipment"][0]], *doc["equipment"][1:]])


def equipment_doubled(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """The equipment twice."""
    return make_faulty(doc, "equipment", equipment=[*doc["equipment"], doc["equipment"][0]])


def muscle_spelling(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs | None:
    """Another word for a muscle."""
    muscles = doc["muscles"]
    if muscles["primary"][0] not in _MUSCLE_SYNONYMS:
        return None
    primary = [_MUSCLE_SYNONYMS[muscles["primary"][0]], *muscles["primary"][1:]]
    return make_faulty(doc, "muscles.primary", muscles={**muscles, "primary": primary})


def _shares(doc: Doc, shares: dict[str, float]) -> FaultyDocs:
    return make_faulty(doc, "muscles.contribution", muscles={**doc["muscles"], "contribution": shares})


def shares_percent(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """Contributions in percent."""
    return _shares(doc, {muscle: share * 100 for muscle, share in doc["muscles"]["contribution"].items()})


def shares_twice(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """Contributions that add up to two."""
    return _shares(doc, {muscle: share * 2 for muscle, share in doc["muscles"]["contribution"].items()})


def has_secondary(doc: Doc, _index: CatalogIndex) -> bool:
    """With secondary muscles."""
    return len(doc["muscles"]["secondary"]) > 0


def share_missing(doc: Doc, _index: CatalogIndex, chance: random.Random) -> FaultyDocs:
    """A muscle without its contribution."""
    shares = dict(doc["muscles"]["contribution"])
    shares.pop(chance.choice(sorted(shares)))
    return _shares(doc, shares)


def muscle_category(doc: Doc, _index: CatalogIndex, chance: random.Random) -> FaultyDocs:
    """A category that the muscles do not have."""
    right = doc["muscles"]["category"]
    wrong = chance.choice([group for group in ("chest", "back", "legs", "arms") if group not in right])
    return make_faulty(doc, "muscles.category", muscles={**doc["muscles"], "category": [wrong]})


def has_level_synonym(doc: Doc, _index: CatalogIndex) -> bool:
    """A level for which there is another word."""
    return doc["metadata"]["level"] in _LEVEL_SYNONYMS


def level_spelling(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """Another word for the level."""
    level = _LEVEL_SYNONYMS[doc["metadata"]["level"]]
    return make_faulty(doc, "metadata.level", metadata={**doc["metadata"], "level": level})


def split_spelling(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """Another word for the split."""
    split = _SPLIT_SYNONYMS[doc["movement"]["split"]]
    return make_faulty(doc, "movement.split", movement={**doc["movement"], "split": split})


def notes_doubled(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """A note twice, once in capitals."""
    notes = doc["execution_notes"]
    return make_faulty(doc, "execution_notes", execution_notes=[*notes, notes[0].upper()])


def markup(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """Markup in the description."""
    return make_faulty(doc, "description", description=f"<p>{doc['description'].replace('. ', '.&nbsp;<br/>')}</p>")


def retired_field(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """A note in a field of an older version."""
    *notes, last = doc["execution_notes"]
    return make_faulty(doc, "execution_notes", execution_notes=notes, coaching_cues=[last])


def variant_key(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """A key of an older form."""
    return make_faulty(doc, "variant_key", variant_key=f"v2/{doc['variant_key'].replace(':', '=')}")


def is_named_one_sided(doc: Doc, _index: CatalogIndex) -> bool:
    """Names that say that one side works alone."""
    return is_one_sided(doc["name"])


def one_sided(doc: Doc, _index: CatalogIndex, _chance: random.Random) -> FaultyDocs:
    """A one-sided exercise that is said not to be."""
    return make_faulty(doc, "metadata.unilateral", metadata={**doc["metadata"], "unilateral": False})
