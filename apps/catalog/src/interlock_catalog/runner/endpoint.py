"""The worker's address: its health for a monitor, and a way for events to start a run."""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated, Any

import msgspec
from fastapi import FastAPI, Header, HTTPException, Response

from interlock.errors import InterlockError
from interlock_catalog.contracts import Strict
from interlock_catalog.runner.health import health
from interlock_catalog.runner.ids import new_run
from interlock_catalog.runner.record import Order, Runs
from interlock_catalog.settings import Loaded


class Event(Strict):
    """Something happened: have these families looked at."""

    families: list[str] = []
    mode: str = "dry_run"
    event: str = "http"


def make_app(loaded: Loaded, runs: Runs) -> FastAPI:
    """The two addresses of a worker."""
    app = FastAPI(title="Catalog worker", docs_url=None, redoc_url=None)

    @app.get("/health")
    async def look(response: Response) -> dict[str, Any]:
        """200 if all is well, 503 with the alarms otherwise."""
        found = await health(loaded, runs, None)
        response.status_code = 200 if found.ok else 503
        shown: dict[str, Any] = msgspec.to_builtins(found)
        return shown

    @app.post("/runs", status_code=202)
    async def start(event: Event, authorization: Annotated[str, Header()] = "") -> dict[str, str]:
        """Enqueue a run."""
        token = loaded.settings.token
        if not token or not secrets.compare_digest(authorization, f"Bearer {token}"):
            raise HTTPException(401, "a run is started with the worker's token (setting token)")
        if event.mode not in ("dry_run", "apply", "shadow"):
            raise HTTPException(422, "mode is dry_run, apply or shadow")
        from interlock_catalog.runner.durable import enqueue

        order = Order(
            run=new_run(),
            mode=event.mode,
            families=tuple(event.families),
            max_changes=loaded.settings.max_changes,
            by=f"event:{event.event}"[:80],
        )
        try:
            await asyncio.to_thread(enqueue, loaded, order)
        except InterlockError as error:
            raise HTTPException(503, str(error)) from None
        return {"run": order.run}

    return app


async def endpoint(loaded: Loaded, runs: Runs, port: int) -> None:
    """Answer until cancelled."""
    import uvicorn

    config = uvicorn.Config(make_app(loaded, runs), host="127.0.0.1", port=port, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    await server._serve()
