"""The forms that tools promise for their answers, checked by the compiled validator: no pattern is endless to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema_rs
import mcp_types as types

from interlock.canonical import Refusal
from interlock.errors import ContractError
from interlock.tools.union_work import UnionWork, count_shapes, refuse_endless_tries
from interlock.values import Json


class PromisedForm:
    """What one tool promises. `ContractError` if nothing can be held against it."""

    def __init__(self, schema: Mapping[str, Json]) -> None:
        self.schema = dict(schema)
        try:
            self._validator: Any = jsonschema_rs.validator_for(self.schema, retriever=_fetch_nothing, mask="the value")
            self._work: UnionWork = count_shapes(self.schema, again=1)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, RecursionError) as error:
            raise ContractError(f"the schema of its answers cannot be kept: {error}") from None

    def problem(self, found: types.CallToolResult) -> str:
        """What is not as it was promised; nothing if all is."""
        value = found.structured_content
        if value is None and "structured_content" not in found.model_fields_set:
            return "there is no structured content"
        try:
            refuse_endless_tries(value if isinstance(value, dict) else {"value": value}, self._work)
        except Refusal as refusal:
            return str(refusal)
        error = next(iter(self._validator.iter_errors(value)), None)
        return "" if error is None else f"{'.'.join(map(str, error.instance_path)) or 'it'}: {error.message}"


class PromisedForms:
    """Those of the tools of one server, as it has listed them."""

    def __init__(self) -> None:
        self._known: dict[str, PromisedForm] = {}

    def copy(self) -> PromisedForms:
        """The same, which goes on by itself."""
        made = PromisedForms()
        made._known = dict(self._known)
        return made

    def learn(self, offered: Iterable[types.Tool]) -> None:
        """What its tools promise now; what cannot be read is no promise, and such a tool is left out elsewhere."""
        before, self._known = self._known, {}
        for one in offered:
            if one.output_schema is not None:
                known = before.get(one.name)
                try:
                    same = known if known is not None and known.schema == one.output_schema else None
                    self._known[one.name] = same or PromisedForm(one.output_schema)
                except ContractError:
                    continue

    def problem(self, tool: str, found: types.CallToolResult) -> str:
        """What of an answer is not as the tool promises."""
        form = self._known.get(tool)
        return "" if form is None else form.problem(found)


def _fetch_nothing(address: str) -> Json:
    raise ValueError(f"it refers to {address!r}, and nothing is fetched for a contract")
