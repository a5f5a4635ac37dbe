"""`interlock argo serve`: Argo in the browser."""

from __future__ import annotations

import argparse
import webbrowser

from interlock.cli.interrupts import run_to_end
from interlock.cli.output import console, notes, sanitize
from interlock.errors import ConfigError
from interlock_argo.opened import OpenedArgo
from interlock_argo.page.serving import serve_page

_MOST_PORT = 65_535


class _Links:
    """The first is for whoever has started it; each later one was made because one was used."""

    def __init__(self, *, opens: bool) -> None:
        self._opens, self._said = opens, 0

    def say(self, link: str) -> None:
        self._said += 1
        if self._said > 1:
            console().print(f"[dim]A browser came in. For another one: {sanitize(link)}[/]", soft_wrap=True)
            return
        console().print(f"Argo is at {link}", soft_wrap=True, highlight=False)
        console().print("[dim]The link lets one browser in. Ctrl-C ends it.[/]")
        if self._opens:
            webbrowser.open(link)


def run_serve(given: argparse.Namespace) -> int:
    """Until Ctrl-C."""
    if not 0 <= given.port <= _MOST_PORT:
        raise ConfigError(f"--port {given.port}: a port is between 0 and {_MOST_PORT}")
    links = _Links(opens=given.open)
    run_to_end(serve_page(OpenedArgo(given), given.port, given.model, links.say, by_address=given.by_address))
    notes().print("ended; what was asked and done is in the ledger: interlock turns list")
    return 0
