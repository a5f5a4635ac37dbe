"""What an argument is for, by its name, type and format: a table that can be read and overridden."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any

from interlock.errors import ContractError
from interlock.tools.labels import read_roles
from interlock.values import Json

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_DEEPEST = 6
_IDS = frozenset(("id", "ids", "uid", "key", "code"))
_BOTH_WAYS = frozenset(("to", "from"))
_FORMATS = {"email": "sink", "uri": "sink", "uri-reference": "sink", "hostname": "sink", "ipv4": "sink", "ipv6": "sink",
            "date": "date", "date-time": "date", "time": "date"}  # fmt: skip


class Role(StrEnum):
    """What an argument is for: a closed set."""

    SINK = "sink"
    """Where something goes, or who may do something from now on: a recipient, an account, a link, a password."""
    CONTENT = "content"
    """Text that somebody reads."""
    AMOUNT = "amount"
    DATE = "date"
    SELECTOR = "selector"
    """Which thing is meant."""
    CHOICE = "choice"
    """One of the few values that the tool itself names, or a yes or no."""


def roles_of(schema: Mapping[str, Json], declared: Mapping[str, Role]) -> dict[str, Role]:
    """The role of each argument of a tool; those that it declares and does not have are left for its checks."""
    properties: dict[str, Json] = schema.get("properties", {})
    found = {name: role_of(name, part if isinstance(part, dict) else {}, declared) for name, part in properties.items()}
    return found | dict(declared)


def role_of(name: str, schema: Mapping[str, Json], declared: Mapping[str, Role]) -> Role:
    """The role of an argument."""
    if name in declared:
        return declared[name]
    kinds = _kinds_in(schema)
    if "enum" in schema or "const" in schema or kinds == {"boolean"}:
        return Role.CHOICE
    given = _FORMATS.get(str(schema.get("format") or ""))
    if given is not None:
        return Role(given)
    words = {word.lower() for word in _PARTS.findall(name)}
    if words & _table()[Role.DATE] - _BOTH_WAYS:
        words -= _BOTH_WAYS  # "to_time" ends something, "to" is whom it goes to
    if words & _IDS and words & (_table()[Role.AMOUNT] | _table()[Role.DATE]):
        return Role.SELECTOR  # the number of a fee is no fee
    for role in (Role.SINK, Role.CONTENT, Role.AMOUNT, Role.DATE):
        if words & _table().get(role, frozenset()):
            is_number = bool(kinds) and kinds <= {"integer", "number"}
            if is_number and role is Role.SINK and not words & _table()[Role.AMOUNT]:
                return Role.SELECTOR  # an account by its number
            if not is_number or role in (Role.AMOUNT, Role.DATE):
                return role
    return Role.AMOUNT if kinds and kinds <= {"number"} else Role.SELECTOR


@lru_cache(maxsize=4096)
def is_measure(path: str) -> bool:
    """Whether a field is an amount or a day, by its name."""
    words = {word.lower() for word in _PARTS.findall(path.rpartition(".")[2])}
    return bool(words & (_table()[Role.AMOUNT] | _table()[Role.DATE]))


def _kinds_in(schema: Mapping[str, Json]) -> set[str]:
    options = schema.get("anyOf") or schema.get("oneOf") or [schema]
    kinds = {str(kind) for option in options if isinstance(option, dict) for kind in _as_list(option.get("type"))}
    return kinds - {"null"}


def _as_list(kind: Json) -> list[Json]:
    return kind if isinstance(kind, list) else [] if kind is None else [kind]


@cache
def _table() -> dict[Role, frozenset[str]]:
    return {Role(role): frozenset(words) for role, words in read_roles()["roles"].items()}


def check_roles(where: str, given: Any) -> dict[str, Role]:
    """The roles that an author declares, by argument."""
    words = [role.value for role in Role]
    if not isinstance(given, Mapping):
        raise ContractError(f"{where} says what arguments are for: {{'to': 'sink'}}, not {given!r}")
    for name, role in given.items():
        if role not in words:
            raise ContractError(f"{where} of {name!r} is one of {', '.join(words)}, not {role!r}")
    return {str(name): Role(role) for name, role in given.items()}


_NUMBERED = frozenset(("id", "ids", "number", "no", "nr", "num", "key", "code", "ref", "reference", "index", "uid"))


@lru_cache(maxsize=4096)
def is_number_of(path: str, argument: str) -> bool:
    """Whether a field of a result may hold the number by which an argument says which thing is meant."""
    words = {word.lower() for word in _PARTS.findall(path.rpartition(".")[2])}
    return not words or bool(words & (_NUMBERED | {word.lower() for word in _PARTS.findall(argument)}))


@lru_cache(maxsize=4096)
def is_numbered(path: str) -> bool:
    """Whether a field holds the number of its row, by its name."""
    return not _NUMBERED.isdisjoint(word.lower() for word in _PARTS.findall(path.rpartition(".")[2]))


def choices_in(schema: Mapping[str, Json]) -> dict[str, frozenset[str]]:
    """The texts among which arguments of a tool choose, wherever its schema names them."""
    parts: dict[str, Json] = schema.get("properties", {})
    found = {name: frozenset(_choices(part, schema.get("$defs", {}), 0)) for name, part in parts.items()}
    return {name: choices for name, choices in found.items() if choices}


def _choices(part: Json, definitions: Mapping[str, Json], depth: int) -> Iterator[str]:
    if not isinstance(part, dict) or depth > _DEEPEST:
        return
    yield from (item for item in (*part.get("enum", ()), part.get("const")) if isinstance(item, str))
    inside = [*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("allOf", ()), part.get("items")]
    inside.append(definitions.get(str(part.get("$ref", "")).rpartition("/")[2]))
    for one in inside:
        yield from _choices(one, definitions, depth + 1)
