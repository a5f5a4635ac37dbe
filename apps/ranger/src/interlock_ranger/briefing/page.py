"""The briefing as one HTML page that prints well: map, charts, tables, and for every figure its record and rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from interlock_ranger.briefing.compose import Briefing, Found
from interlock_ranger.nepa.terms import DRAFT
from interlock_ranger.rules import rule
from interlock_ranger.view.beside import COLUMNS
from interlock_ranger.view.svg import ADVICE, bars, fire_map, stacked

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 960px; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { border-bottom: 2px solid #444; margin-top: 2.2rem; } h3 { margin-bottom: .3rem; }
.synthetic { background: #7f0000; color: #fff; padding: .4rem .8rem; font-weight: 600; }
.draft { background: #fff4d6; border: 1px solid #caa64a; padding: .4rem .8rem; }
.meta { color: #555; } .lead { font-size: 1.05rem; }
table { border-collapse: collapse; width: 100%; font-size: .86rem; margin: .6rem 0; }
th, td { text-align: left; padding: .25rem .5rem; border-bottom: 1px solid #ddd; vertical-align: top; }
th { background: #f3f3f3; } td.n { text-align: right; font-variant-numeric: tabular-nums; }
.ref { color: #666; font-size: .8rem; } svg { width: 100%; height: auto; }
svg text { font: 10px system-ui, sans-serif; } .sector { text-anchor: middle; fill: #333; }
.trail { fill: #111; paint-order: stroke; stroke: #fff; stroke-width: 2.5px; } .label { text-anchor: end; }
.sector { paint-order: stroke; stroke: #fff; stroke-width: 2px; }
.damage { fill: none; stroke: #111; stroke-width: 1.2; } .key span { display: inline-block; margin-right: 1rem; }
.key i { display: inline-block; width: .9em; height: .9em; margin-right: .3em; vertical-align: -0.1em; }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } table, svg { break-inside: avoid; } }
@page { size: letter; margin: 18mm; }
"""
SECTIONS = (
    ("Burn", ("assess_severity", "classify_mtbs", "validate_boundary")),
    ("Trails", ("classify_damage", "evaluate_closure")),
    ("Timber", ("estimate_volume", "assess_salvage")),
    ("Compliance", ("decide_pathway",)),
)


def page(briefing: Briefing) -> str:
    """The whole page."""
    facts, result = briefing.fire.facts, briefing.result
    title = f"Briefing: {facts.name} ({facts.fire_id})"
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="meta">{briefing.day}, {escape(", ".join(facts.forests))}; {facts.reported_acres:,} acres,'
        f" contained {facts.containment_date.isoformat()}; trail <code>{escape(result.turn)}</code>,"
        f" {escape(result.status.value)}; lowest confidence {briefing.confidence}</p>",
        '<p class="synthetic">SYNTHETIC DATA: made for demonstration; not a survey of the real fire.</p>'
        * facts.synthetic,
        f'<p class="draft">{escape(DRAFT)}</p>',
        _map(briefing),
    ]
    for name, tools in SECTIONS:
        body.append(f"<h2>{name}</h2>")
        for tool in tools:
            body += [_finding(item) for item in briefing.of(tool)]
    body.append(_sources(briefing.found))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _map(briefing: Briefing) -> str:
    severity, closure = briefing.of("assess_severity"), briefing.of("evaluate_closure")
    sectors = {s["sector_id"]: s for item in severity for s in item.value["sectors"]}
    trails = {t["trail_id"]: t for item in closure for t in item.value["trails"]}
    key = "".join(f'<span><i style="background:{colour}"></i>{name.lower()}</span>' for name, colour in ADVICE.items())
    from_records = ", ".join(f"record {item.record}" for item in (*severity, *closure))
    return (
        f'<figure>{fire_map(briefing.fire, sectors, trails)}<figcaption class="key">Trails: {key}'
        f'<span class="ref">Sectors by mean severity; circles are damage points. From {from_records}.</span>'
        "</figcaption></figure>"
    )


def _finding(item: Found) -> str:
    key, columns = COLUMNS[item.tool]
    evidence = item.value["evidence"]
    steps = "".join(f"<li>{escape(s['said'])} {_ref(s['rule'])}</li>" for s in evidence["reasoning"])
    advice = "".join(f"<li>{escape(a['text'])} {_ref(a['rule'])}</li>" for a in evidence["recommendations"])
    trust = evidence["confidence"]
    return (
        f'<section id="record-{item.record}"><h3>{item.tool} <span class="ref">record {item.record}</span></h3>'
        f'<p class="lead">{escape(item.said)}</p>{_chart(item)}{_table(item.value.get(key) or (), columns)}'
        f'<p class="ref">Confidence {trust["score"]} = completeness {trust["completeness"]} × freshness'
        f" {trust['freshness']} (oldest data {trust['oldest_data_days']} days) {_ref(trust['rule'])}</p>"
        f"<details><summary>How it was come to</summary><ol>{steps}</ol></details>"
        + (f"<p>Recommended:</p><ul>{advice}</ul>" if advice else "")
        + "</section>"
    )


def _chart(item: Found) -> str:
    value = item.value
    match item.tool:
        case "assess_severity":
            rows = [
                (f"{s['sector_id']} {s['name']}", (("high", s["high_pct"]), ("moderate", s["moderate_pct"])))
                for s in value["sectors"][:20]
                if s["high_pct"] is not None
            ]
            return stacked(rows)
        case "classify_damage":
            return bars([(t["name"], t["cost_usd"], "#8c510a") for t in value["trails"][:20]], "USD")
        case "evaluate_closure":
            return bars([(t["name"], t["risk_score"], ADVICE[t["advice"]]) for t in value["trails"][:20]], "risk")
        case "estimate_volume":
            stands = [s for s in value["stands"][:20] if s["total_net_mbf"] is not None]
            errors = [(s["total_high_mbf"] or s["total_net_mbf"]) - s["total_net_mbf"] for s in stands]
            return bars([(s["name"], s["total_net_mbf"], "#4d9221") for s in stands], "MBF", errors)
        case _:
            return ""


def _table(rows: Sequence[dict[str, Any]], columns: Iterable[str]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(column.replace('_', ' '))}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(_cell(row.get(column), column) for column in columns)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any, column: str) -> str:
    if column == "rule" and isinstance(value, str):
        return f"<td>{_ref(value)}</td>"
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int | float):
        return f'<td class="n">{value:,.10g}</td>'
    return f"<td>{'–' if value is None else escape(str(value))}</td>"


def _ref(name: str) -> str:
    entry = rule(name)
    title = escape(f"{entry.title}. {entry.citation}. verified against: {entry.verified_against}")
    return f'<span class="ref" title="{title}">[{escape(name)}]</span>'


def _sources(found: Sequence[Found]) -> str:
    seen: dict[str, dict[str, Any]] = {}
    for item in found:
        for source in item.value["evidence"]["data_sources"]:
            seen.setdefault(source["file"], source)
    columns = ("file", "dated", "synthetic", "sha256")
    return "<h2>Sources</h2>" + _table(list(seen.values()), columns)
