"""How commands print: results to standard output, remarks to standard error. rich is loaded by the first line."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.cli.results import result_stream
from interlock.cli.terminal_text import escape_controls, show_controls

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.tree import Tree

COLOURS = {
    "ok": "green",
    "no_data": "cyan",
    "planned": "cyan",
    "input_required": "magenta",
    "failed": "red",
    "denied": "yellow",
    "parked": "magenta",
    "unknown": "bold red",
    "allow": "green",
    "deny": "yellow",
    "review": "magenta",
    "intent": "blue",
    "open": "magenta",
    "approved": "green",
    "settled": "green",
    "done": "green",
    "asked": "magenta",
    "agrees": "green",
    "differs": "yellow",
    "pending": "cyan",
    "expired": "yellow",
    "verified": "green",
    "conversation": "cyan",
    "rendered": "green",
    "partial": "yellow",
    "escalated": "magenta",
    "waiting": "magenta",
    "tool_failed": "yellow",
    "no_reply": "yellow",
    "timed_out": "yellow",
    "blocked": "red",
    "unverified": "yellow",
    "abandoned": "yellow",
    "released": "green",
    "corrected": "green",
    "rejected": "red",
}


_EMPTY_TAG = "[none][/none]"


def console() -> Console:
    """Where results go. Lines are never wrapped, so that ids and digests can be copied; see `print_prose`."""
    return _open_console(stderr=False)


def notes() -> Console:
    """Where progress and remarks go, so that results can be piped."""
    return _open_console(stderr=True)


def _open_console(*, stderr: bool) -> Console:
    """A console as NO_COLOR and FORCE_COLOR want it; rich reads both.

    NO_COLOR stands for no escape sequences at all. FORCE_COLOR stands for colours only: rich would take a pipe for a
    terminal and write moving spinners into it.
    """
    from interlock.cli.harmless_console import HarmlessConsole

    where = None if stderr else result_stream()
    found = HarmlessConsole(stderr=stderr, file=where)
    is_terminal = found.file.isatty()
    colours: Any = "auto"
    if found.no_color:
        colours = None
    elif found.is_terminal and not is_terminal:
        colours = found.color_system or "standard"
    return HarmlessConsole(
        stderr=stderr,
        file=where,
        highlight=False,  # rich would colour figures inside of ids, and take :name: for an emoji
        emoji=False,
        soft_wrap=True,
        force_terminal=is_terminal,
        color_system=colours,
    )


def table(title: str, columns: Iterable[str]) -> Table:
    """A table in the house style: as wide as its content in a pipe; on a terminal the last column folds."""
    from interlock.cli.tables import WholeTable

    made = WholeTable(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    *names, last = columns
    for column in names:
        made.add_column(column, no_wrap=True)
    made.add_column(last, overflow="fold")
    return made


def sanitize(text: object, *, lines: bool = False) -> str:
    """Text that somebody else wrote, made harmless: no control characters for the terminal, no markup for us.

    Without `lines` it stays on its own line, so that it cannot pretend to be one of ours.
    """
    from rich.markup import escape

    shown = show_controls(str(text), lines=lines)
    bare = shown.rstrip("\\")
    if bare == shown:
        return escape(shown)
    # Whatever tag stands after it, ours or an escaped one, would take these backslashes for its own: so it is an empty
    # one, before which each is written twice.
    return escape(bare) + "\\" * (2 * (len(shown) - len(bare))) + _EMPTY_TAG


def colorize(text: str) -> str:
    """A status or decision in its colour."""
    colour = COLOURS.get(text)
    return f"[{colour}]{text}[/]" if colour else text


def format_count(count: int, noun: str) -> str:
    """1 record, 2 records, 12,000 records."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


_LAST_US = 253_402_300_799_000_000
"""The last second of the year 9999."""


def format_moment(at_us: int) -> str:
    """A time of a record for people; empty where there is none."""
    if at_us > _LAST_US:
        return "the end of time"  # earlier versions took any stretch of time for a policy's
    return datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if at_us else ""


def print_prose(text: str) -> None:
    """Text for reading: on a terminal its lines break between words, in a pipe they stay as they are."""
    out = console()
    out.print(sanitize(text, lines=True), soft_wrap=not out.file.isatty())


def print_tree(tree: Tree) -> None:
    """A tree, whose lines break between words on a terminal only."""
    from interlock.cli.tables import UNBOUNDED

    out = console()
    if not out.file.isatty():
        out.width = UNBOUNDED
    out.print(tree, soft_wrap=False)


def print_diff(diff: str | None) -> None:
    """A difference in its colours."""
    out = console()
    for line in (diff or "").split("\n") if diff else ():
        colour = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
        out.print(f"  [{colour}]{sanitize(line)}[/]")


def print_json(value: Any) -> None:
    """One JSON document, in which everything that a terminal may act on is escaped."""
    result_stream().write(escape_controls(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()) + "\n")
