"""What is shown with an answer: a table with the rule of each row, and a map where the rows lie somewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from interlock import Outcome
from interlock_ranger.fires import Fires
from interlock_ranger.view.figures import format_figure
from interlock_ranger.view.terminal_map import draw_map


class TableLayout(NamedTuple):
    """Where the rows of a tool's result stand, and which of their values are shown."""

    key: str
    columns: tuple[str, ...]


LAYOUTS: dict[str, TableLayout] = {
    "classify_damage": TableLayout(
        "trails",
        ("name", "points", "worst", "cost_usd", "crew_days", "current_status", "rule"),
    ),
    "evaluate_closure": TableLayout("trails", ("name", "advice", "risk_score", "current_status", "reason", "rule")),
    "prioritize_trails": TableLayout("trails", ("name", "cost_usd", "annual_visits", "crew_days", "rule")),
    "assess_severity": TableLayout(
        "sectors",
        ("sector_id", "name", "acres", "dnbr_mean", "severity", "high_pct", "erosion_risk", "rule"),
    ),
    "classify_mtbs": TableLayout("classes", ("mtbs_class", "name", "acres", "pct")),
    "validate_boundary": TableLayout("issues", ("code", "severity", "message")),
    "recommend_methodology": TableLayout(
        "stands",
        ("name", "plot_type", "baf", "plot_acres", "plots", "cv_pct", "rule"),
    ),
    "estimate_volume": TableLayout(
        "stands",
        ("name", "plots", "net_mbf_per_acre", "total_net_mbf", "sampling_error_pct", "plots_needed", "rule"),
    ),
    "assess_salvage": TableLayout(
        "stands",
        ("name", "viability", "net_usd", "window_ends_in_months", "reason", "rule"),
    ),
    "analyze_csv_data": TableLayout("columns", ("name", "filled", "missing", "mean", "least", "most")),
    "search_regulatory_documents": TableLayout("passages", ("citation", "title", "fit", "file", "rule")),
    "decide_pathway": TableLayout("candidates", ("citation", "category", "fits", "reason", "verified_against", "rule")),
    "generate_documentation_checklist": TableLayout("items", ("item", "required", "rule")),
    "estimate_compliance_timeline": TableLayout("stages", ("stage", "days", "basis", "rule")),
    "portfolio_triage": TableLayout("fires", ("rank", "name", "score", "severity", "size", "urgency", "rule")),
}
_MAPPED = ("classify_damage", "evaluate_closure", "prioritize_trails", "assess_severity", "classify_mtbs")
_LONGEST = 20
_WRAPPED = ("reason", "message", "item", "title", "stage", "name", "rule", "current_status", "category")
"""Columns of long texts: they are folded; the others are kept on one line."""


class ResultTables:
    """For `App.present`: the successful calls behind an answer as tables and a map."""

    def __init__(self, fires: Fires) -> None:
        self._fires = fires

    def __call__(self, outcomes: Sequence[Outcome]) -> Iterator[object]:
        """A table for each call, and one map for each fire that has something to show on it."""
        marks: dict[str, dict[str, str]] = {}
        for outcome in outcomes:
            table = build_table(outcome.tool, outcome.value, outcome.record)
            if table is None:
                continue
            yield table
            if outcome.tool in _MAPPED:
                value: Any = outcome.value
                marks.setdefault(value["fire_id"], {}).update(mark_trails(value))
        for fire_id, trails in marks.items():
            fire = self._fires.by_id.get(fire_id)
            if fire is not None:
                yield draw_map(fire, trails)


def build_table(tool: str, value: Any, record: int | None) -> Table | None:
    """The rows of a result, with the record that they stand in."""
    if tool not in LAYOUTS or not isinstance(value, dict):
        return None
    layout = LAYOUTS[tool]
    rows = value.get(layout.key) or []
    label = "SYNTHETIC, " if value.get("synthetic") else ""
    table = Table(title=f"{tool} ({label}record {record})", title_justify="left", box=None, pad_edge=False)
    for column in layout.columns:
        table.add_column(column.replace("_", " "), overflow="fold", no_wrap=column not in _WRAPPED)
    for row in rows[:_LONGEST]:
        table.add_row(*(_cell(row.get(column)) for column in layout.columns))
    if len(rows) > _LONGEST:
        table.caption = f"… and {len(rows) - _LONGEST} more"
    return table


def _cell(value: object) -> Text:
    """A value as it is: brackets in somebody's text are no markup."""
    if value is None:
        return Text("–")
    # Before numbers: a bool is an int, and would be shown as 1 or 0.
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    return Text(format_figure(value) if isinstance(value, int | float) else str(value))


def mark_trails(value: dict[str, Any]) -> dict[str, str]:
    """What is said of each trail of a result, to colour it by."""
    return {
        item["trail_id"]: str(item.get("advice") or item.get("worst") or "chosen")
        for item in value.get("trails", ())
        if "trail_id" in item
    }
