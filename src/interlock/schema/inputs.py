"""Two ways to read arguments: a strict Pydantic model, or a contract that arrived as JSON Schema."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from interlock.errors import ContractError
from interlock.schema.canonical import Refusal, arguments_bytes, did_you_mean
from interlock.values import Json, Rewrite


class Parsed(msgspec.Struct, frozen=True, gc=False):
    """Arguments that passed the contract: as the tool takes them, and as JSON with defaults filled in."""

    bound: Any
    arguments: dict[str, Json]
    rewrites: tuple[Rewrite, ...] = ()


class Input(Protocol):
    """A contract for arguments."""

    schema: dict[str, Json]

    def parse(self, raw: Json) -> Parsed:
        """Arguments as the tool takes them, or `Refusal`."""
        ...


class ModelInput:
    """Strict JSON into one Pydantic model; an int is not a string, unknown fields are refused."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.model = model
        self.schema = _tidy(model.model_json_schema(by_alias=True))
        self._validate = model.__pydantic_validator__.validate_json
        self._dump = model.__pydantic_serializer__.to_python
        self._options: dict[str, Any] = {} if model.model_config.get("extra") == "forbid" else {"extra": "forbid"}
        self._all = frozenset(self.schema.get("properties", {})) if _is_transparent(model) else None

    def parse(self, raw: Json) -> Parsed:
        """Arguments as the model takes them, or `Refusal` naming every wrong field."""
        try:
            bound = self._validate(arguments_bytes(raw), strict=True, **self._options)
        except ValidationError as error:
            raise Refusal(*map(self._explain, error.errors(include_url=False, include_input=False))) from None
        if self._all is not None and len(raw) == len(self._all):
            return Parsed(bound, raw)
        return Parsed(bound, self._dump(bound, mode="json", by_alias=True))

    def _explain(self, error: ErrorDetails) -> str:
        place = ".".join(str(part) for part in error["loc"]) or "arguments"
        known = self.schema.get("properties", {})
        match error["type"]:
            case "extra_forbidden":
                return f"{place}: the tool has no such parameter{did_you_mean(place, known)}"
            case "missing":
                return f"{place}: required, but not given"
            case _:
                message = error["msg"]
                return f"{place}: {message[0].lower()}{message[1:]}"


_SAME_AS_JSON = {
    "str",
    "int",
    "bool",
    "enum",
    "literal",
    "none",
    "nullable",
    "default",
    "model-field",
    "model-fields",
}
_CHANGES_TEXT = {"strip_whitespace", "to_lower", "to_upper"}


def _is_transparent(model: type[BaseModel]) -> bool:
    """Whether accepted arguments are always written back as they came, so that dumping them again is idle work."""

    def look(part: Any) -> bool:
        if isinstance(part, dict) and "type" in part:
            if part["type"] == "model":
                return part["cls"] is model and look(part["schema"])
            if part["type"] == "model-fields":
                return all(look(field) for field in part["fields"].values())
            changes = any(part.get(key) for key in _CHANGES_TEXT) or "serialization" in part
            return part["type"] in _SAME_AS_JSON and not changes and ("schema" not in part or look(part["schema"]))
        return False

    return look(model.__pydantic_core_schema__)


class SchemaInput:
    """A contract that arrived as JSON Schema, checked by a compiled validator.

    `null` for an optional property whose schema does not admit null means that the property was left out: models send
    it that way. It is dropped and recorded as a rewrite. Anywhere else null is a value like any other. Unknown
    properties are refused unless the schema itself says what additional ones look like.
    """

    def __init__(self, schema: dict[str, Json]) -> None:
        try:
            import jsonschema_rs
        except ImportError:
            raise ContractError(
                "Tool.from_schema needs the compiled validator: pip install 'interlock[schema]'"
            ) from None
        if schema.get("type") != "object":
            raise ContractError("an input schema must have type 'object' at its top")
        self.schema = schema if "additionalProperties" in schema else {**schema, "additionalProperties": False}
        try:
            self._validator = jsonschema_rs.validator_for(self.schema)
            self._properties = {
                name: jsonschema_rs.validator_for(_with_defs(schema, part))
                for name, part in schema.get("properties", {}).items()
            }
        except (jsonschema_rs.ValidationError, ValueError) as error:
            raise ContractError(f"the input schema is not valid JSON Schema: {error}") from None
        self._required = frozenset(schema.get("required", ()))

    def parse(self, raw: Json) -> Parsed:
        """Arguments that the schema admits, or `Refusal` naming every wrong field."""
        arguments = msgspec.json.decode(arguments_bytes(raw))
        dropped = tuple(name for name, value in arguments.items() if value is None and self._means_absent(name))
        for name in dropped:
            del arguments[name]
        problems = tuple(
            f"{'.'.join(map(str, error.instance_path)) or 'arguments'}: {error.message}"
            for error in self._validator.iter_errors(arguments)
        )
        if problems:
            raise Refusal(*problems)
        rewrites = tuple(Rewrite(field=n, before=None, after="(left out)", rule="contract") for n in dropped)
        return Parsed(arguments, arguments, rewrites)

    def _means_absent(self, name: str) -> bool:
        part = self._properties.get(name)
        return part is not None and name not in self._required and not part.is_valid(None)


def _with_defs(schema: dict[str, Json], part: Json) -> Json:
    if not isinstance(part, dict):
        return part
    return {**{key: schema[key] for key in ("$defs", "definitions", "$schema") if key in schema}, **part}


def _tidy(schema: dict[str, Json]) -> dict[str, Json]:
    """Drop generated titles: they cost tokens and say nothing."""
    return {
        key: {name: _without_title(part) for name, part in value.items()} if key == "properties" else value
        for key, value in schema.items()
        if key != "title"
    }


def _without_title(part: dict[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in part.items() if key != "title"}
