"""A map and charts as SVG, drawn from results: no picture is made of anything that is not on record."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import shapely
from markupsafe import Markup
from shapely.geometry import MultiPolygon, Polygon, shape

from interlock_ranger.geo import MILE_M
from interlock_ranger.records import Fire, Sector, Trail
from interlock_ranger.view.figures import format_figure
from interlock_ranger.view.templates import render

WIDTH = 640
SEVERITY_COLOURS = {
    "high": "#b2182b",
    "moderate": "#ef8a62",
    "low": "#fddbc7",
    "unburned": "#d9ead3",
    "regrowth": "#a8d5a2",
}
ADVICE_COLOURS = {"CLOSED": "#7f0000", "RESTRICTED": "#b8860b", "OPEN_CAUTION": "#2166ac", "OPEN": "#1b7837"}
UNKNOWN_COLOUR = "#eeeeee"
UNKNOWN_LINE_COLOUR = "#444444"
_MARGIN_DEG = 0.01
_SCALE_BAR_MILES = 5
_DEGREE_M = 111_320
"""Metres of a degree of longitude at the equator."""
_LABEL_CHARACTERS = 28
_LEFT, _ROW, _BAR = 190, 24, 15
"""Where bars begin, how far apart they are, and how thick."""


class Frame:
    """Longitude and latitude on a sheet."""

    def __init__(self, fire: Fire) -> None:
        # Bounds only, of all that is drawn: a perimeter that crosses itself cannot be joined with anything.
        drawn = [fire.perimeter, *(sector.geometry for sector in fire.sectors.values())]
        west, south, east, north = shapely.total_bounds([*drawn, *(shape(t.line) for t in fire.trails.values())])
        self.west, self.south = west - _MARGIN_DEG, south - _MARGIN_DEG
        self.east, self.north = east + _MARGIN_DEG, north + _MARGIN_DEG
        # Degrees of longitude are narrower than those of latitude, by the cosine of the latitude.
        self._squeeze = math.cos(math.radians((self.south + self.north) / 2))
        self._scale = WIDTH / ((self.east - self.west) * self._squeeze)
        self.height = round((self.north - self.south) * self._scale)

    def place(self, lon: float, lat: float) -> tuple[float, float]:
        """Where a position lies."""
        return round((lon - self.west) * self._squeeze * self._scale, 1), round((self.north - lat) * self._scale, 1)

    def path(self, positions: Iterable[Sequence[float]]) -> str:
        """A path through positions."""
        return " ".join(
            f"{'M' if n == 0 else 'L'}{x},{y}" for n, (x, y) in enumerate(self.place(*p[:2]) for p in positions)
        )

    def width_of(self, miles: float) -> float:
        """How wide a distance is from west to east."""
        # The scale counts squeezed degrees, which are as wide as those of the equator at any latitude.
        return float(round(miles * MILE_M / _DEGREE_M * self._scale, 1))


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A sector or trail on the map, with its label."""

    path: str
    colour: str
    title: str
    label: str
    x: float
    y: float
    anchor: str = "middle"
    points: tuple[MapPoint, ...] = ()


class MapPoint(msgspec.Struct, frozen=True, kw_only=True):
    x: float
    y: float
    radius: float
    title: str


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    label: str
    value: float
    colour: str
    error: float | None = None
    """Half an interval, drawn on the bar."""


class StackedBar(msgspec.Struct, frozen=True, kw_only=True):
    label: str
    shares_pct: dict[str, float]
    """By class of severity; what is missing to a hundred percent is left empty."""


def draw_map(fire: Fire, sectors: Mapping[str, Mapping[str, Any]], trails: Mapping[str, Mapping[str, Any]]) -> Markup:
    """Sectors by severity, trails by advice, damage points by severity; every shape says what it is."""
    frame = Frame(fire)
    return render(
        "fire_map.svg",
        name=fire.facts.name,
        width=WIDTH,
        height=frame.height,
        # Below the sectors: a part of the fire that lies in none of them is seen all the same.
        perimeter=_draw_rings(frame, fire.perimeter),
        uncovered=UNKNOWN_COLOUR,
        sectors=[_draw_sector(frame, sector, sectors.get(name, {})) for name, sector in fire.sectors.items()],
        trails=[_draw_trail(frame, trail, trails.get(name, {})) for name, trail in fire.trails.items()],
        miles=_SCALE_BAR_MILES,
        miles_width=frame.width_of(_SCALE_BAR_MILES),
    )


