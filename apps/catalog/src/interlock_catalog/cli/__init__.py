"""`interlock catalog`: one file for each group of commands. What is heavy is imported when a command runs."""

from __future__ import annotations

from typing import Any

from interlock_catalog.cli import looking, running, serving, setup, watching

EPILOG = """\
a first look:   interlock catalog init; interlock catalog run --html report.html
then:           interlock catalog enable --all; interlock catalog run --apply; interlock undo --run RUN
every night:    interlock catalog schedule "0 3 * * *" --apply; interlock catalog worker
settings:       catalog.toml in this folder (or --home FOLDER), then CATALOG_* variables
"""


def register(commands: Any, _common: Any) -> None:
    """Add the command to `interlock`."""
    import argparse

    parser = commands.add_parser(
        "catalog",
        help="an autopilot that keeps an exercise catalog clean",
        description="Catalog: finds and mends what is wrong in a catalog of exercises, under schemas, policy and a"
        " journal. A dry run is the default; what was applied can be taken back with `interlock undo`.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for module in (setup, running, watching, looking, serving):
        module.register(actions)
