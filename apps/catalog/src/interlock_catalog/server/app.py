"""The server as one ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError

from interlock_catalog.server.errors import HANDLED, error_response, validation_error_response
from interlock_catalog.server.read_routes import build_read_router
from interlock_catalog.server.request_limits import MAX_S, RequestLimits
from interlock_catalog.server.store import ServerStore
from interlock_catalog.server.tokens import Tokens
from interlock_catalog.server.write_routes import build_write_router


def build_server(url: str, tokens: Tokens, *, max_s: float = MAX_S) -> FastAPI:
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
        app.add_exception_handler(kind, error_response)
    app.add_exception_handler(RequestValidationError, validation_error_response)
    # Around everything else: whoever has no token is refused before a body is read.
    app.add_middleware(RequestLimits, tokens=tokens, max_s=max_s)
    app.include_router(build_read_router(store, tokens))
    app.include_router(build_write_router(store, tokens))

    @app.get("/health", include_in_schema=False)
    async def health() -> dict[str, int]:
        return {"documents": await store.backend.documents.count()}

    return app
