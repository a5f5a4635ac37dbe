"""What the fields of a tool's result are: the unit, what it means, and what else people call it.

Said where the tool is declared (`fields={"balance": {"unit": "USD", "description": "what is on the account"}}`), and
used where an answer is held against the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlock.errors import ContractError
from interlock.values import Value


class ResultField(Value, frozen=True):
    """What one field of a result is."""

    unit: str = ""
    description: str = ""
    also: tuple[str, ...] = ()
    """Other words that people use for it."""


def check_fields(where: str, given: Any) -> dict[str, ResultField]:
    """The option of a tool; a sentence for what cannot say what a field is."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ContractError(f"{where} is a mapping from fields of the result to what they are, not {given!r}")
    return {str(name): _check_field(f"{where} of {name!r}", one) for name, one in given.items()}


def _check_field(where: str, given: Any) -> ResultField:
    if isinstance(given, ResultField):
        return given
    if isinstance(given, str):
        return ResultField(description=given)
    try:
        return msgspec.convert(dict(given), ResultField, strict=True)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise ContractError(
            f'{where} is a description, or {{"unit": ..., "description": ..., "also": [...]}}: {error}'
        ) from None
