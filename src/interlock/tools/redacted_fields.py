"""The fields that a contract has, and whether those that it redacts are among them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from interlock.canonical import did_you_mean, nearest
from interlock.errors import ContractError
from interlock.values import Json

_SLIP = 80
"""How much alike a name and one of the contract's must be to be a slip where any name could be meant: one letter of
five, or two that changed places. What `nearest` offers by itself goes further, and would take `phone` for `home`."""
_COMPOSED = ("items", "prefixItems", "anyOf", "oneOf", "allOf")
_SAYS_WHAT = ("type", "$ref", "enum", "const", *_COMPOSED)


def refuse_unknown_fields(tool: str, fields: frozenset[str], schemas: Collection[Json], *, is_open: bool) -> None:
    """Refuse to redact what the tool does not have: the field that was meant would be written down.

    Where a part of its contract is open, any other name may stand there; then only what is nearly the name of one of
    its fields is taken for a slip.
    """
    known = {name for schema in schemas for name in property_names(schema)}
    folded = {name.casefold() for name in known}
    is_open = is_open or any(may_hold_others(schema) for schema in schemas)
    for field in sorted(fields):
        if field.casefold() in folded:
            continue
        if is_open:
            slips = nearest(field, sorted(known), 1, _SLIP)
            if not slips or slips[0] in fields:
                continue
            hint = f"; did you mean {slips[0]!r}?"
        else:
            has = f"its fields are {', '.join(sorted(known))}" if known else "it has none"
            hint = did_you_mean(field, known) or f"; {has}"
        raise ContractError(f"{tool}: redact names a field that it does not have, {field!r}{hint}")


def property_names(schema: Json) -> Iterator[str]:
    """The names of all properties of a JSON Schema, at any depth."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            yield from properties
        for item in schema.values():
            yield from property_names(item)
    elif isinstance(schema, list):
        for item in schema:
            yield from property_names(item)


def may_hold_others(schema: Json) -> bool:
    """Whether what fits the schema may hold names that stand nowhere in it."""
    if isinstance(schema, list):
        return any(map(may_hold_others, schema))
    if not isinstance(schema, dict):
        return schema is True
    if not any(key in schema for key in _SAYS_WHAT):
        return True  # any value at all
    if schema.get("type") == "array" and not any(key in schema for key in _COMPOSED):
        return True
    if schema.get("type") == "object" and schema.get("additionalProperties", "properties" not in schema) is not False:
        return True
    named = [part for key in ("properties", "$defs", "definitions") for part in schema.get(key, {}).values()]
    return any(map(may_hold_others, [*named, *(schema[key] for key in _COMPOSED if key in schema)]))
