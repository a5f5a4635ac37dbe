"""Keep what must not be written down out of records: by field name, at any depth, and in every sentence."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from interlock.canonical import nearest
from interlock.tools.spellings import Spellings
from interlock.values import Json

MARK = "[redacted]"
# Shorter values stand in every second sentence: taking them out would hide the text and no secret.
_SHORTEST = 3


class Redactor:
    """Knows the values of the named fields in some documents, and takes them out wherever they turn up.

    Names are compared without regard to case, and values are found in whatever spelling (`spellings`).
    """

    def __init__(self, fields: frozenset[str], *documents: Json) -> None:
        self._fields = frozenset(field.casefold() for field in fields)
        self._known = {text for document in documents for text in self._secrets(document) if len(text) >= _SHORTEST}
        self._spellings = Spellings(self._known)

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
        """The text without any value of a named field; redact first and cut then, or half a secret is left."""
        kept, at = list[str](), 0
        for start, end in self._spellings.find(text):
            kept += (text[at:start], MARK)
            at = end
        return text if at == 0 else "".join((*kept, text[at:]))

    def _secrets(self, value: Json) -> Iterator[str]:
        if isinstance(value, dict):
            for key, item in value.items():
                yield from _texts(item) if key.casefold() in self._fields else self._secrets(item)
        elif isinstance(value, list | tuple):
            for item in value:
                yield from self._secrets(item)


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


def misspelled_fields(arguments: Json, fields: frozenset[str], known: Collection[str] | None) -> frozenset[str]:
    """Names in arguments that passed no contract under which the value of a redacted field may stand.

    Of a contract's own names (`known`) none is misspelled, and every other may be. Without a contract (`None`) it is
    those that are much like a redacted one.
    """
    names = set(_names(arguments))
    if known is not None:
        return frozenset(names.difference(known))
    return frozenset(name for name in names if nearest(name, fields, 1))


def _names(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _names(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _names(item)
