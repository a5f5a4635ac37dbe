"""A report on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from rich.console import Console

from interlock.cli.output import colorize, sanitize, table
from interlock_catalog.contracts import Json
from interlock_catalog.report.change_report import STOPPED, Change, ChangeReport, FamilyReport
from interlock_catalog.runner.records import STATUS_ORDER, Run
from interlock_catalog.shortening import shorten

_STATES = {
    "succeeded": "green",
    "partial": "yellow",
    "waiting": "magenta",
    "failed": "red",
    "degraded": "red",
    "running": "cyan",
}
_RISKS = {"high": "red", "medium": "yellow", "low": "green", "none": "dim", "": "dim"}
_MAX_CHANGES = 12
"""Changes of a family that are shown unless all are asked for."""
_MAX_NAMES = 10
_MAX_REJECTED = 3
_MAX_TEXT = 100
_NOT_ENABLED = ("family-not-enabled", "aliases-not-enabled")
"""Rules of the shipped policy that deny what is only observed."""
_LATER = "decided, or asked about, once the changes before it are made"


def print_report(
    out: Console,
    report: ChangeReport,
    suggest: Callable[[str], str],
    suggest_catalog: Callable[[str], str],
    *,
    every: bool = False,
) -> None:
    """The whole report; long families are cut unless every change is asked for.

    `suggest` makes what has to be typed of the words of a command on the ledger, `suggest_catalog` of one of its own.
    """
    for family in report.families:
        _print_family(out, family, suggest, every=every)
        if any(change.status == "denied" and change.rule in _NOT_ENABLED for change in family.changes):
            enable = suggest_catalog(f"enable {family.result.family}")
            out.print(f"  [dim]let it be changed, if this looks right: {sanitize(enable)}[/]")
    print_summary(out, report.run)


def print_summary(out: Console, run: Run) -> None:
    """One run in a few lines."""
    state = f"[{_STATES.get(run.status, 'white')}]{run.status}[/]"
    out.print(
        f"[bold]{sanitize(run.id)}[/]  {run.mode}  {state}  [dim]{sanitize(run.started)} – {sanitize(run.ended)}[/]"
    )
    if run.degradation:
        out.print(f"  [red]degraded: {sanitize(run.degradation)}[/]")
    counts = "  ".join(f"{colorize(name)} {run.counts[name]}" for name in STATUS_ORDER if run.counts.get(name))
    states = Counter(result.state for result in run.family_results)
    families = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    others = "".join(f"   {r.work.kind.value}: {r.state}" for r in run.families if not r.work.is_family)
    out.print(f"  changes: {counts or 'none'}   families: {families or 'none'}{others}")
    if run.issues:
        out.print(f"  issues:  {', '.join(f'{count} {name}' for name, count in run.issues.items())}")
    if run.model_calls:
        calls = ", ".join(f"{count} × {role}" for role, count in sorted(run.model_calls.items()))
        out.print(f"  model:   {calls}")
    if run.left_over:
        out.print(f"  [yellow]for the next run:[/] {sanitize(_list_some(run.left_over))}")


def _print_family(out: Console, family: FamilyReport, suggest: Callable[[str], str], *, every: bool) -> None:
    result = family.result
    issues = ", ".join(f"{count} {name}" for name, count in result.issues.items()) or "no issues"
    out.print(f"[bold]{sanitize(result.family)}[/]  {colorize(result.state)}  [dim]{issues}[/]")
    if result.reason:
        out.print(f"  [yellow]{sanitize(result.reason)}[/]")
    for change in family.changes if every else family.changes[:_MAX_CHANGES]:
        _print_change(out, change, suggest)
    if len(family.changes) > _MAX_CHANGES and not every:
        out.print(f"  [dim]… {len(family.changes) - _MAX_CHANGES} more (--all)[/]")
    for foreseen in result.foreseen:
        what = f"{sanitize(foreseen.op)} {sanitize(foreseen.target)}"
        out.print(f"  then      {what}  [dim]confidence {foreseen.confidence:.2f}; {_LATER}[/]")
    for issue in result.unresolved:
        # What a check says begins with the field; what a model says need not.
        what = f"{sanitize(issue.target)}{f' [bold]{sanitize(issue.field)}[/]' if issue.judge else ''}"
        out.print(f"  [yellow]for a person[/] ({issue.severity}): {what} [dim]{sanitize(_shorten(issue.evidence))}[/]")
    for item in result.rejected[:_MAX_REJECTED]:
        out.print(f"  [yellow]rejected {sanitize(item.tool)}:[/] {sanitize(_shorten(item.reason))}")
    more = len(result.rejected) - _MAX_REJECTED
    if more > 0:
        out.print(f"  [yellow]and {more} more that were rejected[/]")


def _print_change(out: Console, change: Change, suggest: Callable[[str], str]) -> None:
    risk = f"[{_RISKS.get(change.risk, 'dim')}]risk {change.risk or 'unknown'}[/]"
    confidence = "" if change.confidence is None else f", confidence {change.confidence:.2f}"
    out.print(
        f"  {colorize(change.status)}  {sanitize(change.op)} by {sanitize(change.actor)}  {risk}[dim]{confidence}[/]"
    )
    if change.why:
        out.print(f"    [dim]why: {sanitize(_shorten(change.why, 2 * _MAX_TEXT))}[/]")
    out.print(f"    [dim]evidence: {sanitize(', '.join(change.evidence))}[/]")
    if change.status in STOPPED and change.reason:
        ticket = f" ({suggest(f'review show {change.ticket}')})" if change.ticket else ""
        out.print(f"    [yellow]{sanitize(change.rule)}: {sanitize(change.reason)}{sanitize(ticket)}[/]")
    if change.deviates:
        out.print(f"    [yellow]not as planned: {sanitize(_list_some(change.deviates))}[/]")
    for difference in change.differences:
        out.print(f"    {sanitize(difference.key)} [bold]{sanitize(difference.field)}[/]")
        for sign, colour, value in (("-", "red", difference.before), ("+", "green", difference.after)):
            if value not in (None, ""):
                out.print(f"      [{colour}]{sign} {sanitize(_shorten(value))}[/]")


def _list_some(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _shorten(value: Json, most: int = _MAX_TEXT) -> str:
    return shorten(value if isinstance(value, str) else str(value), most)


def print_runs(out: Console, runs: list[Run]) -> None:
    """Runs, newest first."""
    made = table("runs", ("run", "mode", "status", "families", "by", "changes"))
    for run in runs:
        counts = ", ".join(f"{run.counts[name]} {name}" for name in STATUS_ORDER if run.counts.get(name)) or "–"
        status = f"[{_STATES.get(run.status, 'white')}]{run.status}[/]"
        made.add_row(sanitize(run.id), run.mode, status, str(len(run.family_results)), sanitize(run.by), counts)
    out.print(made)
