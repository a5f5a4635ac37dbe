"""Figures of one column of a CSV file. What could be two figures is read as neither."""

from __future__ import annotations

import re
from collections.abc import Iterable

from interlock_ranger.intake.problems import parse_figure

# 1,200 and -1,234,567.5; not 30,5, which is a decimal comma, and neither 12,34 nor 0,500.
_COMMA_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
# 1,234 alone: twelve hundred to one, one and a quarter to another.
_ONE_COMMA = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")
_ONE_DOT = re.compile(r"[-+]?[1-9]\d{0,2}\.\d{3}")
# 2.5, 0.125 and 3.1416: the column is of somebody who writes decimal points.
_DECIMAL_POINT = re.compile(r"[-+]?(?:0\.\d+|\d+\.(?:\d{1,2}|\d{4,}))")
# 3,5, 0,500 and 12,3456; 1.500.000 and 1.500,5: the column is of somebody who parts thousands by dots.
_DECIMAL_COMMA = re.compile(
    r"[-+]?(?:0,\d+|\d+,(?:\d{1,2}|\d{4,})|\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}(?:\.\d{3})+,\d+)"
)


class ColumnNumbers:
    """Reads the cells of one column, by what the others and the delimiter tell of its commas."""

    def __init__(self, cells: Iterable[str], delimiter: str) -> None:
        known = tuple(cells)
        self._is_comma_decimal = any(_DECIMAL_COMMA.fullmatch(cell) for cell in known)
        self._is_point_decimal = any(_DECIMAL_POINT.fullmatch(cell) for cell in known)
        self._delimiter = delimiter

    def read(self, cell: str) -> float | None:
        """The figure; nothing if there is none, or more than one that could be meant."""
        if self._is_ambiguous(cell):
            return None
        return parse_figure(cell.replace(",", "") if _COMMA_THOUSANDS.fullmatch(cell) else cell)

    def looks_like_one(self, cell: str) -> bool:
        """Whether somebody meant a figure, also where it cannot be read."""
        return any(pattern.fullmatch(cell) for pattern in (_COMMA_THOUSANDS, _DECIMAL_COMMA)) or (
            parse_figure(cell) is not None
        )

    def explain(self, cell: str) -> str:
        """Why a cell cannot be read."""
        if self._is_ambiguous(cell):
            plain = cell.replace(",", "").replace(".", "")
            return f"can mean {plain} or {cell.replace(',', '.')}; write it without a separator of thousands"
        if _DECIMAL_COMMA.fullmatch(cell):
            return "not a number; write a decimal point and no separator of thousands"
        return "not a number"

    def _is_ambiguous(self, cell: str) -> bool:
        if self._is_comma_decimal:
            return bool(_ONE_COMMA.fullmatch(cell) or _ONE_DOT.fullmatch(cell))
        # Columns are parted by semicolons where the comma is the decimal one: then a dot may part thousands.
        if self._delimiter == ";" and not self._is_point_decimal and _ONE_DOT.fullmatch(cell):
            return True
        # Where commas part the columns, nobody writes a decimal comma without noticing; elsewhere many do.
        return self._delimiter != "," and bool(_ONE_COMMA.fullmatch(cell))
