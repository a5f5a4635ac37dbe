"""Normalisation: the same facts in the one spelling. Pure, says why, does nothing where two readings are possible."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from interlock_catalog.contracts import RETIRED, Doc, Json, live, muscle_groups, repeated
from interlock_catalog.naming import joined_name, one_sided, other_equipment, split_name, titled, variant_key, without
from interlock_catalog.vocabulary import equipment_named, known, slug, words

_SPACES = re.compile(r"\s+")
_LARGEST = 1e6
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_TEXT_LISTS = ("execution_notes", "common_mistakes", "suitability_notes", "programming_use_cases")


class FamilyFacts(msgspec.Struct, frozen=True):
    """What normalisation needs to know about a family."""

    base_name: str
    qualified: bool
    """Its exercises differ in their primary equipment, so that each name says which."""


class Reason(msgspec.Struct, frozen=True):
    """One field that was changed, and why."""

    field: str
    code: str
    why: str


class Normalised(msgspec.Struct, frozen=True):
    """A document in the one spelling, and what was changed."""

    doc: Doc
    reasons: tuple[Reason, ...]


def facts_of(family: Doc | None, members: Iterable[Doc]) -> FamilyFacts:
    """The facts of a family, from its document and its live exercises."""
    firsts = {known("equipment", first) or first for doc in members if live(doc) and (first := _first(doc)) is not None}
    name = (family or {}).get("base_name")
    return FamilyFacts(name if isinstance(name, str) else "", len(firsts) > 1)


def normalise(doc: Doc, family: FamilyFacts) -> Normalised:
    """An exercise in the one spelling; a merged or deprecated one is left as it is."""
    if not live(doc):
        return Normalised(doc, ())
    made, reasons = dict(doc), list[Reason]()
    for step in (_retired, _words, _equipment, _muscles, _texts, _name, _variant, _sides):
        step(made, family, reasons)
    return Normalised(made, tuple(reasons))


def _set(doc: Doc, field: str, value: Json, why: tuple[str, str], reasons: list[Reason]) -> None:
    if doc.get(field) != value:
        doc[field] = value
        reasons.append(Reason(field, *why))


def _retired(doc: Doc, _family: FamilyFacts, reasons: list[Reason]) -> None:
    """Fields of older versions go; what they say is kept among the execution notes, or they stay."""
    for field in RETIRED:
        old, notes = doc.get(field), doc.get("execution_notes", [])
        lines = [old] if isinstance(old, str) else old
        texts = isinstance(lines, list) and all(isinstance(line, str) for line in lines)
        if field not in doc or not isinstance(lines, list) or not texts or not isinstance(notes, list):
            continue
        del doc[field]
        kept = [*notes, *(line for line in lines if line.strip() and line not in notes)]
        reasons.append(Reason(field, "retired", f"{field} was retired; its lines belong to execution_notes"))
        if lines:
            _set(doc, "execution_notes", kept, ("retired", f"took over the lines of {field}"), reasons)


def _words(doc: Doc, _family: FamilyFacts, reasons: list[Reason]) -> None:
    """Every word of a closed vocabulary in its one spelling."""
    for path, kind in (
        ("category", "category"),
        ("metadata.level", "level"),
        ("metadata.plane_of_motion", "plane_of_motion"),
        ("movement.type", "movement_type"),
        ("movement.split", "split"),
    ):
        head, _, rest = path.partition(".")
        holder = doc.get(head) if rest else doc
        if not isinstance(holder, dict):
            continue
        field = rest or head
        spelled = known(kind, holder.get(field))
        if spelled is not None and spelled != holder[field]:
            why = f"{holder[field]!r} is written {spelled!r}"
            if rest:
                doc[head] = {**holder, field: spelled}
            else:
                doc[head] = spelled
            reasons.append(Reason(path, "spelling", why))
    _spelled_list(doc, "stimulus_tags", "stimulus_tag", reasons)


def _spelled_list(doc: Doc, field: str, kind: str, reasons: list[Reason]) -> None:
    values = doc.get(field)
    if isinstance(values, list) and all(isinstance(value, str) for value in values):
        spelled = list(dict.fromkeys(known(kind, value) or value for value in values))
        _set(doc, field, spelled, ("spelling", f"{field} in the words of the vocabulary, each once"), reasons)


def _equipment(doc: Doc, _family: FamilyFacts, reasons: list[Reason]) -> None:
    _spelled_list(doc, "equipment", "equipment", reasons)


def _muscles(doc: Doc, _family: FamilyFacts, reasons: list[Reason]) -> None:
    muscles = doc.get("muscles")
    if not isinstance(muscles, dict):
        return
    made = dict(muscles)
    for field in ("primary", "secondary"):
        values = made.get(field)
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            spelled = [known("muscle", value) or value for value in values]
            first = made.get("primary") if field == "secondary" else None
            others = {item for item in first if isinstance(item, str)} if isinstance(first, list) else set()
            made[field] = [value for value in dict.fromkeys(spelled) if value not in others]
    shares = _shares(made)
    if shares is not None:
        made["contribution"] = shares
    primary = made.get("primary")
    texts = isinstance(primary, list) and all(isinstance(muscle, str) for muscle in primary)
    if texts and primary and (groups := muscle_groups(primary)):
        made["category"] = groups
    whys = {
        "primary": ("spelling", "muscles in the words of the vocabulary, each once"),
        "secondary": ("spelling", "muscles in the words of the vocabulary, each once"),
        "contribution": ("sum", "contributions of these muscles, adding up to 1"),
        "category": ("derived", "the categories of the primary muscles"),
    }
    for field, why in whys.items():
        if made.get(field) != muscles.get(field):
            reasons.append(Reason(f"muscles.{field}", *why))
    doc["muscles"] = made


def _shares(muscles: Doc) -> dict[str, float] | None:
    """Contributions that add up to 1; None where it cannot be told what they should be."""
    given, primary, secondary = muscles.get("contribution"), muscles.get("primary"), muscles.get("secondary")
    if not isinstance(given, dict) or not isinstance(primary, list) or not isinstance(secondary, list):
        return None
    if not all(isinstance(muscle, str) for muscle in (*primary, *secondary)):
        return None
    shares: dict[str, float] = {}
    for muscle, share in given.items():
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < _LARGEST:
            return None
        spelled = known("muscle", muscle) or muscle
        shares[spelled] = shares.get(spelled, 0.0) + float(share)
    wanted = [*primary, *secondary]
    missing = [muscle for muscle in wanted if muscle not in shares]
    rest = round(1 - sum(shares.values()), 2)
    if len(missing) == 1 and set(shares) < set(wanted) and 0 < rest < 1:
        shares[missing[0]] = rest  # what the others leave is its share
    if set(shares) != set(wanted) or any(muscle not in words("muscle") for muscle in wanted):
        return None
    return _scaled({muscle: shares[muscle] for muscle in wanted})


def _scaled(shares: dict[str, float]) -> dict[str, float]:
    """Shares in hundredths that add up to 1; what rounding leaves goes to the largest."""
    total = sum(shares.values())
    if abs(total - 1) < 1e-9:
        return shares
    hundredths = {muscle: max(1, round(share / total * 100)) for muscle, share in shares.items()}
    largest = max(hundredths, key=lambda muscle: hundredths[muscle])
    hundredths[largest] += 100 - sum(hundredths.values())
    return {muscle: count / 100 for muscle, count in hundredths.items()}


def _texts(doc: Doc, _family: FamilyFacts, reasons: list[Reason]) -> None:
    """Texts without markup and odd spaces; lists without what says nothing or was said before."""
    description = doc.get("description")
    if isinstance(description, str):
        _set(doc, "description", plain_text(description), ("text", "plain text with single spaces"), reasons)
    for field in _TEXT_LISTS:
        values = doc.get(field)
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            lines = [line for value in values if (line := plain_text(value))]
            again = set(repeated(lines))
            kept = [line for place, line in enumerate(lines) if place not in again]
            if kept or not values:
                _set(doc, field, kept, ("text", "plain lines, none twice in a row"), reasons)


@lru_cache(maxsize=2048)
def plain_text(text: str) -> str:
    """A text without markup, with single spaces."""
    for _layer in range(5):  # markup may hide markup
        made = _SPACES.sub(" ", html.unescape(_TAG.sub(" ", text))).strip()
        if made == text:
            break
        text = made
    return text


def _name(doc: Doc, family: FamilyFacts, reasons: list[Reason]) -> None:
    name = doc.get("name")
    if not isinstance(name, str) or not name.strip():
        return
    base, qualifier = split_name(name)
    first = _first(doc)
    named = None if qualifier is None else equipment_named(qualifier)
    if qualifier and named is None:  # it says something else than equipment, which is kept
        base = f"{base} {qualifier}"
    base = titled(base)
    if first is None or first not in words("equipment"):
        spelled = titled(name)
    elif named is not None and named != first and not _says(doc, first, named):
        spelled = joined_name(base, named)  # name and equipment disagree, and nothing says which is right
    elif named is None and other_equipment(base, doc["equipment"]):
        spelled = base if qualifier is None else titled(name)  # the same, with the equipment in the middle of the name
    else:
        shorter = without(base, first)
        moved = shorter != base and slug(family.base_name) in slug(shorter) and bool(slug(family.base_name))
        qualified = qualifier is not None or moved or family.qualified
        spelled = joined_name(shorter if moved else base, first if qualified else None)
    if slug(spelled):
        _set(doc, "name", spelled, ("naming", "names are written Name (Equipment)"), reasons)
        _set(doc, "name_slug", slug(spelled), ("slug", "the slug of the name"), reasons)


def _says(doc: Doc, first: str, named: str) -> bool:
    """Whether id and variant key take the side of the equipment field against the name."""
    identity, variant = str(doc.get("id", "")), str(doc.get("variant_key", ""))
    said = [identity.endswith(f"-{first}"), variant == f"equipment:{first}"]
    against = [identity.endswith(f"-{named}"), variant == f"equipment:{named}"]
    return any(said) and not any(against)


def _variant(doc: Doc, family: FamilyFacts, reasons: list[Reason]) -> None:
    name, first = doc.get("name"), _first(doc)
    if not isinstance(name, str) or not family.base_name or first is None or first not in words("equipment"):
        return
    made = variant_key(split_name(name)[0], family.base_name, first)
    _set(doc, "variant_key", made, ("variant", "what makes it special in its family"), reasons)


def _sides(doc: Doc, _family: FamilyFacts, reasons: list[Reason]) -> None:
    """A name that says 'single arm' says that it is unilateral."""
    metadata, name = doc.get("metadata"), doc.get("name")
    if (
        isinstance(metadata, dict)
        and isinstance(name, str)
        and one_sided(name)
        and metadata.get("unilateral") is not True
    ):
        doc["metadata"] = {**metadata, "unilateral": True}
        reasons.append(Reason("metadata.unilateral", "sides", "the name says that one side works alone"))


def _first(doc: Doc) -> str | None:
    equipment = doc.get("equipment")
    return equipment[0] if isinstance(equipment, list) and equipment and isinstance(equipment[0], str) else None
