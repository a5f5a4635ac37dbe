"""`interlock metrics`: what the records add up to."""

from __future__ import annotations

import argparse
from typing import Any

from interlock.answers.enforcement import ALARMS, TARGETS, AgentLine, enforcement, meets
from interlock.answers.events import TURN
from interlock.budget import read_bucket, read_scope
from interlock.cli.interrupts import run_to_end
from interlock.cli.ledger import open_ledger
from interlock.cli.options import load_command_settings, parse_time
from interlock.cli.output import colorize, console, format_count, format_moment, notes, print_json, sanitize, table
from interlock.cli.parser import document_exits
from interlock.cli.results import result_stream
from interlock.cli.terminal_text import escape_controls
from interlock.cli.workspace import load_packs
from interlock.config import Loaded
from interlock.errors import ConfigError, PolicyError
from interlock.metrics.fold import Metrics, fold
from interlock.metrics.prometheus import exposition
from interlock.policy import load_policy
from interlock.ports import Query, SystemClock
from interlock.values import Budget


def register(commands: Any, common: Any) -> None:
    text = "counts by outcome, latency, retries and denials, per agent and tool, computed from the ledger"
    parser = commands.add_parser("metrics", description=text)
    parser.add_argument(
        "what",
        nargs="?",
        choices=("calls", "enforcement"),
        default="calls",
        help="calls (default), or enforcement: how turns ended, per agent, against targets",
    )
    parser.add_argument(
        "--since", help="only since this time: 24h, 7d, 2026-01-31 (default: everything; enforcement: 24h)"
    )
    parser.add_argument("--prometheus", action="store_true", help="print the Prometheus text format")
    parser.add_argument("--limits", action="store_true", help="what budgets have spent and have left, and rate buckets")
    parser.add_argument("--actor", help="only this agent")
    parser.add_argument("--tool", help="only this tool")
    common(parser)
    document_exits(parser, wrong="enforcement: an alarm is due")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Fold the ledger and print."""
    _refuse_idle_options(given)
    if given.what == "enforcement":
        return run_to_end(_enforcement(given))
    if given.limits:
        return run_to_end(_limits(given))
    metrics = run_to_end(_fold(given))
    if given.prometheus:
        result_stream().write(escape_controls(exposition(metrics)))
    elif given.json:
        print_json(metrics)
    else:
        _show(metrics)
    return 0


def _refuse_idle_options(given: argparse.Namespace) -> None:
    """An option that the asked-for view cannot honour: who gave it would take the output for something else."""
    if given.prometheus and given.json:
        raise ConfigError("--prometheus prints its own text format, so --json has no effect on it: choose one of them")
    view = ""
    idle: tuple[str, ...] = ()
    if given.what == "enforcement":
        view, idle = "metrics enforcement", ("prometheus", "limits", "tool")
    elif given.limits:
        view, idle = "metrics --limits", ("prometheus", "since", "actor", "tool")
    for name in idle:
        if getattr(given, name):
            raise ConfigError(f"--{name} has no effect on {view}: leave it out")


async def _fold(given: argparse.Namespace) -> Metrics:
    async with open_ledger(load_command_settings(given).settings) as store:
        query = Query(actor=given.actor, tool=given.tool, since_us=parse_time(given.since))
        return await fold(store.records(query))


async def _limits(given: argparse.Namespace) -> int:
    """Budgets by scope and buckets by name, as the store holds them now, beside what the policy allows."""
    loaded = load_command_settings(given)
    async with open_ledger(loaded.settings) as store:
        now_us = SystemClock().now_us()
        spent = {scope: await store.spent(scope, now_us) for scope in await store.all_spent()}
        buckets = await store.buckets()
    limits = _read_budgets(loaded)
    if given.json:
        print_json({"budgets": spent, "limits": limits, "buckets": buckets})
        return 0
    rows = table("budgets", ("budget", "per", "window", "calls", "dollars", "sum", "seconds", "set aside"))
    for scope, item in spent.items():
        budget, per, whose, window = read_scope(scope)
        most = limits.get(budget, Budget(id=budget, per=per))
        aside = format_count(item.reserved_calls, "call") if item.reserved_calls else "–"
        calls = _of_limit(item.calls, item.reserved_calls, most.calls, 1, 0)
        counted = _of_limit(item.cost_micros, item.reserved_cost_micros, most.cost_micros, 1_000_000, 4)
        cost, added = ("–", f"{sanitize(most.sum)} {counted}") if most.sum else (counted, "–")
        seconds = _of_limit(item.ms, item.reserved_ms, most.ms, 1000, 1)
        when = _format_window(window, most.window_s, now_us)
        rows.add_row(sanitize(budget), f"{per} {sanitize(whose)}", when, calls, cost, added, seconds, aside)
    console().print(rows)
    levels = table("\nrate buckets", ("rate", "actor", "tool", "tokens when last touched"))
    for name, tokens in buckets.items():
        levels.add_row(*(_all_of(part) for part in read_bucket(name)), f"{tokens:.1f}")
    console().print(levels)
    return 0


def _read_budgets(loaded: Loaded) -> dict[str, Budget]:
    """The budgets of the policy; none, with a remark, where it cannot be read: what was spent can be told without."""
    try:
        policy = load_policy(loaded.settings.policy, packs=load_packs(loaded))
    except (ConfigError, PolicyError) as error:
        notes().print(f"[yellow]what budgets allow is not known: {sanitize(error)}[/]")
        return {}
    return {budget.id: budget for budget in policy.budgets}


def _of_limit(spent: int, aside: int, most: int | None, unit: int, digits: int) -> str:
    """What was spent, of how much, and what is left: less what calls under way have set aside."""
    if most is None:
        return f"{spent / unit:.{digits}f}"
    left = max(0, most - spent - aside)
    return f"{spent / unit:.{digits}f} of {most / unit:.{digits}f}, {left / unit:.{digits}f} left"


def _format_window(window: str, window_s: int | None, now_us: int) -> str:
    """When a window begins and ends; its number where the policy that made it so long is not at hand."""
    if not window or window_s is None:
        return f"number {window}" if window else "–"
    length_us = window_s * 1_000_000
    start, end = int(window) * length_us, (int(window) + 1) * length_us
    over = " (over)" if end <= now_us else ""
    return f"{format_moment(start)} to {format_moment(end)}{over}"


def _all_of(name: str) -> str:
    return "all" if name == "*" else sanitize(name)


async def _enforcement(given: argparse.Namespace) -> int:
    """How turns ended, per agent, against targets; non-zero if an alarm is due."""
    query = Query(tool=TURN, status="finished", actor=given.actor, since_us=parse_time(given.since or "24h"))
    async with open_ledger(load_command_settings(given).settings) as store:
        lines = await enforcement(store.records(query))
    if given.json:
        print_json({"agents": lines, "targets": TARGETS, "alarms": ALARMS})
    else:
        _show_enforcement(lines)
    return 1 if any(line.alarms for line in lines) else 0


def _show_enforcement(lines: tuple[AgentLine, ...]) -> None:
    rows = table("enforcement", ("agent", "turns", "needed tools", "first pass", "combined", "escalated", "overhead"))
    ends = table("\nhow turns ended", ("agent", "outcomes"))
    for line in lines:
        rates = [_show_rate(line, name) for name in ("first_pass", "combined", "escalated", "overhead_ms")]
        rows.add_row(sanitize(line.agent), str(line.turns), str(line.required), *rates)
        ends.add_row(sanitize(line.agent), "  ".join(f"{name} {count}" for name, count in line.outcomes.items()))
    rows.add_row("[dim]target[/]", "", "", "[dim]> 90 %[/]", "[dim]> 99 %[/]", "[dim]< 1 %[/]", "[dim]< 100 ms[/]")
    rows.add_row("[dim]alarm[/]", "", "", "[dim]< 85 %[/]", "[dim]< 95 %[/]", "[dim]> 5 %[/]", "[dim]> 500 ms[/]")
    console().print(rows)
    if lines:
        console().print(ends)
    for line in lines:
        if line.retried_intents:
            said = f"{line.retried:.0%} of turns were tried again; intents: {', '.join(line.retried_intents)}"
            console().print(f"[yellow]{sanitize(line.agent)}: {sanitize(said)}[/]")


def _show_rate(line: AgentLine, name: str) -> str:
    value: float = getattr(line, name)
    text = f"{value:.1f} ms" if name == "overhead_ms" else f"{value:.1%}"
    colour = "red" if name in line.alarms else "green" if meets(line, name) else "yellow"
    return f"[{colour}]{text}[/]"


def _show(metrics: Metrics) -> None:
    columns = ("agent", "tool", "calls", "repeats", "p50/p90/p99 ms", "retries", "cost", "outcomes")
    rows = table("calls", columns)
    for line in metrics.lines:
        outcomes = "  ".join(f"{colorize(status)} {count}" for status, count in line.outcomes.items())
        times = "/".join(f"{ms:.1f}" for ms in (line.p50_ms, line.p90_ms, line.p99_ms))
        cost = f"${line.cost_usd:.4f}" if line.cost_usd else "–"
        counts = (str(line.calls), str(sum(line.repeats.values())) if line.repeats else "–", times, str(line.retries))
        rows.add_row(sanitize(line.actor), sanitize(line.tool), *counts, cost, outcomes)
    console().print(rows)
    if metrics.denials:
        denials = table("\ndenials", ("rule", "calls"))
        for rule, count in metrics.denials.items():
            denials.add_row(sanitize(rule), str(count))
        console().print(denials)
