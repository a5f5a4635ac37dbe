"""A map and charts as SVG, drawn from results: no picture is made of anything that is not on record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import shapely
from shapely.geometry import shape

from interlock_ranger.fires import Fire

WIDTH = 640
SEVERITY = {"high": "#b2182b", "moderate": "#ef8a62", "low": "#fddbc7", "unburned": "#d9ead3", "regrowth": "#a8d5a2"}
ADVICE = {"CLOSED": "#7f0000", "RESTRICTED": "#b8860b", "OPEN_CAUTION": "#2166ac", "OPEN": "#1b7837"}


class Frame:
    """Longitude and latitude on a sheet."""

    def __init__(self, fire: Fire) -> None:
        lines = [shape(trail.line) for trail in fire.trails.values()]
        whole = shapely.union_all([fire.perimeter, *lines])
        self.west, self.south, self.east, self.north = whole.buffer(0.01).bounds
        self._squeeze = math.cos(math.radians((self.south + self.north) / 2))
        self._scale = WIDTH / ((self.east - self.west) * self._squeeze)
        self.height = round((self.north - self.south) * self._scale)

    def place(self, lon: float, lat: float) -> tuple[float, float]:
        """Where a position lies."""
        return round((lon - self.west) * self._squeeze * self._scale, 1), round((self.north - lat) * self._scale, 1)

    def path(self, positions: Any) -> str:
        """A path through positions."""
        return " ".join(
            f"{'M' if n == 0 else 'L'}{x},{y}" for n, (x, y) in enumerate(self.place(*p[:2]) for p in positions)
        )


def fire_map(fire: Fire, sectors: dict[str, dict[str, Any]], trails: dict[str, dict[str, Any]]) -> str:
    """Sectors by severity, trails by advice, damage points by severity; every shape says what it is."""
    frame = Frame(fire)
    parts = []
    for name, sector in fire.sectors.items():
        own = sectors.get(name, {})
        colour = SEVERITY.get(str(own.get("severity")), "#eeeeee")
        area = (
            max(sector.geometry.geoms, key=lambda g: g.area) if hasattr(sector.geometry, "geoms") else sector.geometry
        )
        title = escape(f"{name} {sector.name}: {own.get('severity', 'not assessed')}, dNBR {own.get('dnbr_mean', '–')}")
        x, y = frame.place(*area.representative_point().coords[0])
        parts.append(
            f'<path d="{frame.path(area.exterior.coords)} Z" fill="{colour}" stroke="#555" stroke-width="0.7">'
            f'<title>{title}</title></path><text x="{x}" y="{y}" class="sector">{escape(name)}</text>'
        )
    for name, trail in fire.trails.items():
        own = trails.get(name, {})
        colour = ADVICE.get(str(own.get("advice")), "#444444")
        title = escape(f"{trail.name}: {own.get('advice', 'not evaluated')}, risk {own.get('risk_score', '–')}")
        coords = trail.line["coordinates"]
        x, y = frame.place(*coords[len(coords) // 2][:2])
        parts.append(
            f'<path d="{frame.path(coords)}" fill="none" stroke="{colour}" stroke-width="3">'
            f"<title>{title}</title></path>"
            f'<text x="{x + (6 if x < 0.75 * WIDTH else -6)}" y="{y}" class="trail"'
            f' style="text-anchor:{"start" if x < 0.75 * WIDTH else "end"}">{escape(trail.name)}</text>'
        )
        for point in trail.damage_points:
            x, y = frame.place(point.longitude, point.latitude)
            said = escape(f"{point.damage_id}: {point.type.replace('_', ' ').lower()}, severity {point.severity}")
            parts.append(
                f'<circle cx="{x}" cy="{y}" r="{1.5 + point.severity}" class="damage"><title>{said}</title></circle>'
            )
    return (
        f'<svg viewBox="0 0 {WIDTH} {frame.height}" role="img" aria-label="map of {escape(fire.facts.name)}">'
        + "".join(parts)
        + _scale_bar(frame)
        + "</svg>"
    )


def _scale_bar(frame: Frame) -> str:
    miles = 5
    degrees = miles * 1609.344 / (111_320 * math.cos(math.radians((frame.south + frame.north) / 2)))
    start, _ = frame.place(frame.west, frame.south)
    end, _ = frame.place(frame.west + degrees, frame.south)
    y = frame.height - 12
    return (
        f'<line x1="{start + 12}" x2="{end + 12}" y1="{y}" y2="{y}" stroke="#000" stroke-width="2"/>'
        f'<text x="{start + 12}" y="{y - 5}" class="sector" style="text-anchor:start">{miles} miles, north is up</text>'
    )


def bars(rows: Sequence[tuple[str, float, str]], unit: str, errors: Sequence[float | None] = ()) -> str:
    """Horizontal bars with their figures; `errors` draws half an interval on each."""
    if not rows:
        return ""
    reach = max(value + (errors[n] or 0 if errors else 0) for n, (_, value, _) in enumerate(rows)) or 1
    left, wide, step = 190, WIDTH - 190 - 110, 24
    parts = []
    for n, (name, value, colour) in enumerate(rows):
        y, length = n * step + 4, wide * value / reach
        parts.append(
            f'<text x="{left - 8}" y="{y + 12}" class="label">{escape(name[:28])}</text>'
            f'<rect x="{left}" y="{y}" width="{length:.1f}" height="15" fill="{colour}"/>'
        )
        off = errors[n] if errors else None
        tail = length
        if off:
            low, high = wide * max(0.0, value - off) / reach, wide * (value + off) / reach
            tail = high
            parts.append(
                f'<path d="M{left + low:.1f},{y + 7.5} L{left + high:.1f},{y + 7.5}" stroke="#000" stroke-width="1.5"/>'
            )
        parts.append(f'<text x="{left + tail + 6:.1f}" y="{y + 12}" class="value">{value:,.10g} {escape(unit)}</text>')
    return f'<svg viewBox="0 0 {WIDTH} {len(rows) * step + 8}" role="img">{"".join(parts)}</svg>'


def stacked(rows: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> str:
    """Bars of a hundred percent, split into classes."""
    left, wide, step = 190, WIDTH - 190 - 20, 24
    parts = []
    for n, (name, split) in enumerate(rows):
        y, x = n * step + 4, float(left)
        parts.append(f'<text x="{left - 8}" y="{y + 12}" class="label">{escape(name[:28])}</text>')
        for kind, share in split:
            length = wide * share / 100
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="15" fill="{SEVERITY[kind]}">'
                f"<title>{escape(name)}: {kind} {share} %</title></rect>"
            )
            x += length
    return f'<svg viewBox="0 0 {WIDTH} {len(rows) * step + 8}" role="img">{"".join(parts)}</svg>'
