"""Arguments that are no JSON: Python objects that would be written as text, and be taken for it, without a word."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from interlock.canonical import Refusal, guard
from interlock.values import FieldProblem

_ITSELF = (str, int, float, type(None))


def refuse_objects(raw: Any, taken: Any, path: str = "") -> None:
    """Refuse what is no JSON value, unless the contract has taken it for the very same: a date for a date.

    `raw` are arguments as they were given, `taken` what validation made of them, in Python's own types.
    """
    if isinstance(raw, _ITSELF):
        return
    if is_dataclass(raw):  # written as an object, field by field
        raw = {field.name: getattr(raw, field.name) for field in fields(raw)}
    if isinstance(raw, dict):
        inner = taken if isinstance(taken, dict) else {}
        for name, item in raw.items():
            if type(name) is not str:
                guard({name: None}, path)
            refuse_objects(item, inner.get(name), f"{path}.{name}" if path else name)
    elif isinstance(raw, list | tuple):
        items = list(taken) if isinstance(taken, list | tuple) and len(taken) == len(raw) else [None] * len(raw)
        for index, (item, other) in enumerate(zip(raw, items, strict=True)):
            refuse_objects(item, other, f"{path}[{index}]")
    elif type(raw) is not type(taken) or raw != taken:
        message = f"{type(raw).__name__} is not a JSON value, and the field is not of that type; write it as JSON"
        raise Refusal(FieldProblem(path or "arguments", message))
