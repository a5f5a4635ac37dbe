"""`interlock mcp`: servers that speak the Model Context Protocol, in front of which the gate stands."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.cli.interrupts import run_to_end
from interlock.cli.options import load_command_settings
from interlock.cli.output import colorize, console, format_count, notes, print_json, sanitize
from interlock.cli.parser import document_exits
from interlock.cli.serving import add_serve, serve_until_ended
from interlock.config import SERVERS
from interlock.errors import ConfigError
from interlock.toml_text import parse_toml
from interlock.values import Effect

if TYPE_CHECKING:
    from interlock.adapters.mcp.servers import McpServers
    from interlock.adapters.mcp.terms import ServerTerms
    from interlock.adapters.mcp.upstream import Upstream

_POLICY = """\
version = 1
mode = "apply"

[[rule]] # what only reads, and what can be taken back with `interlock undo`
id = "reads-and-writes"
tools = ["*"]
when = "effect != 'send'"
decision = "allow"

[[rule]] # what cannot be taken back waits for a person: `interlock review list`
id = "sends"
tools = ["*"]
when = "effect == 'send'"
decision = "review"

[review]
self_approval = true # for one person alone; leave it out where somebody else decides
"""


def register(commands: Any, common: Any) -> None:
    parser = commands.add_parser("mcp")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = _add_add(actions)
    remove = actions.add_parser("remove", help="take a server out of the settings, and its pins")
    listing = actions.add_parser("list", help="the servers, and how many tools of each may be used")
    show = actions.add_parser("show", help="one server: its tools, the effect each is taken for, its pin")
    pin = actions.add_parser("pin", help="pin the tools of a server as they are now, once you have looked at them")
    pin.add_argument("--accept", action="append", default=[], metavar="TOOL", help="a tool whose words you have read")
    profile, serve = _add_profile(actions), add_serve(actions)
    for action in (remove, show, pin):
        action.add_argument("name", help="the server")
    for action, run, wrong in (
        (add, _add, ""),
        (remove, _remove, ""),
        (listing, _list, "a server cannot be reached, or a tool is switched off"),
        (show, _show, "the server cannot be reached, or a tool is switched off"),
        (pin, _pin, ""),
        (profile, _profile, "the profile does not fit the server"),
        (serve, serve_until_ended, ""),
    ):
        common(action)
        document_exits(action, wrong=wrong, store=action is serve)
        action.set_defaults(run=lambda given, run=run: run_to_end(run(given)))


def _add_add(actions: Any) -> Any:
    add = actions.add_parser(
        "add",
        help="look at a server, and put it into the settings",
        description="Start a server, show its tools, pin them as they are now, and write it into interlock.toml:"
        " interlock mcp add files --profile filesystem -- npx -y @modelcontextprotocol/server-filesystem ./docs",
    )
    add.add_argument("name", help="what the server is called here; its tools are called NAME_TOOL")
    add.add_argument("--url", default="", help="the address of a server that runs elsewhere")
    add.add_argument("--profile", default="", help="what is known of a server: see interlock mcp profile")
    add.add_argument("--trusted", action="store_true", help="believe what it says of itself, and what it returns")
    add.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=keyring:SERVICE/USER]",
        help="a variable that its command gets, from here or from the keyring",
    )
    add.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="HEADER=VARIABLE|keyring:SERVICE/USER",
        help="with --url: a header that it knows you by, and where its value is",
    )
    add.add_argument(
        "--accept", action="append", default=[], metavar="TOOL", help="a tool whose words you have read, and accept"
    )
    add.usage = "interlock mcp add NAME [options] (-- COMMAND … | --url URL)"
    add.after_dashes = "words"
    return add


def _add_profile(actions: Any) -> Any:
    profile = actions.add_parser("profile", help="what is known of a server: show it, and test it on one of yours")
    profile.add_argument("name", nargs="?", help="the profile (default: list them)")
    profile.add_argument("--test", metavar="SERVER", help="hold it against a server of the settings")
    return profile


def _servers(given: argparse.Namespace) -> McpServers:
    from interlock.adapters.mcp.servers import McpServers, check_terms

    loaded = load_command_settings(given)
    return McpServers(check_terms(loaded.servers), loaded.folder)


async def _add(given: argparse.Namespace) -> int:
    from interlock.adapters.mcp.servers import McpServers, as_toml, check_server, check_terms, make_upstream
    from interlock.adapters.mcp.terms import ServerTerms

    loaded = load_command_settings(given)
    file = loaded.file
    if given.name in check_terms(loaded.servers):
        raise ConfigError(f"{file}: there is an MCP server {given.name!r} already; interlock mcp remove {given.name}")
    said: dict[str, Any] = {"command": given.words, "url": given.url, "profile": given.profile}
    said |= {"trusted": given.trusted, "env": given.env, "headers": dict(map(_read_header, given.header))}
    terms = msgspec.convert(said, ServerTerms)
    check_server(given.name, terms)
    if terms.url and await _speaks_only_events(given.name, terms, file.parent):
        said, terms = {**said, "sse": True}, msgspec.structs.replace(terms, sse=True)
    before = file.read_bytes().decode() if file.exists() else ""
    text = f"{before}{chr(10) if before and not before.endswith(chr(10)) else ''}{chr(10) if before else ''}"
    text += as_toml(given.name, said)
    parse_toml(text)
    others = McpServers({}, None) if not loaded.servers else _servers(given)
    async with make_upstream(given.name, terms, file.parent) as upstream:
        await _look(given, upstream, terms, file.parent, set(others.offered))
    file.write_bytes(text.encode())
    notes().print(f"[dim]written into {sanitize(str(file))}[/]")
    _leave_policy(given)
    return 0


def _read_header(text: str) -> tuple[str, str]:
    header, _, where = text.partition("=")
    if not header or not where:
        raise ConfigError(f"--header is HEADER=VARIABLE or HEADER=keyring:SERVICE/USER, not {text!r}")
    return header, where


async def _speaks_only_events(name: str, terms: ServerTerms, folder: Path) -> bool:
    """Whether a server at an address has only the older transport: it answers to that, and not to the other."""
    from interlock.adapters.mcp.servers import make_upstream

    for sse in (False, True):
        try:
            async with make_upstream(name, msgspec.structs.replace(terms, sse=sse), folder):
                return sse
        except ConfigError:
            continue
    return False


def _leave_policy(given: argparse.Namespace) -> None:
    """Where there is no policy yet, nothing would be allowed: leave one to begin with."""
    policy = Path(load_command_settings(given).settings.policy)
    if not policy.exists():
        policy.write_text(_POLICY, encoding="utf-8")
        notes().print(f"[dim]a policy to begin with: {sanitize(str(policy))}[/]")


async def _look(
    given: argparse.Namespace, upstream: Upstream, terms: ServerTerms, folder: Path, taken: Collection[str] = ()
) -> None:
    """Pin the tools of a server that is started, and show what is pinned, and what is not and why."""
    from interlock.adapters.mcp.pins import PinsFile, find_hidden, find_instruction
    from interlock.adapters.mcp.servers import PINS
    from interlock.adapters.mcp.tools import tools_of

    offered = await upstream.list_tools()
    pins = PinsFile.read(folder / PINS).pin(upstream.name, offered, given.accept)
    refused: dict[str, str] = {}
    tools_of(upstream, pins.tools_of(upstream.name), terms, refused)  # refuses terms that do not fit
    twice = sorted({terms.name_of(upstream.name, one.name) for one in offered} & set(taken))
    if twice:
        raise ConfigError(f"another server has a tool {twice[0]!r} already: choose another name, or a prefix")
    pins.write(folder / PINS)
    if given.json:
        _print_tools(
            given, upstream.name, pins.tools_of(upstream.name), terms, pins.switched_off(upstream.name, offered)
        )
        return
    _print_tools(given, upstream.name, pins.tools_of(upstream.name), terms, {})
    for name, why in refused.items():
        notes().print(f"[red]not usable[/] {sanitize(name)}: {sanitize(why)}")
    for one in offered:
        said, hidden = find_instruction(one), find_hidden(one)
        if hidden:
            notes().print(f"[red]not usable[/] {sanitize(one.name)}: it hides {sanitize(hidden)}")
        elif said and one.name not in given.accept:
            notes().print(f"[yellow]not pinned[/] {sanitize(one.name)}: it tells a model what to do: {sanitize(said)}")
            notes().print(f"  [dim]read it, and accept it with --accept {sanitize(one.name)}[/]")


def _print_tools(
    given: argparse.Namespace, server: str, offered: list[Any], terms: ServerTerms, off: dict[str, str]
) -> None:
    from interlock.adapters.mcp.terms import terms_of
    from interlock.adapters.mcp.tools import effect_of

    said = terms.all_terms()
    rows: list[dict[str, Any]] = []
    for one in offered:
        own = terms_of(one.name, said)
        effect = effect_of(one, own, trusted=terms.trusted)
        hints = one.annotations
        claims = "reads" if hints is not None and hints.read_only_hint else ""
        why = "declared" if own.effect else "the server says so" if effect is Effect.READ else "not declared"
        rows.append(
            {
                "tool": terms.name_of(server, one.name),
                "effect": effect.value,
                "because": why,
                "claims": claims,
                "can be undone": effect is Effect.WRITE,
                "off": off.get(one.name, ""),
            }
        )
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
    for tool, why in off.items():
        out.print(f"[red]switched off[/] {sanitize(tool)}: {sanitize(why, lines=True)}")


async def _remove(given: argparse.Namespace) -> int:
    from interlock.adapters.mcp.pins import PinsFile
    from interlock.adapters.mcp.servers import PINS, check_terms, without_table

    loaded = load_command_settings(given)
    file = loaded.file
    _find_terms(check_terms(loaded.servers), given.name)
    before = file.read_bytes().decode()
    text = without_table(before, given.name)
    was, left = parse_toml(before), parse_toml(text)
    del was[SERVERS][given.name]
    if left.get(SERVERS, {}) != was.pop(SERVERS) or {k: v for k, v in left.items() if k != SERVERS} != was:
        raise ConfigError(
            f"{file}: [{SERVERS}.{given.name}] is written in a way that only a person can take out; edit it"
        )
    file.write_bytes(text.encode())
    PinsFile.read(file.parent / PINS).without(given.name).write(file.parent / PINS)
    return 0


def _find_terms(terms: dict[str, ServerTerms], name: str) -> ServerTerms:
    if name not in terms:
        there = ", ".join(terms) or "none: interlock mcp add NAME -- COMMAND"
        raise ConfigError(f"there is no MCP server {name!r}; there are {there}")
    return terms[name]


async def _list(given: argparse.Namespace) -> int:
    from interlock.adapters.mcp.servers import describe

    servers = _servers(given)
    async with _running(servers) as problems:
        rows = [
            {
                "server": name,
                "address": describe(servers.terms[name]),
                "tools": len(servers.pins.servers.get(name, {})),
                "switched_off": len(upstream.switched_off),
                "problem": problems.get(name, ""),
            }
            for name, upstream in servers.upstreams.items()
        ]
    if given.json:
        print_json(rows)
    else:
        out = console()
        out.print(f"[bold]{format_count(len(rows), 'server')}[/]")
        for row in rows:
            off = f", [red]{row['switched_off']} switched off[/]" if row["switched_off"] else ""
            where = f"[dim]{sanitize(row['address'])}[/]"
            out.print(f"[bold]{sanitize(row['server'])}[/]  {row['tools']} tools pinned{off}  {where}")
            if row["problem"]:
                out.print(f"  [red]{sanitize(row['problem'])}[/]")
    return 1 if any(row["problem"] or row["switched_off"] for row in rows) else 0


@asynccontextmanager
async def _running(servers: McpServers) -> AsyncIterator[dict[str, str]]:
    try:
        yield await servers.start()
    finally:
        await servers.close()


async def _show(given: argparse.Namespace) -> int:
    servers = _servers(given)
    terms, upstream = _find_terms(servers.terms, given.name), servers.upstreams[given.name]
    async with upstream:
        off = upstream.switched_off
    _print_tools(given, given.name, servers.pins.tools_of(given.name), terms, off)
    return 1 if off else 0


async def _pin(given: argparse.Namespace) -> int:
    from interlock.adapters.mcp.servers import check_terms, make_upstream

    loaded = load_command_settings(given)
    terms = _find_terms(check_terms(loaded.servers), given.name)
    async with make_upstream(given.name, terms, loaded.folder) as upstream:
        await _look(given, upstream, terms, loaded.folder)
    notes().print("[dim]a gateway that runs goes on with what was pinned when it started: start it again[/]")
    return 0


async def _profile(given: argparse.Namespace) -> int:
    from interlock.adapters.mcp.terms import profile_names, profile_text, read_profile
    from interlock.adapters.mcp.tools import tools_of

    load_command_settings(given)
    if given.name is None:
        if given.json:
            print_json(profile_names())
        else:
            console().print("\n".join(profile_names()))
        return 0
    if given.test is None:
        if given.json:
            print_json(msgspec.to_builtins(read_profile(given.name)))
        else:
            console().print(sanitize(profile_text(given.name), lines=True))
        return 0
    servers = _servers(given)
    terms = msgspec.structs.replace(_find_terms(servers.terms, given.test), profile=given.name)
    async with servers.upstreams[given.test] as upstream:
        offered = await upstream.list_tools()
        try:
            tools_of(upstream, offered, terms)
        except ConfigError as error:
            notes().print(f"[red]{sanitize(str(error))}[/]")
            return 1
    _print_tools(given, given.test, offered, terms, {})
    return 0
