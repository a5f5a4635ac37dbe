"""The schema validator: a report that does not fit is mended where there is only one way to, and says what was done.

A model may suggest; the schema decides. What cannot be mended is left out, with a reason, for people to look at.
"""

from __future__ import annotations

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


class Repaired(msgspec.Struct, frozen=True):
    """The entries that fit, why some were mended, and those that were left out with the reason for each."""

    entries: tuple[dict[str, Json], ...]
    reasons: tuple[str, ...]
    refused: tuple[tuple[Json, str], ...]


def repaired(entries: Json, model: type[Strict]) -> Repaired:
    """The entries of a report, each brought into its shape if there is only one way to."""
    adapter: TypeAdapter[Any] = TypeAdapter(model)
    kept, reasons, refused = [], list[str](), []
    for entry in entries if isinstance(entries, list) else []:
        mended, why = _mended(entry, model) if isinstance(entry, dict) else (entry, [])
        try:
            kept.append(adapter.validate_python(mended).model_dump())
            reasons += why
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            refused.append((entry, f"{where}: {first['msg']}"))
    return Repaired(tuple(kept), tuple(reasons), tuple(refused))


def _mended(entry: dict[str, Json], model: type[Strict]) -> tuple[dict[str, Json], list[str]]:
    known, why = set(model.model_fields), list[str]()
    made = {key: value for key, value in entry.items() if key in known}
    if len(made) < len(entry):
        why.append(f"left out {', '.join(sorted(set(entry) - known))}, which nothing reads")
    field = made.get("field")
    if isinstance(field, str) and field not in _FIELDS:
        plain = field.strip().lower().replace("-", "_").replace(" ", "_")
        better = _SYNONYMS.get(plain, plain)
        if better in (*_FIELDS, "merged_into") and better != field:
            made["field"] = better
            why.append(f"field {field!r} is called {better!r}")
    for name, allowed in (("severity", SEVERITIES), ("issue_type", TYPES)):
        value = made.get(name)
        if isinstance(value, str) and value not in allowed and value.strip().lower() in allowed:
            made[name] = value.strip().lower()
            why.append(f"{name} {value!r} is written {made[name]!r}")
    confidence = made.get("confidence")
    if isinstance(confidence, int) and not isinstance(confidence, bool) and 0 <= confidence <= 100:
        made["confidence"] = float(confidence) if confidence <= 1 else confidence / 100
        why.append("confidence as a share of one")
    evidence = made.get("evidence")
    if isinstance(evidence, str) and "after" in known and ":" not in evidence and slug(evidence):
        made["evidence"] = f"model:{slug(evidence)[:60]}"
        why.append("evidence as a tag")
    return made, why
