"""Names of fields in one way of writing: what a rule says of `due_at` is so of `dueAt` and of `DueAt`, too."""

from __future__ import annotations

import re

from interlock.values import Json

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_name(name: str) -> str:
    """A name in small letters, with a line between its words."""
    return _CAMEL.sub("_", name).lower()


def snake_keys(value: Json) -> Json:
    """A result, or the arguments of a call, with all its names in this way of writing."""
    if isinstance(value, dict):
        return {snake_name(str(key)): snake_keys(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [snake_keys(item) for item in value]
    return value
