"""Contracts of the documents: strict models over the controlled vocabulary, and rules between their fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, WithJsonSchema

from interlock_catalog.naming import qualifier_of, split_name
from interlock_catalog.vocabulary import MUSCLE_GROUPS, group_of, ordered_words, slug, words

Json = Any
Doc = dict[str, Json]
MIN_DESCRIPTION = 50
SUM_TOLERANCE = 0.011
"""Shares are written in hundredths: rounding may leave one over, and floats a little more."""
RETIRED_FIELDS = ("coaching_cues", "tips", "instructions")
"""Fields of older versions, whose content belongs in the execution notes."""
# equipment:ez-bar, variant:close-grip; not variant: alone.
_VARIANT = re.compile(r"(equipment|variant):[a-z0-9]+(-[a-z0-9]+)*")
# <b>, </p>, &nbsp; but not "a < b", nor "R&B".
_MARKUP = re.compile(r"</?[a-zA-Z][^<>]*>|&[a-z]+;")
_ADDRESS = re.compile(r"\b(https?:|www\.|javascript:)", re.IGNORECASE)
_SUSPICIOUS = ("<", "&", ":", "www", "lorem", "todo", "tbd", "fixme", "placeholder", "asdf", "test")
"""What every text that breaks a rule has in it somewhere: for most texts the regular expressions need not run."""
TEXT_FIELDS = ("description", "execution_notes", "common_mistakes", "suitability_notes", "programming_use_cases")
# Whole words: "TODO", not "mastodon". A test alone is an ordinary word, "test test" is none.
_PLACEHOLDER = re.compile(r"\b(lorem|todo|tbd|fixme|placeholder|asdf|test test)\b", re.IGNORECASE)


class Violation(msgspec.Struct, frozen=True, order=True):
    """One way in which a document breaks its contract."""

    field: str
    code: str
    message: str


class Strict(BaseModel):
    """Nothing is converted, nothing unknown is let in, nothing changes."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def one_of(values: Iterable[str], what: str) -> Callable[[str], str]:
    """A validator: the text is one of these."""
    allowed = frozenset(values)

    def check(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"{text!r} is not in the vocabulary of {what}")
        return text

    return check


def enum_schema(values: Iterable[str]) -> WithJsonSchema:
    """How a model is shown that a text is one of these."""
    return WithJsonSchema({"type": "string", "enum": list(values)})


def _word(kind: str) -> AfterValidator:
    return AfterValidator(one_of(words(kind), kind))


Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=128)]


def _plain(text: str) -> str:
    if not text.isprintable():
        raise ValueError("only printable characters")
    return text


Name = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\s/]+$"), AfterValidator(_plain)]
Text = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_plain)]
Line = Annotated[str, Field(min_length=3, max_length=400)]
Lines = Annotated[list[Line], Field(min_length=1, max_length=20)]
Equipment = Annotated[str, _word("equipment"), enum_schema(ordered_words("equipment"))]
Muscle = Annotated[str, _word("muscle"), enum_schema(ordered_words("muscle"))]
Category = Annotated[str, _word("category"), enum_schema(ordered_words("category"))]
Level = Annotated[str, _word("level"), enum_schema(ordered_words("level"))]
Plane = Annotated[str, _word("plane_of_motion"), enum_schema(ordered_words("plane_of_motion"))]
MovementType = Annotated[str, _word("movement_type"), enum_schema(ordered_words("movement_type"))]
Split = Annotated[str, _word("split"), enum_schema(ordered_words("split"))]
Tag = Annotated[str, _word("stimulus_tag"), enum_schema(ordered_words("stimulus_tag"))]
Group = Annotated[str, AfterValidator(one_of(MUSCLE_GROUPS, "muscle categories")), enum_schema(MUSCLE_GROUPS)]


class Muscles(Strict):
    """Which muscles work, and how much of the work each does."""

    primary: Annotated[list[Muscle], Field(min_length=1, max_length=6)]
    secondary: Annotated[list[Muscle], Field(max_length=12)]
    category: Annotated[list[Group], Field(min_length=1)]
    contribution: dict[Muscle, Annotated[float, Field(gt=0, le=1)]]


class Metadata(Strict):
    """How hard it is, and how the body moves."""

    level: Level
    plane_of_motion: Plane
    unilateral: bool


class Movement(Strict):
    """The pattern, and the part of the body."""

    type: MovementType
    split: Split


class Exercise(Strict):
    """An exercise, as people see it when it is approved."""

    id: Annotated[str, Field(min_length=1, max_length=128)]
    name: Annotated[str, Field(min_length=3, max_length=120)]
    name_slug: Slug
    family_slug: Slug
    variant_key: Annotated[str, Field(pattern=f"^{_VARIANT.pattern}$")]
    equipment: Annotated[list[Equipment], Field(min_length=1, max_length=6)]
    category: Category
    muscles: Muscles
    metadata: Metadata
    movement: Movement
    description: Annotated[str, Field(min_length=MIN_DESCRIPTION, max_length=2000)]
    execution_notes: Lines
    common_mistakes: Lines
    suitability_notes: Lines
    programming_use_cases: Lines
    stimulus_tags: Annotated[list[Tag], Field(min_length=1, max_length=8)]
    status: Literal["draft", "approved", "deprecated", "merged"]
    merged_into: str | None = None
    merge_lineage: list[str] = []


