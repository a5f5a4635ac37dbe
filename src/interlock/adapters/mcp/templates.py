"""Arguments that an operator writes with gaps: `{path}`, `{state.content}`, `{now.entities.*.name}`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from interlock.errors import ConfigError
from interlock.values import Json

_GAP = re.compile(r"\{([\w.*-]+)\}")
_EACH = "*"


def gaps_in(template: Json) -> set[str]:
    """The names at the beginning of all gaps: `state` of `{state.content}`."""
    if isinstance(template, str):
        return {found.partition(".")[0] for found in _GAP.findall(template)}
    parts: Iterable[Json] = template.values() if isinstance(template, Mapping) else ()
    parts = template if isinstance(template, list | tuple) else parts
    return set().union(*map(gaps_in, parts)) if parts else set()


def has_fields(template: Json) -> bool:
    """Whether a gap asks for a part of a state: `{state.price}`, `{now.entities}`."""
    if isinstance(template, str):
        return any(found.startswith(("state.", "now.")) for found in _GAP.findall(template))
    parts: Iterable[Json] = template.values() if isinstance(template, Mapping) else ()
    return any(map(has_fields, template if isinstance(template, list | tuple) else parts))


def fill(template: Json, values: Mapping[str, Json]) -> Json:
    """A template with its gaps filled: what is nothing but a gap becomes the value itself, of whatever type."""
    if isinstance(template, Mapping):
        return {key: fill(item, values) for key, item in template.items()}
    if isinstance(template, list | tuple):
        return [fill(item, values) for item in template]
    if not isinstance(template, str):
        return template
    alone = _GAP.fullmatch(template)
    if alone is not None:
        return _find(alone[1], values)
    return _GAP.sub(lambda found: str(_find(found[1], values)), template)


def _find(path: str, values: Mapping[str, Json]) -> Json:
    return _follow(values, path.split("."), path)


def _follow(value: Json, names: list[str], path: str) -> Json:
    for place, name in enumerate(names):
        if name == _EACH and isinstance(value, list):
            return [_follow(item, names[place + 1 :], path) for item in value]
        if not isinstance(value, Mapping) or name not in value:
            raise ConfigError(f"there is no {name!r} for the gap {{{path}}}")
        value = value[name]
    return value
