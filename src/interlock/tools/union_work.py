"""What unions inside unions cost: every shape is tried at every level, so that the work doubles with each of them."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.canonical import Refusal
from interlock.values import Json

_UNIONS = ("anyOf", "oneOf")
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})
_MOST_TRIES = 100_000
"""Measured, about a second of the event loop, which nothing can interrupt: the validators hold the interpreter."""


def count_shapes(schema: dict[str, Json], *, again: int = 0) -> int:
    """How many shapes may be tried at each level of arguments; 1 where a contract does not hold a union in itself.

    `again`: how often a validator looks at what no shape fits once more, to say why.
    """
    definitions = {name: part for key in ("$defs", "definitions") for name, part in schema.get(key, {}).items()}
    leads_to = {name: set(_references(part)) for name, part in definitions.items()}
    if not any(name in _reachable(name, leads_to) for name in leads_to):
        return 1
    shapes = max(_shapes(schema), default=1)
    return shapes + again if shapes > 1 else 1


def refuse_endless_tries(arguments: Json, shapes: int) -> None:
    """`Refusal` for arguments in which so many shapes would have to be tried that everything else would wait for it."""
    if shapes > 1 and _tries(arguments, shapes, 1) > _MOST_TRIES:
        raise Refusal(
            "nested so deeply in parts that may have several shapes that checking it has no end; nest it less"
        )


def _tries(value: Json, shapes: int, each: int) -> int:
    if each > _MOST_TRIES:
        return each
    if isinstance(value, dict):
        return each + sum(_tries(item, shapes, each * shapes) for item in value.values())
    return sum(_tries(item, shapes, each) for item in value) if isinstance(value, list | tuple) else 0


def _shapes(part: Json) -> Iterator[int]:
    """Of each union the shapes that hold others; where a field tells them apart only one is tried."""
    if isinstance(part, dict):
        for key in _UNIONS:
            options = part.get(key)
            if isinstance(options, list) and "discriminator" not in part:
                yield sum(1 for one in options if not (isinstance(one, dict) and one.get("type") in _SCALARS))
        for item in part.values():
            yield from _shapes(item)
    elif isinstance(part, list):
        for item in part:
            yield from _shapes(item)


def _references(part: Json) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"].rpartition("/")[2]
        for item in part.values():
            yield from _references(item)
    elif isinstance(part, list):
        for item in part:
            yield from _references(item)


def _reachable(name: str, leads_to: dict[str, set[str]]) -> set[str]:
    found, waiting = set[str](), [name]
    while waiting:
        for other in leads_to.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found
