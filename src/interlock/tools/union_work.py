"""What unions in unions cost: each shape that has a field is tried at every level of it, so that work multiplies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from interlock.canonical import Refusal
from interlock.values import Json

_UNIONS = ("anyOf", "oneOf", "allOf")
"""Of several shapes in an `allOf` each is looked at, too."""
_ANY_FIELD = ("additionalProperties", "patternProperties", "unevaluatedProperties", "allOf", "if")
_ANY_ITEM = ("items", "prefixItems", "unevaluatedItems")
_MOST_TRIES = 100_000
_MOST_OF_MODEL, _MOST_OF_SCHEMA = 10_000, 30_000
"""Measured, about a second of the event loop, which nothing can interrupt: the validators hold the interpreter."""
_AT_ONCE = 4
"""So many tries of each object are not counted there: a wide value costs as much as it is long, and not more."""


class UnionWork(msgspec.Struct, frozen=True):
    """How many shapes are tried for what stands in a field, where a contract holds a union in itself."""

    fields: Mapping[str, int] = {}
    other_fields: int = 1
    """Of a field that no shape names, but some take."""
    items: int = 1
    """Of what stands in a list that is itself in a union."""
    most: int = _MOST_OF_MODEL
    """Tries, beside those that a wide value needs."""

    @property
    def multiplies(self) -> bool:
        """Whether there is a field, or a list, for which more than one shape is tried."""
        return max(self.other_fields, self.items, *self.fields.values(), 1) > 1


def count_shapes(schema: dict[str, Json], *, again: int = 0, documents: Mapping[str, Json] | None = None) -> UnionWork:
    """How many shapes may be tried at each level of arguments, field by field: only a shape that has it looks into it.

    `again`: how often a validator looks at what no shape fits once more, to say why; `documents`: where references
    may lead besides.
    """
    definitions = {name: part for key in ("$defs", "definitions") for name, part in schema.get(key, {}).items()}
    definitions |= _other_targets(schema, documents or {}, definitions)
    leads_to = {name: set(_references(part)) for name, part in definitions.items()}
    if not any(name in _reachable(name, leads_to) for name in leads_to):
        return UnionWork()
    fields, other_fields, items = dict[str, int](), 1, 1
    for union in _unions([schema, *(documents or {}).values()]):
        shapes = list(_resolve(union, definitions, set()))
        taking_any = sum(1 for shape in shapes if any(isinstance(shape.get(key), dict | list) for key in _ANY_FIELD))
        named = Counter(name for shape in shapes for name in _properties(shape))
        for name, count in named.items():
            fields[name] = max(fields.get(name, 1), count + taking_any)
        other_fields = max(other_fields, taking_any)
        items = max(items, sum(1 for shape in shapes if any(key in shape for key in _ANY_ITEM)))

    def with_again(count: int) -> int:
        return count + again if count > 1 else 1

    counted = {name: with_again(max(count, other_fields)) for name, count in fields.items()}
    most = _MOST_OF_SCHEMA if again else _MOST_OF_MODEL
    return UnionWork(counted, with_again(other_fields), with_again(items), most)


def refuse_endless_tries(arguments: Json, work: UnionWork) -> None:
    """`Refusal` for arguments in which so many shapes would have to be tried that everything else would wait for it."""
    if not work.multiplies:
        return
    tries, objects = _tries(arguments, work, 1)
    if tries > min(_MOST_TRIES, work.most + _AT_ONCE * objects):
        raise Refusal(
            "nested so deeply in parts that may have several shapes that checking it has no end; nest it less"
        )


def _tries(value: Json, work: UnionWork, each: int) -> tuple[int, int]:
    """How often its objects would be looked at, and how many there are."""
    if each > _MOST_TRIES:
        return each, 1
    if isinstance(value, dict):
        parts = [_tries(item, work, each * work.fields.get(name, work.other_fields)) for name, item in value.items()]
    elif isinstance(value, list | tuple):
        parts = [_tries(item, work, each * work.items) for item in value]
    else:
        return 0, 0
    is_tried = isinstance(value, dict) or work.items > 1
    tries, objects = sum(tried for tried, _ in parts), sum(count for _, count in parts)
    return (tries + each, objects + 1) if is_tried else (tries, objects)


def _other_targets(schema: Json, documents: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
    """What references lead to that is no definition: the top, any other place, an anchor, a document."""
    found: dict[str, Json] = {}
    waiting = [schema, *documents.values()]
    for address in {address for part in waiting for address in _addresses(part)}:
        name = address.rpartition("/")[2]
        if name not in known:
            found[name] = documents.get(address, _target(schema, address))
    return found


def _addresses(part: Json) -> Iterator[str]:
    if isinstance(part, dict):
        yield from (str(part[key]) for key in ("$ref", "$dynamicRef") if isinstance(part.get(key), str))
    for item in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _addresses(item)


def _target(schema: Json, address: str) -> Json:
    if address == "#" or not address.startswith("#"):
        return schema  # what leads elsewhere may lead back to all of it
    if not address.startswith("#/"):
        return next(_with_anchor(schema, address[1:]), schema)
    found = schema
    for step in address[2:].split("/"):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _with_anchor(part: Json, name: str) -> Iterator[Json]:
    if isinstance(part, dict) and name in (part.get("$anchor"), part.get("$dynamicAnchor")):
        yield part
    for item in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _with_anchor(item, name)


def _unions(part: Json) -> Iterator[list[Json]]:
    """The options of every union; where a field tells them apart only one is tried, and it is none."""
    if isinstance(part, dict):
        for key in _UNIONS:
            options = part.get(key)
            if isinstance(options, list) and "discriminator" not in part:
                # Properties beside a union are looked into as well, whatever its shapes do.
                yield [*options, {"properties": part.get("properties")}]
        for item in part.values():
            yield from _unions(item)
    elif isinstance(part, list):
        for item in part:
            yield from _unions(item)


def _resolve(options: list[Json], definitions: Mapping[str, Json], seen: set[str]) -> Iterator[dict[str, Json]]:
    """The shapes of a union, those that it refers to and those of unions in it among them."""
    for option in options:
        if not isinstance(option, dict):
            continue
        yield option
        name = option["$ref"].rpartition("/")[2] if isinstance(option.get("$ref"), str) else None
        if name is not None and name not in seen:
            yield from _resolve([definitions.get(name)], definitions, {*seen, name})
        for key in _UNIONS:
            inner = option.get(key)
            if isinstance(inner, list) and "discriminator" not in option:
                yield from _resolve(inner, definitions, seen)


def _properties(shape: dict[str, Json]) -> Iterator[str]:
    properties = shape.get("properties")
    return iter(properties if isinstance(properties, dict) else ())


def _references(part: Json) -> Iterator[str]:
    if isinstance(part, dict):
        for key in ("$ref", "$dynamicRef"):
            if isinstance(part.get(key), str):
                yield part[key].rpartition("/")[2]
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
