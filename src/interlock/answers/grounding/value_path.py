"""Where a value stands in a result: the names on the way to it, and the object that it is in."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.answers.grounding.claims import NO_UNIT, Units
from interlock.answers.grounding.rows import Row

_SHOWN_KEY = 80


class ValuePath:
    """Where a value stands. Its path is written out only when it is shown, as every value below a key has it."""

    __slots__ = ("_parent", "_step", "name", "row", "units")

    def __init__(self, parent: ValuePath | None, step: str, name: str, units: Units, row: Row) -> None:
        self._parent, self._step = parent, step
        self.name = name
        """The last name on the path, which says what the value is."""
        self.units = units
        """The units that the names on the path speak of, the last one first."""
        self.row = row
        """The object that it is in."""

    @property
    def path(self) -> str:
        """The JSON path; the middle of a very long key is left out."""
        steps, place = [], self
        while place._parent is not None:
            steps.append(place._step)
            place = place._parent
        return "$" + "".join(reversed(steps))

    @property
    def column(self) -> str:
        """The path without the places in lists: the same for a field of each row."""
        steps, place = [], self
        while place._parent is not None:
            steps.append("[]" if place._step.startswith("[") else place._step)
            place = place._parent
        return "$" + "".join(reversed(steps))

    def names(self) -> Iterator[str]:
        """The names on the path, the last one first."""
        place: ValuePath | None = self
        while place is not None and place._parent is not None:
            if not place._step.startswith("["):
                yield place.name
            place = place._parent

    def key(self, key: str, units: Units) -> ValuePath:
        """The place of a key's value; `units` are those that the key itself speaks of."""
        name = key.rpartition(".")[2][-_SHOWN_KEY:]
        return ValuePath(self, f".{_shorten(key)}", name, units or self.units, self.row)

    def item(self, number: int) -> ValuePath:
        """The place of an item of a list."""
        return ValuePath(self, f"[{number}]", self.name, self.units, self.row)

    def inside(self, row: Row) -> ValuePath:
        """The same place, in an object of its own."""
        return ValuePath(self._parent, self._step, self.name, self.units, row)

    def length(self, of: str = "") -> ValuePath:
        """The place of a count."""
        return ValuePath(self, f"{_shorten(of)}.length", "length", NO_UNIT, self.row)


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN_KEY else f"{text[: _SHOWN_KEY // 2]}…{text[1 - _SHOWN_KEY // 2 :]}"
