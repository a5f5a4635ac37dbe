"""A map for a terminal: sectors as shades, trails as letters, drawn with characters."""

from __future__ import annotations

import math
from collections.abc import Mapping

import shapely
from rich.text import Text
from shapely.geometry import Point, shape

from interlock_ranger.burn.severity import Scale, Severity, cuts, severity
from interlock_ranger.fires import Fire

WIDTH = 64
_SHADES = {
    Severity.REGROWTH: ("·", "green"),
    Severity.UNBURNED: ("·", "green"),
    Severity.LOW: ("░", "yellow"),
    Severity.MODERATE: ("▒", "dark_orange"),
    Severity.HIGH: ("▓", "red"),
}
_COLOURS = {"CLOSED": "bold red", "RESTRICTED": "bold yellow", "TYPE_IV": "bold red", "TYPE_III": "bold yellow"}


def drawn(fire: Fire, marks: Mapping[str, str]) -> Text:
    """The map of a fire; trails that are marked are drawn in the colour of their mark."""
    letters = {name: chr(ord("A") + n) for n, name in enumerate(name for name in fire.trails if name in marks)}
    lines = {name: shape(fire.trails[name].line) for name in letters}
    whole = shapely.union_all([fire.perimeter, *lines.values()])
    west, south, east, north = whole.bounds
    squeeze = math.cos(math.radians((south + north) / 2))
    height = max(8, min(36, round(WIDTH * (north - south) / ((east - west) * squeeze) / 2.1)))
    grid = [[(" ", "") for _ in range(WIDTH)] for _ in range(height)]
    bounds = cuts(Scale.GENERIC, fire.facts.analyst_thresholds)
    shades = [(sector.geometry, _SHADES[severity(sector.dnbr_mean, bounds)]) for sector in fire.sectors.values()]
    for r in range(height):
        for c in range(WIDTH):
            point = Point(west + (c + 0.5) / WIDTH * (east - west), north - (r + 0.5) / height * (north - south))
            grid[r][c] = next((shade for area, shade in shades if area.contains(point)), (" ", ""))
    for name, line in lines.items():
        for lon, lat in line.coords:
            c = min(WIDTH - 1, int((lon - west) / (east - west) * WIDTH))
            r = min(height - 1, int((north - lat) / (north - south) * height))
            grid[r][c] = (letters[name], _COLOURS.get(marks[name], "bold cyan"))
    text = Text(f"map of {fire.facts.name} ({'SYNTHETIC, ' if fire.facts.synthetic else ''}north is up)\n", style="dim")
    for row in grid:
        for character, style in row:
            text.append(character, style=style)
        text.append("\n")
    text.append("▓ high  ▒ moderate  ░ low  · unburned (mean of the sector)\n", style="dim")
    for name, letter in letters.items():
        text.append(f"{letter} {fire.trails[name].name}: {marks[name]}\n", style=_COLOURS.get(marks[name], "cyan"))
    return text
