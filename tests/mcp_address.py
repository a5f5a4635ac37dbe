"""An application behind an address on this machine, for as long as a test needs it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import uvicorn


@contextlib.asynccontextmanager
async def served_at(app: Any, path: str = "/mcp", port: int = 0) -> AsyncIterator[str]:
    """Serve it; its address."""
    listening = socket.create_server(("127.0.0.1", port))
    web = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on", timeout_graceful_shutdown=1))
    serving = asyncio.create_task(web.serve(sockets=[listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}{path}"
    finally:
        web.should_exit = True
        await serving
