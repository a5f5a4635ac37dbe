"""Normalisation: the same facts in canonical form. Pure, says why, does nothing where two readings are possible."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

import msgspec

from interlock_catalog.contracts import (
    RETIRED_FIELDS,
    Doc,
    Json,
    find_repeats,
    is_live,
    muscle_groups,
    value_at,
    with_value,
)
from interlock_catalog.naming import (
    drop_equipment,
    is_one_sided,
    join_name,
    names_other_equipment,
    split_name,
    title_case,
    variant_key,
)
from interlock_catalog.vocabulary import canonical_word, equipment_from_name, slug, words

_SPACES = re.compile(r"\s+")
_LARGEST_SHARE = 1e6
"""Percent and per mille are scaled; beyond this it is no share of anything."""
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_NO_ALIASES: Mapping[str, Doc] = MappingProxyType({})
_TEXT_LISTS = ("execution_notes", "common_mistakes", "suitability_notes", "programming_use_cases")


class FamilyFacts(msgspec.Struct, frozen=True):
    """What normalisation needs to know about a family."""

    base_name: str
    qualified: bool
    """Its exercises differ in their primary equipment, so that each name says which."""
    held: frozenset[str] = frozenset()
    """Slugs that lead to something else as well: who has one keeps it, as it could not stay behind as an alias."""


class Correction(msgspec.Struct, frozen=True):
    """One field that was changed, and why."""

    field: str
    code: str
    why: str


class Normalised(msgspec.Struct, frozen=True):
    """A document in canonical form, and what was changed."""

    doc: Doc
    corrections: tuple[Correction, ...]


def family_facts(family: Doc | None, members: Iterable[Doc], aliases: Mapping[str, Doc] = _NO_ALIASES) -> FamilyFacts:
    """The facts of a family, from its document, its live exercises, and the aliases with their names."""
    live = [doc for doc in members if is_live(doc)]
    firsts = {first for doc in live if (first := primary_equipment(doc)) is not None}
    primaries = {canonical_word("equipment", first) or first for first in firsts}
    name = (family or {}).get("base_name")
    return FamilyFacts(name if isinstance(name, str) else "", len(primaries) > 1, _held_slugs(live, aliases))


def _held_slugs(live: Iterable[Doc], aliases: Mapping[str, Doc]) -> frozenset[str]:
    """Slugs of names that two exercises have, or that are an alias of something else."""
    named = Counter[str]()
    held = set[str]()
    for doc in live:
        slug_now = doc.get("name_slug")
        if not isinstance(slug_now, str) or not slug_now:
            continue
        named[slug_now] += 1
        alias = aliases.get(slug_now)
        if alias is not None and (alias.get("exercise_id") != doc.get("id") or alias.get("family_slug")):
            held.add(slug_now)
    return frozenset(held | {slug_now for slug_now, count in named.items() if count > 1})


def normalise(doc: Doc, family: FamilyFacts) -> Normalised:
    """An exercise in canonical form; a merged or deprecated one is left as it is."""
    if not is_live(doc):
        return Normalised(doc, ())
    made, corrections = dict(doc), list[Correction]()
    # Equipment before names, and names before what is derived from them.
    for step in (
        _drop_retired_fields,
        _spell_words,
        _spell_equipment,
        _correct_muscles,
        _clean_texts,
        _correct_name,
        _derive_variant_key,
        _derive_unilateral,
    ):
        step(made, family, corrections)
    return Normalised(made, tuple(corrections))


def _set(doc: Doc, value: Json, correction: Correction, corrections: list[Correction]) -> None:
    if doc.get(correction.field) != value:
        doc[correction.field] = value
        corrections.append(correction)


def _drop_retired_fields(doc: Doc, _family: FamilyFacts, corrections: list[Correction]) -> None:
    """Fields of older versions go; what they say is kept among the execution notes, or they stay."""
    for field in RETIRED_FIELDS:
        old, notes = doc.get(field), doc.get("execution_notes", [])
        lines = [old] if isinstance(old, str) else old
        texts = isinstance(lines, list) and all(isinstance(line, str) for line in lines)
        if field not in doc or not isinstance(lines, list) or not texts or not isinstance(notes, list):
            continue
        del doc[field]
        kept = [*notes, *(line for line in lines if line.strip() and line not in notes)]
        corrections.append(Correction(field, "retired", f"{field} was retired; its lines belong to execution_notes"))
        if lines:
            correction = Correction("execution_notes", "retired", f"took over the lines of {field}")
            _set(doc, kept, correction, corrections)


def _spell_words(doc: Doc, _family: FamilyFacts, corrections: list[Correction]) -> None:
    """Every word of a closed vocabulary in its canonical spelling."""
    for path, kind in (
        ("category", "category"),
        ("metadata.level", "level"),
        ("metadata.plane_of_motion", "plane_of_motion"),
        ("movement.type", "movement_type"),
        ("movement.split", "split"),
    ):
        written = value_at(doc, path)
        spelled = canonical_word(kind, written)
        if spelled is not None and spelled != written:
            doc.update(with_value(doc, path, spelled))
            corrections.append(Correction(path, "spelling", f"{written!r} is written {spelled!r}"))
    _spell_list(doc, "stimulus_tags", "stimulus_tag", corrections)


def _spell_list(doc: Doc, field: str, kind: str, corrections: list[Correction]) -> None:
    values = doc.get(field)
    if isinstance(values, list) and all(isinstance(value, str) for value in values):
        spelled = list(dict.fromkeys(canonical_word(kind, value) or value for value in values))
        correction = Correction(field, "spelling", f"{field} in the words of the vocabulary, each once")
        _set(doc, spelled, correction, corrections)


def _spell_equipment(doc: Doc, _family: FamilyFacts, corrections: list[Correction]) -> None:
    _spell_list(doc, "equipment", "equipment", corrections)


_MUSCLE_CORRECTIONS = (
    Correction("muscles.primary", "spelling", "muscles in the words of the vocabulary, each once"),
    Correction("muscles.secondary", "spelling", "muscles in the words of the vocabulary, each once"),
    Correction("muscles.contribution", "sum", "contributions of these muscles, adding up to 1"),
    Correction("muscles.category", "derived", "the categories of the primary muscles"),
)


def _correct_muscles(doc: Doc, _family: FamilyFacts, corrections: list[Correction]) -> None:
    muscles = doc.get("muscles")
    if not isinstance(muscles, dict):
        return
    made = dict(muscles)
    for field in ("primary", "secondary"):
        values = made.get(field)
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            made[field] = _spell_muscles(values, made.get("primary") if field == "secondary" else None)
    shares = _correct_shares(made)
    if shares is not None:
        made["contribution"] = shares
    primary = made.get("primary")
    texts = isinstance(primary, list) and all(isinstance(muscle, str) for muscle in primary)
    if texts and primary and (groups := muscle_groups(primary)):
        made["category"] = groups
    after = {**doc, "muscles": made}
    corrections += [item for item in _MUSCLE_CORRECTIONS if value_at(after, item.field) != value_at(doc, item.field)]
    doc["muscles"] = made


def _spell_muscles(values: list[str], primary: Json) -> list[str]:
    """Each muscle once; a secondary one that is primary, too, counts as primary."""
    taken = {item for item in primary if isinstance(item, str)} if isinstance(primary, list) else set()
    spelled = [canonical_word("muscle", value) or value for value in values]
    return [value for value in dict.fromkeys(spelled) if value not in taken]


def _correct_shares(muscles: Doc) -> dict[str, float] | None:
    """Contributions that add up to 1; None where it cannot be told what they should be."""
    given, primary, secondary = muscles.get("contribution"), muscles.get("primary"), muscles.get("secondary")
    if not isinstance(given, dict) or not isinstance(primary, list) or not isinstance(secondary, list):
        return None
    if not all(isinstance(muscle, str) for muscle in (*primary, *secondary)):
        return None
    shares: dict[str, float] = {}
    for muscle, share in given.items():
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < _LARGEST_SHARE:
            return None
        spelled = canonical_word("muscle", muscle) or muscle
        shares[spelled] = shares.get(spelled, 0.0) + float(share)
    wanted = [*primary, *secondary]
    missing = [muscle for muscle in wanted if muscle not in shares]
    rest = round(1 - sum(shares.values()), 2)
    if len(missing) == 1 and set(shares) < set(wanted) and 0 < rest < 1:
        shares[missing[0]] = rest  # what the others leave is its share
    # Without muscles there is nothing to share out, whatever the shares say.
    if not wanted or set(shares) != set(wanted) or any(muscle not in words("muscle") for muscle in wanted):
        return None
    return _scale_shares({muscle: shares[muscle] for muscle in wanted})


def _scale_shares(shares: dict[str, float]) -> dict[str, float]:
    """Shares in hundredths that add up to 1; what rounding leaves goes to the largest."""
    total = sum(shares.values())
    # Left as it was written, so that normalising again changes nothing.
    if abs(total - 1) < 1e-9:
        return shares
    # At least one hundredth: a share of zero breaks the contract.
    hundredths = {muscle: max(1, round(share / total * 100)) for muscle, share in shares.items()}
    largest = max(hundredths, key=lambda muscle: hundredths[muscle])
    hundredths[largest] += 100 - sum(hundredths.values())
    return {muscle: count / 100 for muscle, count in hundredths.items()}


def _clean_texts(doc: Doc, _family: FamilyFacts, corrections: list[Correction]) -> None:
    """Texts without markup and extra spaces; lists without what says nothing or was said before."""
    description = doc.get("description")
    if isinstance(description, str):
        correction = Correction("description", "text", "plain text with single spaces")
        _set(doc, plain_text(description), correction, corrections)
    for field in _TEXT_LISTS:
        values = doc.get(field)
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            lines = [line for value in values if (line := plain_text(value))]
            again = set(find_repeats(lines))
            kept = [line for place, line in enumerate(lines) if place not in again]
            # A list of which nothing would be left is kept: to empty it is no other form of the same facts.
            if kept or not values:
                _set(doc, kept, Correction(field, "text", "plain lines, none twice in a row"), corrections)


@lru_cache(maxsize=2048)
def plain_text(text: str) -> str:
    """A text without markup, with single spaces."""
    for _layer in range(5):  # markup may hide markup; nobody writes it five deep by mistake
        made = _SPACES.sub(" ", html.unescape(_TAG.sub(" ", text))).strip()
        if made == text:
            break
        text = made
    return text


def _correct_name(doc: Doc, family: FamilyFacts, corrections: list[Correction]) -> None:
    name = doc.get("name")
    if not isinstance(name, str) or not name.strip():
        return
    spelled = _spell_name(name, doc, family)
    before = slug(name)
    # A slug that is not that of the name is itself the fault, and nobody knows the exercise by it.
    if before in family.held and before == doc.get("name_slug") != slug(spelled):
        spelled = title_case(name)
    # A name without a letter or digit stays as it is: there would be no slug to know it by.
    if slug(spelled):
        _set(doc, spelled, Correction("name", "naming", _describe_renaming(name, spelled)), corrections)
        _set(doc, slug(spelled), Correction("name_slug", "slug", "the slug of the name"), corrections)


def _describe_renaming(name: str, spelled: str) -> str:
    plain = _SPACES.sub(" ", name).strip(" .")
    changes = {
        "names are written Name (Equipment)": spelled.casefold() != plain.casefold(),
        "with the capitals of a title": title_case(plain) != plain,
        "with single spaces and no dot at the end": plain != name,
    }
    return f"{name!r} is written {spelled!r}: {', '.join(what for what, is_so in changes.items() if is_so)}"


def _spell_name(name: str, doc: Doc, family: FamilyFacts) -> str:
    base, qualifier = split_name(name)
    first = primary_equipment(doc)
    named = None if qualifier is None else equipment_from_name(qualifier)
    if qualifier and named is None:  # it says something else than equipment, which is kept
        base = f"{base} {qualifier}"
    base = title_case(base)
    if first is None or first not in words("equipment"):
        return title_case(name)
    if named is not None and named != first and not _confirms_equipment(doc, first, named):
        return join_name(base, named)  # name and equipment disagree, and nothing says which is right
    if named is None and names_other_equipment(base, doc["equipment"]):
        return base if qualifier is None else title_case(name)  # the equipment is in the middle of the name
    shorter = drop_equipment(base, first)
    moved = shorter != base and slug(family.base_name) in slug(shorter) and bool(slug(family.base_name))
    qualified = qualifier is not None or moved or family.qualified
    return join_name(shorter if moved else base, first if qualified else None)


def _confirms_equipment(doc: Doc, first: str, named: str) -> bool:
    """Whether id and variant key agree with the equipment field, and not with the name."""
    identity, variant = str(doc.get("id", "")), str(doc.get("variant_key", ""))
    said = [identity.endswith(f"-{first}"), variant == f"equipment:{first}"]
    against = [identity.endswith(f"-{named}"), variant == f"equipment:{named}"]
    return any(said) and not any(against)


def _derive_variant_key(doc: Doc, family: FamilyFacts, corrections: list[Correction]) -> None:
    name, first = doc.get("name"), primary_equipment(doc)
    if not isinstance(name, str) or not family.base_name or first is None or first not in words("equipment"):
        return
    made = variant_key(split_name(name)[0], family.base_name, first)
    _set(doc, made, Correction("variant_key", "variant", "what makes it special in its family"), corrections)


def _derive_unilateral(doc: Doc, _family: FamilyFacts, corrections: list[Correction]) -> None:
    """A name that says 'single arm' says that it is unilateral."""
    metadata, name = doc.get("metadata"), doc.get("name")
    if (
        isinstance(metadata, dict)
        and isinstance(name, str)
        and is_one_sided(name)
        and metadata.get("unilateral") is not True
    ):
        doc["metadata"] = {**metadata, "unilateral": True}
        corrections.append(Correction("metadata.unilateral", "sides", "the name says that one side works alone"))


def primary_equipment(doc: Doc) -> str | None:
    """The equipment that a name says; None where the record has none."""
    equipment = doc.get("equipment")
    return equipment[0] if isinstance(equipment, list) and equipment and isinstance(equipment[0], str) else None