def _draw_sector(frame: Frame, sector: Sector, finding: Mapping[str, Any]) -> Shape:
    parts = _parts(sector.geometry)
    # In the largest part, and always inside: the centroid of a crescent lies beside it.
    x, y = frame.place(*max(parts, key=lambda part: part.area).representative_point().coords[0])
    severity, dnbr = finding.get("severity", "not assessed"), finding.get("dnbr_mean", "–")
    return Shape(
        path=_draw_rings(frame, sector.geometry),
        colour=SEVERITY_COLOURS.get(str(severity), UNKNOWN_COLOUR),
        title=f"{sector.sector_id} {sector.name}: {severity}, dNBR {dnbr}",
        label=sector.sector_id,
        x=x,
        y=y,
    )


def _parts(area: Polygon | MultiPolygon) -> tuple[Polygon, ...]:
    return tuple(area.geoms) if isinstance(area, MultiPolygon) else (area,)


def _draw_rings(frame: Frame, area: Polygon | MultiPolygon) -> str:
    """Every part with its holes, as one path."""
    rings = [ring for part in _parts(area) for ring in (part.exterior, *part.interiors)]
    return " ".join(f"{frame.path(ring.coords)} Z" for ring in rings)


def _draw_trail(frame: Frame, trail: Trail, finding: Mapping[str, Any]) -> Shape:
    coordinates = trail.line["coordinates"]
    x, y = frame.place(*coordinates[len(coordinates) // 2][:2])
    advice, risk = finding.get("advice", "not evaluated"), finding.get("risk_score", "–")
    fits_right = x < 0.75 * WIDTH  # further right a label would run over the edge
    return Shape(
        path=frame.path(coordinates),
        colour=ADVICE_COLOURS.get(str(advice), UNKNOWN_LINE_COLOUR),
        title=f"{trail.name}: {advice}, risk {risk}",
        label=trail.name,
        x=x + (6 if fits_right else -6),
        y=y,
        anchor="start" if fits_right else "end",
        points=_draw_damage(frame, trail),
    )


def _draw_damage(frame: Frame, trail: Trail) -> tuple[MapPoint, ...]:
    points = []
    for point in trail.damage_points:
        x, y = frame.place(point.longitude, point.latitude)
        title = f"{point.damage_id}: {point.type.replace('_', ' ').lower()}, severity {point.severity}"
        points.append(MapPoint(x=x, y=y, radius=1.5 + point.severity, title=title))
    return tuple(points)


def draw_bars(bars: Sequence[Bar], unit: str) -> Markup:
    """Horizontal bars with their figures."""
    if not bars:
        return Markup()
    room = WIDTH - _LEFT - 110  # for the figures at the right
    # Where all are zero, bars have no length, in place of a division by zero.
    reach = max(bar.value + (bar.error or 0) for bar in bars) or 1
    rows = []
    for n, bar in enumerate(bars):
        low = room * max(0.0, bar.value - (bar.error or 0)) / reach
        high = room * (bar.value + (bar.error or 0)) / reach
        rows.append(
            {
                "y": n * _ROW + 4,
                "label": bar.label[:_LABEL_CHARACTERS],
                "colour": bar.colour,
                "length": f"{room * bar.value / reach:.1f}",
                "interval": (f"{_LEFT + low:.1f}", f"{_LEFT + high:.1f}") if bar.error else None,
                "figure": format_figure(bar.value),
                "figure_x": f"{_LEFT + high + 6:.1f}",
            }
        )
    return render("bars.svg", width=WIDTH, height=len(bars) * _ROW + 8, left=_LEFT, bar=_BAR, rows=rows, unit=unit)


def draw_stacked_bars(bars: Sequence[StackedBar]) -> Markup:
    """Bars of a hundred percent, split into classes of severity."""
    room = WIDTH - _LEFT - 20
    rows = []
    for n, bar in enumerate(bars):
        parts, x = [], float(_LEFT)
        for severity, share_pct in bar.shares_pct.items():
            length = room * share_pct / 100
            parts.append(
                {
                    "x": f"{x:.1f}",
                    "length": f"{length:.1f}",
                    "colour": SEVERITY_COLOURS.get(severity, UNKNOWN_COLOUR),
                    "title": f"{bar.label}: {severity} {share_pct} %",
                }
            )
            x += length
        rows.append({"y": n * _ROW + 4, "label": bar.label[:_LABEL_CHARACTERS], "parts": parts})
    return render("stacked_bars.svg", width=WIDTH, height=len(bars) * _ROW + 8, left=_LEFT, bar=_BAR, rows=rows)
