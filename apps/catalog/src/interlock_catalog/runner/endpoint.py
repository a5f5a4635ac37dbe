"""The worker's HTTP endpoint: its health for a monitor, and a way for events to start a run."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import msgspec
import uvicorn
from fastapi import FastAPI, HTTPException, Response
from pydantic import Field

from interlock.errors import ConfigError, InterlockError
from interlock_catalog.contracts import Slug, Strict
from interlock_catalog.enabled import select_enabled
from interlock_catalog.runner.health import check_health
from interlock_catalog.runner.ids import new_run_id
from interlock_catalog.runner.missing_families import find_missing_families
from interlock_catalog.runner.records import RunRequest, RunStore
from interlock_catalog.server.connections import build_config
from interlock_catalog.server.request_limits import RequestLimits
from interlock_catalog.server.tokens import TokenHolder, digest_token
from interlock_catalog.settings import Loaded


class Event(Strict):
    """Something happened: have these families looked at."""

    families: Annotated[list[Slug], Field(max_length=1000)] = []
    mode: Literal["dry_run", "apply", "shadow"] = "dry_run"
    event: Annotated[str, Field(max_length=80)] = "http"


def build_app(loaded: Loaded, runs: RunStore) -> FastAPI:
    """GET /health and POST /runs."""
    settings = loaded.settings
    app = FastAPI(title="Catalog worker", docs_url=None, redoc_url=None, openapi_url=None)
    # Around everything else: whoever has no token is refused before a body is read, let alone judged.
    tokens = {digest_token(settings.token): TokenHolder("worker", "editor")} if settings.token else {}
    app.add_middleware(RequestLimits, tokens=tokens)

    @app.get("/health")
    async def get_health(response: Response) -> dict[str, Any]:
        """200 if all is well, 503 with the alarms otherwise."""
        found = await check_health(settings, runs, None)
        response.status_code = 200 if found.ok else 503
        shown: dict[str, Any] = msgspec.to_builtins(found)
        return shown

    @app.post("/runs", status_code=202)
    async def start_run(event: Event) -> dict[str, str]:
        """Enqueue a run."""
        from interlock_catalog.runner.durable import enqueue_run

        missing = await find_missing_families(settings, event.families)
        if missing:
            raise HTTPException(422, f"there is no family {', '.join(missing[:10])}")
        try:
            families = select_enabled(loaded, event.families) if event.mode == "apply" else tuple(event.families)
        except ConfigError as error:
            raise HTTPException(409, str(error)) from None
        request = RunRequest(
            run=new_run_id(),
            mode=event.mode,
            families=families,
            max_changes=settings.max_changes,
            by=f"event:{event.event}"[:80],
        )
        try:
            await asyncio.to_thread(enqueue_run, settings, request)
        except InterlockError as error:
            raise HTTPException(503, str(error)) from None
        return {"run": request.run}

    return app


class _EndpointServer(uvicorn.Server):
    """A server inside a process that has signal handlers of its own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the worker."""
        yield


async def serve_endpoint(loaded: Loaded, runs: RunStore, listener: socket.socket) -> None:
    """Answer until cancelled."""
    config = build_config(build_app(loaded, runs), lifespan="off", timeout_graceful_shutdown=1)
    server = _EndpointServer(config)
    try:
        await server.serve(sockets=[listener])
    finally:
        listener.close()
