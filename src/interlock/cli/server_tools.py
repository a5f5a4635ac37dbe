"""The tools of a server of MCP, as somebody looks at them: shown, and pinned."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from interlock.cli.one_writer import one_writer
from interlock.cli.options import load_command_settings
from interlock.cli.output import colorize, console, notes, print_json, sanitize
from interlock.cli.workspace import load_packs
from interlock.config import Loaded
from interlock.errors import ConfigError, PolicyError
from interlock.policy import load_policy
from interlock.policy.model import Rule
from interlock.tools.registry import matches
from interlock.values import Effect, shorten

if TYPE_CHECKING:
    from interlock.adapters.mcp.terms import ServerTerms
    from interlock.adapters.mcp.upstream import Upstream

_CONDITION = 100
_SHOWN = 12
"""Digits of a digest that people are shown."""


async def pin_and_show(
    given: argparse.Namespace,
    upstream: Upstream,
    terms: ServerTerms,
    loaded: Loaded,
    *,
    taken: Collection[str] = (),
    write: Callable[[], None] | None = None,
) -> bool:
    """Pin the tools of a server that is started, and show what is pinned, and what is not and why; whether all are.

    `write`: what else is written, before the pins are, or nothing is.
    """
    from interlock.adapters.mcp.pins import PinsFile, find_hidden, find_instruction
    from interlock.adapters.mcp.servers import PINS
    from interlock.adapters.mcp.terms import refuse_unknown_tools
    from interlock.adapters.mcp.tools import tools_of

    offered = await upstream.list_tools()
    folder = loaded.folder
    pins = PinsFile.read(folder / PINS).pin(upstream.name, offered, given.accept)
    refused: dict[str, str] = {}
    refuse_unknown_tools(upstream.name, terms, [one.name for one in pins.tools_of(upstream.name)])
    tools_of(upstream, pins.tools_of(upstream.name), terms, refused)  # refuses terms that do not fit
    _refuse_names({terms.name_of(upstream.name, one.name) for one in offered}, taken)
    with one_writer(folder):
        if write is not None:
            write()
        PinsFile.read(folder / PINS).pin(upstream.name, offered, given.accept).write(folder / PINS)
    off = pins.switched_off(upstream.name, offered)
    is_whole = not off and not refused
    if given.json:
        print_tools(given, upstream.name, pins.tools_of(upstream.name), terms, off)
        return is_whole
    print_tools(given, upstream.name, pins.tools_of(upstream.name), terms, {})
    for name, why in refused.items():
        notes().print(f"[red]not usable[/] {sanitize(name)}: {sanitize(why)}")
    for one in offered:
        said, hidden = find_instruction(one), find_hidden(one)
        if hidden:
            notes().print(f"[red]not usable[/] {sanitize(one.name)}: it hides {sanitize(hidden)}")
        elif said and one.name not in given.accept:
            notes().print(f"[yellow]not pinned[/] {sanitize(one.name)}: it tells a model what to do: {sanitize(said)}")
            notes().print(f"  [dim]read it, and accept it with --accept {sanitize(one.name)}[/]")
        elif one.name in off:
            notes().print(f"[red]switched off[/] {sanitize(one.name)}: {sanitize(off[one.name], lines=True)}")
    return is_whole


def _refuse_names(names: Collection[str], taken: Collection[str]) -> None:
    from interlock.operations.undo import UNDO

    for name in sorted(names):
        if name in taken:
            raise ConfigError(f"another server has a tool {name!r} already: choose another name, or a prefix")
        if name.startswith(UNDO):
            raise ConfigError(f"{name!r} is the name of what takes changes back: give the server a prefix")


def print_tools(
    given: argparse.Namespace, server: str, offered: list[Any], terms: ServerTerms, off: dict[str, str]
) -> None:
    """What each tool is called here and taken for, the rules that decide about it, and its pin."""
    rules = _rules(given)
    rows = _rows(rules or (), server, offered, terms, off)
    if given.json:
        print_json({"server": server, "tools": rows, "switched_off": off})
        return
    out, width = console(), max((len(row["tool"]) for row in rows), default=0)
    for row in rows:
        undo = "  [green]can be undone[/]" if row["can be undone"] else ""
        claims = "  [dim]the server says that it only reads[/]" if row["claims"] and row["effect"] != "read" else ""
        out.print(
            f"{sanitize(row['tool']):<{width}}  {colorize(row['effect'])}  [dim]{row['because']}[/]{undo}{claims}"
        )
        for rule in row["rules"] or ([] if rules is None else ["denied: no rule speaks of it"]):
            out.print(f"  [dim]{sanitize(rule)}[/]")
        out.print(f"  [dim]pin {row['pin'][:_SHOWN]}[/]")
    for tool, why in off.items():
        out.print(f"[red]switched off[/] {sanitize(tool)}: {sanitize(why, lines=True)}")


def _rows(
    rules: tuple[Rule, ...], server: str, offered: list[Any], terms: ServerTerms, off: dict[str, str]
) -> list[dict[str, Any]]:
    from interlock.adapters.mcp.pins import digest_of
    from interlock.adapters.mcp.tools import effect_of

    rows: list[dict[str, Any]] = []
    for one in offered:
        own, name = terms.terms_of(one.name), terms.name_of(server, one.name)
        effect = effect_of(one, own, trusted=terms.trusted)
        hints = one.annotations
        why = "declared" if own.effect else "the server says so" if effect is Effect.READ else "not declared"
        rows.append(
            {
                "tool": name,
                "effect": effect.value,
                "because": why,
                "claims": "reads" if hints is not None and hints.read_only_hint else "",
                "can be undone": effect is Effect.WRITE,
                "rules": [_describe(rule) for rule in rules if matches(rule.tools, name)],
                "pin": digest_of(one),
                "off": off.get(one.name, ""),
            }
        )
    return rows


def _describe(rule: Rule) -> str:
    does = "set" if rule.decision is None else rule.decision.value
    return f"{does}: {rule.id}{f', when {shorten(rule.when, _CONDITION)}' if rule.when else ''}"


def _rules(given: argparse.Namespace) -> tuple[Rule, ...] | None:
    """Those of the policy; None where there is none that can be read: `policy check` says what is wrong with it."""
    loaded = load_command_settings(given)
    try:
        return load_policy(loaded.settings.policy, packs=load_packs(loaded)).rules
    except (PolicyError, ConfigError):
        return None
