"""A report on the terminal."""

from __future__ import annotations

from rich.console import Console

from interlock.cli.output import coloured, shown, table
from interlock_catalog.contracts import Json
from interlock_catalog.report.gather import Change, FamilyReport, Report
from interlock_catalog.runner.record import ORDER, Run

_STATES = {"succeeded": "green", "partial": "yellow", "failed": "red", "running": "cyan"}
_RISKS = {"high": "red", "medium": "yellow", "low": "green", "none": "dim", "": "dim"}
_MOST = 12
_WIDTH = 100


def show(out: Console, report: Report, *, every: bool = False) -> None:
    """The whole report; long families are cut unless every change is asked for."""
    for family in report.families:
        _family(out, family, every)
    headline(out, report.run)


def headline(out: Console, run: Run) -> None:
    """One run in a few lines."""
    state = f"[{_STATES.get(run.status, 'white')}]{run.status}[/]"
    out.print(f"[bold]{shown(run.id)}[/]  {run.mode}  {state}  [dim]{shown(run.started)} – {shown(run.ended)}[/]")
    counts = "  ".join(f"{coloured(name)} {run.counts[name]}" for name in ORDER if run.counts.get(name))
    states: dict[str, int] = {}
    for family in run.families:
        states[family.state] = states.get(family.state, 0) + 1
    families = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    out.print(f"  changes: {counts or 'none'}   families: {families or 'none'}")
    if run.issues:
        out.print(f"  issues:  {', '.join(f'{count} {name}' for name, count in run.issues.items())}")
    if run.asked:
        out.print(f"  model:   {', '.join(f'{count} × {role}' for role, count in sorted(run.asked.items()))}")
    if run.left_over:
        out.print(f"  [yellow]for the next run:[/] {shown(', '.join(run.left_over[:10]))}")


def _family(out: Console, family: FamilyReport, every: bool) -> None:
    result = family.result
    issues = ", ".join(f"{count} {name}" for name, count in result.issues.items()) or "no issues"
    out.print(f"[bold]{shown(result.family)}[/]  {coloured(result.state)}  [dim]{issues}[/]")
    if result.why:
        out.print(f"  [yellow]{shown(result.why)}[/]")
    for change in family.changes if every else family.changes[:_MOST]:
        _change(out, change)
    if len(family.changes) > _MOST and not every:
        out.print(f"  [dim]… {len(family.changes) - _MOST} more (--all)[/]")
    for issue in result.left:
        what = f"{shown(issue.target)} [bold]{shown(issue.field)}[/]"
        out.print(f"  [yellow]for a person[/] ({issue.severity}): {what} [dim]{shown(issue.evidence[:_WIDTH])}[/]")
    for refused in result.refused[:3]:
        out.print(f"  [yellow]refused {shown(refused.tool)}:[/] {shown(refused.reason[:_WIDTH])}")


def _change(out: Console, change: Change) -> None:
    risk = f"[{_RISKS.get(change.risk, 'dim')}]risk {change.risk or 'unknown'}[/]"
    sure = "" if change.confidence is None else f", {change.confidence:.2f} sure"
    out.print(f"  {coloured(change.status)}  {shown(change.op)} by {shown(change.actor)}  {risk}[dim]{sure}[/]")
    if change.why:
        out.print(f"    [dim]why: {shown(change.why[: _WIDTH * 2])}[/]")
    out.print(f"    [dim]evidence: {shown(', '.join(change.evidence))}[/]")
    if change.status in ("denied", "parked", "failed", "unknown") and change.reason:
        ticket = f" (interlock review show {change.ticket})" if change.ticket else ""
        out.print(f"    [yellow]{shown(change.rule)}: {shown(change.reason)}{ticket}[/]")
    for difference in change.differences:
        out.print(f"    {shown(difference.key)} [bold]{shown(difference.field)}[/]")
        for sign, colour, value in (("-", "red", difference.before), ("+", "green", difference.after)):
            if value not in (None, ""):
                out.print(f"      [{colour}]{sign} {shown(_short(value))}[/]")


def _short(value: Json) -> str:
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def runs_table(out: Console, runs: list[Run]) -> None:
    """Runs, newest first."""
    made = table("runs", ("run", "mode", "status", "families", "by", "changes"))
    for run in runs:
        counts = ", ".join(f"{run.counts[name]} {name}" for name in ORDER if run.counts.get(name)) or "–"
        status = f"[{_STATES.get(run.status, 'white')}]{run.status}[/]"
        made.add_row(shown(run.id), run.mode, status, str(len(run.families)), shown(run.by), counts)
    out.print(made)
