"""Coercion of reports: an entry that does not fit its schema is corrected where there is only one way to.

A model may suggest; the schema decides. What cannot be corrected is rejected, with a reason, for people to look at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from pydantic import TypeAdapter, ValidationError

from interlock_catalog.checks.issues import FIELDS, SEVERITIES, TYPES
from interlock_catalog.contracts import Json, Strict
from interlock_catalog.vocabulary import slug

_FIELDS = tuple(field for fields in FIELDS.values() for field in fields)
_SYNONYMS = {
    "muscles": "muscles.primary",
    "primary_muscles": "muscles.primary",
    "secondary_muscles": "muscles.secondary",
    "contribution": "muscles.contribution",
    "movement": "movement.type",
    "movement_type": "movement.type",
    "split": "movement.split",
    "level": "metadata.level",
    "plane": "metadata.plane_of_motion",
    "plane_of_motion": "metadata.plane_of_motion",
    "unilateral": "metadata.unilateral",
    "use_cases": "programming_use_cases",
    "notes": "execution_notes",
    "instructions": "execution_notes",
    "mistakes": "common_mistakes",
    "suitability": "suitability_notes",
    "tags": "stimulus_tags",
    "duplicate": "merged_into",
}


class RejectedEntry(msgspec.Struct, frozen=True):
    """An entry that does not fit, and cannot be made to."""

    entry: Json
    reason: str


class CoercedEntries(msgspec.Struct, frozen=True):
    """The entries that fit, what was corrected in them, and those that were rejected."""

    entries: tuple[dict[str, Json], ...]
    corrections: tuple[str, ...]
    rejected: tuple[RejectedEntry, ...]


def coerce_entries(entries: Json, model: type[Strict]) -> CoercedEntries:
    """The entries of a report, each brought into its shape if there is only one way to."""
    adapter: TypeAdapter[Any] = TypeAdapter(model)
    kept, corrections, rejected = list[dict[str, Json]](), list[str](), list[RejectedEntry]()
    for entry in entries if isinstance(entries, list) else []:
        corrected, why = _correct(entry, set(model.model_fields)) if isinstance(entry, dict) else (entry, [])
        try:
            kept.append(adapter.validate_python(corrected).model_dump())
            corrections += why
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            rejected.append(RejectedEntry(entry, f"{where}: {first['msg']}"))
    return CoercedEntries(tuple(kept), tuple(corrections), tuple(rejected))


def _correct(entry: dict[str, Json], known: set[str]) -> tuple[dict[str, Json], list[str]]:
    made, why = {key: value for key, value in entry.items() if key in known}, list[str]()
    if len(made) < len(entry):
        why.append(f"left out {', '.join(sorted(set(entry) - known))}, which nothing reads")
    for correct in _CORRECTIONS:
        why += correct(made)
    # Only a proposed value rests on a tag; the evidence of an analyst is a sentence, and stays one.
    if "after" in known:
        why += _correct_evidence(made)
    return made, why


def _correct_field(entry: dict[str, Json]) -> list[str]:
    field = entry.get("field")
    if not isinstance(field, str) or field in _FIELDS:
        return []
    plain = field.strip().lower().replace("-", "_").replace(" ", "_")
    better = _SYNONYMS.get(plain, plain)
    if better not in (*_FIELDS, "merged_into") or better == field:
        return []
    entry["field"] = better
    return [f"field {field!r} is called {better!r}"]


def _correct_case(entry: dict[str, Json]) -> list[str]:
    why = []
    for name, allowed in (("severity", SEVERITIES), ("issue_type", TYPES)):
        value = entry.get(name)
        if isinstance(value, str) and value not in allowed and value.strip().lower() in allowed:
            entry[name] = value.strip().lower()
            why.append(f"{name} {value!r} is written {entry[name]!r}")
    return why


def _correct_confidence(entry: dict[str, Json]) -> list[str]:
    value = entry.get("confidence")
    # A whole number is percent, but for 0 and 1; what 1.5 means nobody can tell, so the schema rejects it.
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 100:
        return []
    entry["confidence"] = float(value) if value <= 1 else value / 100
    return ["confidence as a share of one"]


def _correct_evidence(entry: dict[str, Json]) -> list[str]:
    """The evidence of a proposed change is a tag; what is only a sentence becomes the model's own tag."""
    evidence = entry.get("evidence")
    if not isinstance(evidence, str) or ":" in evidence or not slug(evidence):
        return []
    entry["evidence"] = f"model:{slug(evidence)[:60]}"
    return ["evidence as a tag"]


_CORRECTIONS: tuple[Callable[[dict[str, Json]], list[str]], ...] = (_correct_field, _correct_case, _correct_confidence)
