"""The briefing as one HTML page that prints well: map, charts, tables, and for every figure its record and rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from markupsafe import Markup

from interlock_ranger.briefing.compose import SECTIONS, Briefing, RecordedResult
from interlock_ranger.nepa.terms import DRAFT
from interlock_ranger.rules import load_rules
from interlock_ranger.view.result_tables import LAYOUTS
from interlock_ranger.view.svg import (
    ADVICE_COLOURS,
    UNKNOWN_LINE_COLOUR,
    Bar,
    StackedBar,
    draw_bars,
    draw_map,
    draw_stacked_bars,
)
from interlock_ranger.view.templates import render

CHARTED = 20
"""So many rows of a result are drawn."""
_COST_COLOUR, _VOLUME_COLOUR = "#8c510a", "#4d9221"


class PageFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A result with its table and chart."""

    result: RecordedResult
    columns: tuple[str, ...]
    rows: Sequence[dict[str, Any]]
    chart: Markup


def render_page(briefing: Briefing) -> str:
    severity, closure = briefing.results_of("assess_severity"), briefing.results_of("evaluate_closure")
    sectors = {s["sector_id"]: s for result in severity for s in result.value["sectors"]}
    trails = {t["trail_id"]: t for result in closure for t in result.value["trails"]}
    return render(
        "briefing.html",
        facts=briefing.fire.facts,
        day=briefing.day,
        turn=briefing.turn,
        confidence=briefing.confidence,
        draft=DRAFT,
        rules=load_rules(),
        map=draw_map(briefing.fire, sectors, trails),
        map_records=[result.record for result in (*severity, *closure)],
        advice_colours=ADVICE_COLOURS,
        sections={
            name: [_finding(result) for tool in tools for result in briefing.results_of(tool)]
            for name, tools in SECTIONS.items()
        },
        gaps={name: briefing.gaps_of(tools) for name, tools in SECTIONS.items()},
        sources=_sources(briefing.results),
    )


def _finding(result: RecordedResult) -> PageFinding:
    layout = LAYOUTS[result.tool]
    return PageFinding(
        result=result, columns=layout.columns, rows=result.value.get(layout.key) or (), chart=_draw_chart(result)
    )


def _draw_chart(result: RecordedResult) -> Markup:
    value = result.value
    match result.tool:
        case "assess_severity":
            # Of a sector that was measured by its mean alone there is no mosaic to draw.
            return draw_stacked_bars(
                [_severity_bar(s) for s in value["sectors"][:CHARTED] if s["high_pct"] is not None]
            )
        case "classify_damage":
            trails = value["trails"][:CHARTED]
            return draw_bars([Bar(label=t["name"], value=t["cost_usd"], colour=_COST_COLOUR) for t in trails], "USD")
        case "evaluate_closure":
            return draw_bars([_risk_bar(t) for t in value["trails"][:CHARTED]], "risk")
        case "estimate_volume":
            stands = [s for s in value["stands"][:CHARTED] if s["total_net_mbf"] is not None]
            return draw_bars([_volume_bar(s) for s in stands], "MBF")
        case _:
            return Markup()


def _severity_bar(sector: dict[str, Any]) -> StackedBar:
    return StackedBar(
        label=f"{sector['sector_id']} {sector['name']}",
        shares_pct={"high": sector["high_pct"], "moderate": sector["moderate_pct"]},
    )


def _risk_bar(trail: dict[str, Any]) -> Bar:
    colour = ADVICE_COLOURS.get(trail["advice"], UNKNOWN_LINE_COLOUR)
    return Bar(label=trail["name"], value=trail["risk_score"], colour=colour)


def _volume_bar(stand: dict[str, Any]) -> Bar:
    total, high = stand["total_net_mbf"], stand["total_high_mbf"]
    return Bar(label=stand["name"], value=total, colour=_VOLUME_COLOUR, error=None if high is None else high - total)


def _sources(results: Sequence[RecordedResult]) -> list[dict[str, Any]]:
    """Every file once."""
    sources: dict[str, dict[str, Any]] = {}
    for result in results:
        for source in result.value["evidence"]["data_sources"]:
            sources.setdefault(source["file"], source)
    return list(sources.values())
