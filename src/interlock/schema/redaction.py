"""Keep what must not be written down out of records: by field name, at any depth, and in every sentence."""

from __future__ import annotations

from interlock.values import Json

MARK = "[redacted]"
_SHORTEST = 3


class Redactor:
    """Replaces the values of named fields, then the same values wherever they turn up in text."""

    def __init__(self, fields: frozenset[str]) -> None:
        self._fields = fields
        self._seen: set[str] = set()

    def value(self, value: Json) -> Json:
        """A copy in which the named fields are marks."""
        if isinstance(value, dict):
            return {key: self._mark(item) if key in self._fields else self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value

    def field(self, name: str, value: Json) -> Json:
        """The value of one named (dotted) field, or its mark."""
        return self._mark(value) if self._fields.intersection(name.split(".")) else self.value(value)

    def text(self, text: str) -> str:
        """The text without any value that was marked so far."""
        for secret in sorted(self._seen, key=len, reverse=True):
            text = text.replace(secret, MARK)
        return text

    def _mark(self, value: Json) -> str:
        match value:
            case str() if len(value) >= _SHORTEST:
                self._seen.add(value)
            case bool() | None:
                pass
            case int() | float() if len(str(value)) >= _SHORTEST:
                self._seen.add(str(value))
            case list():
                for item in value:
                    self._mark(item)
            case dict():
                for item in value.values():
                    self._mark(item)
        return MARK
