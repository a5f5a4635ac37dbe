"""`interlock catalog serve` and `token`: the catalog behind HTTP."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from interlock.cli.output import console, notes, print_json, sanitize
from interlock_catalog.cli.arguments import add_command
from interlock_catalog.settings import Loaded, home_option, load_existing_catalog


def register(actions: Any) -> None:
    serve = add_command(
        actions,
        "serve",
        run_serve,
        "put the catalog behind HTTP",
        "Serve the catalog of this folder over HTTP:"
        " tokens with roles, ETags, idempotency keys, OpenAPI at /openapi.json.",
    )
    serve.add_argument("--host", default="127.0.0.1", help="where to listen (default: this machine only)")
    serve.add_argument("--port", type=int, default=8087, help="default: 8087")
    serve.add_argument("--tokens", metavar="FILE", help="TOML file of tokens and roles (default: tokens.toml)")

    token = add_command(
        actions,
        "token",
        run_token,
        "create a token for the server",
        "Create a token; it is shown once, and only its digest is kept.",
    )
    token.add_argument("name", help="whose")
    token.add_argument("--role", choices=("reader", "editor", "admin"), default="reader", help="default: reader")
    token.add_argument("--tokens", metavar="FILE", help="TOML file of tokens and roles (default: tokens.toml)")


def _token_file(given: argparse.Namespace, loaded: Loaded) -> Path:
    return loaded.folder / (given.tokens or "tokens.toml")


def run_token(given: argparse.Namespace) -> int:
    """Create a token, and show it."""
    from interlock_catalog.server.tokens import create_token

    loaded = load_existing_catalog(given.home)
    made = create_token(_token_file(given, loaded), given.name, given.role)
    print_json({"name": given.name, "role": given.role, "token": made}) if given.json else console().print(made)
    return 0


def run_serve(given: argparse.Namespace) -> int:
    """Serve until stopped."""
    import uvicorn

    from interlock_catalog.server.app import build_server
    from interlock_catalog.server.connections import build_config, open_listener
    from interlock_catalog.server.tokens import read_tokens

    loaded = load_existing_catalog(given.home)
    named = "" if given.tokens is None else f" --tokens {shlex.quote(given.tokens)}"
    tokens = read_tokens(_token_file(given, loaded), f"{home_option(given.home)}{named}")
    app = build_server(loaded.settings.backend, tokens)
    listener = open_listener(given.host, given.port)
    notes().print(f"serving {sanitize(loaded.settings.backend)} at http://{sanitize(given.host)}:{given.port}")
    uvicorn.Server(build_config(app)).run(sockets=[listener])
    return 0
