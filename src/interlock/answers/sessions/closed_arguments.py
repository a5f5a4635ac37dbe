"""The arguments of a tool whose values are known: which of them a run of words names."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import EnumMeta
from functools import lru_cache
from typing import Any

from interlock.models.schema_types import inner_schema, types_of
from interlock.tools import Tool, names_of_values, normalize
from interlock.tools.known_values import KnownValues
from interlock.tools.name_index import NameIndex, kind_words
from interlock.values import Value

_log = logging.getLogger("interlock")
_FIGURES = {"integer", "number"}


@lru_cache(maxsize=32)
def _index_names(known: tuple[tuple[str, tuple[str, ...]], ...]) -> Mapping[str, tuple[str, ...]]:
    """The values of each name. Kept by the names themselves: thousands of them are not read anew for every question."""
    found: dict[str, list[str]] = {}
    for value, names in known:
        for name in {normalize(name) for name in names} - {""}:
            found.setdefault(name, []).append(value)
    return {name: tuple(values) for name, values in found.items()}


class ClosedArgument(Value, frozen=True):
    """One argument, the values that it can have, and everything that each is called."""

    name: str
    values: dict[str, tuple[str, ...]]
    several: bool = False
    """Whether it takes a list."""
    is_choice: bool = False
    """Whether its values are a closed choice of the contract (a season), and name no thing."""

    def match(self, said: str) -> tuple[str, ...]:
        """The values that words can mean, small misspellings among them."""
        return NameIndex(self.values, kind_words(self.name)).match(said)


class ToolArguments(Value, frozen=True):
    """What is known about the arguments of one tool, for one text."""

    closed: dict[str, ClosedArgument]
    figures: tuple[str, ...] = ()
    """Those that take a figure."""
    things: frozenset[str] = frozenset()
    """Those that name a thing, also where the words at hand name none that it can be."""

    def names(self) -> dict[str, list[tuple[str, str]]]:
        """Every name, as it is compared, with the arguments and values that it stands for."""
        found: dict[str, list[tuple[str, str]]] = {}
        for argument in self.closed.values():
            for name, values in _index_names(tuple(argument.values.items())).items():
                found.setdefault(name, []).extend((argument.name, value) for value in values)
        return found

    def kinds(self) -> frozenset[str]:
        """Words that say what the arguments are, and not which one is meant."""
        return frozenset[str]().union(*(kind_words(name) for name in (*self.closed, *self.figures)))


def arguments_of(tool: Tool, text: str) -> ToolArguments:
    """What the contract of a tool and its known values say; what it redacts is not spoken of."""
    schema = tool.manifest()["parameters"]
    defined, closed, figures, things = schema.get("$defs", {}), dict[str, ClosedArgument](), [], set[str]()
    for name, kind in schema.get("properties", {}).items():
        if name in tool.redact:
            continue
        whole = inner_schema(kind, defined)
        several = whole.get("type") == "array"
        item = inner_schema(whole.get("items"), defined) if several else whole
        choices: dict[str, tuple[str, ...]] = {
            value: (value,) for value in item.get("enum", ()) if isinstance(value, str)
        }
        known = tool.known_values.get(name)
        values = choices if known is None else {**choices, **_read_known(tool, name, known, text)}
        if known is not None and not choices:
            things.add(name)
        if values:
            closed[name] = ClosedArgument(name, values, several, bool(choices))
        elif types_of(item) & _FIGURES:
            figures.append(name)
    return ToolArguments(closed, tuple(figures), frozenset(things))


def _read_known(tool: Tool, field: str, known: KnownValues, text: str) -> Mapping[str, tuple[str, ...]]:
    try:
        found = names_of_values(known, text)
    except Exception:  # noqa: BLE001 - a function of the application's may raise anything; nothing is known then
        _log.warning("the known values of %s.%s could not be read", tool.name, field, exc_info=True)
        return {}
    # A function that gives every text back (a request that is passed on) says nothing about it.
    is_function: Any = callable(known) and not isinstance(known, EnumMeta)
    return {value: names for value, names in found.items() if not (is_function and value == text)}
