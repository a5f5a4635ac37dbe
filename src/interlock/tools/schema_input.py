"""A contract that arrived as JSON Schema, checked by a compiled validator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from interlock.canonical import MOST_PROBLEMS, Refusal, arguments_bytes, canonical, guard
from interlock.errors import ContractError, install_hint
from interlock.tools.closed_schemas import close, property_alone
from interlock.tools.inputs import Parsed, most_arguments
from interlock.tools.union_work import count_shapes, refuse_endless_tries
from interlock.tools.whole_numbers import WholeNumbers
from interlock.values import FieldProblem, Json, Rewrite

_EXCLUDING = frozenset(("oneOf", "not", "if", "contains", "maxContains"))


class SchemaInput:
    """A contract that arrived as JSON Schema.

    `null` for an optional property whose schema does not admit null means that the property was left out: models send
    it that way. It is dropped, and the schema's defaults are filled in; both are recorded as rewrites. Anywhere else
    null is a value like any other. Unknown properties are refused at every depth, unless the schema itself says what
    additional ones look like. References lead into the schema itself, or into the `documents` that come with it.
    """

    fills_inner_defaults = False

    def __init__(
        self, schema: dict[str, Json], *, documents: Mapping[str, Json] | None = None, formats: bool = False
    ) -> None:
        try:
            import jsonschema_rs
        except ImportError:
            raise ContractError(f"Tool.from_schema needs the compiled validator: {install_hint('schema')}") from None
        schema = _require_object(schema)
        given = dict(documents or {})
        # Whoever sent the schema must not say what is fetched from where, or which file is read.
        compiled = partial(
            jsonschema_rs.validator_for, retriever=partial(_retrieve, given), validate_formats=formats or None
        )
        try:
            as_it_came = compiled(schema, mask="the value")  # then what is closed below is of the right shape
            self.schema = self.shown = close(schema)
            self.most_arguments = most_arguments(self.schema)
            # The mask keeps values out of messages, which go into records and logs.
            closed = compiled(self.schema, mask="the value")
            # What excludes something may let more in once its parts are closed: it has to hold as it came, too.
            self._validators = (closed, as_it_came) if _excludes(schema) else (closed,)
            self._properties = {name: compiled(property_alone(schema, name)) for name in schema.get("properties", {})}
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            raise ContractError(f"the input schema is not valid JSON Schema: {error}") from None
        except RecursionError:
            raise ContractError("the input schema is nested too deeply; make it shallower") from None
        self._required = frozenset(schema.get("required", ()))
        self._union_work = count_shapes(schema, again=1, documents=given)
        self._defaults = {
            name: part["default"]
            for name, part in schema.get("properties", {}).items()
            if isinstance(part, dict) and "default" in part and name not in self._required
            if self._properties[name].is_valid(part["default"])
        }
        self._whole = WholeNumbers(schema)

    def parse(self, raw: Json) -> Parsed:
        """Arguments that the schema admits, or `Refusal` naming every wrong field."""
        arguments = msgspec.json.decode(arguments_bytes(raw))
        if arguments != raw:
            guard(raw)
        dropped = [name for name, value in arguments.items() if value is None and self._means_absent(name)]
        for name in dropped:
            del arguments[name]
        # After the nulls were dropped: null for a property with a default means its default.
        filled = {name: value for name, value in self._defaults.items() if name not in arguments}
        rewrites = [Rewrite(name, None, "(left out)", "contract") for name in dropped if name not in filled]
        rewrites += [Rewrite(name, None, value, "contract") for name, value in filled.items()]
        arguments |= filled
        refuse_endless_tries(arguments, self._union_work)
        for validator in self._validators:
            errors = validator.iter_errors(arguments)
            problems = [
                FieldProblem(".".join(map(str, error.instance_path)) or "arguments", error.message)
                for error in islice(errors, MOST_PROBLEMS)
            ]
            if problems:
                raise Refusal(*problems, more=sum(1 for _ in errors))
        arguments = self._whole.spell(arguments)
        # The tool gets a copy: what it does to its arguments must not show in the record.
        return Parsed(msgspec.json.decode(canonical(arguments)), arguments, tuple(rewrites))

    def _means_absent(self, name: str) -> bool:
        part = self._properties.get(name)
        return part is not None and name not in self._required and not part.is_valid(None)


def _excludes(value: Json) -> bool:
    """Whether a schema says anywhere what must not be, or what only one of several may."""
    if isinstance(value, dict):
        return any(key in value for key in ("oneOf", "not", "if", "contains", "maxContains")) or any(
            map(_excludes, value.values())
        )
    return isinstance(value, list) and any(map(_excludes, value))


def _require_object(schema: Any) -> dict[str, Json]:
    """The schema, which says at its top that arguments are an object; one that leaves that out means it."""
    kind = schema.get("type", "object") if isinstance(schema, dict) else None
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise ContractError("an input schema describes an object: write type 'object' at its top, or leave type out")
    return {**schema, "type": "object"}


def _retrieve(documents: dict[str, Json], address: str) -> Json:
    """A document that was handed over, and no other."""
    found = documents.get(address, documents.get(address.rstrip("#")))
    if found is None:
        raise ValueError(
            f"it refers to {address!r}, and nothing is fetched for a contract; put that part into '$defs', or hand the"
            " document over: documents={address: schema}"
        )
    return found
