"""Keep what must not be written down out of records: by field name, at any depth, and in every sentence."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING

from interlock.canonical import encode_canonical, nearest
from interlock.tools.contract import Tool
from interlock.tools.long_texts import items_of
from interlock.tools.redacted_fields import property_names
from interlock.tools.word_search import LEAST
from interlock.values import Json

if TYPE_CHECKING:
    from interlock.tools.spellings import Spellings

MARK = "[redacted]"
_LONGEST = 1_000_000
"""Characters of a text that is searched; a longer one is a mark as a whole."""
_MOST_SECRETS = 50_000
_MOST_SECRET_CHARS = 2_000_000
_MOST_PARTS = 2_000_000
"""So many values, so many characters of them, and so many parts of documents that they are looked for in, are known to
one redactor. Of a call that holds more nothing is written down but marks."""

_LONGEST_NUMBER_BITS = 10_000
_DECIMAL = re.compile(r"[+-]?\d{1,30}(?:\.\d{1,30})?", re.ASCII)
_TENTHS = re.compile(r"-?\d{4,}\.[1-9]", re.ASCII)
"""Numbers that are not found in their sum of money once its separators are gone: 91234.5, and 91,234.50 or 91.234,5."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.,+Zz-]{0,24}", re.ASCII)


class Redactor:
    """Knows the values of the named fields in some documents, and takes them out wherever they turn up.

    Names are compared without regard to case, and values are found in whatever spelling (`spellings`). Of an object
    below a named field the names are values too, but for those that the contract declares (`declared`; None: all).
    """

    def __init__(self, fields: frozenset[str], *documents: Json, declared: frozenset[str] | None = frozenset()) -> None:
        self._fields = frozenset(field.casefold() for field in fields)
        self._known, chars, self._withholds = set[str](), 0, False
        for text in _secrets(self._fields, documents, declared) if fields else ():
            if text is None or chars > _MOST_SECRET_CHARS or len(self._known) > _MOST_SECRETS:
                self._known, self._withholds = set(), True
                break
            if len(text) >= LEAST and text not in self._known:
                self._known.add(text)
                chars += len(text)
        self._spellings: Spellings | None = None
        self._numbers = frozenset[str]()
        if self._known:  # many a program has no secrets, and does without the tables of spellings
            from interlock.tools.spellings import Spellings, number_forms

            self._spellings, self._numbers = Spellings(self._known), number_forms(self._known)
        self._names: dict[str, str] = {}
        """Names of fields as they are written: rows of one table share theirs."""

    @property
    def redacts(self) -> bool:
        """Whether there is anything to redact by."""
        return bool(self._fields)

    def value(self, value: Json) -> Json:
        """A copy in which the named fields are marks, and so are their values anywhere else."""
        if isinstance(value, dict):
            # A key may hold a secret, too.
            return {self._name(k): MARK if k.casefold() in self._fields else self.value(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return MARK if self._withholds or not self._numbers.isdisjoint(_number_texts(value)) else value
        return self.text(value) if isinstance(value, str) else value

    def field(self, name: str, value: Json) -> Json:
        """The value of one named (dotted) field, or its mark."""
        return MARK if self._fields.intersection(name.casefold().split(".")) else self.value(value)

    def text(self, text: str) -> str:
        """The text without any value of a named field; redact first and cut then, or half a secret is left."""
        if self._withholds or (self._known and len(text) > _LONGEST):
            return MARK if text else text
        if self._spellings is None:
            return text
        kept, at = list[str](), 0
        for start, end in self._spellings.find(text):
            kept += (text[at:start], MARK)
            at = end
        return text if at == 0 else "".join((*kept, text[at:]))

    def _name(self, name: str) -> str:
        found = self._names.get(name)
        if found is None:
            found = self._names[name] = self.text(name)
        return found


def redactor_of(tool: Tool, *documents: Json, also: frozenset[str] = frozenset()) -> Redactor:
    """A redactor of what a tool redacts, and of fields that are redacted `also`, in what a call of it holds."""
    if not tool.redact:
        return Redactor(tool.redact)
    # Undo puts back whole states: the names in them are those of keys and of other contracts.
    return Redactor(tool.redact | also, *documents, declared=None if tool.operator else declared_names(tool))


@lru_cache(maxsize=256)
def declared_names(tool: Tool) -> frozenset[str]:
    """The names of all fields of a contract. Whoever may see the contract knows them: they are no secrets."""
    return frozenset(name for schema in (tool.input.schema, *tool.output.schemas()) for name in property_names(schema))


def _secrets(
    fields: frozenset[str], documents: tuple[Json, ...], declared: frozenset[str] | None
) -> Iterator[str | None]:
    """Every text and number below the named fields, as it would be written; None where there are too many parts.

    One after the other and not by recursion: arguments that passed no contract may be nested without end.
    """
    waiting: list[tuple[Json, bool]] = [(document, False) for document in documents]
    parts = 0
    while waiting:
        value, secret = waiting.pop()
        parts += 1
        if parts > _MOST_PARTS:
            yield None
            return
        if isinstance(value, dict):
            if secret and declared is not None:
                yield from (name for name in dict.keys(value) if isinstance(name, str) and name not in declared)
            items = dict.items(value)  # its own: those of a subclass may raise, or have no end
            waiting.extend((item, secret or (isinstance(n, str) and n.casefold() in fields)) for n, item in items)
        elif isinstance(value, list | tuple):
            waiting.extend((item, secret) for item in items_of(value))
        elif secret and isinstance(value, str):
            yield value
            yield from _same_values(value)
        elif secret and isinstance(value, int | float) and not isinstance(value, bool):
            yield from _number_texts(value)


def _number_texts(value: float) -> tuple[str, ...]:
    """How a number is written: by Python, by JSON, without a fraction that is none, and as a sum of money."""
    if isinstance(value, int):
        # Python writes no longer ones in decimals: it takes the square of their length.
        return (str(value) if value.bit_length() < _LONGEST_NUMBER_BITS else f"{value:x}",)
    whole = (str(int(value)),) if value.is_integer() else ()
    written = (encode_canonical(value).decode(),) if isfinite(value) else ()
    sum_of_money = (f"{value:.2f}", str(value).replace(".", ",")) if _TENTHS.fullmatch(str(value)) else ()
    return (str(value), *written, *whole, *sum_of_money)


def _same_values(text: str) -> Iterator[str]:
    """How the number or time of a text is written when it was read as one: 91234.50 is 91234.5, and a T is a space."""
    if _DECIMAL.fullmatch(text) is not None:
        yield format(Decimal(text).normalize(), "f")
        yield from _number_texts(float(text))
    elif _MOMENT.fullmatch(text) is not None:
        with suppress(ValueError):
            moment = datetime.fromisoformat(text)
            yield from (str(moment), moment.isoformat())


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
