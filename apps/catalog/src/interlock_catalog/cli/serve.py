"""`interlock catalog serve` and `token`: the catalog behind HTTP."""

from __future__ import annotations

import argparse
from typing import Any

from interlock.cli.output import notes, print_json, shown
from interlock_catalog.cli.common import add, loaded_of


def register(actions: Any) -> None:
    """Add the commands."""
    serve = add(
        actions,
        "serve",
        run_serve,
        "put the catalog behind HTTP",
        "Serve the catalog of this folder over HTTP:"
        " tokens with roles, ETags, idempotency keys, OpenAPI at /openapi.json.",
    )
    serve.add_argument("--host", default="127.0.0.1", help="where to listen (default: this machine only)")
    serve.add_argument("--port", type=int, default=8087)
    serve.add_argument("--tokens", metavar="FILE", help="TOML file of tokens and roles (default: tokens.toml)")

    token = add(
        actions,
        "token",
        run_token,
        "make a token for the server",
        "Make a token; it is shown once, and only its digest is kept.",
    )
    token.add_argument("name", help="whose")
    token.add_argument("--role", choices=("reader", "editor", "admin"), default="reader")
    token.add_argument("--tokens", metavar="FILE", help="TOML file of tokens and roles (default: tokens.toml)")


def run_token(given: argparse.Namespace) -> int:
    """Make one, and show it."""
    from interlock_catalog.server.tokens import new_token

    loaded = loaded_of(given)
    made = new_token(loaded.folder / (given.tokens or "tokens.toml"), given.name, given.role)
    print_json({"name": given.name, "role": given.role, "token": made}) if given.json else print(made)
    return 0


def run_serve(given: argparse.Namespace) -> int:
    """Until stopped."""
    import uvicorn

    from interlock_catalog.server.app import make_app
    from interlock_catalog.server.tokens import read_tokens

    loaded = loaded_of(given)
    tokens = read_tokens(loaded.folder / (given.tokens or "tokens.toml"))
    app = make_app(loaded.url("backend"), tokens)
    notes().print(f"serving {shown(loaded.settings.backend)} at http://{shown(given.host)}:{given.port}")
    uvicorn.run(app, host=given.host, port=given.port, log_level="warning", limit_concurrency=500)
    return 0
