"""What a program passes and nothing here takes: a sentence that says what is meant, before anything is done with it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from types import UnionType
from typing import Any

import msgspec

from interlock.canonical import did_you_mean
from interlock.errors import ConfigError

_LONGEST = 80


def refuse_unknown(what: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Refuse an option that nothing reads: it would be lost without a word, or somebody else speak of it too late."""
    names = sorted(set(known))
    for option in options:
        if option not in names:
            way_out = did_you_mean(option, names) or (f"; it takes {', '.join(names)}" if names else "")
            raise ConfigError(f"{what} takes no {option!r}{way_out}")


def require_kind(what: str, value: object, kind: type | UnionType | tuple[type, ...], meant: str) -> None:
    """Refuse a value of another kind; `meant` says in words what it is to be."""
    if not isinstance(value, kind):
        raise ConfigError(f"{what} is {meant}, not {value!r:.{_LONGEST}}")


def require_methods(what: str, value: object, names: Iterable[str], meant: str) -> None:
    """Refuse what cannot stand for something of which only the methods matter."""
    missing = [name for name in names if not callable(getattr(value, name, None))]
    if missing or isinstance(value, type):
        raise ConfigError(f"{what} is {meant}, not {value!r:.{_LONGEST}}")


def require_all(what: str, values: object, kind: type | UnionType, meant: str) -> tuple[Any, ...]:
    """Several values as a tuple, of any collection that keeps their order; one that stands alone is refused."""
    if not isinstance(values, list | tuple) or not all(isinstance(item, kind) for item in values):
        raise ConfigError(f"{what} is a tuple of {meant}, not {values!r:.{_LONGEST}}")
    return tuple(values)


def check_fields(made: msgspec.Struct, what: str) -> None:
    """Refuse a struct with a value that its field does not take: it looks at what it decodes, not at what is passed.

    A list stands for the tuple that the field has.
    """
    for name, kind in _kinds(type(made)):
        value = getattr(made, name)
        try:
            found = msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            alone = "`array" in str(error) and isinstance(value, str | msgspec.Struct)
            way_on = f"; it takes several: write {name}=[{value!r:.{_LONGEST}}]" if alone else ""
            raise ConfigError(f"{what}: {name}: {error}{way_on}") from None
        if isinstance(value, list):
            msgspec.structs.force_setattr(made, name, found)


@lru_cache(maxsize=16)
def _kinds(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, field.type) for field in msgspec.structs.fields(kind))
