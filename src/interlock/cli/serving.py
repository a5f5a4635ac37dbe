"""`interlock mcp serve`: the gate as a server of MCP, for as long as its client is there or nobody ends it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

from interlock.cli.options import load_command_settings, store_option
from interlock.cli.output import notes, sanitize
from interlock.cli.results import result_stream
from interlock.cli.workspace import open_with_servers
from interlock.config import Loaded
from interlock.errors import ConfigError

if TYPE_CHECKING:
    from interlock.adapters.mcp.http import HttpTerms
    from interlock.adapters.mcp.servers import McpServers

_END_S = 10.0
_BY_SIGNAL = 128
"""As shells count it: that and the number of the signal."""


def add_serve(actions: Any) -> Any:
    """Its options."""
    serve = actions.add_parser(
        "serve",
        help="offer the tools to a client: over standard input and output, or --http",
        description="Be an MCP server for a client, in front of all servers and tools that the settings name."
        " Every call takes the path; what waits for a person is said in its result.",
    )
    serve.add_argument(
        "--http", metavar="HOST:PORT", help="listen there (POST /mcp) instead of standard input and output"
    )
    serve.add_argument(
        "--host", action="append", default=[], metavar="NAME", help="another name that it is reached by, beside HOST"
    )
    serve.add_argument("--bearer", metavar="FILE", help="with --http: the file of the token that a client has to bring")
    serve.add_argument(
        "--issuer", default="", metavar="URL", help="with --http: the OAuth 2.1 server whose tokens count"
    )
    serve.add_argument("--audience", default="", metavar="URL", help="what its tokens have to be for: this gateway")
    serve.add_argument(
        "--jwks", default="", metavar="URL|FILE", help="its keys (default: ISSUER/.well-known/jwks.json)"
    )
    serve.add_argument("--scope", action="append", default=[], help="what a token has to allow")
    serve.add_argument("--actor", default="mcp", help="who calls, for grants and rules (default: mcp)")
    return serve


async def serve_until_ended(given: argparse.Namespace) -> int:
    """Serve."""
    from interlock.adapters.mcp import serve_mcp
    from interlock.adapters.mcp.gateway import APPROVE
    from interlock.adapters.mcp.http import serve_http

    if given.http is None and (given.bearer or given.issuer or given.host):
        raise ConfigError(
            "tokens and names are for --http: over standard input and output, the user of the process calls"
        )
    _refuse_nothing(load_command_settings(given))
    async with open_with_servers(given, exists=False) as (runtime, servers):
        _end_with_sigterm(servers)
        approve = f"{APPROVE}{store_option(given)}"
        starting = None if servers is None else asyncio.create_task(_start(servers))
        if given.http is not None:
            await serve_http(runtime, _http_terms(given), servers=servers, actor=given.actor, approve=approve, say=_say)
        else:
            await serve_mcp(runtime, servers=servers, actor=given.actor, approve=approve, out=result_stream())
        if starting is not None:
            starting.cancel()
    return 0


def _refuse_nothing(loaded: Loaded) -> None:
    """A client starts this in a folder of its own choice, where the settings need not be."""
    if not loaded.servers and not loaded.settings.tools:
        there = "names no servers and no tools" if loaded.file.exists() else "is not there"
        raise ConfigError(
            f"there is nothing to serve: {loaded.file.absolute()} {there}; say where the settings are (--config FILE),"
            " or begin with interlock mcp add NAME -- COMMAND"
        )


def _end_with_sigterm(servers: McpServers | None) -> None:
    """The servers that were started end with this process. What is under way is as after a crash: the ledger knows."""
    if threading.current_thread() is not threading.main_thread():
        return
    loop, ending = asyncio.get_running_loop(), set[asyncio.Task[None]]()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup wants it
            loop.add_signal_handler(number, lambda which: ending.add(loop.create_task(_end(servers, which))), number)


async def _end(servers: McpServers | None, number: int) -> None:
    if servers is not None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(servers.close(), _END_S)
    os._exit(_BY_SIGNAL + number)


async def _start(servers: McpServers) -> None:
    """Beside what is served: one that does not come up keeps nobody waiting."""
    for name, why in (await servers.start()).items():
        notes().print(f"[yellow]{sanitize(name)}[/]: {sanitize(why)}")


def _http_terms(given: argparse.Namespace) -> HttpTerms:
    from interlock.adapters.mcp.http import HttpTerms
    from interlock.adapters.mcp.oauth import OAuthTerms

    oauth = None
    if not given.issuer and (given.audience or given.jwks or given.scope):
        raise ConfigError("--audience, --jwks and --scope say which tokens of --issuer count: name that, too")
    if given.issuer:
        if not given.audience:
            raise ConfigError("--issuer needs --audience: the address of this gateway, for which its tokens have to be")
        keys = given.jwks or f"{given.issuer.rstrip('/')}/.well-known/jwks.json"
        oauth = OAuthTerms(given.issuer, given.audience, keys, tuple(given.scope))
    return HttpTerms(address=given.http, bearer=given.bearer or "", oauth=oauth, hosts=tuple(given.host))


def _say(text: str) -> None:
    notes().print(sanitize(text))
