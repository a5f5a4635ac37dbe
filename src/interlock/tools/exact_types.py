"""Values of a closed set, of their own type: Python takes `true`, 1 and 1.0 for one another, a contract does not."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError, SchemaValidator, core_schema

if TYPE_CHECKING:
    from pydantic import BaseModel

_TEXT = "equals an allowed value, and is of another type (true is not 1, and 1.0 is not); give the value itself"


def exact_validator(model: type[BaseModel]) -> SchemaValidator:
    """The validator of a model, which takes for a number or a truth value of a `Literal` or an `Enum` no other type."""
    core: Any = model.__pydantic_core_schema__
    exact = _exact(core)
    if exact is core:
        return model.__pydantic_validator__  # type: ignore[return-value]
    try:
        # Not from the validators that the classes of models have already, which know nothing of this.
        return SchemaValidator(exact, _use_prebuilt=False)
    except TypeError:  # a Pydantic that does not have the choice
        return SchemaValidator(exact)


def _exact(part: Any) -> Any:
    """A part of a core schema in which such values are looked at before they are validated; itself if it has none."""
    if isinstance(part, dict):
        made = {key: _exact(item) for key, item in part.items()}
        same = all(made[key] is part[key] for key in part)
        allowed = _numbers_of(part)
        return _guard(made, allowed) if allowed else part if same else made
    if isinstance(part, list | tuple):
        items = [_exact(item) for item in part]
        return part if all(one is other for one, other in zip(items, part, strict=True)) else type(part)(items)
    return part


def _numbers_of(part: dict[str, Any]) -> tuple[Any, ...]:
    """The values that a part allows, if any is a number or a truth value."""
    given: Sequence[Any] = ()
    if part.get("type") == "literal" and isinstance(part.get("expected"), list):
        given = part["expected"]
    elif part.get("type") == "enum" and isinstance(part.get("members"), list):
        given = part["members"]
    values = tuple(item.value if isinstance(item, Enum) else item for item in given)
    return values if any(isinstance(value, int | float) for value in values) else ()


def _guard(part: dict[str, Any], allowed: tuple[Any, ...]) -> Any:
    inner = {key: item for key, item in part.items() if key != "ref"}  # others refer to the whole
    check = partial(_refuse_other_type, allowed)
    return core_schema.no_info_before_validator_function(check, inner, ref=part.get("ref"))


def _refuse_other_type(allowed: tuple[Any, ...], value: Any) -> Any:
    if type(value) not in (bool, int, float):
        return value
    alike = [type(item) for item in allowed if isinstance(item, bool | int | float) and item == value]
    # 2 is how JSON may write 2.0; nothing else is another type's value.
    if alike and type(value) not in alike and not (type(value) is int and float in alike):
        raise PydanticCustomError("exact_type", _TEXT)
    return value
