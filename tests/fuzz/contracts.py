"""Contracts that arrived as JSON Schema, from somebody who means no good, and arguments for them."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from interlock import ContractError, Tool
from interlock.canonical import Refusal
from tests.fuzz.target import Target

_WORDS = ["type", "properties", "required", "items", "enum", "const", "$ref", "$defs", "definitions", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "default", "pattern", "format", "minimum", "maximum", "multipleOf", "minLength", "maxLength", "minItems", "uniqueItems", "additionalProperties", "patternProperties", "propertyNames", "dependentRequired", "$id", "$schema", "$anchor", "$dynamicRef", "title", "description", "nullable", "a", "__proto__", ""]  # fmt: skip
_VALUES = ["object", "array", "string", "integer", "number", "null", "boolean", "nonsense", "#", "#/$defs/a", "#/properties/a", "#/nowhere", "http://127.0.0.1:9/schema", "file:///etc/hostname", "https://json-schema.org/draft/2020-12/schema", "(a+)+$", "(?=a)", "[", "\\d{1000000000}", "date-time", "regex", "uuid", "a", ""]  # fmt: skip
_LEAVES = (
    st.sampled_from(_VALUES)
    | st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=True)
    | st.text(max_size=8)
)


def _nest(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_WORDS), inner, max_size=5)


_JSON = st.recursive(_LEAVES, _nest, max_leaves=20)


def _deep(word: str, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}} if word == "properties" else {word: [schema]}
    return schema


_SCHEMAS = (
    st.dictionaries(st.sampled_from(_WORDS), _JSON, max_size=6)
    | st.dictionaries(st.sampled_from(_WORDS), _JSON, max_size=5).map(lambda schema: {**schema, "type": "object"})
    | st.dictionaries(st.sampled_from("ab"), st.dictionaries(st.sampled_from(_WORDS), _JSON, max_size=4)).map(
        lambda properties: {"type": "object", "properties": properties, "$defs": properties}
    )
    | st.builds(_deep, st.sampled_from(["properties", "allOf", "anyOf"]), st.sampled_from([5, 40, 200, 900]))
)
_ARGUMENTS = st.dictionaries(st.sampled_from(["a", "b", "", "__proto__", "x" * 99]), _JSON, max_size=4) | _JSON


def _take(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


def read(given: tuple[Any, Any]) -> None:
    """A contract or a refusal; arguments that fit or a refusal; and a model can be told of it."""
    schema, arguments = given
    try:
        made = Tool.from_schema("find", _take, schema=schema, effect="read")
    except ContractError:
        return
    msgspec.json.encode(made.manifest())
    try:
        made.input.parse(arguments)
    except Refusal:
        return


TARGET = Target("contracts", st.tuples(_SCHEMAS, _ARGUMENTS), read)
