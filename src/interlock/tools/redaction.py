"""Keep what must not be written down out of records: by field name, at any depth, and in every sentence."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.canonical import canonical
from interlock.values import Json

MARK = "[redacted]"
# Shorter values stand in every second sentence: taking them out would hide the text and no secret.
_SHORTEST = 3


class Redactor:
    """Knows the values of the named fields in some documents, and takes them out wherever they turn up.

    Names are compared without regard to case, and values are also looked for as JSON and Python would quote them.
    """

    def __init__(self, fields: frozenset[str], *documents: Json) -> None:
        self._fields = frozenset(field.casefold() for field in fields)
        found = {text for document in documents for text in self._secrets(document) if len(text) >= _SHORTEST}
        spelled = {form for text in found for form in (text, *_quote(text))}
        # Longest first: a secret inside a longer one would otherwise leave the rest of that readable.
        self._known = sorted(spelled, key=len, reverse=True)

    def value(self, value: Json) -> Json:
        """A copy in which the named fields are marks, and so are their values anywhere else."""
        if isinstance(value, dict):
            # A key may hold a secret, too.
            return {self.text(k): MARK if k.casefold() in self._fields else self.value(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and str(value) in self._known:
            return MARK
        return self.text(value) if isinstance(value, str) else value

    def field(self, name: str, value: Json) -> Json:
        """The value of one named (dotted) field, or its mark."""
        return MARK if self._fields.intersection(name.casefold().split(".")) else self.value(value)

    def text(self, text: str) -> str:
        """The text without any value of a named field."""
        for secret in self._known:
            text = text.replace(secret, MARK)
        return text

    def _secrets(self, value: Json) -> Iterator[str]:
        if isinstance(value, dict):
            for key, item in value.items():
                yield from _texts(item) if key.casefold() in self._fields else self._secrets(item)
        elif isinstance(value, list | tuple):
            for item in value:
                yield from self._secrets(item)


def _quote(text: str) -> tuple[str, str]:
    """A text as it stands inside JSON and inside a Python representation."""
    return canonical(text).decode()[1:-1], repr(text)[1:-1]


def _texts(value: Json) -> Iterator[str]:
    """Every text and number inside a value, as it would be written."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
