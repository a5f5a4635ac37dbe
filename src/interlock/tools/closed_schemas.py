"""A JSON Schema closed to properties that it does not name, in every draft and however it is put together."""

from __future__ import annotations

from collections.abc import Mapping
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
_BESIDE = (*_PARTS, *_CONDITIONS, "properties", "patternProperties")
_INSIDE: dict[str, bool | None] = {
    **dict.fromkeys(("properties", "patternProperties", "items", "prefixItems", "additionalItems"), False),
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties", "unevaluatedItems"), False),
    **dict.fromkeys(("allOf", "then", "else", "dependentSchemas", "dependencies"), True),
    **dict.fromkeys(("anyOf", "oneOf")),
}
"""Where schemas stand in a schema, and whether they are parts of the same object; None: beside others they are."""
_BY_NAME = ("properties", "patternProperties", "dependentSchemas", "dependencies")
_PART = "-part"
"""Behind the name of a definition: not closed, as it is only a part of an object."""


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
    """One schema while it is closed.

    What stands in an `allOf`, beside a reference or behind a condition is a part of an object: it is not closed itself,
    as it would refuse the other parts, and what stands in it is. A definition that is such a part somewhere is there
    twice, closed and as a part.
    """

    def __init__(self, root: dict[str, Json]) -> None:
        self._root = root
        self._is_old = any(draft in str(root.get("$schema", "")) for draft in _OLD)

    def close(self, part: Json, *, top: bool = False, is_part: bool = False) -> Any:
        """A schema, closed; `is_part`: only what stands in it."""
        if not isinstance(part, dict):
            return part
        beside = bool(part.get("properties")) or is_part
        made = {key: self._close_inside(key, inner, beside=beside) for key, inner in part.items()}
        if is_part or (not self._is_old and any(key in part for key in _BESIDE)):
            made |= _refer_to_part(part)
        says = "additionalProperties" in part or "unevaluatedProperties" in part
        if not is_part and not says and (top or part.get("properties")):
            self._shut(made, part)
        return made

    def _close_inside(self, key: str, inner: Json, *, beside: bool) -> Json:
        """What stands under a keyword; `beside`: there are other parts of the same object."""
        if key in _DEFINITIONS and isinstance(inner, dict):
            parts = {f"{name}{_PART}": self.close(one, is_part=True) for name, one in inner.items()}
            return {name: self.close(one) for name, one in inner.items()} | parts
        if key not in _INSIDE:
            return inner
        is_part = beside if _INSIDE[key] is None else bool(_INSIDE[key])
        if isinstance(inner, list):
            return [self.close(one, is_part=is_part) for one in inner]
        if key in _BY_NAME and isinstance(inner, dict):
            return {name: self.close(one, is_part=is_part) for name, one in inner.items()}
        return self.close(inner, is_part=is_part)

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


def _refer_to_part(part: dict[str, Json]) -> dict[str, Json]:
    """The reference of a schema that is a part, or has more beside it: to the part that a definition is."""
    reference = part.get("$ref")
    known = isinstance(reference, str) and reference.startswith(tuple(f"#/{key}/" for key in _DEFINITIONS))
    return {"$ref": f"{reference}{_PART}"} if known and str(reference).count("/") == 2 else {}
