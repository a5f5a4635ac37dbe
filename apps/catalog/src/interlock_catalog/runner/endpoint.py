"""The worker's HTTP endpoint: its health for a monitor, and a way for events to start a run."""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated, Any

import msgspec
from fastapi import FastAPI, Header, HTTPException, Response

from interlock.errors import InterlockError
from interlock_catalog.contracts import Strict
from interlock_catalog.runner.health import check_health
from interlock_catalog.runner.ids import new_run_id
from interlock_catalog.runner.records import RunRequest, RunStore
from interlock_catalog.settings import Settings


class Event(Strict):
    """Something happened: have these families looked at."""

    families: list[str] = []
    mode: str = "dry_run"
    event: str = "http"


def build_app(settings: Settings, runs: RunStore) -> FastAPI:
    """GET /health and POST /runs."""
    app = FastAPI(title="Catalog worker", docs_url=None, redoc_url=None)

    @app.get("/health")
    async def get_health(response: Response) -> dict[str, Any]:
        """200 if all is well, 503 with the alarms otherwise."""
        found = await check_health(settings, runs, None)
        response.status_code = 200 if found.ok else 503
        shown: dict[str, Any] = msgspec.to_builtins(found)
        return shown

    @app.post("/runs", status_code=202)
    async def start_run(event: Event, authorization: Annotated[str, Header()] = "") -> dict[str, str]:
        """Enqueue a run."""
        # In constant time, so that a token cannot be guessed letter by letter.
        wanted = f"Bearer {settings.token}".encode()
        if not settings.token or not secrets.compare_digest(authorization.encode(), wanted):
            raise HTTPException(401, "a run is started with the worker's token (setting token)")
        if event.mode not in ("dry_run", "apply", "shadow"):
            raise HTTPException(422, "mode is dry_run, apply or shadow")
        from interlock_catalog.runner.durable import enqueue_run

        request = RunRequest(
            run=new_run_id(),
            mode=event.mode,
            families=tuple(event.families),
            max_changes=settings.max_changes,
            by=f"event:{event.event}"[:80],
        )
        try:
            await asyncio.to_thread(enqueue_run, settings, request)
        except InterlockError as error:
            raise HTTPException(503, str(error)) from None
        return {"run": request.run}

    return app


async def serve_endpoint(settings: Settings, runs: RunStore, port: int) -> None:
    """Answer until cancelled, on this machine only."""
    import uvicorn

    config = uvicorn.Config(build_app(settings, runs), host="127.0.0.1", port=port, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    # Not `serve()`, which takes over the signals: the worker has handlers of its own.
    await server._serve()
