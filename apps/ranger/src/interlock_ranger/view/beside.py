"""What is shown beside an answer: a table with the rule of each row, and a map where the rows lie somewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table

from interlock import Outcome
from interlock_ranger.fires import Fire, Fires
from interlock_ranger.view.terminal import drawn

COLUMNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "classify_damage": ("trails", ("name", "points", "worst", "cost_usd", "crew_days", "current_status", "rule")),
    "evaluate_closure": ("trails", ("name", "advice", "risk_score", "current_status", "because", "rule")),
    "prioritize_trails": ("trails", ("name", "cost_usd", "annual_visits", "crew_days", "rule")),
    "assess_severity": (
        "sectors",
        ("sector_id", "name", "acres", "dnbr_mean", "severity", "high_pct", "erosion_risk", "rule"),
    ),
    "classify_mtbs": ("classes", ("mtbs_class", "name", "acres", "pct")),
    "validate_boundary": ("issues", ("code", "severity", "said")),
    "recommend_methodology": ("stands", ("name", "plot_type", "baf", "plot_acres", "plots", "cv_pct", "rule")),
    "estimate_volume": (
        "stands",
        ("name", "plots", "net_mbf_per_acre", "total_net_mbf", "sampling_error_pct", "plots_needed", "rule"),
    ),
    "assess_salvage": ("stands", ("name", "viability", "net_usd", "window_ends_in_months", "because", "rule")),
    "analyze_csv_data": ("columns", ("name", "filled", "missing", "mean", "least", "most")),
    "search_regulatory_documents": ("passages", ("citation", "title", "fit", "file", "rule")),
    "decide_pathway": ("candidates", ("citation", "category", "fits", "why", "verified_against", "rule")),
    "generate_documentation_checklist": ("items", ("item", "required", "rule")),
    "estimate_compliance_timeline": ("stages", ("stage", "days", "basis", "rule")),
    "portfolio_triage": ("fires", ("rank", "name", "score", "severity", "size", "urgency", "rule")),
}
_MAPPED = ("classify_damage", "evaluate_closure", "prioritize_trails", "assess_severity", "classify_mtbs")
_LONGEST = 20
_LONG = ("because", "why", "said", "item", "title", "stage", "name", "rule", "current_status", "category")


class Beside:
    """For `App.present`: the successful calls behind an answer as tables and a map."""

    def __init__(self, fires: Fires) -> None:
        self._fires = fires

    def __call__(self, outcomes: Sequence[Outcome]) -> Iterator[object]:
        """A table for each call, and one map for each fire that has something to show on it."""
        mapped: dict[str, dict[str, str]] = {}
        for outcome in outcomes:
            table = table_of(outcome.tool, outcome.value, outcome.record)
            if table is None:
                continue
            yield table
            if outcome.tool in _MAPPED:
                value: Any = outcome.value
                mapped.setdefault(value["fire_id"], {}).update(marked(value))
        for fire_id, marks in mapped.items():
            fire: Fire | None = self._fires.all.get(fire_id)
            if fire is not None:
                yield drawn(fire, marks)


def table_of(tool: str, value: Any, record: int | None) -> Table | None:
    """The rows of a result, with the record that they stand in."""
    if tool not in COLUMNS or not isinstance(value, dict):
        return None
    key, columns = COLUMNS[tool]
    found = value.get(key) or []
    label = "SYNTHETIC, " if value.get("synthetic") else ""
    table = Table(title=f"{tool} ({label}record {record})", title_justify="left", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold", no_wrap=column not in _LONG)
    for item in found[:_LONGEST]:
        table.add_row(*(_cell(item.get(column)) for column in columns))
    if len(found) > _LONGEST:
        table.caption = f"… and {len(found) - _LONGEST} more"
    return table


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,.10g}"
    return str(value).replace("[", "(").replace("]", ")")


def marked(value: dict[str, Any]) -> dict[str, str]:
    """What is said of each trail of a result, to colour it by."""
    return {
        item["trail_id"]: str(item.get("advice") or item.get("worst") or "chosen")
        for item in value.get("trails", ())
        if "trail_id" in item
    }
