"""How arguments are read: what every contract is asked for, and a strict Pydantic model."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from enum import Enum
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from pydantic_core import ErrorDetails, SchemaValidator, ValidationError, to_jsonable_python

from interlock.canonical import (
    MOST_PROBLEMS,
    Refusal,
    arguments_bytes,
    canonical,
    did_you_mean,
    encode_canonical,
    guard,
    plain_bytes,
)
from interlock.errors import ContractError
from interlock.reasons import FieldReason
from interlock.tools.exact_types import exact_validator
from interlock.tools.json_values import refuse_objects
from interlock.tools.normal_form import SPELLED, UNORDERED, by_value, in_order
from interlock.tools.union_work import count_shapes, refuse_endless_tries
from interlock.values import FieldProblem, Json, Rewrite, shorten

if TYPE_CHECKING:  # its machinery is loaded with the first model, not with the library
    from pydantic import BaseModel


DECIMAL = "decimal"
"""The format of a text that is a decimal number, in what rules are shown."""

MOST_UNKNOWN = 1_000
"""So many arguments that a tool does not have are looked at, to say which they are; more are only counted."""


class Parsed(msgspec.Struct, frozen=True, gc=False):
    """Arguments that passed the contract: as the tool takes them, and as JSON with defaults filled in."""

    bound: Any
    arguments: dict[str, Json]
    rewrites: tuple[Rewrite, ...] = ()
    compared: Json = None
    """The arguments in one spelling for each value, where they have several; None: as they are."""

    def by_value(self) -> Json:
        """The arguments to be compared with those of other calls."""
        return self.arguments if self.compared is None else self.compared


class Input(Protocol):
    """A contract for arguments."""

    schema: dict[str, Json]
    shown: dict[str, Json]
    """The same, with the types that rules see: a decimal number is let in as a number, and shown as text."""
    fills_inner_defaults: bool
    most_arguments: float
    """More than these cannot all be its own, and are refused before any of them is looked at."""

    def parse(self, raw: Json) -> Parsed:
        """Arguments as the tool takes them, or `Refusal`."""
        ...


class ModelInput:
    """Strict JSON into one Pydantic model; an int is not a string, unknown fields are refused at every depth.

    A Python object that is written as text on its way (bytes, a date, a UUID, a Decimal) is none, unless the field is
    of that very type. That nothing was rewritten so is seen by comparing, which costs less than looking at types.

    What the rules and the record see is what validation made of the arguments, so nothing between the two may differ:
    aliases that only one side knows, fields left out of the dump and secrets dumped as stars are refused here.
    """

    fills_inner_defaults = True

    def __init__(self, model: type[BaseModel], *, ours: bool = False) -> None:
        self.model = model
        self.schema = _tidy(_inline(model.model_json_schema(by_alias=True)))
        self.shown = _describe_shown(model, self.schema)
        self.most_arguments = most_arguments(self.schema)
        self._union_work = count_shapes(self.schema)
        _refuse_two_faces(model, self.schema)
        self._dump = model.__pydantic_serializer__.to_python
        names = frozenset(self.schema.get("properties", {}))
        self._all = names if ours and names == set(model.model_fields) and _is_transparent(model) else None
        self._writes_itself = _mentions(model.__pydantic_core_schema__, ("serialization", "serialization_exclude_if"))
        # `Json[...]` takes a text and is dumped as what stood in it: another face of the same kind.
        self._writes_itself = self._writes_itself or _holds_type(model.__pydantic_core_schema__, "json")
        self._unordered, self._spelled = (
            any(_holds_type(model.__pydantic_core_schema__, kind) for kind in kinds) for kinds in (UNORDERED, SPELLED)
        )
        self._ours = ours
        # JSON, not Python objects: what a model sends is JSON, for which strict means something else (a date is text).
        validate = exact_validator(model).validate_json
        self._validate = partial(validate, strict=True, extra="forbid", by_alias=True, by_name=False)
        if self._all is not None:  # our own flat model, strict and closed by its configuration: its fields will do
            core: Any = model.__pydantic_core_schema__
            self._fields = SchemaValidator(core["schema"], core["config"]).validate_json
        # Where no field takes null, a NaN (which is written as null) is refused by validation itself.
        nulls = self._all is None or any("anyOf" in part for part in self.schema.get("properties", {}).values())
        self._text: Callable[[Json], bytes] = arguments_bytes if nulls else plain_bytes

    def for_kept(self) -> ModelInput:
        """The same for values that were let in before and come from a record: however large and deep they are."""
        made = copy(self)
        made._text = encode_canonical
        return made

    def parse(self, raw: Json) -> Parsed:
        """Arguments as the model takes them, or `Refusal` naming every wrong field."""
        try:
            if self._all is not None:
                write, read = self._text, self._fields
                fields, _extra, _given = read(write(raw))
                if len(raw) == len(self._all):
                    if fields != raw:
                        guard(raw)
                    return Parsed(fields, dict(raw))
                if not fields.items() >= raw.items():
                    guard(raw)
                return Parsed(fields, to_jsonable_python(fields))
            text = self._text(raw)
            refuse_endless_tries(raw, self._union_work)
            bound = self._validate(text)
        except ValidationError as error:
            raise self._refuse(error) from None
        if msgspec.json.decode(text) != raw:
            refuse_objects(raw, self._dump(bound, mode="python", by_alias=True))
        shown = self._dump(bound, mode="json", by_alias=True)
        if self._writes_itself:
            self._refuse_disguise(bound, shown)
        compared = by_value(bound, shown) if self._spelled else None
        if self._unordered:
            shown = in_order(bound, shown)
        return Parsed(bound.__dict__ if self._ours else bound, shown, compared=compared)

    def _refuse_disguise(self, bound: Any, shown: Json) -> None:
        """Where a type writes itself in its own way, what rules are shown must read back as what the tool gets."""
        try:
            same = self._validate(canonical(shown)) == bound
        except (ValidationError, Refusal):
            same = False
        if not same:
            raise Refusal("the tool's model shows other values than it holds, so no rule can judge them")

    def _refuse(self, error: ValidationError) -> Refusal:
        # Without the input: refusals go into records and logs, where values may be secrets.
        found = error.errors(include_url=False, include_input=False, include_context=False)
        return Refusal(*map(self._explain, found[:MOST_PROBLEMS]), more=max(0, len(found) - MOST_PROBLEMS))

    def _explain(self, error: ErrorDetails) -> FieldProblem:
        place = shorten(".".join(str(part) for part in error["loc"])) or "arguments"
        match error["type"]:
            case "extra_forbidden":
                known = self.schema.get("properties", {})
                message = f"the tool has no such parameter{did_you_mean(place, known)}"
                return FieldProblem(place, message, FieldReason.UNKNOWN)
            case "missing":
                return FieldProblem(place, "required, but not given", FieldReason.MISSING)
            case _:
                message = error["msg"]
                return FieldProblem(place, f"{message[0].lower()}{message[1:]}")


# No float, for which 5 is let in and comes back as 5.0; no dates, lists or models, which have faces of their own.
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
_CHANGES_VALUE = ("strip_whitespace", "to_lower", "to_upper", "serialization")


def _is_transparent(model: type[BaseModel]) -> bool:
    """Whether accepted arguments are always written back as they came, so that dumping them again is idle work."""

    def look(part: Any) -> bool:
        if part["type"] == "model":
            return part["cls"] is model and look(part["schema"])
        if part["type"] == "model-fields":
            return all(look(field) for field in part["fields"].values())
        if part["type"] == "enum":
            own_rule = part["cls"]._missing_.__func__ is not Enum._missing_.__func__  # type: ignore[attr-defined]
            # An own `_missing_` lets in texts that the enum writes back as others.
            return part.get("sub_type") == "str" and not own_rule
        if part["type"] == "literal":
            return all(type(item) is str for item in part["expected"])  # 1, 1.0 and true are equal in Python
        changes = any(part.get(key) for key in _CHANGES_VALUE)
        return part["type"] in _SAME_AS_JSON and not changes and ("schema" not in part or look(part["schema"]))

    core = model.__pydantic_core_schema__
    return look(core) if core["type"] == "model" else False


def _describe_shown(model: type[BaseModel], schema: dict[str, Json]) -> dict[str, Json]:
    """The schema of the arguments as rules see them."""
    if not _holds_type(model.__pydantic_core_schema__, "decimal"):
        return schema
    from pydantic.json_schema import GenerateJsonSchema

    class Shown(GenerateJsonSchema):
        def decimal_schema(self, schema: Any) -> dict[str, Json]:
            return {"type": "string", "format": DECIMAL}

    return _tidy(_inline(model.model_json_schema(by_alias=True, schema_generator=Shown)))


def _inline(schema: dict[str, Json]) -> dict[str, Json]:
    """A recursive model's schema is only a reference at its top: put the definition there."""
    if "$ref" not in schema:
        return schema
    return {**schema["$defs"][schema["$ref"].rpartition("/")[2]], "$defs": schema["$defs"]}


