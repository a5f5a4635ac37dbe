"""Which JSON types a schema admits."""

from __future__ import annotations

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