class Alias(Strict):
    """Another name for one exercise, or for a whole family."""

    alias_slug: Slug
    exercise_id: str | None = None
    family_slug: Slug | None = None


class Family(Strict):
    """What the exercises of a family have in common."""

    slug: Slug
    base_name: Annotated[str, Field(min_length=3, max_length=80)]
    status: Literal["active", "needs_review", "deprecated", "merged_into"]
    default_equipment: Equipment
    allowed_equipments: Annotated[list[Equipment], Field(min_length=1)]
    merged_into: str | None = None
    known_collisions: list[str] = []


KINDS: dict[str, type[Strict]] = {"exercise": Exercise, "alias": Alias, "family": Family}
_ADAPTERS = {kind: TypeAdapter(model) for kind, model in KINDS.items()}


def is_live(exercise: Mapping[str, Json] | None) -> bool:
    """Whether an exercise is there for people: not merged away, not deprecated."""
    return exercise is not None and exercise.get("status") not in ("merged", "deprecated")


def find_violations(kind: str, doc: Json) -> tuple[Violation, ...]:
    """Every way in which a document breaks its contract, in the order of its fields."""
    try:
        # A dictionary cannot be the key of a cache; what cannot be encoded is looked at without one.
        text = msgspec.json.encode(doc)
    except (TypeError, ValueError, msgspec.MsgspecError):
        return _violations_of(kind, doc)
    return _violations_of_text(kind, text)


def find_new_violations(kind: str, before: Doc | None, after: Json) -> tuple[Violation, ...]:
    """The ways in which a change breaks a contract; what was broken before may stay, for somebody else to fix."""
    known = set() if before is None else {(found.field, found.code) for found in find_violations(kind, before)}
    return tuple(found for found in find_violations(kind, after) if (found.field, found.code) not in known)


@lru_cache(maxsize=256)
def _violations_of_text(kind: str, text: bytes) -> tuple[Violation, ...]:
    """Cached, as a plan asks several times about the same few documents."""
    return _violations_of(kind, msgspec.json.decode(text))


def _violations_of(kind: str, doc: Json) -> tuple[Violation, ...]:
    found: dict[tuple[str, str], Violation] = {}
    try:
        _ADAPTERS[kind].validate_python(doc)
    except ValidationError as error:
        for item in error.errors(include_url=False, include_context=False, include_input=False):
            # Without places in lists: an issue is about a field, whichever of its elements is wrong.
            path = ".".join(str(part) for part in item["loc"] if not isinstance(part, int)) or kind
            # pydantic's word for a key of a dictionary that is wrong itself.
            path = path.removesuffix(".[key]")
            code = {"missing": "missing", "extra_forbidden": "unknown_field"}.get(item["type"], "invalid")
            found.setdefault((path, code), Violation(path, code, item["msg"].removeprefix("Value error, ")))
    if isinstance(doc, dict):
        rules = _exercise_rules(doc) if kind == "exercise" else _alias_rules(doc) if kind == "alias" else iter(())
        for violation in rules:
            found.setdefault((violation.field, violation.code), violation)
    return tuple(sorted(found.values()))


def _exercise_rules(doc: Doc) -> Iterator[Violation]:
    name, equipment = doc.get("name"), doc.get("equipment")
    if isinstance(name, str):
        if doc.get("name_slug") != slug(name):
            yield Violation("name_slug", "slug", f"the slug of {name!r} is {slug(name)!r}")
        first = equipment[0] if isinstance(equipment, list) and equipment else None
        qualifier = split_name(name)[1]
        if qualifier is not None and first is not None and qualifier_of(name) != first:
            yield Violation("name", "qualifier", f"the name says {qualifier!r}, the equipment {first!r}")
    if not isinstance(doc.get("name_slug", ""), str) or not isinstance(doc.get("merged_into") or "", str):
        yield Violation("name_slug", "shape", "slugs and ids are texts")
    yield from _repeat_rules(doc)
    yield from _muscle_rules(doc.get("muscles"))
    yield from _text_rules(doc)
    merged, target = doc.get("status") == "merged", doc.get("merged_into")
    if merged != bool(target):
        yield Violation(
            "merged_into", "merge", "an exercise is merged if, and only if, it names what it was merged into"
        )


def _text_rules(doc: Doc) -> Iterator[Violation]:
    for field in TEXT_FIELDS:
        value = doc.get(field)
        text = "\n".join(map(str, value)) if isinstance(value, list) else value if isinstance(value, str) else ""
        small = text.casefold()
        if not any(sign in small for sign in _SUSPICIOUS):
            continue
        if _PLACEHOLDER.search(text):
            yield Violation(field, "placeholder", f"{field} holds a placeholder")
        if _MARKUP.search(text):
            yield Violation(field, "markup", f"{field} has markup in it")
        if _ADDRESS.search(text):
            yield Violation(field, "address", f"{field} holds a web address, which has no place there")


