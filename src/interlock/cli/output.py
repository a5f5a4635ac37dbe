"""How commands print: results to standard output, remarks to standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

COLOURS = {
    "ok": "green",
    "no_data": "cyan",
    "planned": "cyan",
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
    "done": "green",
    "asked": "magenta",
    "agrees": "green",
    "differs": "yellow",
    "pending": "cyan",
    "expired": "yellow",
    "verified": "green",
    "rendered": "green",
    "escalated": "magenta",
    "waiting": "magenta",
    "limited": "yellow",
    "timed_out": "yellow",
    "blocked": "red",
    "observed": "yellow",
    "released": "green",
    "corrected": "green",
    "rejected": "red",
}


def console() -> Console:
    """Where results go."""
    return Console(highlight=False, emoji=False)


def notes() -> Console:
    """Where progress and remarks go, so that results can be piped."""
    return Console(stderr=True, highlight=False, emoji=False)


def table(title: str, columns: Iterable[str]) -> Table:
    """A table in the house style: names stay whole while there is room, the last column takes what is left."""
    made = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    *names, last = columns
    for column in names:
        made.add_column(column, no_wrap=True)
    made.add_column(last, overflow="fold", min_width=24)
    return made


def shown(text: object, *, lines: bool = False) -> str:
    """Text that somebody else wrote, made harmless: no control characters for the terminal, no markup for us.

    Without `lines` it stays on its own line, so that it cannot pretend to be one of ours.
    """
    return escape("".join(c if c.isprintable() or (lines and c == "\n") else ascii(c)[1:-1] for c in str(text)))


def coloured(text: str) -> str:
    """A status or decision in its colour."""
    colour = COLOURS.get(text)
    return f"[{colour}]{text}[/]" if colour else text


def print_diff(diff: str | None) -> None:
    """A difference in its colours."""
    out = console()
    for line in (diff or "").split("\n") if diff else ():
        colour = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
        out.print(f"  [{colour}]{shown(line)}[/]")


def print_json(value: Any) -> None:
    """One JSON document."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
