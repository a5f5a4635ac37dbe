"""`interlock tools`: which tools there are, and the whole contract of one."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from interlock.cli.contracts import describe_contract
from interlock.cli.options import load_command_settings
from interlock.cli.output import console, format_count, print_json, print_prose, sanitize, table
from interlock.cli.parser import document_exits
from interlock.cli.workspace import load_ruleset, load_tools
from interlock.errors import ConfigError
from interlock.tools.registry import Registry

_WIDTH = 14
_MOST_VALUES = 8


def register(commands: Any, common: Any) -> None:
    parser = commands.add_parser("tools")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="every tool, or those that need a capability or that an actor may use")
    listing.add_argument("--capability", help="only tools that need this capability")
    listing.add_argument("--actor", help="only tools whose capabilities this actor has been granted")
    one = actions.add_parser("show", help="one tool's whole contract")
    one.add_argument("tool", help="its name")
    for action, run, wrong in ((listing, _list, "with --actor: the policy cannot be used"), (one, _show, "")):
        common(action)
        document_exits(action, wrong=wrong, store=False)
        action.set_defaults(run=run)


def _list(given: argparse.Namespace) -> int:
    loaded = load_command_settings(given)
    if given.actor is None:
        registry, grant = Registry(load_tools(loaded)), None
    else:
        ruleset, tools = load_ruleset(loaded)
        registry, grant = Registry(tools.values()), ruleset.grant(given.actor)
    found = registry.list(capability=given.capability, grant=grant)
    if given.json:
        print_json([describe_contract(tool) for tool in found])
        return 0
    rows = table(format_count(len(found), "tool"), ("tool", "effect", "timeout", "needs", "what it does"))
    for tool in found:
        needs = ", ".join(sorted(tool.capabilities)) or "–"
        first = tool.description.partition("\n")[0]
        rows.add_row(tool.name, tool.effect.value, f"{tool.timeout_s:g} s", sanitize(needs), sanitize(first))
    console().print(rows)
    return 0


def _show(given: argparse.Namespace) -> int:
    registry = Registry(load_tools(load_command_settings(given)))
    tool = registry.get(given.tool)
    if tool is None:
        close = registry.nearest(given.tool)
        raise ConfigError(f"there is no tool {given.tool!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
    contract = describe_contract(tool)
    if given.json:
        print_json(contract)
        return 0
    out = console()
    out.print(f"[bold]{sanitize(contract.pop('name'))}[/]")
    print_prose(f"{contract.pop('description')}\n")
    schemas = {name: contract.pop(name) for name in ("parameters", "returns")}
    contract["known_values"] = {name: _as_names(known) for name, known in contract["known_values"].items()}
    for name, value in contract.items():
        out.print(f"[bold]{name:<{_WIDTH}}[/] {sanitize(_as_text(value))}")
    for name, value in schemas.items():
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        out.print(f"[bold]{name}[/]\n{sanitize(text, lines=True)}")
    return 0


def _as_names(known: dict[str, list[str]] | str) -> str:
    """Known values, each with what else it is called; of many the first ones (--json has all)."""
    if isinstance(known, str):
        return f"(found by {known})"
    first = list(known.items())[:_MOST_VALUES]
    named = "; ".join(f"{value} ({', '.join(names)})" if names else value for value, names in first)
    return f"({named}{f'; and {len(known) - len(first)} more' if len(known) > len(first) else ''})"


def _as_text(value: Any) -> str:
    """A value of a contract on one line."""
    if value is None or value in ([], {}):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_as_text(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_as_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
