"""`interlock`: parse, run one command, turn every error into a sentence and an exit code."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points

from interlock import __version__
from interlock.cli import ask, audit, call, changes, config, halt, metrics, plans, policy, review, tools, turns
from interlock.cli.options import add_common
from interlock.errors import ConfigError, ContractError, InterlockError, PolicyError, StoreError

COMMANDS = "interlock.commands"
"""The entry points of commands that applications bring: functions like `register` of our own."""
EPILOG = """\
settings:   interlock.toml in this folder, then INTERLOCK_* variables, then --store, --policy, --tools
            (`interlock config show` prints every value and where it came from)

exit codes: 0  done, and nothing is wrong
            1  done, and something is wrong: a call was not ok, a rule is bad, a tool has no decision,
               a case fails, the ledger is not intact, a decision is not yours, nothing matches
            2  the command or a setting is wrong
            3  the store cannot be used

examples:   interlock ask trails "How bad is the damage at Waldo Lake?"
            interlock turns show TURN; interlock metrics enforcement --since 7d
            interlock call classify_damage '{"trail_id": "waldo-lake-3536"}' --actor trail-assessor
            interlock policy check
            interlock call set_title '{"id": "a", "title": "new"}' --mode dry_run
            interlock review list; interlock review approve TICKET --resume
            interlock undo --run nightly; interlock undo --run nightly --yes
            interlock audit show --outcome denied --newest 20
            interlock audit verify
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="interlock",
        description="Interlock stands between what a model proposes and what happens: every tool call takes one path,"
        " contract → policy → budget → plan → effect at most once → record.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"interlock {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in (ask, turns, call, plans, changes, review, halt, tools, policy, audit, metrics, config):
        module.register(commands, add_common)
    for point in entry_points(group=COMMANDS):
        point.load()(commands, add_common)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command."""
    given = parser().parse_args(arguments)
    logging.getLogger("interlock").addHandler(logging.NullHandler())  # a command shows outcomes itself
    try:
        return int(given.run(given))
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
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except (OSError, OverflowError, UnicodeError) as error:  # a file, number or text that was named on the command line
        return _complain(error, 2)


def _complain(error: object, code: int) -> int:
    text = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in str(error))
    print(f"interlock: {text}", file=sys.stderr)
    return code
