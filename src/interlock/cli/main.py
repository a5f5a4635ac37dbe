"""`interlock`: find the command, run it, turn every error into a sentence and an exit code."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from interlock import __version__
from interlock.cli.parser import EXITS, INTERRUPTED, CommandParser, parse_command
from interlock.cli.results import ResultStream, results_to, standard_streams
from interlock.cli.terminal_text import show_controls
from interlock.errors import ConfigError, ContractError, InterlockError, PolicyError, StoreError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = "interlock.commands"
"""The entry points of commands that applications bring: functions like `register` of our own modules."""


class Command(NamedTuple):
    """A command of our own. Its module is loaded when it is used, and not to list it."""

    name: str
    module: str
    help: str


OWN_COMMANDS = (
    Command("ask", "ask", "ask an application a question"),
    Command("turns", "turns", "questions and answers: list, show"),
    Command("call", "call", "make one governed call"),
    Command("plan-set", "plan_sets", "plan or make changes that belong together"),
    Command("shadow", "shadow", "compare shadow plans with what happened"),
    Command("undo", "changes", "take changes back"),
    Command("replay", "changes", "make what failed in a run again"),
    Command("recover", "changes", "settle what dead processes left behind"),
    Command("review", "review", "tickets: list, show, approve, deny, edit, remind, resume, token"),
    Command("halt", "halts", "stop a tool, an actor, a run or everything"),
    Command("unhalt", "halts", "let what was halted run again"),
    Command("tools", "tools", "contracts of tools: list, show"),
    Command("policy", "policy", "rules: check, coverage, test, explain"),
    Command("audit", "audit", "the ledger: show, export, verify, anchor, rotate, key, accept, verifier, purge, forget"),
    Command("mcp", "mcp", "servers of tools: add, remove, list, show, pin, profile, serve"),
    Command("metrics", "metrics", "counts, latency, retries and denials"),
    Command("config", "config", "show the settings and where they came from"),
)
_EPILOG = """\
settings:   interlock.toml in this folder, then INTERLOCK_* variables, then --store, --policy, --tools
            (`interlock config show` prints every value and where it came from)

log:        --verbose shows it on standard error, with the tracebacks of tools

exit codes: {exits}
            (`interlock COMMAND --help` says what they mean there)

examples:   interlock ask orders "Which orders are late?"
            interlock turns show TURN; interlock metrics enforcement --since 7d
            interlock call find_order '{{"order_id": 1042}}' --actor order-desk
            interlock policy check
            interlock call set_title '{{"id": "a", "title": "new"}}' --mode dry_run
            interlock review list; interlock review approve TICKET --resume
            interlock undo --run nightly; interlock undo --run nightly --yes
            interlock audit show --outcome denied --newest 20
            interlock audit verify
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    with standard_streams() as results:
        ends: SystemExit | None = None
        try:
            code = _run_to_its_code(words, results)
        except SystemExit as error:  # how argparse ends a help
            ends, code = error, error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        results.flush()
        if not results.is_read and code != INTERRUPTED:
            ends, code = None, _complain(f"what it had to say could not be written: {results.lost}", code or 1)
        results.let_go()
        if ends is not None:
            raise ends
    return code


def _run_to_its_code(words: list[str], results: ResultStream) -> int:
    try:
        return _run(words, results)
    except PolicyError as error:
        for problem in error.problems:
            _complain(problem, 1)
        return 1
    except (ConfigError, ContractError) as error:
        return _complain(error, 2)
    except StoreError as error:
        return _complain(error, 3)
    except InterlockError as error:
        return _complain(error, 1)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except (OSError, OverflowError, UnicodeError) as error:  # a file, number or text that was named on the command line
        return _complain(error, 2)


def _run(words: list[str], results: ResultStream) -> int:
    if words[:1] == ["--version"]:
        print(f"interlock {__version__}")
        return 0
    if not words:
        build_overview().print_help()
        return 0
    name = words[0]
    if name in ("-h", "--help"):
        build_overview().parse_args([name])
    if name.startswith("-"):
        raise ConfigError(f"{name}: options come after the command: interlock COMMAND {name} …; see interlock --help")
    top = CommandParser(prog="interlock")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    register = _find_command(name)

    from interlock.cli.log import shown_log
    from interlock.cli.options import add_common

    register(commands, add_common)
    given = parse_command(top, words)
    # Our own commands say where their results go, and run tools of others; what an application prints is its result.
    own = any(command.name == name for command in OWN_COMMANDS)
    with shown_log(verbose=getattr(given, "verbose", False)), results_to(results) if own else nullcontext():
        return int(given.run(given))


def build_overview() -> argparse.ArgumentParser:
    """The help of the whole: every command with one line, none of them loaded."""
    top = argparse.ArgumentParser(
        prog="interlock",
        description="Interlock stands between what a model proposes and what happens: every tool call takes one path,"
        " contract → policy → budget → plan → effect at most once → record.",
        epilog=_EPILOG.format(exits=_exits()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"interlock {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    for command in OWN_COMMANDS:
        commands.add_parser(command.name, help=command.help)
    for name, point in find_application_commands().items():
        summary = None if point.dist is None else point.dist.metadata["Summary"]
        commands.add_parser(name, help=(summary or f"a command of {point.module}").replace("%", "%%"))
    return top


def _exits() -> str:
    """What the exit codes mean, beside one another."""
    indent = " " * 12
    return f"\n{indent}".join(
        "\n".join(textwrap.wrap(f"{code:<5}{EXITS[code]}", 106, subsequent_indent=indent + " " * 5)) for code in EXITS
    )


def find_application_commands() -> dict[str, EntryPoint]:
    """The commands that installed applications bring, by name; two of one name are an error, whoever came first."""
    from importlib.metadata import entry_points

    found: dict[str, EntryPoint] = {}
    own = {command.name for command in OWN_COMMANDS}
    for point in entry_points(group=COMMANDS):
        other = "interlock itself" if point.name in own else found[point.name].module if point.name in found else None
        if other is not None:
            raise ConfigError(f"the command {point.name!r} is brought by {point.module} and by {other}; remove one")
        found[point.name] = point
    return found


def _find_command(name: str) -> Callable[[Any, Any], None]:
    """The function that adds a command to the parser."""
    register: Callable[[Any, Any], None]
    module = next((command.module for command in OWN_COMMANDS if command.name == name), None)
    if module is not None:
        register = import_module(f"interlock.cli.{module}").register
        return register
    brought = find_application_commands()
    if name not in brought:
        from interlock.canonical import nearest

        close = nearest(name, [*(command.name for command in OWN_COMMANDS), *brought], 1)
        way_out = f"did you mean {close[0]!r}?" if close else "see interlock --help"
        raise ConfigError(f"there is no command {name!r}; {way_out}")
    try:
        register = brought[name].load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a module of somebody else may fail in any way, or end us
        raise ConfigError(f"the command {name!r} of {brought[name].module} cannot be loaded: {error}") from None
    return register


def _complain(error: object, code: int) -> int:
    # Messages quote what others wrote, which must not steer the terminal.
    print(f"interlock: {show_controls(str(error), lines=True)}", file=sys.stderr)
    return code