def _repeat_rules(doc: Doc) -> Iterator[Violation]:
    for field in ("equipment", "execution_notes", "common_mistakes", "stimulus_tags", "suitability_notes"):
        values = doc.get(field)
        if isinstance(values, list) and find_repeats(values):
            yield Violation(field, "doubled", f"{field} says the same thing twice")


def find_repeats(values: Sequence[Json]) -> list[int]:
    """The places where a list repeats itself: right after the first time, or in other letters.

    Elsewhere a line may come again on purpose, as a step that is done twice.
    """
    seen: dict[str, str] = {}
    found = []
    for place, value in enumerate(values):
        text = str(value)
        plain = " ".join(text.lower().split())
        if plain in seen and (seen[plain] != text or str(values[place - 1]) == text):
            found.append(place)
        seen.setdefault(plain, text)
    return found


def _muscle_rules(muscles: Json) -> Iterator[Violation]:
    if not isinstance(muscles, dict):
        return
    primary, secondary = _texts(muscles.get("primary")), _texts(muscles.get("secondary"))
    # That they are no lists of texts is said by the model; the rules below need them to be.
    if primary is None or secondary is None:
        return
    if len(set(primary)) < len(primary):
        yield Violation("muscles.primary", "doubled", "a muscle is listed twice")
    if len(set(secondary)) < len(secondary) or {*primary} & {*secondary}:
        yield Violation("muscles.secondary", "doubled", "a muscle is listed twice, or is primary as well")
    groups = muscle_groups(primary)
    if groups and muscles.get("category") != groups:
        yield Violation("muscles.category", "derived", f"the primary muscles belong to {', '.join(groups)}")
    shares = muscles.get("contribution")
    if not isinstance(shares, dict) or not all(_is_number(share) for share in shares.values()):
        return
    if set(shares) != {*primary, *secondary}:
        differing = sorted(set(shares) ^ {*primary, *secondary})
        yield Violation("muscles.contribution", "muscles", f"contribution and muscles differ in {', '.join(differing)}")
    # Where the muscles differ, their sum says nothing.
    elif abs(sum(shares.values()) - 1) > SUM_TOLERANCE:
        yield Violation("muscles.contribution", "sum", f"the contributions add up to {sum(shares.values()):.2f}, not 1")


def _alias_rules(doc: Doc) -> Iterator[Violation]:
    if bool(doc.get("exercise_id")) == bool(doc.get("family_slug")):
        yield Violation("exercise_id", "target", "an alias has one target: an exercise, or a family")


def muscle_groups(primary: Sequence[str]) -> list[str]:
    """The categories of the primary muscles, in the order in which they first come; [] if one is unknown."""
    if not all(muscle in words("muscle") for muscle in primary):
        return []
    return list(dict.fromkeys(group_of(muscle) for muscle in primary))


def is_within(path: str, whole: str) -> bool:
    """Whether a path is that of a field, or of a part of it."""
    return path == whole or path.startswith(f"{whole}.")


def value_at(doc: Json, path: str) -> Json:
    """The value at a path; None if there is none."""
    for part in path.split("."):
        doc = doc.get(part) if isinstance(doc, dict) else None
    return doc


def with_value(doc: Doc, path: str, value: Json) -> Doc:
    """A copy with another value at a path."""
    head, _, rest = path.partition(".")
    if not rest:
        return {**doc, head: value}
    inner = doc.get(head)
    return {**doc, head: with_value(inner if isinstance(inner, dict) else {}, rest, value)}


def _texts(value: Json) -> list[str] | None:
    return value if isinstance(value, list) and all(isinstance(item, str) for item in value) else None


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_SHAPES: dict[str, type] = {
    **dict.fromkeys(
        ("id", "name", "name_slug", "family_slug", "variant_key", "category", "description", "status"), str
    ),
    **dict.fromkeys(("merged_into", "alias_slug", "exercise_id", "slug", "base_name", "default_equipment"), str),
    **dict.fromkeys(("equipment", "stimulus_tags", "merge_lineage", "allowed_equipments", "known_collisions"), list),
    **dict.fromkeys(TEXT_FIELDS[1:], list),
    **dict.fromkeys(("muscles", "metadata", "movement"), dict),
}
# These are columns of the database, and parts of keys.
_INDEXED = ("family_slug", "name_slug", "exercise_id", "merged_into", "alias_slug", "slug", "id")


def shape_error(doc: Mapping[str, Json]) -> str | None:
    """What of a document is not even of the right type, so that no reader could cope with it; None if nothing is."""
    for field, kind in _SHAPES.items():
        value = doc.get(field)
        if value is not None and not isinstance(value, kind):
            return f"{field} is a {kind.__name__}, or null"
    for field in _INDEXED:
        if len(doc.get(field) or "") > 200:
            return f"{field} has at most 200 characters"
    if any(not isinstance(item, str) for field in ("equipment", "merge_lineage") for item in doc.get(field) or ()):
        return "equipment and merge_lineage are lists of text"
    return None
