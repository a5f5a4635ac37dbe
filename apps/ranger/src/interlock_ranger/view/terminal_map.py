"""A map for a terminal: sectors as shades, trails as letters, drawn with characters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import shapely
from rich.text import Text
from shapely.geometry import Point, shape

from interlock_ranger.burn.severity import Scale, Severity, classify_severity, thresholds_of
from interlock_ranger.records import Fire

WIDTH = 64
_LEAST_HEIGHT, _MOST_HEIGHT = 8, 36
_CHARACTER_RATIO = 2.1
"""A character is about so many times as high as it is wide."""


class Cell(NamedTuple):
    character: str = " "
    style: str = ""


_SHADES = {
    Severity.REGROWTH: Cell("·", "green"),
    Severity.UNBURNED: Cell("·", "green"),
    Severity.LOW: Cell("░", "yellow"),
    Severity.MODERATE: Cell("▒", "dark_orange"),
    Severity.HIGH: Cell("▓", "red"),
}
_UNCOVERED = Cell("-", "dim")
_COLOURS = {"CLOSED": "bold red", "RESTRICTED": "bold yellow", "TYPE_IV": "bold red", "TYPE_III": "bold yellow"}


class Grid:
    """Longitude and latitude on a sheet of characters."""

    def __init__(self, bounds: tuple[float, float, float, float]) -> None:
        self._west, self._south, self._east, self._north = bounds
        # Degrees of longitude are narrower than those of latitude, by the cosine of the latitude.
        squeeze = math.cos(math.radians((self._south + self._north) / 2))
        ratio = (self._north - self._south) / ((self._east - self._west) * squeeze)
        self.height = max(_LEAST_HEIGHT, min(_MOST_HEIGHT, round(WIDTH * ratio / _CHARACTER_RATIO)))
        self.cells = [[Cell() for _ in range(WIDTH)] for _ in range(self.height)]

    def centre(self, row: int, column: int) -> Point:
        """The position that the middle of a cell stands for."""
        return Point(
            self._west + (column + 0.5) / WIDTH * (self._east - self._west),
            self._north - (row + 0.5) / self.height * (self._north - self._south),
        )

    def draw_line(self, positions: Sequence[tuple[float, float]], cell: Cell) -> None:
        """Every cell between two positions, too: a long straight way is a line and not its two ends."""
        places = [self._place(lon, lat) for lon, lat in positions]
        for (x, y), (to_x, to_y) in pairwise(places):
            # A step is no longer than a cell in either direction, so that no cell between is left out.
            steps = max(1, math.ceil(max(abs(to_x - x), abs(to_y - y))))
            for step in range(steps + 1):
                share = step / steps
                self._put(x + share * (to_x - x), y + share * (to_y - y), cell)

    def _place(self, lon: float, lat: float) -> tuple[float, float]:
        """A position in cells from the north-western corner."""
        return (
            (lon - self._west) / (self._east - self._west) * WIDTH,
            (self._north - lat) / (self._north - self._south) * self.height,
        )

    def _put(self, x: float, y: float, cell: Cell) -> None:
        # A position on the eastern or southern edge would fall one cell outside.
        self.cells[min(self.height - 1, int(y))][min(WIDTH - 1, int(x))] = cell


def draw_map(fire: Fire, marks: Mapping[str, str]) -> Text:
    """The map of a fire; trails that are marked are drawn in the colour of their mark."""
    letters = {name: chr(ord("A") + n) for n, name in enumerate(name for name in fire.trails if name in marks)}
    lines = {name: shape(fire.trails[name].line) for name in letters}
    # Bounds only: a perimeter that crosses itself cannot be joined with anything.
    grid = Grid(tuple(shapely.total_bounds([fire.perimeter, *lines.values()])))
    uncovered = _shade_sectors(grid, fire)
    for name, line in lines.items():
        grid.draw_line(line.coords, Cell(letters[name], _COLOURS.get(marks[name], "bold cyan")))
    text = Text(f"map of {fire.facts.name} ({'SYNTHETIC, ' if fire.facts.synthetic else ''}north is up)\n", style="dim")
    for row in grid.cells:
        for cell in row:
            text.append(cell.character, style=cell.style)
        text.append("\n")
    text.append("▓ high  ▒ moderate  ░ low  · unburned (mean of the sector)\n", style="dim")
    if uncovered:
        text.append(f"{_UNCOVERED.character} inside the perimeter, but in no sector\n", style="dim")
    for name, letter in letters.items():
        text.append(f"{letter} {fire.trails[name].name}: {marks[name]}\n", style=_COLOURS.get(marks[name], "cyan"))
    return text


def _shade_sectors(grid: Grid, fire: Fire) -> bool:
    """Shade what burned; whether some of it lies in no sector."""
    thresholds = thresholds_of(Scale.GENERIC, fire.facts.analyst_thresholds)
    shades = [
        (sector.geometry, _SHADES[classify_severity(sector.dnbr_mean, thresholds)]) for sector in fire.sectors.values()
    ]
    # Last, so that it is the shade of what no sector has.
    shades.append((shapely.make_valid(fire.perimeter), _UNCOVERED))
    for row, cells in enumerate(grid.cells):
        for column in range(WIDTH):
            point = grid.centre(row, column)
            cells[column] = next((shade for area, shade in shades if area.contains(point)), Cell())
    return any(cell is _UNCOVERED for cells in grid.cells for cell in cells)
