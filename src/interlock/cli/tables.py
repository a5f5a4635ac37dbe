"""A table whose names and numbers stay whole, however narrow the terminal is."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table

UNBOUNDED = 100_000
"""Columns of a pipe: wider than any line of ours."""
_ROOM_TO_FOLD = 16
"""Columns that the last column keeps even where its longest word is shorter: a name and its number side by side."""


class WholeTable(Table):
    """In a pipe as wide as its content. On a terminal the last column folds between words; where that is not enough
    the table is wider than the terminal, which then breaks its lines. Nothing is cut."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render it with the columns before the last as wide as what they hold."""
        unbounded = options.update_width(UNBOUNDED)
        *names, last = self.columns
        for column in names:
            column.min_width = _measure(console, unbounded, column).maximum
        measured = _measure(console, unbounded, last)
        last.min_width = min(measured.maximum, max(measured.minimum, _ROOM_TO_FOLD))
        narrowest = self.__rich_measure__(console, unbounded).minimum
        width = max(options.max_width, narrowest) if console.file.isatty() else UNBOUNDED
        yield from super().__rich_console__(console, options.update_width(width))


def _measure(console: Console, options: ConsoleOptions, column: Column) -> Measurement:
    """The longest word and the longest line of a column."""
    cells = [console.measure(cell, options=options) for cell in (column.header, *column.cells)]
    return Measurement(max(cell.minimum for cell in cells), max(cell.maximum for cell in cells))
