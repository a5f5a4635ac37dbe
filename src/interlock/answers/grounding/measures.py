"""Units of one dimension and how they are turned into one another: 3200 m is 3.2 km, 90 minutes are 1.5 hours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from interlock.answers.grounding.claims import Units

_AFFINE = {
    "celsius": (Decimal(1), Decimal(0)),
    "fahrenheit": (Decimal(5) / 9, Decimal(-32)),
    "kelvin": (Decimal(1), Decimal("-273.15")),
}


class Measures:
    """What a figure in one unit is in another."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._sizes: dict[str, tuple[str, Decimal]] = {
            unit: (dimension, Decimal(str(size)))
            for dimension, sizes in table["scales"].items()
            for unit, size in sizes.items()
        }

    def convert(self, value: Decimal, have: Units, want: Units) -> Iterator[Decimal]:
        """The figure in a unit that is asked for, once for each way to read both."""
        for one in have:
            for other in want:
                if one in self._sizes and other in self._sizes and one != other:
                    (dimension, size), (wanted, unit) = self._sizes[one], self._sizes[other]
                    if dimension == wanted and (dimension != "money" or "cent" in (one, other)):
                        yield value * size / unit
                elif one in _AFFINE and other in _AFFINE and one != other:
                    (scale, shift), (into, back) = _AFFINE[one], _AFFINE[other]
                    yield (value + shift) * scale / into - back

    def kinds(self, units: Units) -> frozenset[str]:
        """What the units measure, temperature and shares with it."""
        more = {"temperature" for unit in units if unit in _AFFINE} | {"percent" for unit in units if unit == "percent"}
        return self.dimensions(units) | more

    def dimensions(self, units: Units) -> frozenset[str]:
        """What the units measure."""
        sizes = (self._sizes[unit][0] for unit in units if unit in self._sizes)
        return frozenset(dimension for dimension in sizes if dimension != "money")
