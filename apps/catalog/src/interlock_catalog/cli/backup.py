"""`interlock catalog backup` and `restore`."""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interlock.cli.output import colorize, console, notes, print_json, sanitize
from interlock_catalog.cli.arguments import add_command
from interlock_catalog.counts import format_count
from interlock_catalog.settings import load_existing_catalog

if TYPE_CHECKING:
    from interlock_catalog.backup import Restored

_MAX_LEFT = 10


def register(actions: Any) -> None:
    backup = add_command(actions, "backup", run_backup, "write the whole catalog to a file")
    backup.add_argument("file", type=Path)
    restore = add_command(
        actions,
        "restore",
        run_restore,
        "bring the catalog back to a backup",
        "Put back every document that is not what it is in a backup, each as a call through the gate; only shown unless"
        " --yes. Documents that are not in the backup stay, and are counted; with --delete-others they are deleted.",
    )
    restore.add_argument("file", type=Path)
    restore.add_argument("--delete-others", action="store_true", help="delete documents that are not in the backup")
    restore.add_argument("--yes", action="store_true", help="do it")


def run_backup(given: argparse.Namespace) -> int:
    """Write every document to a file, a line each."""
    from interlock_catalog.backup import write_backup

    loaded = load_existing_catalog(given.home)
    with notes().status("writing"):
        count = asyncio.run(write_backup(loaded, given.file))
    if given.json:
        print_json({"file": str(given.file), "documents": count})
    else:
        console().print(f"{sanitize(given.file)}: {format_count(count, 'document')}")
    return 0


def run_restore(given: argparse.Namespace) -> int:
    """Show what differs from a backup, or restore it."""
    from interlock_catalog.backup import restore_backup

    loaded = load_existing_catalog(given.home)
    with notes().status("comparing"):
        done = asyncio.run(restore_backup(loaded, given.file, apply=given.yes, delete_others=given.delete_others))
    if given.json:
        print_json(done)
    else:
        _print_restored(done, made=given.yes)
    return 0 if done.is_complete else 1


def _print_restored(done: Restored, *, made: bool) -> None:
    out = console()
    for what, documents in (("put back", done.put_back), ("delete", done.deleted)):
        for key, status in documents.items():
            out.print(f"  {what}  {sanitize(key)}  {colorize(status)}")
    for key in done.left[:_MAX_LEFT]:
        out.print(f"  left      {sanitize(key)}  [dim]not in the backup[/]")
    if len(done.left) > _MAX_LEFT:
        out.print(f"  [dim]… and {len(done.left) - _MAX_LEFT} more that are not in the backup[/]")
    if done.searches:
        out.print(f"  [dim]the log of searches is left as it is: {sanitize(done.searches)}[/]")
    parts = [_describe(done.put_back, "put back", made=made)]
    if done.deleted:
        parts.append(f"{_describe(done.deleted, 'deleted', made=made)}: not in the backup")
    if done.left:
        parts.append(f"{len(done.left)} left: not in the backup (delete with --delete-others)")
    hint = "" if made or not (done.put_back or done.deleted) else "  (do it with --yes)"
    out.print(f"[bold]{', '.join(parts)}[/]{hint}  run {sanitize(done.run)}")


def _describe(documents: Mapping[str, str], what: str, *, made: bool) -> str:
    """How many were, or would be; those that were not are counted by how they ended."""
    counts = Counter(documents.values())
    good = counts.pop("ok" if made else "planned", 0)
    others = "".join(f", {count} {status}" for status, count in sorted(counts.items()))
    verb = what if made else f"would be {what}"
    return f"{format_count(good, 'document')} {verb}{others}"