def _refuse_two_faces(model: type[BaseModel], takes: dict[str, Json]) -> None:
    """Refuse a model whose arguments go in under other names, or come out as other values, than a rule would see."""
    gives = _inline(model.model_json_schema(by_alias=True, mode="serialization"))
    if _names(takes) != _names(gives):
        raise ContractError(f"{model.__name__}: a field is read and written under different names, or left out of one")
    if _holds(takes, "writeOnly", True):  # how Pydantic marks SecretStr, which is dumped as stars
        raise ContractError(f"{model.__name__}: a secret type hides its value from rules; use str and redact={{...}}")
    for field in model.model_fields.values():
        if field.validation_alias is not None and not isinstance(field.validation_alias, str):
            raise ContractError(
                f"{model.__name__}: a field with several aliases has no one name for rules; give it one"
            )


def _mentions(value: Any, keys: tuple[str, ...]) -> bool:
    if isinstance(value, dict):
        return any(value.get(key) for key in keys) or any(_mentions(item, keys) for item in value.values())
    return isinstance(value, list | tuple) and any(_mentions(item, keys) for item in value)


def _holds_type(value: Any, kind: str) -> bool:
    if isinstance(value, dict):
        return value.get("type") == kind or any(_holds_type(item, kind) for item in value.values())
    return isinstance(value, list | tuple) and any(_holds_type(item, kind) for item in value)


