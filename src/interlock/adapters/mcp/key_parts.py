"""The arguments that a key was made of: a look at what it names, and its way back, are given them again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from interlock.adapters.mcp.templates import fill, gaps_in
from interlock.canonical import Refusal
from interlock.values import Json

_GAP = re.compile(r"\{([\w.*-]+)\}")
_NUMBERS = ("integer", "number", "boolean")


class KeyParts:
    """A template of a key (`{shop}/{item}`), read backwards; `schema`: that of the tool whose arguments fill it."""

    def __init__(self, template: str | None, schema: Mapping[str, Json] | None = None) -> None:
        self._template = template
        self.gaps = frozenset() if template is None else frozenset(gaps_in(template))
        known = (schema or {}).get("properties")
        fields = known if isinstance(known, Mapping) else {}
        self._kinds = {gap: kind for gap in self.gaps if (kind := _kind_of(fields.get(gap))) in _NUMBERS}
        self._pattern = None if template is None else re.compile(_as_pattern(template), re.DOTALL)

    @property
    def is_whole(self) -> bool:
        """Whether a key is one argument, and nothing else."""
        return self._template is not None and _GAP.fullmatch(self._template) is not None

    @property
    def same_as(self) -> Json:
        """What is equal for templates that read the same keys in the same way, whatever a lone argument is called."""
        return ["{key}", *self._kinds.values()] if self.is_whole else [self._template, *sorted(self._kinds.items())]

    def read(self, key: str) -> dict[str, Json]:
        """The arguments of a key. `Refusal` if it was not made by this template."""
        found = None if self._pattern is None else self._pattern.fullmatch(key)
        if found is None and self._pattern is not None:
            raise Refusal(f"{key!r} does not fit the key {self._template}")
        texts = {} if found is None else dict(zip(self._names, found.groups(), strict=True))
        return {name: self._value(name, text) for name, text in texts.items()}

    def make(self, arguments: Mapping[str, Json]) -> str:
        """The key of arguments. `Refusal` where it would not say which they are: two things would have one key."""
        key = str(fill(self._template, arguments))
        given = {name: fill(f"{{{name}}}", arguments) for name in self._names}
        read = self.read(key)
        if read != given or any(type(read[name]) is not type(value) for name, value in given.items()):
            said = f"the key {self._template} would be {key!r}, which does not say what of it is which argument"
            raise Refusal(f"{said}, or of which type it is")
        return key

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(_GAP.findall(self._template or "")))

    def _value(self, name: str, text: str) -> Json:
        if name not in self._kinds:
            return text
        try:
            found: Json = json.loads(text.lower())
        except ValueError:
            return text
        return found


def _kind_of(schema: Json) -> Json:
    """The one type that an argument has, beside null; None where it may have several, or nothing says so."""
    kinds = _kinds_of(schema) - {"null"}
    return kinds.pop() if len(kinds) == 1 else None


def _kinds_of(schema: Json) -> set[Json]:
    if not isinstance(schema, Mapping):
        return set()
    said = schema.get("type")
    own = {kind for kind in (said if isinstance(said, list) else [said]) if isinstance(kind, str)}
    unions = [part for name in ("anyOf", "oneOf") for part in schema.get(name) or ()]
    return own.union(*map(_kinds_of, unions))


def _as_pattern(template: str) -> str:
    """A gap is as little as fits; one that comes again is the same again."""
    seen: list[str] = []
    pattern, end = "", 0
    for found in _GAP.finditer(template):
        pattern += re.escape(template[end : found.start()])
        pattern += f"(?:\\{seen.index(found[1]) + 1})" if found[1] in seen else "(.*?)"
        seen += [] if found[1] in seen else [found[1]]
        end = found.end()
    return pattern + re.escape(template[end:])
