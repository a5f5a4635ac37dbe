"""What a schema admits: which JSON types, and what is behind a reference or beside null."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.values import Json


def types_of(schema: Json) -> set[str]:
    """The types that a value may have, through every alternative."""
    if not isinstance(schema, dict):
        return set()
    kind = schema.get("type")
    found = set(kind) if isinstance(kind, list) else {kind} if isinstance(kind, str) else set()
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        found |= types_of(part)
    if "enum" in schema:  # an enum often has no type of its own
        found |= {"string"} if any(isinstance(item, str) for item in schema["enum"]) else set()
    return found


def inner_schema(kind: Json, known: Mapping[str, Json]) -> dict[str, Json]:
    """The schema of a value that may also be null, or is defined elsewhere."""
    if not isinstance(kind, dict):
        return {}
    parts = [part for part in kind.get("anyOf", ()) if isinstance(part, dict) and part.get("type") != "null"]
    whole = {**kind, **parts[0]} if len(parts) == 1 else kind
    referred = known.get(str(whole.get("$ref", "")).rpartition("/")[2])
    return {**whole, **referred} if isinstance(referred, dict) else whole
