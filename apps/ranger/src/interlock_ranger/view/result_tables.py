"""What is shown with an answer: a table with the rule of each row, and a map where the rows lie somewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rich.console import Console, ConsoleOptions, RenderResult
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
_WIDEST_WORD = 24
_GAP = 2
"""Blanks between two columns."""


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


class ResultTable:
    """Rows that fit the screen: texts fold between words and never within one, so that no id or figure is broken.

    Where even that is too wide, each row becomes a block of lines.
    """

    def __init__(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Text]], caption: str = "") -> None:
        self.row_count = len(rows)
        self._title, self._columns, self._rows, self._caption = title, columns, rows, caption

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._fit(options.max_width - _GAP * (len(self._columns) - 1))
        yield self._as_blocks() if widths is None else self._as_columns(widths)

    def _fit(self, room: int) -> list[int] | None:
        """A width for each column; nothing where their longest words do not stand side by side."""
        texts = [[name, *(row[n].plain for row in self._rows)] for n, name in enumerate(self._columns)]
        least = [_longest_word(own) for own in texts]
        full = [max(least[n], *map(len, own)) for n, own in enumerate(texts)]
        spare, missing = room - sum(least), sum(full) - sum(least)
        if spare < 0:
            return None
        share = min(1.0, spare / missing) if missing else 1.0
        return [low + int((high - low) * share) for low, high in zip(least, full, strict=True)]

    def _as_columns(self, widths: Sequence[int]) -> Table:
        table = self._table()
        for name, width in zip(self._columns, widths, strict=True):
            table.add_column(name, overflow="fold", width=width)
        for row in self._rows:
            table.add_row(*row)
        return table

    def _as_blocks(self) -> Table:
        table = self._table(show_header=False)
        table.add_column(style="dim", width=_longest_word(self._columns))
        table.add_column(overflow="fold")
        for row in self._rows:
            for number, (name, cell) in enumerate(zip(self._columns, row, strict=True), 1):
                table.add_row(name, cell, end_section=number == len(self._columns))
            table.add_row("", "")
        return table

    def _table(self, *, show_header: bool = True) -> Table:
        return Table(
            title=self._title,
            caption=self._caption or None,
            title_justify="left",
            box=None,
            pad_edge=False,
            padding=(0, _GAP, 0, 0),
            show_header=show_header,
        )


def build_table(tool: str, value: Any, record: int | None) -> ResultTable | None:
    """The rows of a result, with the record that they stand in."""
    if tool not in LAYOUTS or not isinstance(value, dict):
        return None
    layout = LAYOUTS[tool]
    rows = value.get(layout.key) or []
    label = "SYNTHETIC, " if value.get("synthetic") else ""
    return ResultTable(
        f"{tool} ({label}record {record})",
        [column.replace("_", " ") for column in layout.columns],
        [[_cell(row.get(column)) for column in layout.columns] for row in rows[:_LONGEST]],
        f"… and {len(rows) - _LONGEST} more" if len(rows) > _LONGEST else "",
    )


def _longest_word(texts: Sequence[str]) -> int:
    # Bounded, as somebody else's text may be one word of a thousand letters.
    return min(_WIDEST_WORD, max((len(word) for text in texts for word in text.split()), default=1))


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
