"""The briefing in a terminal: what each specialist found, tables with their rules, and a map."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from interlock_ranger.briefing.compose import SECTIONS, Briefing
from interlock_ranger.nepa.terms import DRAFT
from interlock_ranger.view.result_tables import build_table, mark_trails
from interlock_ranger.view.terminal_map import draw_map


def print_briefing(out: Console, briefing: Briefing, ledger: str = "") -> None:
    """`ledger`: the options with which a command finds the ledger that the briefing stands in."""
    facts, turn = briefing.fire.facts, briefing.turn

    def tell(text: str) -> None:
        # On a terminal lines break between words; in a pipe they stay whole for whoever reads them.
        out.print(text, style="none", soft_wrap=out.soft_wrap and not out.is_terminal)

    out.rule(f"[bold]{escape(facts.name)}[/] {escape(facts.fire_id)}, {briefing.day.isoformat()}", align="left")
    if facts.synthetic:
        out.print("[white on red] SYNTHETIC DATA [/] made for demonstration, not a survey of the real fire")
    tell(f"[yellow]{escape(DRAFT)}[/]\n")
    for section, tools in SECTIONS.items():
        out.print(f"[bold]{section}[/]")
        for result in (result for tool in tools for result in briefing.results_of(tool)):
            tell(escape(result.summary))
            table = build_table(result.tool, result.value, result.record)
            if table is not None and table.row_count:
                out.print(table)
            out.print(f"[dim]record {result.record}, confidence {result.confidence}[/]\n")
        for reason, gaps in briefing.gaps_of(tools).items():
            tell(f"{escape(reason)}.")
            out.print(f"[dim]{', '.join(f'{gap.tool} record {gap.record}' for gap in gaps)}[/]\n")
    marks = {
        trail: mark
        for result in briefing.results_of("evaluate_closure")
        for trail, mark in mark_trails(result.value).items()
    }
    out.print(draw_map(briefing.fire, marks))
    tell(f"[dim]sources: {escape('; '.join(turn.sources))}[/]")
    out.print(f"{turn.status.value} [dim]{turn.outcome.value}, lowest confidence {briefing.confidence}[/]")
    out.print(f"[dim]turn: interlock turns show {escape(turn.turn + ledger)}[/]")
