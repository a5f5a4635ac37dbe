"""`interlock tools`: which tools there are, and what a model is shown of them."""

from __future__ import annotations

import argparse
from typing import Any

from interlock.cli.options import load_ruleset, load_tools, settings_of
from interlock.cli.output import console, print_json, shown, table
from interlock.errors import ConfigError
from interlock.tools import Tool
from interlock.tools.registry import Registry


def register(commands: Any, common: Any) -> None:
    """Add the commands."""
    parser = commands.add_parser("tools", help="list tools and show their contracts")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="every tool, or those that need a capability or that an actor may use")
    listing.add_argument("--capability", help="only tools that need this capability")
    listing.add_argument("--actor", help="only tools whose capabilities this actor has been granted")
    common(listing)
    listing.set_defaults(run=_list)
    one = actions.add_parser("show", help="one tool's whole contract")
    one.add_argument("tool")
    common(one)
    one.set_defaults(run=_show)


def _list(given: argparse.Namespace) -> int:
    loaded = settings_of(given)
    if given.actor is None:
        registry, grant = Registry(load_tools(loaded)), None
    else:
        ruleset, tools = load_ruleset(loaded)
        registry, grant = Registry(tools.values()), ruleset.grant(given.actor)
    found = registry.list(capability=given.capability, grant=grant)
    if given.json:
        print_json([_contract(tool) for tool in found])
        return 0
    rows = table(f"{len(found)} tools", ("tool", "effect", "timeout", "needs", "what it does"))
    for tool in found:
        needs = ", ".join(sorted(tool.capabilities)) or "–"
        first = tool.description.partition("\n")[0]
        rows.add_row(tool.name, tool.effect.value, f"{tool.timeout_s:g} s", shown(needs), shown(first))
    console().print(rows)
    return 0


def _show(given: argparse.Namespace) -> int:
    registry = Registry(load_tools(settings_of(given)))
    tool = registry.get(given.tool)
    if tool is None:
        close = registry.nearest(given.tool)
        raise ConfigError(f"there is no tool {given.tool!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
    print_json(_contract(tool))
    return 0


def _contract(tool: Tool) -> dict[str, Any]:
    return {
        **tool.manifest(),
        "returns": tool.output.schema,
        "effect": tool.effect,
        "capabilities": sorted(tool.capabilities),
        "timeout_s": tool.timeout_s,
        "deadline_s": tool.deadline_s,
        "retry": tool.retry,
        "limits": tool.limits,
        "trust": tool.trust,
        "redact": sorted(tool.redact),
    }