def _names(schema: dict[str, Json]) -> dict[str, set[str]]:
    parts = {"": schema, **schema.get("$defs", {})}
    return {name: set(part["properties"]) for name, part in parts.items() if "properties" in part}


def _holds(value: Json, key: str, wanted: Json) -> bool:
    if isinstance(value, dict):
        return value.get(key) == wanted or any(_holds(item, key, wanted) for item in value.values())
    return isinstance(value, list) and any(_holds(item, key, wanted) for item in value)


COMPOSED = ("allOf", "anyOf", "oneOf", "$ref", "if", "not", "patternProperties", "unevaluatedProperties")


def most_arguments(schema: dict[str, Json]) -> float:
    """So many as it has and may be told of; no limit where it does not name all that it takes."""
    is_open = schema.get("additionalProperties", False) is not False or any(key in schema for key in COMPOSED)
    return inf if is_open or "properties" not in schema else len(schema["properties"]) + MOST_UNKNOWN


def _tidy(schema: dict[str, Json]) -> dict[str, Json]:
    """Drop generated titles: they cost tokens and say nothing."""
    return {
        key: {name: _without_title(part) for name, part in value.items()} if key == "properties" else value
        for key, value in schema.items()
        if key != "title"
    }


def _without_title(part: dict[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in part.items() if key != "title"}
