"""A JSON Schema closed to properties that it does not name, in every draft and however it is put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from interlock.tools.inputs import COMPOSED
from interlock.values import Json

_DEFINITIONS = ("$defs", "definitions")
_PARTS = ("allOf", "anyOf", "oneOf")
_CONDITIONS = ("if", "then", "else")
_ABOUT_THE_TOP = frozenset(
    (
        "type",
        "required",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "additionalProperties",
        "enum",
        "const",
    )
) | {"patternProperties", "unevaluatedProperties", "propertyNames", "minProperties", "maxProperties", "dependencies"}
_OLD = ("draft-03", "draft-04", "draft-06", "draft-07")
"""Drafts that know nothing of properties which other parts of a schema have looked at."""
_BESIDE = (*_PARTS, *_CONDITIONS, "properties", "patternProperties", "$ref")


class _Named(msgspec.Struct):
    """What a schema and its parts name: properties, patterns of them, or anything."""

    names: set[str]
    patterns: set[str]
    takes_any: bool = False


def close(schema: dict[str, Json]) -> dict[str, Json]:
    """The schema with every object closed to properties it does not name."""
    made: dict[str, Json] = _Closing(schema).close(schema, top=True)
    return made


def property_alone(schema: dict[str, Json], name: str) -> Json:
    """The schema of one property, in which references into the whole still lead somewhere."""
    kept = {key: part for key, part in schema.items() if key not in _ABOUT_THE_TOP}
    # A JSON pointer inside a URI: ~ before /, whose escape holds a ~, and % for what a URI does not take.
    return {**kept, "$ref": "#/properties/" + quote(name.replace("~", "~0").replace("/", "~1"), safe="~")}


class _Closing:
    """One schema while it is closed."""

    def __init__(self, root: dict[str, Json]) -> None:
        self._root = root
        self._is_old = any(draft in str(root.get("$schema", "")) for draft in _OLD)
        self._extended = frozenset(_extended_names(root, old=self._is_old))
        """Definitions that others extend: they are parts of an object, not the whole."""

    def close(self, part: Json, *, top: bool = False) -> Any:
        if not isinstance(part, dict):
            return part
        made = dict(part)
        if isinstance(part.get("properties"), dict):
            made["properties"] = {name: self.close(inner) for name, inner in part["properties"].items()}
        for key in _DEFINITIONS:
            if isinstance(part.get(key), dict):
                made[key] = {
                    name: inner if name in self._extended else self.close(inner) for name, inner in part[key].items()
                }
        for key in ("items", "additionalProperties"):
            if isinstance(part.get(key), dict):
                made[key] = self.close(part[key])
        for key in ("anyOf", "oneOf", "prefixItems", "items"):
            # Beside properties an option is only a part of the same object; closed, it would refuse the other part.
            if isinstance(part.get(key), list) and not part.get("properties"):
                made[key] = [self.close(option) for option in part[key]]
        if (
            "additionalProperties" not in part
            and "unevaluatedProperties" not in part
            and (top or part.get("properties"))
        ):
            self._shut(made, part)
        return made

    def _shut(self, made: dict[str, Json], part: dict[str, Json]) -> None:
        """additionalProperties sees only the properties beside it, and would refuse those that an allOf or $ref names:
        newer drafts have another word for that, and in older ones they are named beside it."""
        if not any(key in part for key in COMPOSED):
            made["additionalProperties"] = False
        elif not self._is_old:
            made["unevaluatedProperties"] = False
        else:
            named = self._name(part, _Named(set(), set()), set())
            if not named.takes_any and "$ref" not in part:  # beside a $ref older drafts look at nothing
                made["properties"] = dict.fromkeys(sorted(named.names), True) | made.get("properties", {})
                if "draft-04" in str(self._root.get("$schema")) or "draft-03" in str(self._root.get("$schema")):
                    made["properties"] = {n: {} if inner is True else inner for n, inner in made["properties"].items()}
                made["patternProperties"] = {
                    **{pattern: {} for pattern in sorted(named.patterns)},
                    **part.get("patternProperties", {}),
                }
                made["additionalProperties"] = False

    def _name(self, part: Json, named: _Named, seen: set[str]) -> _Named:
        if part is True:
            return named
        if not isinstance(part, dict):
            return named
        named.names.update(part.get("properties", ()))
        named.patterns.update(part.get("patternProperties", ()))
        named.takes_any = named.takes_any or part.get("additionalProperties", False) is not False
        inner = [item for key in _PARTS for item in part.get(key, ())]
        inner += [part[key] for key in _CONDITIONS if key in part]
        inner += [item for item in part.get("dependencies", {}).values() if isinstance(item, dict)]
        for item in inner:
            self._name(item, named, seen)
        reference = part.get("$ref")
        if isinstance(reference, str) and reference not in seen:
            seen.add(reference)
            self._name(self._resolve(reference), named, seen)
        return named

    def _resolve(self, reference: str) -> Json:
        """What a reference into the schema itself leads to; one that leads elsewhere may name anything."""
        if not reference.startswith("#"):
            return {"additionalProperties": True}
        found: Json = self._root
        for step in unquote(reference[1:]).split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, Mapping) and key in found:
                found = found[key]
            else:
                return {"additionalProperties": True}
        return found


def _extended_names(value: Json, *, old: bool) -> Iterator[str]:
    """Names of definitions that stand in an `allOf`, or beside whose reference there is more of the same object."""
    if isinstance(value, dict):
        parts = [*_list_of(value.get("allOf"))]  # also the name of a property, whose schema it is then
        if not old and any(key in value for key in _BESIDE if key != "$ref"):
            parts.append(value)
        for part in parts:
            if isinstance(part, dict) and isinstance(part.get("$ref"), str):
                yield part["$ref"].rpartition("/")[2]
        for item in value.values():
            yield from _extended_names(item, old=old)
    elif isinstance(value, list):
        for item in value:
            yield from _extended_names(item, old=old)


def _list_of(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
