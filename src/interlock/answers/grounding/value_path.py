"""Where a value stands in a result: the names on the way to it, and the object that it is in."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from interlock.answers.grounding.claims import NO_UNIT, Units
from interlock.answers.grounding.field_names import snake_name
from interlock.answers.grounding.rows import Row
from interlock.answers.grounding.words import Meanings

_SHOWN_KEY = 80
FieldWords = tuple[Meanings, Meanings, Meanings, Meanings]
"""What is said by a field's own name, its description, the names around it, and all of them with its tool."""


class Column:
    """A field of a result, the same for each row that has it: what it is called and means is found out once."""

    __slots__ = (
        "item",
        "key",
        "keys",
        "length",
        "name",
        "parent",
        "share",
        "shared",
        "step",
        "units",
        "words",
        "written",
    )

    def __init__(self, parent: Column | None, step: str, key: str, units: Units) -> None:
        self.parent, self.step = parent, step
        self.key, self.units = key, units
        """`key`: its name as the result has it."""
        self.name = snake_name(key)
        self.keys: dict[str, Column] = {}
        """The fields of the object that it is, by their keys."""
        self.item: Column | None = None
        self.length: Column | None = None
        self.shared: Column | None = None
        self.words: FieldWords | None = None
        self.share: bool | None = None
        self.written = ""

    @property
    def path(self) -> str:
        """The path without the places in lists."""
        if not self.written:
            steps: list[str] = []
            column = self
            while column.parent is not None:
                steps.append(column.step)
                column = column.parent
            self.written = "$" + "".join(reversed(steps))
        return self.written

    def names(self) -> Iterator[str]:
        """The names on the path, the last one first."""
        column = self
        while column.parent is not None:
            if column.step != "[]":
                yield column.name
            column = column.parent

    def of_key(self, key: str, units: Units) -> Column:
        """The field of a key that was not met before; `units` are those that the key itself speaks of."""
        shown = key.rpartition(".")[2][-_SHOWN_KEY:]
        found = self.keys[key] = Column(self, f".{_shorten(key)}", shown, units or self.units)
        return found


class ValuePath(msgspec.Struct, eq=False, gc=False):
    """Where a value stands. Its path is written out only when it is shown, as every value below a key has it."""

    _parent: ValuePath | None
    _step: str | int
    field: Column
    name: str
    """The last name on the path, which says what the value is: that of the field."""
    row: Row
    """The object that it is in."""

    @property
    def units(self) -> Units:
        """The units that the names on the path speak of, the last one first."""
        return self.field.units

    @property
    def path(self) -> str:
        """The JSON path; the middle of a very long key is left out."""
        steps: list[str] = []
        place = self
        while place._parent is not None:
            steps.append(place._step if isinstance(place._step, str) else f"[{place._step}]")
            place = place._parent
        return "$" + "".join(reversed(steps))

    @property
    def column(self) -> str:
        """The path without the places in lists: the same for a field of each row."""
        return self.field.written or self.field.path

    @property
    def is_top(self) -> bool:
        """Whether it is the result as a whole."""
        return self._parent is None

    @property
    def ends_in_bracket(self) -> bool:
        """Whether it is an item of a list, as far as its path shows it."""
        return isinstance(self._step, int) or self._step.endswith("]")

    def item(self, number: int, row: Row) -> ValuePath:
        """The place of an item of a list."""
        field = self.field
        inner = field.item
        if inner is None:
            inner = field.item = Column(field, "[]", field.key, field.units)
        return ValuePath(self, number, inner, inner.name, row)

    def inside(self, row: Row) -> ValuePath:
        """The same place, in an object of its own."""
        return ValuePath(self._parent, self._step, self.field, self.name, row)

    def length(self, of: str = "") -> ValuePath:
        """The place of a count; `of`: what the counted have in common."""
        field = self.field
        found = field.shared if of else field.length
        if found is None:
            found = Column(field, "[]" if of.startswith("[") else ".length", "length", NO_UNIT)
            if of:
                field.shared = found
            else:
                field.length = found
        return ValuePath(self, f"{_shorten(of)}.length", found, found.name, self.row)


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN_KEY else f"{text[: _SHOWN_KEY // 2]}…{text[1 - _SHOWN_KEY // 2 :]}"
