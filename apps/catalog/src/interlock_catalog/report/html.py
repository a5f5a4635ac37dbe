"""A report as one HTML file that needs nothing else."""

from __future__ import annotations

import json
from html import escape

from interlock_catalog.contracts import Json
from interlock_catalog.report.gather import Change, Difference, FamilyReport, Report
from interlock_catalog.runner.record import ORDER

_COLOURS = {
    "ok": "#2e7d32",
    "planned": "#0277bd",
    "parked": "#7b1fa2",
    "denied": "#f9a825",
    "failed": "#c62828",
    "unknown": "#6d4c41",
    "undone": "#546e7a",
}
_STYLE = """
:root{font:15px/1.5 system-ui,sans-serif;color:#1c1c1c;background:#fafafa}
body{max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem;margin:0}h2{font-size:1.05rem;margin:1.6rem 0 .3rem}
.muted{color:#666}.chip{display:inline-block;border-radius:.6rem;padding:0 .5rem;color:#fff;font-size:.8rem}
details{background:#fff;border:1px solid #ddd;border-radius:.4rem;margin:.4rem 0;padding:.3rem .7rem}
summary{cursor:pointer}table{border-collapse:collapse;width:100%;margin:.4rem 0;font-size:.88rem;table-layout:fixed}
td{border-top:1px solid #eee;padding:.2rem .4rem;vertical-align:top;overflow-wrap:anywhere}
td:first-child{width:24%;color:#444}del{background:#ffebee;color:#b71c1c;text-decoration:none}
ins{background:#e8f5e9;color:#1b5e20;text-decoration:none}
@media (prefers-color-scheme:dark){:root{color:#e8e8e8;background:#161616}details{background:#1f1f1f;border-color:#333}
td{border-color:#333}td:first-child{color:#bbb}del{background:#4a1c1c;color:#ffb4ab}ins{background:#173a1d;color:#b6f2be}}
"""


def page(report: Report) -> str:
    """The whole page."""
    run = report.run
    families = "\n".join(_family(family) for family in report.families) or "<p>Nothing was to be done.</p>"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(run.id)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f"<h1>Catalog run {escape(run.id)}</h1>"
        f'<p class="muted">{escape(run.mode)} · {escape(run.status)} · {escape(run.started)} – {escape(run.ended)}</p>'
        f"{_bar(run.counts)}<p>{_sentence(report)}</p>{families}</body></html>"
    )


def _sentence(report: Report) -> str:
    run = report.run
    issues = ", ".join(f"{count} {name}" for name, count in run.issues.items()) or "none"
    left = f" Left for the next run: {escape(', '.join(run.left_over))}." if run.left_over else ""
    return f"{len(run.families)} families looked at; issues: {issues}.{left}"


def _bar(counts: dict[str, int]) -> str:
    """How the changes came out, as one bar."""
    total = sum(counts.values())
    if not total:
        return ""
    parts, at, legend = [], 0.0, []
    for name in ORDER:
        count = counts.get(name, 0)
        if count:
            width = 600 * count / total
            parts.append(f'<rect x="{at:.1f}" width="{width:.1f}" height="18" fill="{_COLOURS[name]}"/>')
            legend.append(f"{_chip(name)} {count}")
            at += width
    head = '<svg viewBox="0 0 600 18" width="100%" role="img" aria-label="changes">'
    return f"{head}{''.join(parts)}</svg><p>{' '.join(legend)}</p>"


def _chip(status: str) -> str:
    return f'<span class="chip" style="background:{_COLOURS.get(status, "#555")}">{escape(status)}</span>'


def _family(family: FamilyReport) -> str:
    result = family.result
    why = f'<p class="muted">{escape(result.why)}</p>' if result.why else ""
    left = "".join(
        f"<p>For a person ({escape(issue.severity)}): {escape(issue.target)} <b>{escape(issue.field)}</b>"
        f' <span class="muted">{escape(issue.evidence)}</span></p>'
        for issue in result.left
    )
    refused = "".join(
        f'<p class="muted">refused {escape(item.tool)}: {escape(item.reason)}</p>' for item in result.refused
    )
    changes = "".join(_change(change) for change in family.changes)
    return f"<h2>{escape(result.family)} {_chip(result.state)}</h2>{why}{left}{refused}{changes}"


def _change(change: Change) -> str:
    sure = "" if change.confidence is None else f", {change.confidence:.2f} sure"
    rows = "".join(_difference(difference) for difference in change.differences)
    stopped = ""
    if change.status in ("denied", "parked", "failed", "unknown"):
        ticket = f" Ticket {escape(change.ticket)}." if change.ticket else ""
        stopped = f"<p>{escape(change.rule)}: {escape(change.reason)}.{ticket}</p>"
    return (
        f"<details open><summary>{_chip(change.status)} {escape(change.op)} by {escape(change.actor)}"
        f' <span class="muted">risk {escape(change.risk)}{sure} · record {change.record}</span></summary>'
        f"<p>{escape(change.why)}</p><p class='muted'>evidence: {escape(', '.join(change.evidence))}</p>{stopped}"
        f"<table>{rows}</table></details>"
    )


def _difference(difference: Difference) -> str:
    return (
        f"<tr><td>{escape(difference.key)}<br>{escape(difference.field)}</td>"
        f"<td><del>{_value(difference.before)}</del></td><td><ins>{_value(difference.after)}</ins></td></tr>"
    )


def _value(value: Json) -> str:
    if value is None:
        return "–"
    return escape(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
