"""The briefing in a terminal: what each specialist found, tables with their rules, and a map."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from interlock_ranger.briefing.compose import Briefing
from interlock_ranger.briefing.page import SECTIONS
from interlock_ranger.nepa.terms import DRAFT
from interlock_ranger.view.beside import marked, table_of
from interlock_ranger.view.terminal import drawn


def show(out: Console, briefing: Briefing) -> None:
    """Print it."""
    facts, result = briefing.fire.facts, briefing.result
    out.rule(f"[bold]{escape(facts.name)}[/] {escape(facts.fire_id)}, {briefing.day.isoformat()}", align="left")
    if facts.synthetic:
        out.print("[white on red] SYNTHETIC DATA [/] made for demonstration, not a survey of the real fire")
    out.print(f"[yellow]{escape(DRAFT)}[/]\n")
    for name, tools in SECTIONS:
        out.print(f"[bold]{name}[/]")
        for tool in tools:
            for item in briefing.of(tool):
                out.print(escape(item.said), style="none")
                made = table_of(item.tool, item.value, item.record)
                if made is not None and made.row_count:
                    out.print(made)
                out.print(f"[dim]record {item.record}, confidence {item.confidence}[/]\n")
    coloured = {key: mark for item in briefing.of("evaluate_closure") for key, mark in marked(item.value).items()}
    out.print(drawn(briefing.fire, coloured))
    out.print(f"[dim]sources: {escape('; '.join(result.sources))}[/]")
    out.print(f"{result.status.value} [dim]{result.outcome.value}, lowest confidence {briefing.confidence}[/]")
    out.print(f"[dim]trail: interlock turns show {escape(result.turn)}[/]")
