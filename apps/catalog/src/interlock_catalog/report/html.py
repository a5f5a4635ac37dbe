"""A report as one HTML file that needs nothing else: `report.html.jinja` beside this file, with autoescape."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import jinja2
import msgspec

from interlock_catalog.contracts import Json
from interlock_catalog.report.change_report import STOPPED, ChangeReport
from interlock_catalog.runner.records import STATUS_ORDER, Run

TEMPLATE = "report.html.jinja"
_COLOURS = {
    "ok": "#2e7d32",
    "planned": "#0277bd",
    "parked": "#7b1fa2",
    "denied": "#f9a825",
    "failed": "#c62828",
    "unknown": "#6d4c41",
    "undone": "#546e7a",
}
_OTHER_COLOUR = "#555"
_BAR_WIDTH = 600


class _Segment(msgspec.Struct, frozen=True):
    """The part of the bar for one status."""

    status: str
    count: int
    x: float
    width: float


def render_html(report: ChangeReport) -> str:
    """The whole page."""
    return _template().render(report=report, run=report.run, bar=_build_bar(report.run), bar_width=_BAR_WIDTH)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,  # whatever its name: documents and models write what they like
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["STOPPED"] = STOPPED
    environment.filters["colour"] = lambda status: _COLOURS.get(status, _OTHER_COLOUR)
    environment.filters["value"] = _format_value
    return environment.get_template(TEMPLATE)


def _build_bar(run: Run) -> list[_Segment]:
    """How the changes came out, as segments of one bar."""
    total, x, segments = sum(run.counts.values()), 0.0, list[_Segment]()
    for status in STATUS_ORDER:
        count = run.counts.get(status, 0)
        if count:
            width = _BAR_WIDTH * count / total
            segments.append(_Segment(status, count, x, width))
            x += width
    return segments


def _format_value(value: Json) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
