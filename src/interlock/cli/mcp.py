"""`interlock mcp`: servers that speak the Model Context Protocol, in front of which the gate stands."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.cli.interrupts import run_to_end
from interlock.cli.one_writer import one_writer, replace_file
from interlock.cli.options import load_command_settings
from interlock.cli.output import console, format_count, notes, print_json, sanitize
from interlock.cli.parser import document_exits
from interlock.cli.server_tools import pin_and_show, print_tools
from interlock.cli.serving import add_serve, serve_until_ended
from interlock.config import SERVERS, Loaded
from interlock.errors import ConfigError
from interlock.toml_text import parse_toml

if TYPE_CHECKING:
    from interlock.adapters.mcp.servers import McpServers
    from interlock.adapters.mcp.terms import ServerTerms

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
        (pin, _pin, "a tool was not pinned, or cannot be used"),
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

    def write() -> None:
        before = file.read_bytes().decode() if file.exists() else ""
        if given.name in parse_toml(before).get(SERVERS, {}):
            raise ConfigError(f"{file}: there is an MCP server {given.name!r} by now")
        text = f"{before}{chr(10) if before and not before.endswith(chr(10)) else ''}{chr(10) if before else ''}"
        text += as_toml(given.name, said)
        parse_toml(text)
        replace_file(file, text.encode())

    others = McpServers({}, None) if not loaded.servers else _servers(given)
    async with make_upstream(given.name, terms, file.parent) as upstream:
        await pin_and_show(given, upstream, terms, loaded, taken=_names_of(others), write=write)
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


async def _remove(given: argparse.Namespace) -> int:
    from interlock.adapters.mcp.pins import PinsFile
    from interlock.adapters.mcp.servers import PINS, without_table

    loaded = load_command_settings(given)
    file = loaded.file
    _find_terms(loaded, given.name)
    with one_writer(file.parent):
        before = file.read_bytes().decode()
        text = without_table(before, given.name)
        was, left = parse_toml(before), parse_toml(text)
        was.get(SERVERS, {}).pop(given.name, None)
        if left.get(SERVERS, {}) != was.pop(SERVERS, {}) or {k: v for k, v in left.items() if k != SERVERS} != was:
            raise ConfigError(
                f"{file}: [{SERVERS}.{given.name}] is written in a way that only a person can take out; edit it"
            )
        replace_file(file, text.encode())
        PinsFile.read(file.parent / PINS).without(given.name).write(file.parent / PINS)
    notes().print(
        f"[dim]taken out of {sanitize(str(file))}, with its pins; what was there, should it be wanted again:[/]"
    )
    taken = difflib.ndiff(before.splitlines(), text.splitlines())
    notes().print(sanitize("\n".join(line[2:] for line in taken if line.startswith("- ")), lines=True))
    return 0


def _find_terms(loaded: Loaded, name: str) -> ServerTerms:
    from interlock.adapters.mcp.servers import check_terms

    terms, file = check_terms(loaded.servers), loaded.file
    if name not in terms:
        there = f"there are {', '.join(terms)}" if terms else "it names none: interlock mcp add NAME -- COMMAND"
        there = there if file.exists() else "there is no such file: say where it is with --config FILE"
        raise ConfigError(f"{file.absolute()} names no MCP server {name!r}; {there}")
    return terms[name]


async def _list(given: argparse.Namespace) -> int:
    from interlock.adapters.mcp.servers import check_terms, describe

    servers, terms = _servers(given), check_terms(load_command_settings(given).servers)
    async with _running(servers) as problems:
        rows = [
            {
                "server": name,
                "address": describe(one),
                "tools": len(servers.pins.servers.get(name, {})),
                "switched_off": len(servers.upstreams[name].switched_off) if name in servers.upstreams else 0,
                "problem": problems.get(name, ""),
            }
            for name, one in terms.items()
        ]
    if given.json:
        print_json(rows)
    else:
        out = console()
        out.print(f"[bold]{format_count(len(rows), 'server')}[/]")
        if not rows:
            notes().print("[dim]add one with: interlock mcp add NAME -- COMMAND … (or --url URL)[/]")
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
    from interlock.adapters.mcp.servers import make_upstream

    servers, loaded = _servers(given), load_command_settings(given)
    terms = _find_terms(loaded, given.name)
    problem, off = servers.left_out.get(given.name, ""), {}
    try:
        async with make_upstream(given.name, terms, loaded.folder, servers.pins) as upstream:
            off = upstream.switched_off
    except ConfigError as error:
        problem = problem or str(error)
    print_tools(given, given.name, servers.pins.tools_of(given.name), terms, off)
    if problem:
        notes().print(f"[red]{sanitize(problem)}[/]")
    return 1 if off or problem else 0


def _names_of(servers: McpServers) -> set[str]:
    """What all tools of servers are called, those that read resources and prompts with them."""
    return {tool.name for tool in servers.tools} | set(servers.offered)


async def _pin(given: argparse.Namespace) -> int:
    from interlock.adapters.mcp.servers import McpServers, check_terms, make_upstream

    loaded = load_command_settings(given)
    terms = _find_terms(loaded, given.name)
    async with make_upstream(given.name, terms, loaded.folder) as upstream:
        others = {name: one for name, one in check_terms(loaded.servers).items() if name != given.name}
        taken = _names_of(McpServers(others, loaded.folder))
        is_whole = await pin_and_show(given, upstream, terms, loaded, taken=taken)
    notes().print("[dim]a gateway that runs goes on with what was pinned when it started: start it again[/]")
    return 0 if is_whole else 1


async def _profile(given: argparse.Namespace) -> int:
    from interlock.adapters.mcp.terms import profile_names, profile_text, read_profile

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
    return await _test_profile(given)


async def _test_profile(given: argparse.Namespace) -> int:
    from interlock.adapters.mcp.servers import make_upstream
    from interlock.adapters.mcp.terms import read_profile
    from interlock.adapters.mcp.tools import tools_of

    loaded = load_command_settings(given)
    terms = msgspec.structs.replace(_find_terms(loaded, given.test), profile=given.name)
    async with make_upstream(given.test, terms, loaded.folder) as upstream:
        offered = await upstream.list_tools()
        try:
            tools_of(upstream, offered, terms)
        except ConfigError as error:
            notes().print(f"[red]{sanitize(str(error))}[/]")
            return 1
    print_tools(given, given.test, offered, terms, {})
    known, there = read_profile(given.name), {one.name for one in offered}
    unfit = sorted(pattern for pattern in known if not any(fnmatchcase(one, pattern) for one in there))
    missing = ", ".join(unfit)
    # A pattern that fits everything says nothing of which server it is.
    if {*unfit, "*"} >= set(known):
        notes().print(f"[red]{sanitize(given.test)} has none of the tools of the profile[/]: {sanitize(missing)}")
        return 1
    notes().print(f"the profile {sanitize(given.name)} fits {sanitize(given.test)}")
    if missing:
        notes().print(f"[dim]it speaks of tools that this server does not have: {sanitize(missing)}[/]")
    return 0
