"""`interlock argo`: what Argo knows. What is heavy is imported when a command runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interlock.cli.interrupts import run_to_end
from interlock.cli.options import store_option
from interlock.cli.output import colorize, console, notes, print_json, sanitize, table
from interlock.cli.parser import document_exits

if TYPE_CHECKING:
    from interlock import Outcome, Runtime
    from interlock.memory import Forgotten, SearchResult

_YOU = "you"
_MOST_FILES = 10_000


def register(commands: Any, common: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "argo",
        help="a research assistant over your notes, files and the web: take things in, look, forget",
        description="Argo: a local research assistant. Questions go to `interlock ask argo`; here is what it knows.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    takes = actions.add_parser("ingest", help="take files, folders or addresses into the memory")
    takes.add_argument("what", nargs="+", metavar="FILE|FOLDER|URL", help="what to take in")
    takes.add_argument("--mine", action="store_true", help="the files are your own words, and may be believed")
    memory = actions.add_parser("memory", help="what is in the memory")
    parts = memory.add_subparsers(dest="part", metavar="ACTION", required=True)
    search = parts.add_parser("search", help="what is found under some words")
    search.add_argument("query", help="the words")
    search.add_argument("--top", type=int, default=8, metavar="N", help="how many (default 8)")
    search.add_argument("--namespace", help="only in this one")
    show = parts.add_parser("show", help="how much is remembered, and what came in last; or one document")
    show.add_argument("document", nargs="?", help="the id of a document, as `search` shows it")
    forget = parts.add_parser("forget", help="remove something for good; a tombstone stays")
    which = forget.add_mutually_exclusive_group(required=True)
    which.add_argument("--document", metavar="ID", help="one document")
    which.add_argument("--source", metavar="SOURCE", help="all that came from there; with * at the end, how it begins")
    which.add_argument("--namespace", metavar="NAME", help="all that is in there")
    forget.add_argument("--reason", required=True, help="why, for the ledger")
    chat = actions.add_parser("chat", help="talk in the terminal")
    chat.add_argument("--session", metavar="NAME", help="go on with a session (default: a new one)")
    chat.add_argument("--model", help="local, provider:name, or python:module:NAME (default: the setting `model`)")
    serve = _add_serve(actions)
    undo = actions.add_parser("undo", help="take files back out that were taken in together")
    undo.add_argument("ingested", metavar="RUN", help="as `ingest` has named it")
    for command, run, wrong in (
        (undo, run_undo, "something could not be taken back, or there was nothing"),
        (chat, run_chat, ""),
        (serve, run_serve, ""),
        (takes, run_ingest, "something could not be taken in; the others were"),
        (search, run_search, ""),
        (show, run_show, "there is no such document"),
        (forget, run_forget, "nothing was there to be forgotten"),
    ):
        common(command)
        document_exits(command, wrong=wrong, store=bool(wrong))
        command.set_defaults(run=run)


def _add_serve(actions: Any) -> Any:
    serve = actions.add_parser(
        "serve",
        help="talk in the browser",
        description="Serves Argo's page on this machine alone. It prints a link; each link lets one browser in.",
    )
    serve.add_argument("--port", type=int, default=8733, metavar="N", help="the port (default 8733; 0: any free one)")
    serve.add_argument("--model", help="local, provider:name, or python:module:NAME (default: the setting `model`)")
    serve.add_argument(
        "--by-address",
        action="store_true",
        help="serve under 127.0.0.1 instead of a name below localhost, for a browser that knows no such names; any"
        " other server on this machine that is visited in that browser is then sent the key as well",
    )
    serve.add_argument("--open", action="store_true", help="open the browser")
    return serve


def run_chat(given: argparse.Namespace) -> int:
    """Talk until the input ends."""
    from interlock_argo.cli import chat

    return chat.run_chat(given)


def run_serve(given: argparse.Namespace) -> int:
    """Serve the page until it is ended."""
    from interlock_argo.cli import serve

    return serve.run_serve(given)


def run_ingest(given: argparse.Namespace) -> int:
    """Take things in, one governed call each."""
    run, outcomes = run_to_end(_ingest(given))
    good = [outcome for _name, outcome in outcomes if outcome.ok]
    if given.json:
        print_json(
            [{"what": name, "status": outcome.status.value, "said": outcome.summary} for name, outcome in outcomes]
        )
    else:
        bad = len(outcomes) - len(good)
        console().print(f"{len(good)} taken in{f', {bad} not' if bad else ''}")
        if any(outcome.tool == "ingest_file" for outcome in good):
            console().print(f"[dim]to take it back: interlock argo undo {sanitize(run + store_option(given))}[/]")
    return int(len(good) < len(outcomes))


async def _ingest(given: argparse.Namespace) -> tuple[str, list[tuple[str, Outcome]]]:
    from interlock_argo.opened import OpenedArgo

    outcomes: list[tuple[str, Outcome]] = []
    wanted = [one for what in given.what for one in _spread(what)]
    async with OpenedArgo(given) as opened:
        run = f"ingest-{opened.runtime.context.ids.new()}"
        for number, what in enumerate(wanted, 1):
            with notes().status(f"{number} of {len(wanted)}: {sanitize(what)}"):
                outcome = await _take_in(opened.runtime, what, run, trusted=given.mine)
            outcomes.append((what, outcome))
            if not given.json:
                said = "" if outcome.ok else f" {sanitize(outcome.summary)}"
                notes().print(f"{colorize(outcome.status.value)} {sanitize(what)}[dim]{said}[/]")
    return run, outcomes


async def _take_in(runtime: Runtime, what: str, run: str, *, trusted: bool) -> Outcome:
    if _is_address(what):
        return await runtime.call("web_access", {"url": what}, actor=_YOU, question=what, run=run)
    return await runtime.call("ingest_file", {"path": what, "trusted": trusted}, actor=_YOU, run=run)


def _is_address(what: str) -> bool:
    return what.startswith(("http://", "https://"))


def _spread(what: str) -> list[str]:
    """A folder as the files in it that can be read."""
    from interlock.errors import ConfigError
    from interlock_argo.reading.readable import READABLE_FILES

    path = Path(what)
    if _is_address(what) or path.is_file():
        return [what if _is_address(what) else str(path.resolve())]
    if not path.is_dir():
        raise ConfigError(f"{what}: there is no such file or folder (an address begins with https://)")
    found = sorted(one for one in path.rglob("*") if one.suffix.lower() in READABLE_FILES and one.is_file())
    if not found:
        raise ConfigError(f"{what}: no file in it can be read; it takes {', '.join(sorted(READABLE_FILES))}")
    if len(found) > _MOST_FILES:
        raise ConfigError(f"{what} has {len(found):,} files; at most {_MOST_FILES:,} are taken in at once")
    return [str(one.resolve()) for one in found]


def run_undo(given: argparse.Namespace) -> int:
    """Take back what one command took in."""
    outcomes = run_to_end(_undo(given))
    if given.json:
        print_json([{"status": outcome.status.value, "said": outcome.summary} for outcome in outcomes])
    else:
        for outcome in outcomes:
            console().print(f"{colorize(outcome.status.value)} {sanitize(outcome.summary)}")
        if not outcomes:
            notes().print(f"nothing was taken in under {sanitize(given.ingested)}, or it was taken back already")
    return int(not outcomes or not all(outcome.ok for outcome in outcomes))


async def _undo(given: argparse.Namespace) -> list[Outcome]:
    from interlock_argo.opened import OpenedArgo

    async with OpenedArgo(given) as opened:
        done = await opened.runtime.operations.undo(run=given.ingested)
    return [outcome for _step, outcome in done if outcome is not None]


def run_search(given: argparse.Namespace) -> int:
    """Show what is found."""
    found = run_to_end(_search(given))
    if given.json:
        print_json(found)
        return 0
    if found.note:
        notes().print(sanitize(found.note), soft_wrap=True)
    for hit in found.hits:
        about = " · ".join(part for part in (hit.title, hit.source, hit.trust.value) if part)
        console().print(f"[bold]{hit.score:.2f}[/] {sanitize(hit.snippet)}")
        console().print(f"     [dim]{sanitize(about)} · {hit.chunk}[/]")
    if not found.hits:
        console().print("nothing is remembered about that")
    return 0


async def _search(given: argparse.Namespace) -> SearchResult:
    from interlock_argo.memory.home import MemoryHome
    from interlock_argo.settings import load_settings

    home = MemoryHome(load_settings())
    try:
        which = {} if given.namespace is None else {"namespace": given.namespace}
        return await home.memory.search(given.query, top_k=given.top, **which)
    finally:
        await home.close()


def run_show(given: argparse.Namespace) -> int:
    """Show one document, or how much there is."""
    return run_to_end(_show(given))


async def _show(given: argparse.Namespace) -> int:
    from interlock_argo.memory.home import MemoryHome
    from interlock_argo.settings import load_settings

    home = MemoryHome(load_settings())
    try:
        found = await home.memory.documents(document=(given.document or "").partition(".")[0])
        state = await home.memory.state()
    finally:
        await home.close()
    if given.json:
        print_json(found if given.document else {"state": state, "newest": found})
        return int(bool(given.document) and not found)
    if given.document:
        for one in found:
            console().print(f"[bold]{sanitize(one.title or one.id)}[/] [dim]{sanitize(', '.join(one.sources))}[/]")
            console().print(sanitize(one.text, lines=True), soft_wrap=True)
        if not found:
            notes().print(f"there is no document {sanitize(given.document)}")
        return int(not found)
    console().print(f"{state.documents} documents, {state.chunks} chunks ({state.embedded} found by meaning)")
    listing = table("came in last", ("document", "kind", "trust", "namespace", "title", "source"))
    for one in found:
        cells = (one.id, one.kind.value, one.trust.value, one.namespace, one.title, one.sources[-1])
        listing.add_row(*map(sanitize, cells))
    console().print(listing)
    return 0


def run_forget(given: argparse.Namespace) -> int:
    """Remove something for good."""
    gone = run_to_end(_forget(given))
    if given.json:
        print_json(gone)
    else:
        console().print(
            f"{gone.documents} documents and {gone.facts} facts forgotten, {gone.kept} kept from other sources"
        )
        if gone.lingers:
            notes().print("somebody was reading the memory, so its log still has copies; the next command clears it")
    return int(not gone.documents and not gone.kept)


async def _forget(given: argparse.Namespace) -> Forgotten:
    from interlock_argo.opened import OpenedArgo

    async with OpenedArgo(given) as opened:
        named = {
            name: value for name in ("document", "source", "namespace") if (value := getattr(given, name)) is not None
        }
        return await opened.home.memory.forget(reason=given.reason, runtime=opened.runtime, **named)
