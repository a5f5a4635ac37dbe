"""`interlock policy`: check, coverage, test, explain."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import msgspec

from interlock.canonical import Refusal
from interlock.cli.options import load_command_settings
from interlock.cli.output import colorize, console, format_count, print_json, sanitize, table
from interlock.cli.parser import document_exits
from interlock.cli.workspace import load_ruleset
from interlock.errors import ConfigError
from interlock.policy import Policy, judge, missing_grant, trace
from interlock.policy.cases import ProposedCall, load_cases, run_case
from interlock.policy.lint import find_idle_rules, find_unapprovable, find_unfit_sets, measure_coverage
from interlock.policy.lists import find_unreadable_lists
from interlock.review import key_faults
from interlock.values import Verdict


def register(commands: Any, common: Any) -> None:
    parser = commands.add_parser("policy")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check", help="refuse unknown tools, fields and keys, and what can never decide, approve, fit or be read"
    )
    cover = actions.add_parser("coverage", help="which registered tool has no decision")
    cases = actions.add_parser("test", help="run the cases in a file against the rules")
    cases.add_argument("file", help="TOML with [[case]] tables; see docs/policy.md")
    explain = actions.add_parser("explain", help="what each rule says about one call, without making it")
    explain.add_argument("call", help='JSON file: {"tool": …, "arguments": {…}, "actor": …, "mode": …, "turn": {…}}')
    for action, run, wrong in (
        (
            check,
            _check,
            "the policy cannot be used, or a rule can never decide, nobody could approve, a value cannot fit, or a key"
            " or list that it names cannot be read",
        ),
        (cover, _coverage, "a tool has no decision, or the policy cannot be used"),
        (cases, _test, "a case differs, or the policy cannot be used"),
        (explain, _explain, "the policy cannot be used"),
    ):
        common(action)
        document_exits(action, wrong=wrong, store=False)
        action.set_defaults(run=run)


def _check(given: argparse.Namespace) -> int:
    loaded = load_command_settings(given)
    ruleset, tools = load_ruleset(loaded)
    found = {
        "never_decide": find_idle_rules(ruleset, tuple(tools)),
        "never_approved": find_unapprovable(ruleset, time.time_ns() // 1000),
        "never_fit": find_unfit_sets(ruleset, tools),
        "never_read": _find_unreadable(ruleset.policy),
    }
    problems = [problem for some in found.values() for problem in some]
    if given.json:
        print_json({"policy": loaded.settings.policy, "rules": len(ruleset.policy.rules), **found})
    elif problems:
        for problem in problems:
            console().print(f"[yellow]✗[/] {sanitize(problem)}")
    else:
        what = f"{format_count(len(ruleset.policy.rules), 'rule')} for {format_count(len(tools), 'tool')}"
        console().print(f"[green]✓[/] {sanitize(loaded.settings.policy)}: {what}, all can decide")
    return 1 if problems else 0


def _find_unreadable(policy: Policy) -> tuple[str, ...]:
    """What the policy names outside of itself and cannot be read: keys of reviewers, files and queries of lists."""
    return (*key_faults(policy), *find_unreadable_lists(policy.lists, Path(policy.file).parent))


def _coverage(given: argparse.Namespace) -> int:
    ruleset, tools = load_ruleset(load_command_settings(given))
    lines = measure_coverage(ruleset, tuple(tools))
    bare = [line.tool for line in lines if not line.is_decided]
    if given.json:
        print_json({"tools": lines, "without_decision": bare})
        return 1 if bare else 0
    rows = table("rules that decide", ("tool", "allow", "deny", "review", "clamp", ""))
    for line in lines:
        mark = "[green]✓[/]" if line.is_decided else "[yellow]✗ no rule: every call is denied[/]"
        rows.add_row(line.tool, *(str(n) for n in (line.allow, line.deny, line.review, line.clamp)), mark)
    console().print(rows)
    return 1 if bare else 0


def _test(given: argparse.Namespace) -> int:
    ruleset, tools = load_ruleset(load_command_settings(given))
    results = [run_case(case, ruleset, tools) for case in load_cases(given.file)]
    failed = [result for result in results if result.differences]
    if given.json:
        print_json({"cases": len(results), "failed": failed})
        return 1 if failed else 0
    out = console()
    for result in results:
        mark = "[yellow]✗[/]" if result.differences else "[green]✓[/]"
        out.print(
            f"{mark} {sanitize(result.case.name)}: {colorize(result.verdict)} [dim](rule {sanitize(result.rule)})[/]"
        )
        for difference in result.differences:
            out.print(f"    {sanitize(difference)}")
    out.print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def _print_arguments(verdict: Verdict) -> None:
    """What was changed on the way, and where the rest comes from."""
    for change in verdict.rewrites:
        before, after = sanitize(repr(change.before)), sanitize(repr(change.after))
        console().print(f"[blue]{sanitize(change.field)}[/]: {before} → {after}")
    for field, where in verdict.origins.items():
        console().print(f"[blue]{sanitize(field)}[/] comes from {sanitize(where)}")


def _explain(given: argparse.Namespace) -> int:
    ruleset, tools = load_ruleset(load_command_settings(given))
    try:
        proposed = msgspec.json.decode(Path(given.call).read_bytes(), type=ProposedCall)
    except OSError as error:
        raise ConfigError(f"{given.call}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigError(f"{given.call}: not a call: {error}") from None
    tool = tools.get(proposed.tool)
    if tool is None:
        raise ConfigError(f"there is no tool {proposed.tool!r}; tools are {', '.join(sorted(tools))}")
    out = console()
    try:
        parsed = tool.input.parse(proposed.arguments)
    except Refusal as refusal:
        if given.json:
            print_json({"verdict": {"decision": "deny", "rule": "contract", "reason": str(refusal)}})
        else:
            out.print(f"{colorize('deny')} by contract: {sanitize(refusal)}")
        return 0
    facts = proposed.facts(parsed.arguments, ruleset, tools)
    missing = missing_grant(tool, facts.grant, proposed.mode)
    rules = ruleset.rules(tool.name)
    verdict, facts = judge(rules, tool, parsed, facts)
    if given.json:
        print_json({"verdict": verdict, "grant": missing, "arguments": facts.arguments, "rules": trace(rules, facts)})
        return 0
    rows = table(f"{tool.name} by {sanitize(proposed.actor)}", ("", "rule", "says", "when"))
    for item in trace(rules, facts):
        mark = "[red]error[/]" if item.error else "[green]●[/]" if item.matched else "[dim]○[/]"
        says = item.rule.decision.value if item.rule.decision else "clamp"
        rows.add_row(mark, sanitize(item.rule.id), colorize(says), sanitize(item.error or item.rule.when or "always"))
    out.print(rows)
    _print_arguments(verdict)
    if missing is not None:
        out.print(f"{colorize('deny')} by grant: {sanitize(missing)}")
        return 0
    out.print(f"{colorize(verdict.decision.value)} by rule {sanitize(verdict.rule)}: {sanitize(verdict.reason)}")
    return 0
