"""JSON Schema takes 5.0 for an integer: rules and tools get 5, wherever it stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.values import Json

_SHAPES = ("allOf", "anyOf", "oneOf")


class WholeNumbers:
    """Where a schema wants whole numbers."""

    def __init__(self, schema: Mapping[str, Json]) -> None:
        self._root = schema
        self._any = _mentions_integer(schema)
        self._left = 0

    def spell(self, arguments: Json) -> Any:
        """The same arguments, with whole numbers where the schema asks for them."""
        self._left = _MOST_STEPS
        return self._spell(arguments, self._root, 0) if self._any else arguments

    def _spell(self, value: Json, schema: Json, depth: int) -> Json:
        self._left -= 1
        if not isinstance(schema, Mapping) or depth > _DEEPEST or self._left < 0:
            return value
        if type(value) is float:
            kinds = schema.get("type")
            if value.is_integer() and (kinds == "integer" or (isinstance(kinds, list) and _is_whole(kinds))):
                return int(value)
        elif isinstance(value, dict):
            value = {key: self._spell(item, self._of_property(schema, key), depth + 1) for key, item in value.items()}
        elif isinstance(value, list):
            value = [self._spell(item, _of_item(schema, place), depth + 1) for place, item in enumerate(value)]
        for part in self._shapes(schema):
            value = self._spell(value, part, depth + 1)
        return value

    def _shapes(self, schema: Mapping[str, Json]) -> list[Json]:
        shapes = [part for key in _SHAPES for part in schema.get(key, ()) if isinstance(schema.get(key), list)]
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            found: Json = self._root
            for step in reference[2:].split("/"):
                found = found.get(step) if isinstance(found, Mapping) else None
            shapes.append(found)
        return shapes

    def _of_property(self, schema: Mapping[str, Json], key: str) -> Json:
        named = schema.get("properties")
        return named[key] if isinstance(named, Mapping) and key in named else schema.get("additionalProperties")


_DEEPEST, _MOST_STEPS = 64, 50_000
"""A schema that leads to itself in many ways is not followed for ever: what is left is as it came."""


def _of_item(schema: Mapping[str, Json], place: int) -> Json:
    """The schema of an item, in the words of new drafts and of old ones."""
    items, first = schema.get("items"), schema.get("prefixItems")
    listed = first if isinstance(first, list) else items if isinstance(items, list) else []
    if place < len(listed):
        return listed[place]
    return schema.get("additionalItems") if isinstance(items, list) else items


def _is_whole(kinds: list[Json]) -> bool:
    return "integer" in kinds and "number" not in kinds


def _mentions_integer(value: Json) -> bool:
    if isinstance(value, Mapping):
        kinds = value.get("type")
        found = kinds == "integer" or (isinstance(kinds, list) and "integer" in kinds)
        return found or any(map(_mentions_integer, value.values()))
    return isinstance(value, list) and any(map(_mentions_integer, value))
