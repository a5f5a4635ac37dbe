"""The server as one application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError

from interlock_catalog.server.gate import HANDLED, LONGEST_S, Door, failed, unreadable
from interlock_catalog.server.reads import reading
from interlock_catalog.server.store import ServerStore
from interlock_catalog.server.writes import writing


def make_app(url: str, tokens: dict[str, tuple[str, str]], *, longest_s: float = LONGEST_S) -> FastAPI:
    """The catalog of a database behind HTTP."""
    store = ServerStore(url)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        await store.close()

    app = FastAPI(
        title="Catalog",
        version="1",
        description="A catalog of exercises: functions by name. Writes honour If-Match, Idempotency-Key and"
        " X-Fencing-Tokens.",
        lifespan=lifespan,
    )
    for kind in HANDLED:
        app.add_exception_handler(kind, failed)
    app.add_exception_handler(RequestValidationError, unreadable)
    app.add_middleware(Door, tokens=tokens, longest_s=longest_s)
    app.include_router(reading(store, tokens))
    app.include_router(writing(store, tokens))

    @app.get("/health", include_in_schema=False)
    async def health() -> dict[str, int]:
        return {"documents": await store.backend.documents.count()}

    return app
