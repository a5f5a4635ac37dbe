"""`interlock catalog`: one file for each group of commands. What is heavy is imported when a command runs."""

from __future__ import annotations

import argparse
from typing import Any

from interlock_catalog.cli import backup, query, run, serve, setup, worker

EPILOG = """\
a first look:   interlock catalog init; interlock catalog run --html report.html
then:           interlock catalog enable --all; interlock catalog run --apply; interlock undo --run RUN
every night:    interlock catalog schedule "0 3 * * *" --apply; interlock catalog worker
settings:       catalog.toml in this folder (or --home FOLDER), then CATALOG_* variables
"""


def register(commands: Any, _common: Any) -> None:
    """Add the command to `interlock`."""
    parser = commands.add_parser(
        "catalog",
        help="an autopilot that keeps an exercise catalog clean",
        description="Catalog: finds and fixes what is wrong in a catalog of exercises, under schemas, a policy and a"
        " journal. A dry run is the default; what was applied can be undone with `interlock undo`.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for module in (setup, run, worker, query, backup, serve):
        module.register(actions)
